"""Which columns, and which pairs of them, the variance of a model's output comes from.

The output is a sum of parts (`contributions`, relative to the mean of the rows), f = sum over sets U of
part_U, so that

    variance of f = sum over U of  covariance of part_U and f

and each set has its share of it: covariance over variance. Shares add up to 1. Where columns are correlated a
part also has the share that it owes to the others it varies with; it is negative where it works against them.
Without correlation, and with parts whose mean does not depend on other columns, shares are the Sobol indices
of the sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .decomposition import MOST_PARTS, REMAINDER, parts_of_rows, sets_of_columns
from .displacements import Moves, moves_of
from .forms import check_rows
from .ranked import Ranked
from .shapley import shapley_values


def variance_shares(
    model: Any,
    X: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """The share of the output's variance on X that each column, pair of columns, ... has: see the module for
    what that is.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
    order, columns, output, max_parts
        As in `contributions`.
    reference : array-like, sparse matrix or dataframe, optional
        As in `contributions`; without it, X.

    Returns
    -------
    Ranked
        By columns; "remainder" is that of all other parts, if there can be such. They add up to 1.
    """
    moves = moves_of(model, output, X if reference is None else reference)
    sets = sets_of_columns(moves, order, columns, max_parts)
    shares = set_shares(moves, check_rows(model, X), sets)
    named = (tuple(moves.columns[g] for g in part) for part in sets)
    entries: dict[Any, float] = dict(zip(named, shares[:-1].tolist(), strict=True))
    del entries[()]  # a constant has no variance
    if columns is not None or order < model._machine.layout.degree:
        entries[REMAINDER] = float(shares[-1])
    return Ranked(entries, "shares of the output's variance")


def importance(model: Any, X: Any, *, reference: Any = None, output: Any = None) -> Ranked:
    """The share of the output's variance on X that each column has; what several columns make together is
    shared equally among them.

    It is the covariance of the column's Shapley values (`column_contributions`) and the output, over the
    variance of the output: all that a basis makes of a column counts together, interactions of any order are
    in it, and the shares add up to 1. A share is negative where a column works against those that it is
    correlated with.

    Parameters
    ----------
    model, X, reference, output
        As in `variance_shares`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(X, y)
    >>> shares = importance(model, X)
    >>> list(shares.largest(2)), round(sum(shares.values()), 6)
    (['s5', 'bmi'], 1.0)
    """
    moves = moves_of(model, output, X if reference is None else reference)
    shares = column_shares(moves, check_rows(model, X))
    return Ranked(
        dict(zip(moves.columns, shares.tolist(), strict=True)), "shares of the output's variance, by column"
    )


def interaction_strength(
    model: Any,
    X: Any,
    *,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """The share of the output's variance on X that each pair of columns has beyond what its columns have
    alone.

    Parameters
    ----------
    model, X, columns, reference, output, max_parts
        As in `variance_shares`.

    Returns
    -------
    Ranked
        By pairs. The shares of single columns and of larger sets are in `variance_shares`.
    """
    shares = variance_shares(
        model, X, columns=columns, reference=reference, output=output, max_parts=max_parts
    )
    return Ranked(
        {key: share for key, share in shares.items() if len(key) == 2},
        "shares of the output's variance, by pair",
    )


def set_shares(moves: Moves, rows: Any, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """(sets + 1), the last that of the remainder, on rows that have been checked."""
    return _shares(moves, rows, lambda of_rows: parts_of_rows(moves, of_rows, sets), copies=2)


def column_shares(moves: Moves, rows: Any) -> np.ndarray:
    """(columns), on rows that have been checked."""
    return _shares(moves, rows, lambda of_rows: shapley_values(moves, of_rows), copies=2**moves.layout.degree)


def _shares(moves: Moves, rows: Any, parts: Callable[[np.ndarray], np.ndarray], copies: int) -> np.ndarray:
    """Of parts that come a few rows at a time; their means do not matter, because the deviations of the
    output add up to 0.
    """
    outputs = moves.map(rows, lambda of_rows: moves.outputs(moves.reference + of_rows.sum(axis=1)))
    deviation = outputs - outputs.mean()
    variance = deviation @ deviation
    if not variance > 0:
        raise ValueError(
            "The output does not vary on X: there is no variance to share out. Give more, or different, rows."
        )
    done, total = 0, np.zeros(())
    for of_rows in moves.blocks(rows, copies):
        total = total + deviation[done : done + len(of_rows)] @ parts(of_rows)
        done += len(of_rows)
    return total / variance
