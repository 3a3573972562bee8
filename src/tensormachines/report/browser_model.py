"""The model and its inputs as plain values for JSON, which browser/model.js and browser/inputs.js read.

Like every export, the model evaluates linear forms of a row and then sums of their products
(`_model.linear_forms`). Arrays are float64 bytes in base64."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from .._data.dates import CYCLES, from_days
from .._data.encoding import Columns
from .._model.description import Description
from .._model.linear_forms import LinearForms
from .._model.spline_basis import SplineBasis
from ..inspection.displacements import NORM, ColumnForms

MOST_BINS = 24
TAIL = 0.005  # share of the rows beyond each end of a slider


def browser_model(linear: LinearForms, of_outputs: Sequence[ColumnForms]) -> dict[str, Any]:
    """Return the model; contributions are relative to the reference of the forms of each output."""
    forms = of_outputs[0]
    described, columns, affine = linear.description, linear.description.columns, linear.affine
    means = np.array([forms.center[places] @ linear.weights[places] for places in forms.places])
    shared = {
        "names": described.names,
        "levels": [None if column.levels is None else list(column.levels) for column in columns],
        "rare": [column.pooled for column in columns],
        "link": described.link,
        "largest": None if described.largest_outputs is None else described.largest_outputs.tolist(),
        "intercept": described.intercept.tolist(),
        "terms": _terms(linear),
        "term_weights": _term_weights(linear),
        "offset": _base64(linear.offset),
        "means": _base64(means),
        "mean_parts": [each.means.tolist() for each in of_outputs],
    }
    if affine is None:
        splines = []
        for column, table in enumerate(linear.tables):
            knots = linear.knots(column)
            splines.append({"knots": None if knots is None else _base64(knots), "table": _base64(table)})
        return shared | {"splines": splines}
    basis = {
        "center": _base64(linear.center),
        "scale": _base64(linear.scale),
        "clip": None if np.isinf(affine.clip) else affine.clip,
        "constant": affine.constant,
        "unit_rows": affine.unit_rows,
        "norm": NORM,
    }
    return shared | {"basis": basis, "weights": _base64(linear.weights)}


def _terms(linear: LinearForms) -> list[list[list[int]]]:
    """Return the terms of each output; a term is the list of indices of the forms to multiply.

    Shared terms are listed for every output."""
    terms = [[[output]] for output in range(linear.n_outputs)]
    form = len(terms)
    for p, counts in linear.n_terms.items():
        for number, count in enumerate(counts):
            of_set = [list(range(form + i * p, form + (i + 1) * p)) for i in range(count)]
            for of_output in terms if linear.term_weights else [terms[number]]:
                of_output += of_set
            form += p * count
    return terms


def _term_weights(linear: LinearForms) -> list[list[float]] | None:
    """Return the weights of the terms of each output; None if all are 1."""
    if not linear.term_weights:
        return None
    linear_part = np.ones((linear.n_outputs, 1))
    return np.hstack([linear_part, *linear.term_weights.values()]).tolist()


def _base64(array: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()


# ---- inputs


def browser_inputs(
    described: Description,
    rows: Any,
    numbers: Sequence[int],
    booleans: Collection[int] = (),
    dates: Mapping[int, Mapping[str, int]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return what the controls of the columns with these indices need to know; ``booleans`` are the indices
    of boolean columns, and ``dates`` come from `dates_of`.
    """
    columns, basis, inputs = described.columns, described.machine.basis, []
    thresholds = described.machine.thresholds or [np.empty(0)] * len(columns)
    for j in numbers:
        values = _values(rows, j)
        known = values[~np.isnan(values)]
        n_missing = len(values) - len(known)
        can_miss = n_missing > 0 or (isinstance(basis, SplineBasis) and basis.columns[j].missing)
        missing = {"missing": can_miss, "n_missing": n_missing}
        if columns[j].levels is None:
            boolean = j in booleans and bool(np.isin(known, (0, 1)).all())
            found = number_input(known) | {"boolean": boolean, "jumps": thresholds[j].tolist()}
            if boolean:  # one of the two may not be in these rows
                found["counts"] = np.bincount(known.astype(np.intp), minlength=2).tolist()
            if j in dates:
                found["date"] = dict(dates[j])
        else:
            counts = np.bincount(known.astype(np.intp), minlength=columns[j].n_codes)
            found = {"kind": "category", "counts": counts.tolist()}
        inputs.append({"column": j, **missing, **found})
    return inputs


def dates_of(columns: Columns | None) -> dict[int, dict[str, int]]:
    """Return the indices of the cycles of each date, by the index of its days."""
    found, first = {}, 0
    for column in () if columns is None else columns.columns:
        if column.cycles is not None:
            found[first] = {cycle: first + 1 + k for k, cycle in enumerate(column.cycles)}
        first += len(column.parts)
    return found


def number_input(known: np.ndarray) -> dict[str, Any]:
    """Return the range of a numeric column, without its tails, and a histogram."""
    if not len(known):
        known = np.zeros(1)
    low, high = np.quantile(known, [TAIL, 1 - TAIL], method="nearest")
    if low == high:
        low, high = known.min(), known.max()
    whole = bool((known == np.round(known)).all())
    bins = int(min(MOST_BINS, high - low + 1)) if whole and high - low < MOST_BINS else MOST_BINS
    half = 0.5 if whole and bins < MOST_BINS else 0.0  # each integer is in the middle of its own bin
    counts = np.array([len(known)])
    reach = high / 2 - low / 2  # halves, because the difference of large numbers may overflow
    if reach > 0:  # in units of the range, because large numbers may hardly differ
        margin = half / 2 / reach
        counts = np.histogram((known / 2 - low / 2) / reach, bins=bins, range=(-margin, 1 + margin))[0]
    return {
        "kind": "number",
        "low": float(low),
        "high": float(high),
        "whole": whole,
        "zero_or_one": bool(np.isin(known, (0, 1)).all() and high > low),
        "half": half,
        "counts": counts.tolist(),
    }


def typical_row(
    described: Description, rows: Any, dates: Mapping[int, Mapping[str, int]]
) -> list[float | None]:
    """Return medians and most frequent levels; None if all values of a column are missing.

    The other numbers of a date are those of its median day."""
    typical: list[float | None] = []
    for j, column in enumerate(described.columns):
        values = _values(rows, j)
        known = values[~np.isnan(values)]
        if not len(known):
            typical.append(None)
        elif column.levels is None:
            typical.append(float(np.quantile(known, 0.5, method="lower")))
        else:
            typical.append(float(np.bincount(known.astype(np.intp)).argmax()))
    for j, cycles in dates.items():
        if (days := typical[j]) is not None:
            date = from_days(np.array([days]))
            for cycle, k in cycles.items():
                typical[k] = float(CYCLES[cycle].place(date)[0])
    return typical


def example_rows(rows: Any, places: np.ndarray) -> list[list[float | None]]:
    """Return these rows as lists, with None for missing values."""
    chosen = rows[places].toarray() if sparse.issparse(rows) else rows[places]
    return [[None if value != value else value for value in row] for row in chosen.tolist()]


def _values(rows: Any, column: int) -> np.ndarray:
    values = rows[:, [column]].toarray()[:, 0] if sparse.issparse(rows) else rows[:, column]
    return np.asarray(values, dtype=np.float64)
