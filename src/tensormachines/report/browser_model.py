"""The model as the page runs it, and what can be put into it there: plain values for JSON, which model.js
reads.

It computes as every export does (`_model.linear_forms`): linear forms of a row, then sums of their products.
Arrays are the bytes of float64 in base64."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from scipy import sparse

from .._model.basis import Basis
from .._model.description import describe
from .._model.linear_forms import LinearForms, linear_forms
from .._model.spline_basis import SplineBasis
from ..inspection.displacements import NORM, moves_about

MOST_BINS = 24
TAIL = 0.005  # of the rows lie beyond each end of a slider


def live_model(model: Any, rows: Any) -> dict[str, Any]:
    """Parts are relative to the mean of the rows, which are numbers, as the model encodes them."""
    forms = linear_forms(describe(model))
    description = forms.description
    moves = moves_about(model, None if forms.n_outputs == 1 else _first_output(model), rows)
    means = np.array([moves.center[places] @ forms.weights[places] for places in moves.places])
    described = {
        "names": description.names,
        "levels": [None if column.levels is None else list(column.levels) for column in description.columns],
        "rare": [column.pooled for column in description.columns],
        "link": description.link,
        "intercept": description.intercept.tolist(),
        "terms": _terms(forms),
        "offset": text(forms.offset),
        "means": text(means),
    }
    if forms.affine:
        return described | {"basis": _affine(forms, forms.affine), "weights": text(forms.weights)}
    knots = [forms.knots(column) for column in range(forms.n_columns)]
    splines = [
        {"knots": None if places is None else text(places), "table": text(table)}
        for places, table in zip(knots, forms.tables, strict=True)
    ]
    return described | {"splines": splines}


def _terms(forms: LinearForms) -> list[list[list[int]]]:
    """For each output the forms that are multiplied with each other, by number."""
    terms = [[[output]] for output in range(forms.n_outputs)]
    form = len(terms)
    for p, counts in forms.n_terms.items():
        for of_output, count in zip(terms, counts, strict=True):
            for _ in range(count):
                of_output.append(list(range(form, form + p)))
                form += p
    return terms


def _affine(forms: LinearForms, basis: Basis) -> dict[str, Any]:
    return {
        "center": text(forms.center),
        "scale": text(forms.scale),
        "clip": None if np.isinf(basis.clip) else basis.clip,
        "constant": basis.constant,
        "unit_rows": basis.unit_rows,
        "norm": NORM,
    }


def _first_output(model: Any) -> Any:
    """The reference is the same for all."""
    return model.classes_[0] if hasattr(model, "classes_") else 0


def text(array: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()


# ---- inputs


def live_inputs(model: Any, rows: Any, columns: list[int]) -> list[dict[str, Any]]:
    """What the page needs to know of each of these columns to let people choose a value; rows are numbers, as
    the model encodes them.
    """
    description = describe(model)
    fitted, basis = description.columns, description.machine.basis
    inputs = []
    for j in columns:
        of_column = entries(rows, j)
        found = _number(of_column) if fitted[j].levels is None else _category(of_column, fitted[j].n_codes)
        n_missing = int(np.isnan(of_column).sum())
        has_own = isinstance(basis, SplineBasis) and basis.columns[j].missing
        inputs.append(
            {
                "column": j,
                "missing": has_own or n_missing > 0,
                "n_missing": n_missing,
                **found,
            }
        )
    return inputs


def typical_row(model: Any, rows: Any) -> list[float | None]:
    """Medians, commonest levels; missing where everything is."""
    fitted = describe(model).columns
    return [_typical(entries(rows, j), column.levels is not None) for j, column in enumerate(fitted)]


def example_rows(rows: Any, numbers: np.ndarray) -> list[list[float | None]]:
    chosen = rows[numbers].toarray() if sparse.issparse(rows) else rows[numbers]
    return [[plain(entry) for entry in row] for row in chosen.tolist()]


def entries(rows: Any, column: int) -> np.ndarray:
    found = rows[:, [column]].toarray()[:, 0] if sparse.issparse(rows) else rows[:, column]
    return np.asarray(found, dtype=np.float64)


def plain(number: float) -> float | None:
    return None if number != number else number


def _typical(of_column: np.ndarray, category: bool) -> float | None:
    known = of_column[~np.isnan(of_column)]
    if not len(known):
        return None
    return float(
        np.bincount(known.astype(np.intp)).argmax() if category else np.quantile(known, 0.5, method="lower")
    )


def _number(of_column: np.ndarray) -> dict[str, Any]:
    known = of_column[~np.isnan(of_column)]
    if not len(known):
        known = np.zeros(1)
    low, high = np.quantile(known, [TAIL, 1 - TAIL], method="nearest")
    if low == high:
        low, high = known.min(), known.max()
    whole = bool((known == np.round(known)).all())
    bins = int(min(MOST_BINS, high - low + 1)) if whole and high - low < MOST_BINS else MOST_BINS
    half = 0.5 if whole and bins < MOST_BINS else 0.0  # each whole number in the middle of a bar of its own
    counts, reach = (
        np.array([len(known)]),
        high / 2 - low / 2,
    )  # halves, because the difference of large numbers may overflow
    if reach > 0:  # counted by their places between the ends, which differ where large numbers hardly do
        counts = np.histogram(
            (known / 2 - low / 2) / reach, bins=bins, range=(-half / 2 / reach, 1 + half / 2 / reach)
        )[0]
    return {
        "kind": "number",
        "low": float(low),
        "high": float(high),
        "whole": whole,
        "zero_or_one": bool(np.isin(known, (0, 1)).all() and high > low),
        "half": half,
        "counts": counts.tolist(),
    }


def _category(of_column: np.ndarray, n_codes: int) -> dict[str, Any]:
    known = of_column[~np.isnan(of_column)].astype(np.intp)
    return {"kind": "category", "counts": np.bincount(known, minlength=n_codes).tolist()}
