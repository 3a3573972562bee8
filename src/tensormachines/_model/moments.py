"""Weighted means and variances of columns, which can be summed over any pieces of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .rows import ROWS_AT_ONCE, Rows

ENTRIES_AT_ONCE = 1 << 18
DENSE_ENTRIES_AT_ONCE = 1 << 17  # a megabyte in float64


@dataclass(frozen=True)
class Moments:
    """The weight of ``n_rows`` rows, the means of their columns, the sums of squares about the means, and the
    weights of non-zero entries."""

    n_rows: int
    weight: float
    mean: np.ndarray
    squares: np.ndarray
    present: np.ndarray

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both together (Chan, Golub & LeVeque 1979)."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            distance = other.mean - self.mean
            squares = self.squares + other.squares + self.weight * share * distance**2
            mean = self.mean + share * distance
        return Moments(self.n_rows + other.n_rows, weight, mean, squares, self.present + other.present)

    def __mul__(self, factor: float) -> Moments:
        """Return the moments of the same rows with all weights multiplied."""
        return Moments(
            self.n_rows, self.weight * factor, self.mean, self.squares * factor, self.present * factor
        )

    @property
    def deviation(self) -> np.ndarray:
        """Return standard deviations; 0 if a column is constant except for rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = np.sqrt(self.squares / self.weight)
            rounding = self.n_rows * np.finfo(np.float64).eps * np.abs(self.mean)
            return np.where(deviation <= rounding, 0.0, deviation)

    @property
    def mean_squares(self) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.squares / self.weight + self.mean**2

    @property
    def size_of_entries(self) -> np.ndarray:
        """Return the root mean square of the non-zero entries of each column; 0 if there are none."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.where(self.present > 0, self.present, np.inf) / self.weight
            return np.sqrt(self.mean_squares / share)


def moments(X: Rows, weight: np.ndarray | None = None) -> Moments:
    """Return the moments of the columns of X, computed in pieces that fit the cache.

    The pieces of a sparse X are longer than wide and have many entries."""
    if sparse.issparse(X):
        at_once = max(ROWS_AT_ONCE, X.shape[1], ENTRIES_AT_ONCE * X.shape[0] // max(X.nnz, 1))
    else:
        at_once = max(64, DENSE_ENTRIES_AT_ONCE // max(X.shape[1], 1))
    total = Moments(0, 0.0, *np.zeros((3, X.shape[1])))
    for start in range(0, X.shape[0], at_once):
        rows = X[start : start + at_once]
        ones = np.ones(rows.shape[0])
        total += _piece(rows, ones if weight is None else weight[start : start + at_once].astype(np.float64))
    return total


def only_weight(X: Rows, weight: np.ndarray) -> Moments:
    """Return only the weight; everything else is NaN because it is not needed."""
    return Moments(X.shape[0], float(weight.sum()), *np.full((3, X.shape[1]), np.nan))


def _piece(X: Rows, weight: np.ndarray) -> Moments:
    total = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (weight @ X.astype(np.float64, copy=False)) / (total if total > 0 else 1.0)
        return Moments(X.shape[0], total, mean, *_squares_and_present(mean, X, weight))


def _squares_and_present(mean: np.ndarray, X: Rows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of squares about the means, and the weights of non-zero entries."""
    if not sparse.issparse(X):
        return weight @ (X - mean) ** 2, weight @ (X != 0)
    here = np.repeat(weight, np.diff(X.indptr))  # the weight of each entry
    stored = np.bincount(X.indices, weights=here, minlength=X.shape[1])
    present = np.bincount(X.indices, weights=here * (X.data != 0), minlength=X.shape[1])
    squares = np.bincount(X.indices, weights=here * (X.data - mean[X.indices]) ** 2, minlength=X.shape[1])
    return squares + np.maximum(weight.sum() - stored, 0) * mean**2, present
