"""A generalisation bound: how far the training risk of a Tensor Machine may be from its true risk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import exp, inf, log, sqrt
from sys import float_info
from typing import Any

import numpy as np
from scipy import sparse

from .._data.files.source import Chunk
from .._data.open import is_in_memory
from .._model.basis import AffineRows, Basis
from .._model.machine import Machine
from .._model.rows import Rows
from .._model.spline_basis import SplineBasis, SplineRows
from ..estimators.sum_over_rows import fitted_alone, sum_over_rows
from .forms import check_rows, fitted_machine

ENTRIES_AT_ONCE = 1 << 20  # of rows in their basis; a few copies exist at the same time


@dataclass(frozen=True, repr=False)
class RademacherBound:
    """The bound of Theorem 1 of Yang and Gittens (2015) on the Rademacher complexity of a class of Tensor
    Machines, and the quantities in it,

        R_n <= c r (1 + 8 B Bx)^q q^2 (sqrt(q d ln d) + sqrt(d)) / sqrt(n)

    The theorem states only that the constant c exists, not its value. So bounds can be compared with each
    other, and their decrease with n is visible.

    Attributes
    ----------
    value : float
        The bound in units of c; inf if it exceeds the range of float64.
    log_value : float
        Natural logarithm of ``value``, always finite.
    norm : float
        B, the largest norm of the linear part and of all factors, after balancing the norms in each term.
    row_norm : float
        Bx, the largest norm of a row in the basis of the model.
    rank, degree : int
        r, the number of terms of each degree (1 where there are none), and q.
    n_features : int
        d, the number of columns of the basis.
    n_rows : int
        n.
    """

    norm: float
    row_norm: float
    rank: int
    degree: int
    n_features: int
    n_rows: int

    @property
    def log_value(self) -> float:
        q, d = self.degree, self.n_features
        reach = float(np.logaddexp(0.0, log(8) + _log(self.norm) + _log(self.row_norm)))  # ln(1 + 8 B Bx)
        return (
            log(self.rank)
            + q * reach
            + 2 * log(q)
            + log(sqrt(q * d * log(d)) + sqrt(d))
            - log(self.n_rows) / 2
        )

    @property
    def value(self) -> float:
        return exp(self.log_value) if self.log_value <= log(float_info.max) else inf

    def __repr__(self) -> str:
        value = f"{self.value:.4g}" if self.value < inf else f"exp({self.log_value:.4g})"
        return (
            f"R_n <= c r (1 + 8 B Bx)^q q^2 (sqrt(q d ln d) + sqrt(d)) / sqrt(n) = {value} c, "
            f"with B = {self.norm:.4g}, Bx = {self.row_norm:.4g}, r = {self.rank}, q = {self.degree}, "
            f"d = {self.n_features}, n = {self.n_rows}"
        )


def rademacher_bound(model: Any, X: Any) -> RademacherBound:
    """Return the bound of the paper's Theorem 1 on how well models like this one can fit noise, in units of
    an unspecified constant c.

    With high probability the risk of the model on its n training rows is within O(R_n + 1/sqrt(n)) of the
    true risk. The bound holds for the class of all Tensor Machines of the same shape with factors of no
    larger norm than the largest of this model. The function f is the result of `predict` or
    `decision_function`; in regression it has the units of y, although the fit standardises y. The intercept
    does not count, because the theorem does not restrict it. For several outputs, the largest bound is
    returned.

    Multiplying one factor of a term by a number and dividing another by it changes the norms but not f. So
    the norms in each term are balanced first: every factor counts with their geometric mean, which is the
    smallest possible maximum.

    Parameters
    ----------
    model : fitted TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures, or a search of them
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        The n rows that the model was fitted to.

    Returns
    -------
    RademacherBound

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import rademacher_bound
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TensorMachineRegressor(
    ...     degree=2, rank=3, basis="unit", max_norm=2.0, max_iter=500, tol=1e-2, random_state=0
    ... ).fit(X, y)
    >>> bound = rademacher_bound(model, X)
    >>> bound.rank, bound.degree, bound.n_features, bound.n_rows
    (3, 2, 10, 442)
    >>> round(bound.norm, 3), round(bound.row_norm, 3)
    (2.0, 1.0)
    >>> round(bound.value)
    1641
    """
    machine = fitted_machine(model)
    measure = partial(_norms_of_chunk, machine.basis)
    if is_in_memory(X):
        norms = measure(Chunk(check_rows(model, X)))
    else:
        norms = sum_over_rows(fitted_alone(model), X, None, None, measure, targets=False)
    layout = machine.layout
    return RademacherBound(
        norm=_largest_norm(machine),
        row_norm=norms.largest,
        rank=layout.rank if layout.degree > 1 else 1,
        degree=layout.degree,
        n_features=layout.n_features,
        n_rows=norms.n_rows,
    )


@dataclass(frozen=True)
class _Norms:
    """The largest norm of rows, and their number."""

    largest: float
    n_rows: int

    def __add__(self, other: _Norms) -> _Norms:
        return _Norms(max(self.largest, other.largest), self.n_rows + other.n_rows)


def _norms_of_chunk(basis: Basis, chunk: Chunk) -> _Norms:
    norms = _row_norms(basis, chunk.X)
    return _Norms(float(norms.max()), len(norms))


def _largest_norm(machine: Machine) -> float:
    """Return B. It is computed in logarithms, because the norms in a term may differ by any factor."""
    layout, params = machine.layout, machine.params.astype(np.float64)
    factors = np.stack([layout.factors_of_output(params, k) for k in range(layout.n_outputs)], axis=1)
    sizes = np.abs(factors).max(axis=0)  # (n_outputs, 1 + set_columns)
    with np.errstate(divide="ignore"):  # a factor of norm 0 makes the term and its geometric mean 0
        norms = np.log(sizes) + np.log(np.linalg.norm(factors / np.where(sizes > 0, sizes, 1), axis=0))
    balanced = [
        norms[:, 0],
        *(
            norms[:, 1:][:, columns].reshape(layout.n_outputs, p, layout.rank).mean(axis=1)
            for p, columns in layout.degrees()
        ),
    ]
    return float(np.exp(max(of_degree.max() for of_degree in balanced)))


def _row_norms(basis: Basis, X: Rows) -> np.ndarray:
    """Return the norms of rows in their basis, computed in float64, a piece at a time."""
    basis = basis.astype(np.dtype(np.float64))
    lifts_every_entry = not sparse.issparse(X) or isinstance(basis, SplineBasis)
    entries = X.shape[0] * basis.width if lifts_every_entry else X.nnz + X.shape[0]
    at_once = max(1, X.shape[0] * ENTRIES_AT_ONCE // entries)
    pieces = (
        X[start : start + at_once].astype(np.float64, copy=False) for start in range(0, X.shape[0], at_once)
    )
    return np.concatenate([_norms(basis, piece) for piece in pieces])


def _norms(basis: Basis, X: Rows) -> np.ndarray:
    rows = basis.lift(basis.rows(X))
    if isinstance(rows, SplineRows):
        rows = AffineRows(rows.varying(), rows.basis.always)
    assert isinstance(rows, AffineRows)
    entries = rows.matrix.data if sparse.issparse(rows.matrix) else rows.matrix
    constant = np.zeros(1) if rows.zero_row is None else rows.zero_row
    # In units of the largest entry no square overflows; squares that underflow are negligible.
    unit = max(np.abs(entries).max(initial=0.0), np.abs(constant).max(), float_info.min)
    in_units = replace(
        rows, matrix=rows.matrix / unit, zero_row=None if rows.zero_row is None else rows.zero_row / unit
    )
    return unit * np.sqrt(in_units.squared_norms())


def _log(x: float) -> float:
    return log(x) if x > 0 else -inf
