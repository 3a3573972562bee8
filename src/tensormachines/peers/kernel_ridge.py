"""Kernel ridge regression and classification with a polynomial kernel, for as many rows as memory holds half
their kernel matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .._model.moments import Rows
from ..estimators.classification import encode_labels
from ..estimators.polynomial_model import all_or_nothing
from ..estimators.sklearn_private import Interval, check_sample_weight, fit_context
from ..estimators.validation import require_some_weight
from .memory import available_memory
from .mixins import Labels

TILE = 1024  # rows and columns of the pieces that the kernel matrix is kept in
PREDICTED_AT_ONCE = 1 << 23  # entries of the kernel matrix between new rows and those of the fit


def polynomial_kernel(A: Rows, B: Rows, gamma: float, coef0: float, degree: int) -> np.ndarray:
    """(gamma <a, b> + coef0)^degree of every row of A with every row of B, (rows of A, rows of B).

    As scikit-learn's, but with a power made of products: for these, `np.power` takes several times as long as
    the inner products."""
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

    It takes n (n + TILE) / 2 numbers where LAPACK's `potrf` takes n^2, and up to a third more time. ``tile(i,
    j)`` gives a tile with the rows of slice i and the columns of slice j."""

    def __init__(self, n_rows: int, tile: Any):
        self.slices = [slice(start, min(start + TILE, n_rows)) for start in range(0, n_rows, TILE)]
        self.tiles = [
            [tile(rows, columns) for columns in self.slices[: i + 1]] for i, rows in enumerate(self.slices)
        ]

    @staticmethod
    def numbers(n_rows: int) -> int:
        """How many are kept."""
        whole, rest = divmod(n_rows, TILE)
        return TILE**2 * whole * (whole + 1) // 2 + rest * n_rows

    def factor(self) -> bool:
        """False where A is not positive definite; the tiles are lost then."""
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
        """A^-1 right, (n_rows, n_targets)."""
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


def _diagonals_to_add(on_the_diagonal: np.ndarray, dtype: np.dtype) -> Iterator[float]:
    """Numbers that make a kernel matrix definite that is singular to rounding, given its own diagonal; the
    smallest first.

    Where all rows are alike the kernel ends, and rounding begins, eps below its diagonal: half way loses as
    little to either. Where a few rows are far larger than the rest, half way below these would drown the
    others, so that it starts with the median."""
    smallest = float(np.finfo(dtype).tiny)
    half_way = float(np.sqrt(np.finfo(dtype).eps))
    largest = max(half_way * float(on_the_diagonal.max(initial=0.0)), smallest)
    following = (
        max(half_way * float(np.median(on_the_diagonal)), smallest) if len(on_the_diagonal) else smallest
    )
    while following < largest:
        yield following
        following *= 32
    yield largest


PARAMETERS = """Parameters
    ----------
    degree : int, default=3
    alpha : float, default=1.0
        The penalty, as in scikit-learn's `KernelRidge`: it is not divided by the number of rows.
    gamma : float, optional
        1 / n_features if not given.
    coef0 : float, default=1.0
    max_rows : int or None, default=40_000
        Where there are more training rows, so many of them are drawn at random and the others left out. None: all are taken.
        n rows take n^2 / 2 numbers and n^3 / 3 operations.
    random_state : int, RandomState or None, default=None
        For the draw of rows.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
    X_fit_ : ndarray or sparse matrix of shape (n_rows, n_features)
        The rows that were taken.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had names."""


class _PolynomialKernelModel(BaseEstimator):
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **checks
        )
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=X.dtype)
            require_some_weight(sample_weight, "sample_weight")
        return X, y, sample_weight

    def _solve(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """y is (n_samples, n_targets).

        With W the diagonal weights, dual_coef_ = W^1/2 (W^1/2 K W^1/2 + alpha I)^-1 W^1/2 y.
        """
        n_rows = X.shape[0]
        if self.max_rows is not None and n_rows > self.max_rows:
            chosen = np.sort(
                check_random_state(self.random_state).choice(n_rows, self.max_rows, replace=False)
            )
            X, y, weight = X[chosen], y[chosen], None if weight is None else weight[chosen]
            n_rows = self.max_rows
        self._require_memory(n_rows, X.dtype)
        root = np.ones(n_rows, dtype=X.dtype) if weight is None else np.sqrt(weight)
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

        on_the_diagonal = self._diagonal(X) * (1.0 if root is None else np.square(root, dtype=np.float64))
        factored = matrix(self.alpha)
        if factored.factor():
            return factored
        for more in _diagonals_to_add(on_the_diagonal[on_the_diagonal > 0], X.dtype):
            del factored  # before the next one is made
            factored = matrix(self.alpha + more)
            if factored.factor():
                warnings.warn(
                    f"The kernel matrix plus alpha={self.alpha:g} is singular in {X.dtype}: alpha={self.alpha + more:.3g} is used instead. "
                    "With columns of X of one scale it is less often.",
                    stacklevel=5,
                )
                return factored
        raise ValueError(
            f"The kernel matrix is singular in {X.dtype}: alpha must be larger, got {self.alpha}."
        )

    def _diagonal(self, X: Rows) -> np.ndarray:
        """Of the kernel matrix, (n_rows,) in float64; its largest entry lies there."""
        with np.errstate(over="ignore"):
            diagonal = (
                row_norms(X, squared=True).astype(np.float64) * self._gamma(X) + self.coef0
            ) ** self.degree
        if not diagonal.max() <= np.finfo(X.dtype).max:
            raise ValueError(
                f"The kernel of degree {self.degree} overflows {X.dtype}: scale the rows of X, or lower gamma."
            )
        return diagonal

    def _require_memory(self, n_rows: int, dtype: np.dtype) -> None:
        needed, available = TiledCholesky.numbers(n_rows) * dtype.itemsize, available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"The kernel matrix of {n_rows} rows takes {needed:,} bytes, and {available:,} are available. Lower max_rows, now "
                f"{self.max_rows}{', or give X as float32' if dtype == np.float64 else ''}."
            )

    def _gamma(self, X: Rows) -> float:
        return 1.0 / X.shape[1] if self.gamma is None else self.gamma

    def _kernel(self, A: Rows, B: Rows) -> np.ndarray:
        return polynomial_kernel(A, B, self._gamma(A), self.coef0, self.degree)

    def _outputs(self, X: Any) -> np.ndarray:
        """(n_samples,) or (n_samples, n_targets) as dual_coef_, in blocks of rows."""
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False
        )
        result = np.empty((X.shape[0], *self.dual_coef_.shape[1:]), dtype=X.dtype)
        at_once = max(1, PREDICTED_AT_ONCE // len(self.dual_coef_))
        for start in range(0, X.shape[0], at_once):
            rows = slice(start, start + at_once)
            result[rows] = self._kernel(X[rows], self.X_fit_) @ self.dual_coef_
        return result


class PolynomialKernelRidge(RegressorMixin, _PolynomialKernelModel):
    __doc__ = f"""Ridge regression in the space of a polynomial kernel.

    With K the kernel matrix of the training rows, k(x, y) = (gamma <x, y> + coef0)^degree,

        f(x) = sum over training rows i of dual_coef_i k(x, x_i),        (K + alpha I) dual_coef_ = y

    Results are those of scikit-learn's `KernelRidge(kernel="polynomial")`; this one keeps half a kernel matrix in the type of X where that
    one keeps two in float64, and predicts in blocks of rows. There is no intercept other than what coef0 gives.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        with all_or_nothing(self):
            X, y, weight = self._check(X, y, sample_weight, multi_output=True, y_numeric=True)
            self._solve(X, y.reshape(len(y), -1), weight)
            if y.ndim == 1:
                self.dual_coef_ = self.dual_coef_[:, 0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,) or (n_samples, n_targets) like the y of the fit."""
        return self._outputs(X)


class PolynomialKernelRidgeClassifier(Labels, _PolynomialKernelModel):
    __doc__ = f"""Classification by ridge regression on -1 and +1 in the space of a polynomial kernel.

    With two classes the sign of `PolynomialKernelRidge` fitted to -1 and +1 decides; with more, there is one such column a class, and
    the largest decides.

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
        """
        with all_or_nothing(self):
            X, y, weight = self._check(X, y, sample_weight)
            self.classes_, numbers = encode_labels(y)
            if len(self.classes_) == 2:
                self._solve(X, 2.0 * numbers[:, None] - 1.0, weight)
                self.dual_coef_ = self.dual_coef_[:, 0]
            else:
                self._solve(X, 2.0 * (numbers[:, None] == np.arange(len(self.classes_))) - 1.0, weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Positive for the second class, (n_samples,); or with more than two classes one column each,
        (n_samples, n_classes).
        """
        return self._outputs(X)
