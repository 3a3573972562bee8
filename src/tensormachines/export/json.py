"""A model as JSON: all its numbers, for readers in any language."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from .._model.affine_basis import AffineBasis
from .._model.description import describe
from .._model.linear_forms import LinearForms, linear_forms

# A reader refuses a format that is newer than it knows, because it would misread the text.
FORMAT, SHARED_FORMAT = 1, 2
FORMATS_OF_LINKS = {"log": 3, "sigmoid": 4, "sorted": 5}


def to_json(model: Any, indent: int | None = None) -> str:
    """Return a model as one JSON object, from which it can be evaluated in any language.

    docs/export.md explains the fields. Numbers have all their digits: read as float64, they equal the numbers
    of the model.

    Parameters
    ----------
    model : fitted regressor or classifier
    indent : int, optional
        Number of spaces per indentation level; None writes everything on one line.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> import json
    >>> [column["name"] for column in json.loads(to_json(model))["columns"]][:3]
    ['age', 'sex', 'bmi']
    """
    forms = linear_forms(describe(model))
    described, layout = forms.description, forms.description.layout
    fields = {
        "kind": described.kind,
        "link": described.link,
        "classes": None if described.classes is None else forms.labels,
        "targets": described.target_names,
        "columns": [_column(forms, j) for j in range(forms.n_columns)],
        "basis": _affine(forms, forms.affine) if forms.affine else _spline(forms),
        "terms": described.terms,
        "degree": layout.degree,
        "rank": layout.rank,
        "intercept": described.intercept.tolist(),
        "coef": described.coef.tolist(),
        "factors": {p: factors.tolist() for p, factors in described.factors.items()},
        "term_weights": {p: weights.tolist() for p, weights in described.term_weights.items()} or None,
        "largest_outputs": None if described.largest_outputs is None else described.largest_outputs.tolist(),
        "quantiles": None if described.quantiles is None else described.quantiles.tolist(),
        "squeeze": described.squeeze,
        "format": FORMATS_OF_LINKS.get(described.link, SHARED_FORMAT if layout.shared else FORMAT),
    }
    return json.dumps(fields, indent=indent, allow_nan=False)


def _column(forms: LinearForms, j: int) -> dict[str, Any]:
    described, column, missing = forms.description, forms.description.columns[j], "refused"
    if forms.affine is None:
        spline = forms.splines.columns[j]
        missing = "own" if spline.missing else "zero" if spline.reference < 0 else "commonest"
    return {
        "name": j if described.feature_names is None else described.names[j],
        "levels": column.levels,
        "rare": column.pooled,
        "missing": missing,
        "kind": column.kind,
    }


def _affine(forms: LinearForms, basis: AffineBasis) -> dict[str, Any]:
    return {
        "name": forms.description.basis_name,
        "center": forms.center.tolist(),
        "scale": forms.scale.tolist(),
        "clip": float(basis.clip) if np.isfinite(basis.clip) else None,
        "constant": float(basis.constant),
        "unit_rows": basis.unit_rows,
    }


def _spline(forms: LinearForms) -> dict[str, Any]:
    centers = [center.tolist() for center in forms.centers]
    return {
        "columns": [_spline_column(forms, j, center) for j, center in enumerate(centers)],
        "size": forms.size,
        **asdict(forms.splines.shape),
        "name": "spline",
    }


def _spline_column(forms: LinearForms, j: int, center: list[float]) -> dict[str, Any]:
    column, knots = forms.splines.columns[j], forms.knots(j)
    if knots is None:
        n_levels, missing = len(column.knots), column.missing
        return {"n_levels": n_levels, "size": forms.size, "missing": missing, "center": center}
    functions = forms.functions(j)
    return {
        "knots": knots.tolist(),
        "values": functions[:-1].tolist(),
        "at_missing": functions[-1].tolist(),
        "waves": column.waves,
        "mean": column.mean,
        "deviation": column.deviation,
        "missing": column.missing,
        "only_missing": not len(column.knots),
        "reference": column.reference,
        "center": center,
    }
