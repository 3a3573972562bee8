"""A model as a Python module that needs only NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model.description import describe
from .._model.linear_forms import LinearForms, linear_forms
from . import _python_templates as parts
from ._literals import column_of, nested, number


def to_python(model: Any) -> str:
    """Return the source of a Python module that predicts like ``model`` and imports only NumPy.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search, greedy or factorization machine.

    Returns
    -------
    source : str
        A module with ``predict(rows)``, and for classifiers ``decision_function(rows)`` and
        ``predict_proba(rows)``. ``rows`` is a two-dimensional array, a list of rows, a dict of columns, or a
        pandas or polars dataframe. None and NaN are missing. ``TARGETS`` holds the names of several targets
        or labels, in the order of the columns of predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> module = {}
    >>> exec(to_python(model), module)  # or write it to a file, and import that
    >>> bool(abs(module["predict"](X) - model.predict(X)).max() < 1e-6)
    True
    """
    forms = linear_forms(describe(model))
    predictions = _targets(forms) + _predictions(forms)
    pieces = [_head(forms), _columns(forms), _basis(forms), _terms(forms), predictions]
    return "\n\n".join(piece.strip("\n") + "\n" for piece in pieces)


def _array(name: str, array: np.ndarray) -> str:
    return f"{name} = np.array(\n    {nested(array.astype(np.float64), '[]')}\n).reshape({array.shape})\n"


def _head(forms: LinearForms) -> str:
    return f'"""{forms.about} It needs NumPy alone."""\n\nimport numpy as np\n'


def _columns(forms: LinearForms) -> str:
    columns = forms.description.columns
    names = zip(forms.description.names, columns, strict=True)
    text = "COLUMNS = [\n" + "".join(f"    {name!a},  # {column.kind}\n" for name, column in names) + "]\n"
    if all(column.levels is None for column in columns):
        return text + parts.NUMBERS + parts.NO_LEVELS
    text += "LEVELS = {  # by column; the numbers of their levels\n"
    unknown = []
    for j, column in enumerate(columns):
        if column.levels is not None:
            codes = column_of([f"{level!a}: {code}" for code, level in enumerate(column.levels)], " " * 8)
            text += f"    {j}: {{\n{codes}    }},\n"
            unknown.append(f"{j}: {len(column.levels) if column.pooled else 'np.nan'}")
    text += "}\nUNKNOWN = {  # by column; the number of all other levels\n" + column_of(unknown) + "}\n"
    return text + parts.NUMBERS + parts.LEVELS


def _basis(forms: LinearForms) -> str:
    basis = forms.affine
    if basis is None:
        return _tables(forms)
    text = _array("CENTER", forms.center) + _array("SCALE", forms.scale) + _array("WEIGHTS", forms.weights)
    body = ["    t = (numbers - CENTER) * SCALE\n"]
    if np.isfinite(basis.clip):
        body.append(f"    t = np.clip(t, {number(-basis.clip)}, {number(basis.clip)})\n")
    if basis.constant:
        body.append(f"    t = np.column_stack([t, np.full(len(t), {number(basis.constant)})])\n")
    if basis.unit_rows:
        body.append(parts.UNIT_ROWS)
    return text + parts.AFFINE.replace("    # t\n", "".join(body))


def _tables(forms: LinearForms) -> str:
    text = _array("OFFSET", forms.offset) + parts.TABLES
    for j, (name, table) in enumerate(zip(forms.description.names, forms.tables, strict=True)):
        knots = forms.knots(j)
        text += f"# {name!a}\n" + ("" if knots is None else _array(f"KNOTS[{j}]", knots))
        text += _array(f"TABLES[{j}]", table)
    return text + parts.SPLINE


def _terms(forms: LinearForms) -> str:
    described = forms.description
    text = _array("INTERCEPT", described.intercept) + f"N_OUTPUTS = {forms.n_outputs}\n"
    if forms.term_weights:
        text += "TERM_WEIGHTS = {}  # of each degree: by term and output\n"
        text += "".join(_array(f"TERM_WEIGHTS[{p}]", weights.T) for p, weights in forms.term_weights.items())
    if described.terms == "products" and forms.term_weights:
        return text + parts.SHARED_PRODUCTS
    if described.terms == "products":
        return text + f"N_TERMS = {forms.n_terms}  # of each degree, and of each output\n" + parts.PRODUCTS
    factors = [_array(f"FACTORS[{p}]", factors) for p, factors in described.factors.items()]
    add = parts.SHARED_ANOVA_ADD if forms.term_weights else parts.ANOVA_ADD
    return text + "FACTORS = {}\n" + "".join(factors) + parts.ANOVA.replace("        # add\n", add)


def _targets(forms: LinearForms) -> str:
    """Return the names of the columns of predictions, if they have any."""
    described = forms.description
    if described.squeeze or described.target_names is None:
        return ""
    return f"TARGETS = [\n{column_of([ascii(name) for name in described.target_names])}]\n"


def _predictions(forms: LinearForms) -> str:
    described = forms.description
    if described.link == "sigmoid":
        return parts.SIGMOID
    if described.quantiles is not None:
        return _array("QUANTILES", described.quantiles) + parts.SORTED
    if described.classes is None:
        outputs = "_outputs(rows)[:, 0]" if described.squeeze else "_outputs(rows)"
        if described.largest_outputs is None:
            return parts.REGRESSOR.replace("_outputs(rows)", outputs)
        code = parts.LOG_LINK.replace("_outputs(rows)", outputs)
        return _array("LARGEST", described.largest_outputs) + code
    dtype = "object" if described.classes.dtype.kind == "O" else repr(described.classes.dtype.str)
    labels = column_of([ascii(label) for label in forms.labels], " " * 8)
    classes = f"CLASSES = np.array(\n    [\n{labels}    ],\n    dtype={dtype},\n)\n"
    return classes + (parts.LOGISTIC if described.link == "logistic" else parts.SOFTMAX)
