"""Variance shares: which columns, and which sets of columns, explain the variance of a model's output.

The output is a sum of parts (`contributions`, relative to the mean of the rows), f = sum over sets U of
part_U, so that

    variance of f = sum over U of  covariance of part_U and f

The share of a set is its covariance divided by the variance. Shares add up to 1. If columns are correlated, a
part also gets credit for the parts with which it is correlated; its share is negative if it counteracts them.
Without correlation, and if the mean of each part does not depend on other columns, shares are the Sobol
indices of the sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .decomposition import MOST_PARTS, parts_of_rows, remainder_key, sets_of_columns
from .displacements import ColumnForms, forms_and_rows
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
    """Return the shares of columns and of sets of columns in the variance of the output on X.

    The share of a set of columns is the covariance between its part (`contributions`) and the output, divided
    by the variance of the output.

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
        Shares by columns, which add up to 1; ("remainder",) is the share of all other parts, if there are
        any.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> bool(abs(sum(variance_shares(model, X).values()) - 1) < 1e-6)
    True
    """
    forms, rows = forms_and_rows(model, output, X, reference)
    sets = sets_of_columns(forms, order, columns, max_parts)
    shares = set_shares(forms, rows, sets)
    named = (tuple(forms.columns[g] for g in part) for part in sets)
    entries: dict[Any, float] = dict(zip(named, shares[:-1].tolist(), strict=True))
    del entries[()]  # a constant has no variance
    if columns is not None or order < forms.layout.degree:
        entries[remainder_key(forms.columns)] = float(shares[-1])
    return Ranked(entries, "shares of the output's variance")


def column_variance_shares(model: Any, X: Any, *, reference: Any = None, output: Any = None) -> Ranked:
    """Return the share of each column in the variance of the output on X; interactions are shared equally
    among their columns.

    The share is the covariance between the column's Shapley values (`column_contributions`) and the output,
    divided by the variance of the output. It includes all functions of the column in the basis and
    interactions of any order; the shares add up to 1. A share is negative if a column counteracts columns
    with which it is correlated; `importance` tells how much the model uses a column.

    Parameters
    ----------
    model, X, reference, output
        As in `variance_shares`.
    """
    forms, rows = forms_and_rows(model, output, X, reference)
    shares = column_shares(forms, rows)
    return Ranked(
        dict(zip(forms.columns, shares.tolist(), strict=True)), "shares of the output's variance, by column"
    )


def set_shares(forms: ColumnForms, rows: Any, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the variance shares of sets and of the remainder on checked rows, (sets + 1)."""
    return _shares(forms, rows, lambda displaced: parts_of_rows(forms, displaced, sets), copies=2)


def column_shares(forms: ColumnForms, rows: Any) -> np.ndarray:
    """Return the variance shares of columns on checked rows, (columns)."""
    return _shares(
        forms, rows, lambda displaced: shapley_values(forms, displaced), copies=2**forms.layout.degree
    )


def _shares(
    forms: ColumnForms, rows: Any, parts: Callable[[np.ndarray], np.ndarray], copies: int
) -> np.ndarray:
    """Return the shares of parts, computed a few rows at a time.

    The means of the parts do not matter, because the deviations of the output add up to 0.
    """
    outputs = forms.map(rows, forms.displaced_outputs)
    deviation = outputs - outputs.mean()
    variance = deviation @ deviation
    if not variance > 0:
        raise ValueError(
            "The output does not vary on X, so it has no variance to explain: give more, or different, rows."
        )
    done, total = 0, np.zeros(())
    for displaced in forms.blocks(rows, copies):
        total = total + deviation[done : done + len(displaced)] @ parts(displaced)
        done += len(displaced)
    return total / variance
