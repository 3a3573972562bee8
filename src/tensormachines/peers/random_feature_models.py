"""Linear models on random features of the polynomial kernel."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, lstsq
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from .._model.rows import Rows
from ..estimators.own_names import own_names
from ..estimators.sklearn_private import Interval
from .mixins import Probabilities, Regression, Rival
from .random_features import (
    CRAFT_PARAMETERS,
    FEATURE_NAMES,
    RANDOM_STATE,
    REFERENCES,
    CRAFTMaps,
    KarKarnick,
    RandomFeatures,
    TensorSketch,
    inverse_mean_square,
    row_blocks,
)

# Up to this number of coefficients, Newton's method is as fast as L-BFGS, and closer to the optimum.
NEWTON_COEFFICIENTS = 2000


class _RandomFeatureModel(Rival):
    _needs_weights = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomFeatures._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }
    coef_: np.ndarray
    intercept_: Any  # a float, or one per output

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

    def _map(self) -> RandomFeatures:
        raise NotImplementedError

    def _fitted_map(self, X: Rows, weight: np.ndarray) -> RandomFeatures:
        gamma = inverse_mean_square(X, weight) if self.gamma is None else self.gamma
        return self._map().set_params(gamma=gamma).fit(X)

    def _map_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_components", "degree", "coef0", "random_state")}

    def _finite_features(self, X: Rows) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            features = self.map_._block(X)
        if not np.isfinite(features).all():
            raise ValueError(
                f"The features of degree {self.degree} overflow {X.dtype}: scale the rows of X, "
                "or lower gamma."
            )
        return features

    def _all_features(self, X: Rows, dtype: np.dtype) -> np.ndarray:
        result = np.empty((X.shape[0], self.n_components), dtype=dtype)
        for rows in row_blocks(X.shape[0], self.map_._width):
            result[rows] = self._finite_features(X[rows])
        return result

    def _outputs(self, X: Any) -> np.ndarray:
        X = self._check_rows(X)
        coef = self.coef_.T.astype(X.dtype)
        result = np.empty((X.shape[0], *coef.shape[1:]), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], self.map_._width):
            result[rows] = self.map_._block(X[rows]) @ coef + self.intercept_
        return result


class _Regression(Regression, _RandomFeatureModel):
    """Ridge regression on the features, which are not held in memory as a whole unless there are few rows."""

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: np.ndarray, flat: bool) -> None:
        self.map_ = self._fitted_map(X, weight)
        solve = self._normal_equations if X.shape[0] > self.n_components else self._few_rows
        coef, intercept = solve(X, targets, weight)
        self.coef_, self.intercept_ = (coef[0], float(intercept[0])) if flat else (coef, intercept)

    def _few_rows(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve the dual with scikit-learn; if it is singular, use an SVD of the features."""
        features, alpha = self._all_features(X, np.dtype(np.float64)), self.alpha * weight.sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)  # it concerns coefficients, not predictions
            warnings.filterwarnings("error", message="Singular matrix in solving dual problem")
            try:
                model = Ridge(alpha, solver="cholesky" if self.alpha > 0 else "svd").fit(features, y, weight)
            except UserWarning:
                model = Ridge(alpha, solver="svd").fit(features, y, weight)
        return model.coef_.reshape(y.shape[1], -1), np.atleast_1d(model.intercept_)

    def _normal_equations(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coef (n_outputs, n_components) and intercept (n_outputs,), from float64 sums over the rows.

        The sums are over [features, y] minus their means in the first block. The remaining means are small,
        so subtracting them at the end loses no digits."""
        products, sums, shift = 0.0, 0.0, None
        for rows in row_blocks(X.shape[0], self.map_._width):
            columns = np.hstack([self._finite_features(X[rows]).astype(np.float64, copy=False), y[rows]])
            shift = columns.mean(axis=0) if shift is None else shift
            columns -= shift
            sums = sums + weight[rows] @ columns
            columns *= np.sqrt(weight[rows])[:, None]
            products = products + columns.T @ columns
        total, D = weight.sum(), self.n_components
        mean = sums / total
        moments = products / total - np.outer(mean, mean)
        gram, right = moments[:D, :D], moments[:D, D:]
        gram[np.diag_indices(D)] += self.alpha
        coef = _solve_definite(gram, right).T
        mean += shift
        return coef, mean[D:] - coef @ mean[:D]


def _solve_definite(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return cho_solve(cho_factor(gram, lower=True), right)
    except LinAlgError:  # singular to rounding
        return lstsq(gram, right)[0]


class _Classification(Probabilities, _RandomFeatureModel):
    """Logistic regression on the features, multinomial with more than two classes."""

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: np.ndarray) -> None:
        self.map_ = self._fitted_map(X, weight)
        self.coef_, self.intercept_ = self._logistic_regression(X, numbers, weight)

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
        with warnings.catch_warnings():  # from Newton's method, which falls back to L-BFGS, and from L-BFGS
            warnings.simplefilter("ignore")
            model.fit(features, numbers, weight)
        if model.n_iter_.max() >= model.max_iter:
            warnings.warn(
                f"{type(self).__name__} did not converge in {model.max_iter} iterations. "
                "Scale the columns of X, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if n_outputs == 1:
            return model.coef_[0], float(model.intercept_[0])
        return model.coef_, model.intercept_


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
    """Return the docstring of the model ``name`` on the features of ``map_name``."""
    extra = extra and extra + "\n    "
    classifier = name.endswith("Classifier")
    loss = "the logistic loss, with several classes multinomial" if classifier else "half the squared error"
    outputs = "(n_classes, n_components)" if classifier else "(n_outputs, n_components)"
    classes = "classes_ : ndarray of shape (n_classes,)\n    " if classifier else ""
    load, scaled, score = (
        ("load_iris", "axis=1, keepdims=True", "1.0") if classifier else ("load_diabetes", "axis=0", "0.6")
    )
    return f"""{first_line}

    f(x) = intercept_ + <coef_, phi(x)> with the features phi of `{map_name}` minimises

        (1 / total weight) * sum of weight * loss + alpha / 2 * |coef_|^2

    where the loss is {loss}.
    X is not scaled: polynomials need columns on a common scale, and rows of unit norm work well.

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
    intercept_ : float or ndarray, one number per output
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


@own_names
class KarKarnickRegressor(_Regression, _KarKarnickModel):
    __doc__ = _model_documentation(
        "Ridge regression on products of random projections.", "KarKarnickRegressor", "KarKarnick"
    )


@own_names
class KarKarnickClassifier(_Classification, _KarKarnickModel):
    __doc__ = _model_documentation(
        "Logistic regression on products of random projections.", "KarKarnickClassifier", "KarKarnick"
    )


@own_names
class TensorSketchRegressor(_Regression, _TensorSketchModel):
    __doc__ = _model_documentation(
        "Ridge regression on count sketches of a tensor power.", "TensorSketchRegressor", "TensorSketch"
    )


@own_names
class TensorSketchClassifier(_Classification, _TensorSketchModel):
    __doc__ = _model_documentation(
        "Logistic regression on count sketches of a tensor power.", "TensorSketchClassifier", "TensorSketch"
    )


@own_names
class CRAFTMapsRegressor(_Regression, _CRAFTMapsModel):
    __doc__ = _model_documentation(
        "Ridge regression on compact random features.", "CRAFTMapsRegressor", "CRAFTMaps", CRAFT_PARAMETERS
    )


@own_names
class CRAFTMapsClassifier(_Classification, _CRAFTMapsModel):
    __doc__ = _model_documentation(
        "Logistic regression on compact random features.",
        "CRAFTMapsClassifier",
        "CRAFTMaps",
        CRAFT_PARAMETERS,
    )
