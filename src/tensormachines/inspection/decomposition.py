"""A prediction as a sum of parts: a constant, one for each column, one for each pair of columns, and so on.

The part of a set U of columns is what all monomials add that have a factor from each column of U and from no
other, in the distances from the reference:

    part_U = sum over subsets S of U of  (-1)^|U - S|  f(S),        f(x) = sum over all sets U of part_U

with f(S) the output where only the columns in S have left the reference (`moves`). The part of no column is
the output at the reference, that of one column what changes if it alone moves. Sets of more columns than the
degree have no part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from .._data.dataframes import as_frame
from .displacements import Moves, moves_of
from .forms import check_rows
from .ranked import Ranked

MOST_PARTS = 10_000
REMAINDER = "remainder"

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Contributions:
    """Parts of predictions.

    Attributes
    ----------
    parts : list of tuples of str
        The columns of each part; () is the constant.
    values : ndarray of shape (n_samples, len(parts))
    remainder : ndarray of shape (n_samples,)
        The sum of the parts of more columns.
    """

    parts: list[Columns]
    values: np.ndarray
    remainder: np.ndarray

    @property
    def outputs(self) -> np.ndarray:
        """All of it together: what the model predicts."""
        return self.values.sum(axis=1) + self.remainder

    def __getitem__(self, part: str | Columns) -> np.ndarray:
        """(n_samples,), of the columns in any order."""
        names = {part} if isinstance(part, str) else set(part)
        places = [place for place, columns in enumerate(self.parts) if set(columns) == names]
        if not places:
            raise KeyError(
                f"There is no part of {', '.join(map(repr, sorted(map(str, names))))}: see .parts for those there are."
            )
        return self.values[:, places[0]]


def contributions(
    model: Any,
    X: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Contributions:
    """Split each prediction into parts of up to ``order`` columns, which with the remainder add up to it
    exactly, but for rounding.

    Of a classifier it is decision_function that is split.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
    order : int
        The most columns of a part, 0 or more; parts of more columns are in the remainder.
    columns : iterable of names or numbers, optional
        Those whose parts are wanted; parts with other columns are in the remainder. Without it, all.
    reference : array-like, sparse matrix or dataframe, optional
        Rows whose mean, in the basis of the model, is what parts are relative to. Without it, the mean of the
        training rows, which the bases "standard" and "spline" know.
    output
        As in `polynomial`.
    max_parts : int
        More parts are refused.

    Notes
    -----
    With rows of unit norm (bases "unit" and "sphere") a column is that of the normalised row, and all change when one does.
    The parts of p columns cost O(n_samples * sets * (projections + 2^p)), where sets is the number of sets of p columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import contributions
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=3, rank=2, random_state=0).fit(X, y)
    >>> split = contributions(model, X[:5])
    >>> len(split.parts), split["bmi", "bp"].shape
    (56, (5,))
    >>> bool(abs(split.outputs - model.predict(X[:5])).max() < 1e-9)
    True
    """
    moves = moves_of(model, output, reference)
    sets = sets_of_columns(moves, order, columns, max_parts)
    values = moves.map(check_rows(model, X), lambda of_rows: parts_of_rows(moves, of_rows, sets), copies=2)
    return Contributions(
        [tuple(moves.columns[g] for g in part) for part in sets], values[:, :-1], values[:, -1]
    )


def explain_row(
    model: Any,
    x: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """The parts of one prediction, which add up to it: see `contributions`.

    Parameters
    ----------
    model : fitted Tensor Machine
    x : array-like of shape (n_features,) or (1, n_features), dataframe of one row, or series
    order, columns, reference, output, max_parts
        As in `contributions`.

    Returns
    -------
    Ranked
        By columns, () for the constant; "remainder" has all other parts, if there can be such.
    """
    rows = _one_row(x)
    if rows.shape[0] != 1:
        raise ValueError(f"x must be one row, got {rows.shape[0]}: use contributions for several.")
    split = contributions(
        model, rows, order=order, columns=columns, reference=reference, output=output, max_parts=max_parts
    )
    entries: dict[Any, float] = dict(zip(split.parts, split.values[0].tolist(), strict=True))
    if columns is not None or order < model._machine.layout.degree:
        entries[REMAINDER] = float(split.remainder[0])
    return Ranked(entries, f"parts of the output {split.outputs[0]:.5g}")


def _one_row(x: Any) -> Any:
    """A row, or a table, as a table."""
    if isinstance(x, Mapping):
        raise TypeError(
            "x must be a row of values in the order of the columns, or a table of one row, got a mapping: give pd.DataFrame([x])."
        )
    if hasattr(x, "to_frame"):
        return x.to_frame().T
    if np.ndim(x) != 1:
        return as_frame(x)
    return as_frame([x]) if isinstance(x, list | tuple) else np.reshape(x, (1, -1))


def effect(model: Any, columns: Any, X: Any, *, reference: Any = None, output: Any = None) -> np.ndarray:
    """The part of a column, or of several, for rows of X, of which the other columns play no role: the
    model's own effect curve.

    Parameters
    ----------
    model : fitted Tensor Machine
    columns : name or number of a column, or tuple of these
    X, reference, output
        As in `contributions`.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    moves = moves_of(model, output, reference)
    names = columns if isinstance(columns, tuple | list) else (columns,)
    return effect_on(moves, [moves.column(name) for name in names], check_rows(model, X))


def effect_on(moves: Moves, columns: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """The part of these columns for rows that have been checked, where categories are numbers."""
    if moves.machine.basis.unit_rows:
        raise ValueError(
            "A column has no effect of its own where rows are divided by their norm: use another basis than unit and sphere."
        )
    return moves.map(rows, lambda of_rows: _part(moves, of_rows, tuple(sorted(set(columns))), {}))


def sets_of_columns(
    moves: Moves, order: int, columns: Iterable[Any] | None, max_parts: int
) -> list[tuple[int, ...]]:
    if order < 0:
        raise ValueError(f"order must be 0 or more, got {order!r}.")
    chosen = (
        range(len(moves.columns)) if columns is None else sorted({moves.column(name) for name in columns})
    )
    order = min(order, moves.layout.degree)
    count = sum(comb(len(chosen), p) for p in range(order + 1))
    if count > max_parts:
        hint = "Lower order, choose columns, or raise max_parts."
        raise ValueError(
            f"There are {count:,} parts of up to {order} columns, max_parts is {max_parts:,}. {hint}"
        )
    return [part for p in range(order + 1) for part in combinations(chosen, p)]


def parts_of_rows(moves: Moves, of_rows: np.ndarray, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """(rows, sets + 1), the last column the remainder; sets come with all of their subsets before them."""
    values = np.empty((len(of_rows), len(sets) + 1))
    known: dict[tuple[int, ...], np.ndarray] = {}
    for place, columns in enumerate(sets):
        values[:, place] = _part(moves, of_rows, columns, known)
    values[:, -1] = moves.outputs(moves.reference + of_rows.sum(axis=1)) - values[:, :-1].sum(axis=1)
    return values


def _part(
    moves: Moves, of_rows: np.ndarray, columns: tuple[int, ...], known: dict[tuple[int, ...], np.ndarray]
) -> np.ndarray:
    """What all of these columns make together, less the parts of fewer of them."""
    if columns not in known:
        together = moves.outputs(moves.reference + of_rows[:, list(columns)].sum(axis=1))
        fewer = (subset for p in range(len(columns)) for subset in combinations(columns, p))
        known[columns] = together - sum(_part(moves, of_rows, subset, known) for subset in fewer)
    return known[columns]
