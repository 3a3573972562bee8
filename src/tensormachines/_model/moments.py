"""Weighted means and variances of columns, which can be added up over any pieces of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

Rows: TypeAlias = Any  # an ndarray or a CSR matrix or array, of shape (rows, columns)

ROWS_AT_ONCE = 4096
ENTRIES_AT_ONCE = 1 << 18
DENSE_ENTRIES_AT_ONCE = 1 << 17  # a megabyte in float64


@dataclass(frozen=True)
class Moments:
    """Of ``n_rows`` rows: their weight, the means of their columns, and the sums of squares about these, in
    float64.
    """

    n_rows: int
    weight: float
    mean: np.ndarray
    squares: np.ndarray

    def __add__(self, other: Moments) -> Moments:
        """Those of both together (Chan, Golub & LeVeque 1979)."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            distance = other.mean - self.mean
            squares = self.squares + other.squares + self.weight * share * distance**2
            return Moments(self.n_rows + other.n_rows, weight, self.mean + share * distance, squares)

    def __mul__(self, factor: float) -> Moments:
        """Those of the same rows with all weights multiplied."""
        return Moments(self.n_rows, self.weight * factor, self.mean, self.squares * factor)

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations; 0 where there is no more than what rounding makes of a constant."""
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = np.sqrt(self.squares / self.weight)
            return np.where(
                deviation <= self.n_rows * np.finfo(np.float64).eps * np.abs(self.mean), 0.0, deviation
            )

    @property
    def mean_squares(self) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.squares / self.weight + self.mean**2


def moments(X: Rows, weight: np.ndarray | None = None) -> Moments:
    """Of the columns of X, in pieces that fit the cache; of a sparse X in pieces that are longer than wide
    and have many entries.
    """
    if sparse.issparse(X):
        at_once = max(ROWS_AT_ONCE, X.shape[1], ENTRIES_AT_ONCE * X.shape[0] // max(X.nnz, 1))
    else:
        at_once = max(64, DENSE_ENTRIES_AT_ONCE // max(X.shape[1], 1))
    total = Moments(0, 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1]))
    for start in range(0, X.shape[0], at_once):
        rows = X[start : start + at_once]
        total += _piece(
            rows,
            np.ones(rows.shape[0]) if weight is None else weight[start : start + at_once].astype(np.float64),
        )
    return total


def only_weight(X: Rows, weight: np.ndarray) -> Moments:
    """Of columns that nobody asks for: their moments are NaN."""
    unknown = np.full(X.shape[1], np.nan)
    return Moments(X.shape[0], float(weight.sum()), unknown, unknown)


def _piece(X: Rows, weight: np.ndarray) -> Moments:
    total = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (weight @ X.astype(np.float64, copy=False)) / (total if total > 0 else 1.0)
        return Moments(X.shape[0], total, mean, _squares_about(mean, X, weight))


def _squares_about(mean: np.ndarray, X: Rows, weight: np.ndarray) -> np.ndarray:
    if not sparse.issparse(X):
        return weight @ (X - mean) ** 2
    here = np.repeat(weight, np.diff(X.indptr))  # the weight of each entry
    present = np.bincount(X.indices, weights=here, minlength=X.shape[1])
    squares = np.bincount(X.indices, weights=here * (X.data - mean[X.indices]) ** 2, minlength=X.shape[1])
    return squares + np.maximum(weight.sum() - present, 0) * mean**2
