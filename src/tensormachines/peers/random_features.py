"""Random features of the polynomial kernel (gamma <x, y> + coef0)^degree, and linear models on them.

A map phi to n_components features is drawn without a look at the data, so that the mean of <phi(x), phi(y)> over the draws is the kernel.
With t(x) = (sqrt(gamma) x, sqrt(coef0)) that is <t(x), t(y)>^degree, and the maps need to know homogeneous kernels only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import fft, sparse
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, lstsq
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._classification import encode_labels
from .._hadamard import walsh_hadamard
from .._moments import Rows
from .._polynomial_model import all_or_nothing, require_some_weight
from ._outputs import Probabilities

FEATURES_AT_ONCE = 1 << 19  # numbers in a block of rows: they stay in the cache through all steps
FEWEST_ROWS = 256  # in a block, so that what is prepared for each does not count
NEWTON_COEFFICIENTS = 2000  # up to so many, Newton's method is as fast as L-BFGS, and ends at the optimum where that one stops before it
FLOATS = [np.float64, np.float32]

KERNEL_PARAMETERS = """n_components : int, default=100
        Number of features D.
    degree : int, default=2
    coef0 : float, default=1.0
        With 0 there are monomials of the highest degree only.
    gamma : float, optional
        1 / (mean squared norm of the rows of X) if not given: 1 for rows of unit norm, 1 / n_features for standardised columns."""
REFERENCES = {
    "KarKarnick": "Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012.",
    "TensorSketch": "Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013.",
    "CRAFTMaps": "Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014.",
}
RANDOM_STATE = """random_state : int, RandomState or None, default=None"""
FEATURE_NAMES = """n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had names."""


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    at_once = max(FEWEST_ROWS, FEATURES_AT_ONCE // width)
    return (slice(start, min(start + at_once, n_rows)) for start in range(0, n_rows, at_once))


def _inverse_mean_square(X: Rows, weight: np.ndarray | None = None) -> float:
    """1 / mean squared norm of the rows; 1 where that is no number."""
    with np.errstate(over="ignore"):
        mean = float(np.average(row_norms(X, squared=True).astype(np.float64), weights=weight))
    return 1 / mean if 0 < mean < np.inf else 1.0


class _RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A map whose features of one block of rows `_block` computes, in the type of X; `_width` numbers a row pass through it."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_components: int = 100, degree: int = 2, *, coef0: float = 1.0, gamma: float | None = None, random_state: Any = None
    ):
        self.n_components = n_components
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map. Of X only the number of columns and, for gamma, the size of the rows matter; y is ignored."""
        with all_or_nothing(self):
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
            self.gamma_ = _inverse_mean_square(X) if self.gamma is None else float(self.gamma)
            self._draw(X.shape[1], check_random_state(self.random_state))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of the rows of X, (n_samples, n_components), in blocks of rows and in the type of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self._features(X)

    def _features(self, X: Rows) -> np.ndarray:
        result = np.empty((X.shape[0], self.n_components), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], self._width):
            result[rows] = self._block(X[rows])
        return result

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    @property
    def _width(self) -> int:
        return self.n_components

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        raise NotImplementedError

    def _block(self, X: Rows) -> np.ndarray:
        raise NotImplementedError


class KarKarnick(_RandomFeatures):
    __doc__ = f"""Products of random projections as features of a polynomial kernel.

        phi_i(x) = D^-1/2 prod over j = 1..degree of <s_ij, t(x)>,        s_ij random signs,      t(x) = (sqrt(gamma) x, sqrt(coef0))

    has E <phi(x), phi(y)> = (gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    signs_ : ndarray of shape (degree, n_features + 1, n_components), int8
        The last row is that of the constant; without it where coef0 is 0.
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["KarKarnick"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import KarKarnick
    >>> X = np.eye(3)
    >>> features = KarKarnick(n_components=100_000, degree=2, random_state=0).fit_transform(X)
    >>> (features @ features.T).round(1)
    array([[4., 1., 1.],
           [1., 4., 1.],
           [1., 1., 4.]])
    """

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        shape = (self.degree, n_features + (self.coef0 > 0), self.n_components)
        self.signs_ = (2 * random_state.randint(2, size=shape, dtype=np.int8) - 1).astype(np.int8, copy=False)

    def _block(self, X: Rows) -> np.ndarray:
        result = np.full((X.shape[0], self.n_components), self.n_components**-0.5, dtype=X.dtype)
        for signs in self.signs_:
            result *= X @ (np.sqrt(self.gamma_) * signs[: X.shape[1]]).astype(X.dtype) + self._constant(signs[X.shape[1] :], X.dtype)
        return result

    def _constant(self, signs: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return (np.sqrt(self.coef0) * signs.sum(axis=0)).astype(dtype)  # of one row, or of none


class TensorSketch(_RandomFeatures):
    __doc__ = f"""The count sketch of a tensor power as features of a polynomial kernel.

    The count sketch of t(x) = (sqrt(gamma) x, sqrt(coef0)) adds every entry, with a random sign, to one of n_components places. The sketch
    of the tensor t(x) x ... x t(x) is the circular convolution of ``degree`` independent ones, a product of their Fourier transforms.

    Hashes and result are those of scikit-learn's `PolynomialCountSketch`, several times faster: real transforms in the type of X, and
    sketches by a sparse product.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    places_, signs_ : ndarray of shape (degree, n_features + 1)
        The last column is that of the constant; without it where coef0 is 0.
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["TensorSketch"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import TensorSketch
    >>> TensorSketch(n_components=10, degree=3, random_state=0).fit_transform(np.eye(3)).shape
    (3, 10)
    """

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        settings = {"n_components": self.n_components, "degree": self.degree, "coef0": self.coef0, "random_state": random_state}
        drawn = PolynomialCountSketch(**settings).fit(np.zeros((1, n_features)))
        self.places_, self.signs_ = drawn.indexHash_, drawn.bitHash_

    def _block(self, X: Rows) -> np.ndarray:
        product = None
        for places, signs in zip(self.places_, self.signs_, strict=True):
            transformed = fft.rfft(self._count_sketch(X, places, signs), axis=1)
            product = transformed if product is None else np.multiply(product, transformed, out=product)
        return fft.irfft(product, n=self.n_components, axis=1)

    def _count_sketch(self, X: Rows, places: np.ndarray, signs: np.ndarray) -> np.ndarray:
        n_features = X.shape[1]
        entries = (np.sqrt(self.gamma_) * signs[:n_features]).astype(X.dtype)
        matrix = sparse.csr_array((entries, places[:n_features], np.arange(n_features + 1)), shape=(n_features, self.n_components))
        sketch = X @ matrix
        sketch = sketch.toarray() if sparse.issparse(sketch) else sketch
        if self.coef0 > 0:
            sketch[:, places[-1]] += np.sqrt(self.coef0) * signs[-1]
        return sketch


UP_PROJECTIONS = {"tensor-sketch": TensorSketch, "kar-karnick": KarKarnick}
CRAFT_PARAMETERS = """up : "tensor-sketch" or "kar-karnick", default="tensor-sketch"
        The map that makes the features to be compacted.
    expansion : int, default=4
        So many times n_components features are made first."""


class CRAFTMaps(_RandomFeatures):
    __doc__ = f"""Compact random features: many of a polynomial kernel, compressed by a fast Johnson-Lindenstrauss transform.

        phi(x) = D^-1/2 R H S up(x)

    where up(x) are expansion * D features of `TensorSketch` or `KarKarnick`, padded by zeros to a power of two; S are random signs, H the
    Walsh-Hadamard transform and R the choice of D places without repetition. |phi(x)|^2 is |up(x)|^2 in the mean.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {CRAFT_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    up_ : TensorSketch or KarKarnick
    signs_ : ndarray of shape (expansion * n_components,), int8
    places_ : ndarray of shape (n_components,)
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["CRAFTMaps"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import CRAFTMaps
    >>> CRAFTMaps(n_components=10, degree=3, random_state=0).fit_transform(np.eye(3)).shape
    (3, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_RandomFeatures._parameter_constraints,
        "up": [StrOptions(set(UP_PROJECTIONS))],
        "expansion": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 100,
        degree: int = 2,
        *,
        coef0: float = 1.0,
        gamma: float | None = None,
        up: str = "tensor-sketch",
        expansion: int = 4,
        random_state: Any = None,
    ):
        super().__init__(n_components=n_components, degree=degree, coef0=coef0, gamma=gamma, random_state=random_state)
        self.up = up
        self.expansion = expansion

    @property
    def _width(self) -> int:
        return 1 << (int(self.expansion * self.n_components) - 1).bit_length()  # np.int64 has no bit_length

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        n_up = self.expansion * self.n_components
        self.up_ = UP_PROJECTIONS[self.up](n_up, self.degree, coef0=self.coef0, gamma=self.gamma_, random_state=random_state)
        self.up_.fit(np.zeros((1, n_features)))
        self.signs_ = (2 * random_state.randint(2, size=n_up) - 1).astype(np.int8)
        self.places_ = random_state.choice(self._width, self.n_components, replace=False)

    def _block(self, X: Rows) -> np.ndarray:
        padded = np.zeros((X.shape[0], self._width), dtype=X.dtype)
        np.multiply(self.up_._block(X), self.signs_, out=padded[:, : len(self.signs_)], casting="same_kind")
        walsh_hadamard(padded)
        return padded[:, self.places_] * X.dtype.type(self.n_components**-0.5)


# ---- Linear models on the features


class _RandomFeatureModel(BaseEstimator):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_RandomFeatures._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }
    coef_: np.ndarray
    intercept_: Any  # a float, or one an output

    def __init__(
        self,
        n_components: int = 500,
        degree: int = 3,
        alpha: float = 1e-6,
        *,
        coef0: float = 1.0,
        gamma: float | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.degree = degree
        self.alpha = alpha
        self.coef0 = coef0
        self.gamma = gamma
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _map(self) -> _RandomFeatures:
        raise NotImplementedError

    def _fitted_map(self, X: Rows, weight: np.ndarray) -> _RandomFeatures:
        gamma = _inverse_mean_square(X, weight) if self.gamma is None else self.gamma
        return self._map().set_params(gamma=gamma).fit(X)

    def _map_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_components", "degree", "coef0", "random_state")}

    def _check(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Rows, np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, **checks)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        require_some_weight(weight, "sample_weight")
        return X, y, weight

    def _finite_features(self, X: Rows) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            features = self.map_._block(X)
        if not np.isfinite(features).all():
            raise ValueError(f"The features of degree {self.degree} overflow {X.dtype}: scale the rows of X, or lower gamma.")
        return features

    def _all_features(self, X: Rows, dtype: np.dtype) -> np.ndarray:
        result = np.empty((X.shape[0], self.n_components), dtype=dtype)
        for rows in row_blocks(X.shape[0], self.map_._width):
            result[rows] = self._finite_features(X[rows])
        return result

    def _outputs(self, X: Any) -> np.ndarray:
        """(n_samples,) or (n_samples, n_outputs), in blocks of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        coef = self.coef_.T.astype(X.dtype)
        result = np.empty((X.shape[0], *coef.shape[1:]), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], self.map_._width):
            result[rows] = self.map_._block(X[rows]) @ coef + self.intercept_
        return result


class _Regression(RegressorMixin, _RandomFeatureModel):
    """Ridge regression on the features: fit and predict."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the map and fit ridge regression on its features, which are never held whole unless there are few rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice.
        """
        with all_or_nothing(self):
            X, y, weight = self._check(X, y, sample_weight, multi_output=True, y_numeric=True)
            self.map_ = self._fitted_map(X, weight)
            targets = y.astype(np.float64, copy=False).reshape(len(y), -1)
            if X.shape[0] > self.n_components:
                coef, intercept = self._normal_equations(X, targets, weight)
            else:
                coef, intercept = self._few_rows(X, targets, weight)
            self.coef_, self.intercept_ = (coef, intercept) if y.ndim > 1 else (coef[0], float(intercept[0]))
        return self

    def _few_rows(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By scikit-learn, which has the dual for that; where that is singular, by way of the features themselves and not their squares."""
        features, alpha = self._all_features(X, np.dtype(np.float64)), self.alpha * weight.sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)  # the coefficients are uncertain then, their predictions are not
            warnings.filterwarnings("error", message="Singular matrix in solving dual problem")
            try:
                model = Ridge(alpha, solver="cholesky" if self.alpha > 0 else "svd").fit(features, y, weight)
            except UserWarning:
                model = Ridge(alpha, solver="svd").fit(features, y, weight)
        return model.coef_.reshape(y.shape[1], -1), np.atleast_1d(model.intercept_)

    def _normal_equations(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """coef (n_outputs, n_components) and intercept (n_outputs,), from float64 sums over blocks of rows.

        The sums are those of [features, y] less their means in the first block: what is left of the means is small, and loses no digits
        when it is taken out at the end.
        """
        products, sums, shift = 0.0, 0.0, None
        for rows in row_blocks(X.shape[0], self.map_._width):
            table = np.hstack([self._finite_features(X[rows]).astype(np.float64, copy=False), y[rows]])
            shift = table.mean(axis=0) if shift is None else shift
            table -= shift
            sums = sums + weight[rows] @ table
            table *= np.sqrt(weight[rows])[:, None]
            products = products + table.T @ table
        total, D = weight.sum(), self.n_components
        mean = sums / total
        moments = products / total - np.outer(mean, mean)
        gram, right = moments[:D, :D], moments[:D, D:]
        gram[np.diag_indices(D)] += self.alpha
        coef = _solve_definite(gram, right).T
        mean += shift
        return coef, mean[D:] - coef @ mean[:D]

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,) or (n_samples, n_outputs) like the y of the fit."""
        return self._outputs(X)


def _solve_definite(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return cho_solve(cho_factor(gram, lower=True), right)
    except LinAlgError:  # singular to rounding
        return lstsq(gram, right)[0]


class _Classification(Probabilities, _RandomFeatureModel):
    """Logistic, or for several classes multinomial, regression on the features: fit, probabilities, labels."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the map and fit logistic regression on its features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice.
        """
        with all_or_nothing(self):
            X, y, weight = self._check(X, y, sample_weight)
            self.classes_, numbers = encode_labels(y)
            self.map_ = self._fitted_map(X, weight)
            self.coef_, self.intercept_ = self._logistic_regression(X, numbers, weight)
        return self

    def _logistic_regression(self, X: Rows, numbers: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, Any]:
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        newton = n_outputs * self.n_components <= NEWTON_COEFFICIENTS
        features = self._all_features(X, np.dtype(np.float64) if newton else X.dtype)
        model = LogisticRegression(
            C=1 / (self.alpha * weight.sum()) if self.alpha > 0 else np.inf, solver="newton-cholesky" if newton else "lbfgs", max_iter=1000
        )
        with warnings.catch_warnings(record=True):  # of Newton's method, which hands over to L-BFGS, and of that
            warnings.simplefilter("always")
            model.fit(features, numbers, weight)
        if model.n_iter_.max() >= model.max_iter:
            warnings.warn(
                f"{type(self).__name__} stopped after {model.max_iter} iterations of logistic regression before it had converged. "
                "Scale the columns of X, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return (model.coef_[0], float(model.intercept_[0])) if n_outputs == 1 else (model.coef_, model.intercept_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_samples,), or with more than two classes the outputs (n_samples, n_classes)."""
        return self._outputs(X)


class _KarKarnickModel(_RandomFeatureModel):
    def _map(self) -> _RandomFeatures:
        return KarKarnick(**self._map_settings())


class _TensorSketchModel(_RandomFeatureModel):
    def _map(self) -> _RandomFeatures:
        return TensorSketch(**self._map_settings())


class _CRAFTMapsModel(_RandomFeatureModel):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CRAFTMaps._parameter_constraints,
        **_RandomFeatureModel._parameter_constraints,
    }

    def __init__(
        self,
        n_components: int = 500,
        degree: int = 3,
        alpha: float = 1e-6,
        *,
        coef0: float = 1.0,
        gamma: float | None = None,
        up: str = "tensor-sketch",
        expansion: int = 4,
        random_state: Any = None,
    ):
        super().__init__(n_components=n_components, degree=degree, alpha=alpha, coef0=coef0, gamma=gamma, random_state=random_state)
        self.up = up
        self.expansion = expansion

    def _map(self) -> _RandomFeatures:
        return CRAFTMaps(**self._map_settings(), up=self.up, expansion=self.expansion)


def _model_documentation(first_line: str, name: str, map_name: str, extra: str = "") -> str:
    """Of a model `name` on the features of `map_name`."""
    extra = extra and extra + "\n    "
    classifier = name.endswith("Classifier")
    loss = "the logistic, or for several classes the multinomial, loss" if classifier else "half the squared error"
    outputs = "with more than two classes (n_classes, n_components)" if classifier else "(n_outputs, n_components)"
    classes = "classes_ : ndarray of shape (n_classes,)\n    " if classifier else ""
    load, scaled, score = ("load_iris", "axis=1, keepdims=True", "1.0") if classifier else ("load_diabetes", "axis=0", "0.6")
    return f"""{first_line}

    f(x) = intercept_ + <coef_, phi(x)> with the features phi of `{map_name}` minimises

        (1 / total weight) * sum of weight * loss + alpha / 2 * |coef_|^2

    where the loss is {loss}. X is taken as it is: polynomials want columns of one scale, and rows of unit norm serve well.

    Parameters
    ----------
    n_components : int, default=500
        Number of features.
    degree : int, default=3
    alpha : float, default=1e-6
    coef0 : float, default=1.0
        The kernel is (gamma <x, y> + coef0)^degree.
    gamma : float, optional
        1 / (mean squared norm of the rows of X) if not given.
    {extra}{RANDOM_STATE}

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or {outputs}
    intercept_ : float, or ndarray of one number an output
    map_ : {map_name}
    {classes}{FEATURE_NAMES}

    References
    ----------
    {REFERENCES[map_name]}

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import {load}
    >>> from tensormachines.peers import {name}
    >>> X, y = {load}(return_X_y=True)
    >>> X = X / np.linalg.norm(X, {scaled})
    >>> round({name}(n_components=50, degree=2, random_state=0).fit(X, y).score(X, y), 1)
    {score}
    """


class KarKarnickRegressor(_Regression, _KarKarnickModel):
    __doc__ = _model_documentation("Ridge regression on products of random projections.", "KarKarnickRegressor", "KarKarnick")


class KarKarnickClassifier(_Classification, _KarKarnickModel):
    __doc__ = _model_documentation("Logistic regression on products of random projections.", "KarKarnickClassifier", "KarKarnick")


class TensorSketchRegressor(_Regression, _TensorSketchModel):
    __doc__ = _model_documentation("Ridge regression on count sketches of a tensor power.", "TensorSketchRegressor", "TensorSketch")


class TensorSketchClassifier(_Classification, _TensorSketchModel):
    __doc__ = _model_documentation("Logistic regression on count sketches of a tensor power.", "TensorSketchClassifier", "TensorSketch")


class CRAFTMapsRegressor(_Regression, _CRAFTMapsModel):
    __doc__ = _model_documentation("Ridge regression on compact random features.", "CRAFTMapsRegressor", "CRAFTMaps", CRAFT_PARAMETERS)


class CRAFTMapsClassifier(_Classification, _CRAFTMapsModel):
    __doc__ = _model_documentation("Logistic regression on compact random features.", "CRAFTMapsClassifier", "CRAFTMaps", CRAFT_PARAMETERS)
