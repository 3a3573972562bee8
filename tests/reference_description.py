"""A described model evaluated slowly, from the numbers of its description alone: the truth of all exports.

The functions of a spline basis are written out here again, so that a mistake in the library shows."""

from decimal import Decimal
from numbers import Real

import numpy as np
from scipy import sparse


def evaluate(description, rows):
    """Return the outputs f of every row, (rows, n_outputs), in float64.

    ``rows``: two-dimensional array, list of rows, sparse matrix, or frame of pandas or polars, with the
    columns in their order."""
    lifted = lift(description.machine.basis, encode(description, columns_of(rows, len(description.columns))))
    outputs = description.intercept.astype(np.float64) + lifted @ description.coef.astype(np.float64).T
    for p, factors in description.factors.items():
        for number, of_set in enumerate(factors.astype(np.float64)):
            for i, term in enumerate(of_set):
                anova = description.terms == "anova"
                values = sum_over_sets(lifted * term, p) if anova else (lifted @ term.T).prod(axis=1)
                if description.term_weights:
                    outputs += np.outer(values, description.term_weights[p][:, i].astype(np.float64))
                else:
                    outputs[:, number] += values
    return outputs


def probabilities(description, outputs):
    """Return probabilities (rows, n_classes), in the order of ``classes``."""
    if description.link in ("identity", "log", "sorted"):
        raise ValueError("A regressor has no probabilities.")
    scores = (
        outputs if description.link == "softmax" else np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    )
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def predictions(description, outputs):
    """Return numbers (rows,) or (rows, n_outputs), or labels (rows,): of equally probable ones the first."""
    if description.classes is None:
        if description.link == "log":
            outputs = np.exp(np.minimum(outputs, description.largest_outputs))
        if description.link == "sorted":
            outputs = np.array([sorted(row) for row in outputs.tolist()])
        return outputs[:, 0] if description.squeeze else outputs
    return description.classes[
        (outputs[:, 0] > 0).astype(np.intp) if description.link == "logistic" else outputs.argmax(axis=1)
    ]


def sum_over_sets(entries, p):
    """Sum the products of the entries of all sets of p columns, for each row, column by column."""
    sums = np.zeros((p + 1, len(entries)))
    sums[0] = 1.0
    for column in entries.T:
        sums[1:] += column * sums[:-1]
    return sums[p]


# ---- bases


def lift(basis, numbers):
    """Return rows of numbers (rows, n_columns) in the basis, (rows, width)."""
    if hasattr(basis, "columns"):
        return lift_splines(basis, numbers)
    lifted = numbers
    if basis.shift is not None:
        lifted = np.clip((numbers - basis.shift.astype(np.float64)) * basis.scale, -basis.clip, basis.clip)
    if basis.constant:
        lifted = np.column_stack([lifted, np.full(len(lifted), basis.constant)])
    if not basis.unit_rows:
        return lifted
    norm = np.linalg.norm(lifted, axis=1, keepdims=True)
    return lifted / np.where(norm == 0, 1.0, norm)


def lift_splines(basis, numbers):
    """Scale the functions of all columns by the number of columns that vary, subtract their means, append a
    constant.
    """
    varying = sum(len(column.knots) + column.missing > 1 for column in basis.columns)
    columns = enumerate(basis.columns)
    functions = [spline_functions(basis.shape, column, numbers[:, j]) for j, column in columns]
    size = 1 / np.sqrt(max(1, varying))
    return np.column_stack(
        [size * np.column_stack(functions) - basis.center, np.full(len(numbers), basis.shape.constant)]
    )


def spline_functions(shape, column, x):
    """Return an indicator of each level, or waves and a line; and one of missing entries if the fit had any.

    (Otherwise the commonest number stands for missing ones.)"""
    x = np.array(x, dtype=np.float64)
    if column.category:
        functions = (x[:, None] == np.arange(len(column.knots))).astype(float)
    else:
        if not column.missing and column.reference >= 0:
            x[np.isnan(x)] = column.knots[column.reference]
        functions = number_functions(shape, column, x)
    if not column.missing:
        return functions
    no_number = not column.category and not len(column.knots) and column.reference >= 0
    return np.column_stack([functions, np.isnan(x) | no_number])


def number_functions(shape, column, x):
    """Return the waves sqrt(2 s_k) cos(pi k u) and the line; 0 where x is missing.

    They are straight between knots. u = 0..1 is the rank of the knot, and s_k is proportional to
    1 / (1 + (pi k / roughness)^2), so that the sum of all s_k is 1."""
    knots = column.knots
    u, k = np.linspace(0, 1, len(knots)), np.arange(1, column.waves + 1)
    total = (shape.roughness / np.tanh(shape.roughness) - 1) / 2  # of all strengths
    strength = 1 / (1 + (np.pi * k / shape.roughness) ** 2) / total
    at_knots = np.sqrt(2 * strength) * np.cos(np.pi * np.outer(u, k))
    if column.deviation > 0:
        line = np.clip((knots - column.mean) / column.deviation, -shape.line_clip, shape.line_clip)
        at_knots = np.column_stack([at_knots, shape.line * line])
    found = np.zeros((len(x), at_knots.shape[1]))
    present = ~np.isnan(x)
    for f, values in enumerate(at_knots.T):
        found[present, f] = np.interp(0.5 * x[present], 0.5 * knots, values)  # whole numbers could overflow
    return found


# ---- columns


def is_missing(entry):
    """Whether an entry is None, NaN, or the NA or NaT of pandas."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


def columns_of(rows, n_columns):
    """Return the entries of each column of an array, list of rows, sparse matrix, or frame."""
    if hasattr(rows, "iloc"):
        found = [list(rows.iloc[:, j]) for j in range(rows.shape[1])]
    elif hasattr(rows, "to_series"):
        found = [rows.to_series(j).to_list() for j in range(rows.shape[1])]
    else:
        array = rows.toarray() if sparse.issparse(rows) else np.array(rows, dtype=object)
        found = [array[:, j].tolist() for j in range(array.shape[1])]
    assert len(found) == n_columns
    return found


def encode(description, columns):
    """Return numbers (rows, n_columns)."""
    pairs = zip(description.columns, columns, strict=True)
    return np.array([[number(column, entry) for entry in entries] for column, entries in pairs]).T


def number(column, entry):
    if is_missing(entry):
        return np.nan
    if column.levels is None:
        assert isinstance(entry, Real | Decimal | np.bool_ | str)
        return float(entry)
    name = str(int(entry) if isinstance(entry, float | np.floating) and entry.is_integer() else entry)
    if name in column.levels:
        return float(column.levels.index(name))
    return float(len(column.levels)) if column.pooled else np.nan
