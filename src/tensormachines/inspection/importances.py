"""Importance: how much of the output is due to each column, and to each part of a prediction.

Both measures are never negative and add up to 1, even if columns are correlated. The signed shares of
`variance_shares` answer another question: how the variance of the output splits into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._data.frame import all_different
from .._model.block import Block
from .._model.machine import Machine
from .._model.total_effects import shares, total_effects
from .decomposition import MOST_PARTS, parts_of_rows, remainder_key, sets_of_columns
from .displacements import NORM, ColumnForms, forms_and_rows
from .drawn_rows import rows_to_inspect
from .forms import column_names, fitted_machine, output_number
from .ranked import Ranked

ENTRIES_AT_ONCE = 1 << 22
NO_VARIANCE = "The output does not vary on X, so there is nothing to explain: give more, or different, rows."


def importance(model: Any, X: Any, *, output: Any = None) -> Ranked:
    """Return how much each column moves the output, interactions included, as shares that add up to 1.

    The importance of a column is the mean squared change of the output if the column takes its value from
    another random row of X, divided by the sum of these changes over all columns. It ranks columns as
    permutation importance does, but needs no y and no repetitions, and is never negative. If other columns
    could replace a column because they are correlated with it, importance tells how much this model uses the
    column.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        A source of `tensormachines.blocks` or a Dask collection is sampled: 20,000 random rows.
    output
        As in `polynomial`.

    Returns
    -------
    Ranked
        Shares by column. With rows of unit norm (bases "unit" and "sphere"), columns are those of the
        normalised row.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(X, y)
    >>> shares = importance(model, X)
    >>> sorted(shares.largest(2)), round(sum(shares.values()), 6)
    (['bmi', 's5'], 1.0)
    """
    machine, number = fitted_machine(model), output_number(model, output)
    found = column_importances(machine, rows_to_inspect(model, X)[0])[number]
    if not found.any():
        raise ValueError(NO_VARIANCE)
    names = column_names(model)
    names = all_different([*names, NORM]) if len(found) > len(names) else names
    return Ranked(dict(zip(names, found.tolist(), strict=True)), "importance of columns, shares of 1")


def column_importances(machine: Machine, rows: Any) -> np.ndarray:
    """Return the importances of columns for all outputs on checked rows, (n_outputs, columns)."""
    basis = machine.basis.astype(np.dtype(np.float64))
    at_once = max(2, ENTRIES_AT_ONCE // max(1, basis.n_columns))
    order = np.arange(rows.shape[0])
    if len(order) > at_once:  # rows are replaced by others of the same piece, so pieces must be random
        order = np.random.default_rng(0).permutation(len(order))
    total = sum(
        total_effects(Block(basis.rows(rows[some]), basis), machine.layout, machine.params)[0]
        for some in np.array_split(order, -(-len(order) // at_once))
    )
    return shares(np.asarray(total))


def part_importance(
    model: Any,
    X: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """Return the variances on X of the parts of columns and of sets of columns, as shares that add up to 1.

    The parts are those of `contributions`. The share of a part is its variance divided by the sum of the
    variances of all parts; the remainder counts as one part.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        A source of `tensormachines.blocks` or a Dask collection is sampled: 20,000 random rows.
    order, columns, output, max_parts
        As in `contributions`.
    reference : array-like, sparse matrix or dataframe, optional
        As in `contributions`, but the default is X.

    Returns
    -------
    Ranked
        Shares by columns; ("remainder",) is the share of the sum of all other parts, if there are any.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> sorted(part_importance(model, X).largest(2))
    [('bmi',), ('s5',)]
    """
    forms, rows = forms_and_rows(model, output, X, reference)
    sets = sets_of_columns(forms, order, columns, max_parts)
    found = set_importances(forms, rows, sets)
    if not found.any():
        raise ValueError(NO_VARIANCE)
    named = (tuple(forms.columns[g] for g in part) for part in sets)
    entries: dict[Any, float] = dict(zip(named, found[:-1].tolist(), strict=True))
    del entries[()]  # a constant has no variance
    if columns is not None or order < forms.layout.degree:
        entries[remainder_key(forms.columns)] = float(found[-1])
    return Ranked(entries, "variance of parts, shares of 1")


def interaction_strength(
    model: Any,
    X: Any,
    *,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """Return the variance on X of the interaction of each pair, as a share of the variances of all parts.

    Parameters
    ----------
    model, X, columns, reference, output, max_parts
        As in `part_importance`.

    Returns
    -------
    Ranked
        Shares by pair; `part_importance` also has the shares of single columns and of larger sets.
    """
    found = part_importance(
        model, X, columns=columns, reference=reference, output=output, max_parts=max_parts
    )
    return Ranked(
        {key: share for key, share in found.items() if len(key) == 2},
        "variance of the parts of pairs, shares of 1",
    )


def set_importances(forms: ColumnForms, rows: Any, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the importances of the parts of sets and of the remainder on checked rows, (sets + 1)."""
    count, mean, squares = 0, np.zeros(len(sets) + 1), np.zeros(len(sets) + 1)
    for displaced in forms.blocks(rows, copies=2):
        parts = parts_of_rows(forms, displaced, sets)
        of_block, n = parts.mean(axis=0), len(parts)
        distance = of_block - mean
        squares += ((parts - of_block) ** 2).sum(axis=0) + distance**2 * (count * n / (count + n))
        mean, count = mean + distance * (n / (count + n)), count + n
    return shares(squares)
