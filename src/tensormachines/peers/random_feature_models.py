"""Linear models on random features of the polynomial kernel."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, lstsq
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import check_is_fitted, validate_data

from .._model.moments import Rows
from ..estimators.classification import encode_labels
from ..estimators.polynomial_model import all_or_nothing
from ..estimators.sklearn_private import Interval, check_sample_weight, fit_context
from ..estimators.validation import require_some_weight
from .mixins import Probabilities
from .random_features import (
    CRAFT_PARAMETERS,
    FEATURE_NAMES,
    FLOATS,
    RANDOM_STATE,
    REFERENCES,
    CRAFTMaps,
    KarKarnick,
    RandomFeatures,
    TensorSketch,
    inverse_mean_square,
    row_blocks,
)

NEWTON_COEFFICIENTS = 2000  # up to so many, Newton's method is as fast as L-BFGS, and ends at the optimum where that one stops before it


class _RandomFeatureModel(BaseEstimator):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomFeatures._parameter_constraints,
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

    def _map(self) -> RandomFeatures:
        raise NotImplementedError

    def _fitted_map(self, X: Rows, weight: np.ndarray) -> RandomFeatures:
        gamma = inverse_mean_square(X, weight) if self.gamma is None else self.gamma
        return self._map().set_params(gamma=gamma).fit(X)

    def _map_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_components", "degree", "coef0", "random_state")}

    def _check(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> tuple[Rows, np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, **checks)
        weight = check_sample_weight(sample_weight, X, dtype=np.float64)
        require_some_weight(weight, "sample_weight")
        return X, y, weight

    def _finite_features(self, X: Rows) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            features = self.map_._block(X)
        if not np.isfinite(features).all():
            raise ValueError(
                f"The features of degree {self.degree} overflow {X.dtype}: scale the rows of X, or lower gamma."
            )
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the map and fit ridge regression on its features, which are never held whole unless there are
        few rows.

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
        """By scikit-learn, which has the dual for that; where that is singular, by way of the features
        themselves and not their squares.
        """
        features, alpha = self._all_features(X, np.dtype(np.float64)), self.alpha * weight.sum()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", LinAlgWarning
            )  # the coefficients are uncertain then, their predictions are not
            warnings.filterwarnings("error", message="Singular matrix in solving dual problem")
            try:
                model = Ridge(alpha, solver="cholesky" if self.alpha > 0 else "svd").fit(features, y, weight)
            except UserWarning:
                model = Ridge(alpha, solver="svd").fit(features, y, weight)
        return model.coef_.reshape(y.shape[1], -1), np.atleast_1d(model.intercept_)

    def _normal_equations(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """coef (n_outputs, n_components) and intercept (n_outputs,), from float64 sums over blocks of rows.

        The sums are those of [features, y] less their means in the first block: what is left of the means is
        small, and loses no digits when it is taken out at the end."""
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

    @fit_context(prefer_skip_nested_validation=True)
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

    def _logistic_regression(
        self, X: Rows, numbers: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        newton = n_outputs * self.n_components <= NEWTON_COEFFICIENTS
        features = self._all_features(X, np.dtype(np.float64) if newton else X.dtype)
        model = LogisticRegression(
            C=1 / (self.alpha * weight.sum()) if self.alpha > 0 else np.inf,
            solver="newton-cholesky" if newton else "lbfgs",
            max_iter=1000,
        )
        with warnings.catch_warnings(
            record=True
        ):  # of Newton's method, which hands over to L-BFGS, and of that
            warnings.simplefilter("always")
            model.fit(features, numbers, weight)
        if model.n_iter_.max() >= model.max_iter:
            warnings.warn(
                f"{type(self).__name__} stopped after {model.max_iter} iterations of logistic regression before it had converged. "
                "Scale the columns of X, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return (
            (model.coef_[0], float(model.intercept_[0]))
            if n_outputs == 1
            else (model.coef_, model.intercept_)
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_samples,), or with more than two classes the outputs (n_samples,
        n_classes).
        """
        return self._outputs(X)


class _KarKarnickModel(_RandomFeatureModel):
    def _map(self) -> RandomFeatures:
        return KarKarnick(**self._map_settings())


class _TensorSketchModel(_RandomFeatureModel):
    def _map(self) -> RandomFeatures:
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
        super().__init__(
            n_components=n_components,
            degree=degree,
            alpha=alpha,
            coef0=coef0,
            gamma=gamma,
            random_state=random_state,
        )
        self.up = up
        self.expansion = expansion

    def _map(self) -> RandomFeatures:
        return CRAFTMaps(**self._map_settings(), up=self.up, expansion=self.expansion)


def _model_documentation(first_line: str, name: str, map_name: str, extra: str = "") -> str:
    """Of a model `name` on the features of `map_name`."""
    extra = extra and extra + "\n    "
    classifier = name.endswith("Classifier")
    loss = (
        "the logistic, or for several classes the multinomial, loss"
        if classifier
        else "half the squared error"
    )
    outputs = (
        "with more than two classes (n_classes, n_components)" if classifier else "(n_outputs, n_components)"
    )
    classes = "classes_ : ndarray of shape (n_classes,)\n    " if classifier else ""
    load, scaled, score = (
        ("load_iris", "axis=1, keepdims=True", "1.0") if classifier else ("load_diabetes", "axis=0", "0.6")
    )
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
    __doc__ = _model_documentation(
        "Ridge regression on products of random projections.", "KarKarnickRegressor", "KarKarnick"
    )


class KarKarnickClassifier(_Classification, _KarKarnickModel):
    __doc__ = _model_documentation(
        "Logistic regression on products of random projections.", "KarKarnickClassifier", "KarKarnick"
    )


class TensorSketchRegressor(_Regression, _TensorSketchModel):
    __doc__ = _model_documentation(
        "Ridge regression on count sketches of a tensor power.", "TensorSketchRegressor", "TensorSketch"
    )


class TensorSketchClassifier(_Classification, _TensorSketchModel):
    __doc__ = _model_documentation(
        "Logistic regression on count sketches of a tensor power.", "TensorSketchClassifier", "TensorSketch"
    )


class CRAFTMapsRegressor(_Regression, _CRAFTMapsModel):
    __doc__ = _model_documentation(
        "Ridge regression on compact random features.", "CRAFTMapsRegressor", "CRAFTMaps", CRAFT_PARAMETERS
    )


class CRAFTMapsClassifier(_Classification, _CRAFTMapsModel):
    __doc__ = _model_documentation(
        "Logistic regression on compact random features.",
        "CRAFTMapsClassifier",
        "CRAFTMaps",
        CRAFT_PARAMETERS,
    )
