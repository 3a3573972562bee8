"""Kernel ridge regression and classification with a polynomial kernel, storing half the kernel matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._model.rows import Rows
from ..estimators.own_names import own_names
from ..estimators.sklearn_private import Interval
from .memory import available_memory
from .mixins import Labels, Regression, Rival

TILE = 1024  # rows and columns of the tiles that store the kernel matrix
PREDICTED_AT_ONCE = 1 << 23  # entries of the kernel matrix between new rows and training rows


def polynomial_kernel(A: Rows, B: Rows, gamma: float, coef0: float, degree: int) -> np.ndarray:
    """Return (gamma <a, b> + coef0)^degree for all rows a of A and b of B, (rows of A, rows of B).

    Unlike in scikit-learn, the power is computed by products: `np.power` takes several times as long as the
    inner products."""
    kernel = safe_sparse_dot(A, B.T, dense_output=True)
    kernel *= gamma
    kernel += coef0
    power = None
    while degree > 1:
        if degree % 2:
            power = kernel.copy() if power is None else np.multiply(power, kernel, out=power)
        kernel *= kernel
        degree //= 2
    return kernel if power is None else np.multiply(kernel, power, out=kernel)


class TiledCholesky:
    """The lower triangle of a symmetric positive definite matrix A, as square tiles in Fortran order,
    factored in place: A = L L'.

    It stores n (n + size) / 2 numbers, where LAPACK's `potrf` stores n^2, and takes about 10 % more time.
    ``tile(i, j)`` must return the tile with the rows of slice i and the columns of slice j."""

    def __init__(self, n_rows: int, tile: Callable[[slice, slice], np.ndarray], size: int = TILE):
        self.slices = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
        self.tiles = [
            [tile(rows, columns) for columns in self.slices[: i + 1]] for i, rows in enumerate(self.slices)
        ]

    @staticmethod
    def n_stored(n_rows: int, size: int = TILE) -> int:
        """Return the number of numbers stored."""
        whole, rest = divmod(n_rows, size)
        return size**2 * whole * (whole + 1) // 2 + rest * n_rows

    def factor(self) -> bool:
        """Factor A, and return whether it is positive definite; if it is not, the tiles are lost."""
        first = self.tiles[0][0]
        (potrf,) = lapack.get_lapack_funcs(("potrf",), (first,))
        trsm, syrk, gemm = blas.get_blas_funcs(("trsm", "syrk", "gemm"), (first,))
        for k, row in enumerate(self.tiles):
            below = self.tiles[k + 1 :]
            if potrf(row[k], lower=1, clean=0, overwrite_a=1)[1]:
                return False
            for other in below:
                trsm(1.0, row[k], other[k], side=1, lower=1, trans_a=1, overwrite_b=1)
            for i, other in enumerate(below, start=k + 1):
                syrk(-1.0, other[k], beta=1.0, c=other[i], lower=1, overwrite_c=1)
                for j in range(k + 1, i):
                    gemm(-1.0, other[k], self.tiles[j][k], beta=1.0, c=other[j], trans_b=1, overwrite_c=1)
        return True

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return A^-1 right, (n_rows, n_targets)."""
        (trsm,) = blas.get_blas_funcs(("trsm",), (right,))
        result = right.copy()
        for i, rows in enumerate(self.slices):
            for j, columns in enumerate(self.slices[:i]):
                result[rows] -= self.tiles[i][j] @ result[columns]
            result[rows] = trsm(1.0, self.tiles[i][i], result[rows], lower=1)
        for i, rows in reversed(list(enumerate(self.slices))):
            for k, columns in enumerate(self.slices[i + 1 :], start=i + 1):
                result[rows] -= self.tiles[k][i].T @ result[columns]
            result[rows] = trsm(1.0, self.tiles[i][i], result[rows], lower=1, trans_a=1)
        return result


def _diagonals_to_add(diagonal: np.ndarray, dtype: np.dtype) -> Iterator[float]:
    """Yield numbers, the smallest first, that make a kernel matrix definite if it is singular to rounding.

    Where all rows are alike the kernel ends, and rounding begins, eps below the diagonal of the matrix: half
    way loses as little to either. Where a few rows are far larger than the rest, half way below these would
    drown the others, so that the median comes first."""
    smallest = float(np.finfo(dtype).tiny)
    half_way = float(np.sqrt(np.finfo(dtype).eps))
    largest = max(half_way * float(diagonal.max(initial=0.0)), smallest)
    following = max(half_way * float(np.median(diagonal)), smallest) if len(diagonal) else smallest
    while following < largest:
        yield following
        following *= 32
    yield largest


PARAMETERS = """Parameters
    ----------
    degree : int, default=3
    alpha : float, default=1.0
        Penalty, as in scikit-learn's `KernelRidge`: it is not divided by the number of rows.
    gamma : float, optional
        1 / n_features if not given.
    coef0 : float, default=1.0
    max_rows : int or None, default=40_000
        Maximum number of training rows to use. If there are more, this many are drawn at random. None: use
        all rows. n rows take n^2 / 2 numbers and n^3 / 3 operations.
    random_state : int, RandomState or None, default=None
        Draws the rows if there are more than ``max_rows``.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
    X_fit_ : ndarray or sparse matrix of shape (n_rows, n_features)
        The training rows that were used.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if all columns of X have names."""


class _PolynomialKernelModel(Rival):
    _order = "C"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "max_rows": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        degree: int = 3,
        alpha: float = 1.0,
        *,
        gamma: float | None = None,
        coef0: float = 1.0,
        max_rows: int | None = 40_000,
        random_state: Any = None,
    ):
        self.degree = degree
        self.alpha = alpha
        self.gamma = gamma
        self.coef0 = coef0
        self.max_rows = max_rows
        self.random_state = random_state

    def _solve(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Set dual_coef_ = W^1/2 (W^1/2 K W^1/2 + alpha I)^-1 W^1/2 y, with diagonal weights W.

        ``y`` is (n_samples, n_targets).
        """
        n_rows = X.shape[0]
        if self.max_rows is not None and n_rows > self.max_rows:
            chosen = np.sort(
                check_random_state(self.random_state).choice(n_rows, self.max_rows, replace=False)
            )
            X, y, weight = X[chosen], y[chosen], None if weight is None else weight[chosen]
            n_rows = self.max_rows
        self._require_memory(n_rows, X.dtype)
        root = np.ones(n_rows, dtype=X.dtype) if weight is None else np.sqrt(weight.astype(X.dtype))
        right = y.astype(X.dtype, copy=False) * root[:, None]
        matrix = self._factored(X, None if weight is None else root)
        self.X_fit_ = X
        self.dual_coef_ = matrix.solve(right) * root[:, None]

    def _factored(self, X: Rows, root: np.ndarray | None) -> TiledCholesky:
        def matrix(diagonal: float) -> TiledCholesky:
            def tile(rows: slice, columns: slice) -> np.ndarray:
                kernel = self._kernel(X[columns], X[rows]).T
                if root is not None:
                    kernel *= root[rows, None]
                    kernel *= root[columns]
                if rows == columns:
                    kernel[np.diag_indices_from(kernel)] += diagonal
                return kernel

            return TiledCholesky(X.shape[0], tile)

        diagonal = self._diagonal(X) * (1.0 if root is None else np.square(root, dtype=np.float64))
        factored = matrix(self.alpha)
        if factored.factor():
            return factored
        for more in _diagonals_to_add(diagonal[diagonal > 0], X.dtype):
            del factored  # before the next one is made
            factored = matrix(self.alpha + more)
            if factored.factor():
                warnings.warn(
                    f"The kernel matrix plus alpha={self.alpha:g} is singular in {X.dtype}: "
                    f"alpha={self.alpha + more:.3g} is used instead. Scaling the columns alike may help.",
                    stacklevel=6,
                )
                return factored
        raise ValueError(
            f"The kernel matrix is singular in {X.dtype}: alpha must be larger, got {self.alpha}."
        )

    def _diagonal(self, X: Rows) -> np.ndarray:
        """Return the diagonal of the kernel matrix, (n_rows,) in float64; it has the largest entry."""
        with np.errstate(over="ignore"):
            squares = row_norms(X, squared=True).astype(np.float64)
            diagonal = (squares * self._gamma(X) + self.coef0) ** self.degree
        if not diagonal.max() <= np.finfo(X.dtype).max:
            raise ValueError(
                f"The kernel of degree {self.degree} overflows {X.dtype}: scale the rows of X or lower gamma."
            )
        return diagonal

    def _require_memory(self, n_rows: int, dtype: np.dtype) -> None:
        needed, available = TiledCholesky.n_stored(n_rows) * dtype.itemsize, available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"The kernel matrix of {n_rows} rows takes {needed:,} bytes, but only {available:,} are "
                f"available. Lower max_rows, now {self.max_rows}"
                f"{', or give X as float32' if dtype == np.float64 else ''}."
            )

    def _gamma(self, X: Rows) -> float:
        return 1.0 / X.shape[1] if self.gamma is None else self.gamma

    def _kernel(self, A: Rows, B: Rows) -> np.ndarray:
        return polynomial_kernel(A, B, self._gamma(A), self.coef0, self.degree)

    def _outputs(self, X: Any) -> np.ndarray:
        X = self._check_rows(X)
        result = np.empty((X.shape[0], *self.dual_coef_.shape[1:]), dtype=X.dtype)
        at_once = max(1, PREDICTED_AT_ONCE // len(self.dual_coef_))
        for start in range(0, X.shape[0], at_once):
            rows = slice(start, start + at_once)
            result[rows] = self._kernel(X[rows], self.X_fit_) @ self.dual_coef_
        return result


@own_names
class PolynomialKernelRidge(Regression, _PolynomialKernelModel):
    __doc__ = f"""Ridge regression in the space of a polynomial kernel.

    With K the kernel matrix of the training rows, k(x, y) = (gamma <x, y> + coef0)^degree,

        f(x) = sum over training rows i of dual_coef_i k(x, x_i),        (K + alpha I) dual_coef_ = y

    The results are those of scikit-learn's `KernelRidge(kernel="polynomial")`, but only half a kernel matrix
    is stored, in the type of X, where scikit-learn stores two in float64. Predictions are computed a few rows
    at a time. There is no intercept except through coef0.

    {PARAMETERS}

    References
    ----------
    Saunders, Gammerman and Vovk, Ridge regression learning algorithm in dual variables, ICML 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines.peers import PolynomialKernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(PolynomialKernelRidge(degree=2, alpha=1e-3).fit(X, y).score(X, y), 1)
    0.5
    """

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None, flat: bool) -> None:
        self._solve(X, targets, weight)
        if flat:
            self.dual_coef_ = self.dual_coef_[:, 0]


@own_names
class PolynomialKernelRidgeClassifier(Labels, _PolynomialKernelModel):
    __doc__ = f"""Classification by ridge regression on -1 and +1 in the space of a polynomial kernel.

    With two classes, `PolynomialKernelRidge` is fitted to -1 and +1, and the sign of its output decides. With
    more classes, there is one such target per class, and the largest output decides.

    {PARAMETERS}
    classes_ : ndarray of shape (n_classes,)

    References
    ----------
    Rifkin, Yeo and Poggio, Regularized least-squares classification, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tensormachines.peers import PolynomialKernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(PolynomialKernelRidgeClassifier(degree=2).fit(X, y).score(X, y), 1)
    1.0
    """

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: np.ndarray | None) -> None:
        self._solve(X, 2.0 * self._one_hot(numbers) - 1.0, weight)
        if len(self.classes_) == 2:
            self.dual_coef_ = self.dual_coef_[:, 0]
