"""Apple: a sparse polynomial found online, by expanding the monomials that weigh most."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from .._data.deduplicate import merge_rows
from .._model.moments import Rows
from ..estimators.classification import encode_labels
from ..estimators.polynomial_model import all_or_nothing
from ..estimators.sklearn_private import Interval, check_sample_weight, fit_context
from ..estimators.validation import require_some_weight
from .memory import available_memory
from .mixins import OneAgainstTheRest, shift_and_scale
from .online_polynomial import LOGISTIC, SQUARED, OnlinePolynomial, readable

PARAMETERS = """

    f(x) = intercept + sum over the monomials m found so far of coef_m * m(x), m(x) = prod over j in m of x_j.

    It starts with the columns themselves. After an epoch (a pass over the rows) the s monomials that weigh most and were not expanded yet
    are: their products with every column, which may be one of their own, become monomials too. s = (mean number of non-zeros in a
    row) ** expansion. The rows are learnt one by one by the normalised adaptive gradient, whose steps do not depend on the units of the
    columns; so neither does the model.

    Parameters
    ----------
    degree : int, default=3
        Highest degree of a monomial.
    expansion : float, default=0.75
        How many monomials an expansion takes; from 0 (one) to 1 (as many as a row has non-zeros), or more. The monomials, and with
        them the time of an epoch, grow to n_expansions * (non-zeros in a row) ** expansion * columns: 0.5 is for hundreds of dense columns.
    n_expansions : int, default=10
        How often monomials are expanded: after each of the first epochs.
    max_iter : int, default=20
        Epochs in all.
    learning_rate : float, default=4.0
        No step overshoots, however large it is. After the last expansion it falls linearly from epoch to epoch; in a stream it does not.
    alpha : float, default=0.0
        Penalty: the objective is the mean loss of a row + alpha/2 * sum over m of share_m * (scale_m * coef_m)**2, scale_m the largest
        value of monomial m and share_m the share of rows in which it is not 0.
    shuffle : bool, default=True
        Whether each epoch takes the rows in a new order, and the rows of a small data set are first put into one that does not depend on
        how they came. Otherwise they are taken as they come.
    expand_after : int, default=1000
        Only for `partial_fit`: monomials are expanded when 1, 2, 4, 8, ... times so many rows have been seen.
    random_state : int, RandomState instance or None, default=None
        Order of the rows.

    Attributes
    ----------
    monomials_ : list of tuple of int
        Columns of which each monomial is the product, sorted; a column may come several times.
    monomial_names_ : list of str
        The same with the names of the columns, as "age height^2".
    coef_ : ndarray of shape (n_monomials,){shapes}
    intercept_ : {intercept}
    n_iter_ : int
        Epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where all columns of X have names.{classes}

    References
    ----------
    A. Agarwal, A. Beygelzimer, D. Hsu, J. Langford, M. Telgarsky, "Scalable Nonlinear Learning with Adaptive Polynomial Expansions", 2014;
    S. Ross, P. Mineiro, J. Langford, "Normalized Online Learning", 2013.
"""


class Apple(BaseEstimator):
    """What the regressor and the classifier share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "expansion": [Interval(Real, 0, None, closed="left")],
        "n_expansions": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "expand_after": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }
    _loss: ClassVar[int]

    def __init__(
        self,
        degree: int = 3,
        expansion: float = 0.75,
        *,
        n_expansions: int = 10,
        max_iter: int = 20,
        learning_rate: float = 4.0,
        alpha: float = 0.0,
        shuffle: bool = True,
        expand_after: int = 1000,
        random_state: Any = None,
    ):
        self.degree = degree
        self.expansion = expansion
        self.n_expansions = n_expansions
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.shuffle = shuffle
        self.expand_after = expand_after
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_polynomial")

    @property
    def monomials_(self) -> list[tuple[int, ...]]:
        check_is_fitted(self)
        return [self._polynomial.columns(number) for number in range(1, self._polynomial.n_monomials)]

    @property
    def monomial_names_(self) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"x{c}" for c in range(self.n_features_in_)])
        return [_name(monomial, names) for monomial in self.monomials_]

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, **settings: Any
    ) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **settings
        )
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            require_some_weight(sample_weight, "sample_weight")
        return X, y, sample_weight

    def _learn_epochs(
        self, X: Rows, targets: np.ndarray, weight: np.ndarray | None
    ) -> tuple[OnlinePolynomial, _Progress]:
        """targets is (rows, outputs)."""
        if self.shuffle:
            X, targets, weight = merge_rows(X, targets, weight)
        random_state = check_random_state(self.random_state)
        polynomial, progress = OnlinePolynomial(_units(X), targets.shape[1]), _Progress()
        progress.count(X, weight)
        targets, weight = _as(X.dtype, targets), None if weight is None else _as(X.dtype, weight)
        X = readable(X)
        closing = max(1, self.max_iter - self.n_expansions)
        for left in range(self.max_iter, 0, -1):
            order = random_state.permutation(len(targets)) if self.shuffle else None
            learning_rate = self.learning_rate * min(1.0, left / closing)
            polynomial.learn(X, targets, weight, order, self._loss, learning_rate, self.alpha)
            if left > 1:
                self._expand(polynomial, progress)
        progress.seen = len(targets) * self.max_iter
        return polynomial, progress

    def _expand(self, polynomial: OnlinePolynomial, progress: _Progress) -> None:
        if progress.n_expansions < self.n_expansions:
            count = max(1, int(progress.mean_nonzeros**self.expansion))
            self._require_memory(polynomial, count)
            polynomial.expand(count, self.degree)
            progress.n_expansions += 1

    def _require_memory(self, polynomial: OnlinePolynomial, count: int) -> None:
        """Growing copies all that there is, so that for a moment it is there twice."""
        needed = (
            (2 * len(polynomial.parents) + count)
            * len(polynomial.unit)
            * (len(polynomial.weights) + 1)
            * 2
            * polynomial.unit.itemsize
        )
        available = available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"Expanding {count} monomials by {len(polynomial.unit)} columns takes some {needed:,} bytes, {available:,} are available. "
                f"Lower expansion, now {self.expansion}, or n_expansions, now {self.n_expansions}."
            )

    def _learn_block(
        self,
        polynomial: OnlinePolynomial,
        progress: _Progress,
        X: Rows,
        targets: np.ndarray,
        weight: np.ndarray | None,
    ) -> tuple[OnlinePolynomial, _Progress]:
        """Learn the rows of a stream, on copies; wherever its blocks end, it is expanded after the same rows."""
        polynomial, progress, start = polynomial.copy(), copy(progress), 0
        X = X.astype(polynomial.unit.dtype, copy=False)
        rows, targets = readable(X), _as(X.dtype, targets)
        weight = None if weight is None else _as(X.dtype, weight)
        while start < len(targets):
            stop = min(len(targets), start + progress.until_expansion(self.expand_after))
            part = slice(start, stop)
            progress.count(X[part], None if weight is None else weight[part])
            polynomial.learn(
                rows, targets, weight, np.arange(start, stop), self._loss, self.learning_rate, self.alpha
            )
            progress.seen += stop - start
            if progress.at_expansion(self.expand_after):
                self._expand(polynomial, progress)
            start = stop
        return polynomial, progress

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False
        )
        outputs = self._polynomial.outputs(readable(X.astype(self._polynomial.unit.dtype, copy=False)))
        return outputs.astype(X.dtype, copy=False)


class AppleRegressor(RegressorMixin, Apple):
    __doc__ = (
        "Least squares with a sparse polynomial that is found online (Apple)."
        + PARAMETERS.format(
            shapes=" or (n_outputs, n_monomials)",
            intercept="float or ndarray of shape (n_outputs,)",
            classes="",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import AppleRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 5))
    >>> model = AppleRegressor(random_state=0).fit(X, X[:, 0] + X[:, 0] * X[:, 1])
    >>> (0, 1) in model.monomials_
    True
    >>> round(model.score(X, X[:, 0] + X[:, 0] * X[:, 1]), 1)
    1.0
    """
    )
    _loss = SQUARED

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
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)
            targets = y.astype(np.float64, copy=False).reshape(len(y), -1)
            shift, scale = shift_and_scale(targets, weight)
            polynomial, progress = self._learn_epochs(X, (targets - shift) / scale, weight)
            self._set(polynomial, progress, shift, scale, y.ndim == 1)
            self.n_iter_ = self.max_iter
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, each once, in the order in which they come. After `fit` it goes
        on from there.

        The first block sets the units of the target, and should look like those to come.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            first = not hasattr(self, "_polynomial")
            X, y, weight = self._check_training_data(
                X, y, sample_weight, multi_output=True, y_numeric=True, reset=first
            )
            targets = y.astype(np.float64, copy=False).reshape(len(y), -1)
            if first:
                shift, scale = shift_and_scale(targets, weight)
                polynomial, progress, flat = (
                    OnlinePolynomial(_units(X), targets.shape[1]),
                    _Progress(),
                    y.ndim == 1,
                )
                self.n_iter_ = 1
            else:
                polynomial, progress, shift, scale, flat = (
                    self._polynomial,
                    self._progress,
                    self._shift,
                    self._scale,
                    self._flat,
                )
            if targets.shape[1] != len(shift):
                raise ValueError(f"y must have {len(shift)} outputs as before, got {targets.shape[1]}.")
            self._set(
                *self._learn_block(polynomial, progress, X, (targets - shift) / scale, weight),
                shift,
                scale,
                flat,
            )
        return self

    def _set(
        self,
        polynomial: OnlinePolynomial,
        progress: _Progress,
        shift: np.ndarray,
        scale: np.ndarray,
        flat: bool,
    ) -> None:
        with np.errstate(over="ignore"):
            coefficients = polynomial.coefficients() * scale[:, None]
        intercept = coefficients[:, 0] + shift
        self._polynomial, self._progress, self._shift, self._scale, self._flat = (
            polynomial,
            progress,
            shift,
            scale,
            flat,
        )
        self.coef_ = coefficients[0, 1:] if flat else coefficients[:, 1:]
        self.intercept_ = intercept[0] if flat else intercept

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,) or (n_samples, n_outputs) like the y of the fit."""
        outputs = self._outputs(X)
        outputs = (outputs * self._scale + self._shift).astype(outputs.dtype)
        return outputs[:, 0] if self._flat else outputs


class AppleClassifier(OneAgainstTheRest, Apple):
    __doc__ = (
        "Logistic regression with a sparse polynomial that is found online (Apple); of several classes each against the rest."
        + PARAMETERS.format(
            shapes=", as (1, n_monomials), or (n_classes, n_monomials)",
            intercept="ndarray of shape (1,) or (n_classes,)",
            classes="\n    classes_ : ndarray of shape (n_classes,)",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import AppleClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 5))
    >>> model = AppleClassifier(n_expansions=3, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> round(model.score(X, X[:, 0] * X[:, 1] > 0), 1)
    1.0
    """
    )
    _loss = LOGISTIC

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight)
            labels, numbers = encode_labels(y)
            polynomial, progress = self._learn_epochs(X, _against_the_rest(numbers, len(labels)), weight)
            self._set(polynomial, progress, labels)
            self.n_iter_ = self.max_iter
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, each once, in the order in which they come. After `fit` it goes
        on from there.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            first = not hasattr(self, "_polynomial")
            X, y, weight = self._check_training_data(X, y, sample_weight, reset=first)
            labels = self._labels_of_the_stream(classes, first)
            numbers = np.searchsorted(labels, y).clip(max=len(labels) - 1)
            if (labels[numbers] != y).any():
                raise ValueError(
                    f"y has the label {y[labels[numbers] != y][0]!r}, which is not among the classes {labels}."
                )
            targets = _against_the_rest(numbers, len(labels))
            if first:
                polynomial, progress = OnlinePolynomial(_units(X), targets.shape[1]), _Progress()
                self.n_iter_ = 1
            else:
                polynomial, progress = self._polynomial, self._progress
            self._set(*self._learn_block(polynomial, progress, X, targets, weight), labels)
        return self

    def _labels_of_the_stream(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None:
            if first:
                raise ValueError(
                    "partial_fit needs all classes in its first call: partial_fit(X, y, classes=...)."
                )
            return self.classes_
        labels = np.unique(classes)
        if not first and not np.array_equal(labels, self.classes_):
            raise ValueError(
                f"classes must be the same in every call: they were {self.classes_}, now {labels}."
            )
        if len(labels) < 2:
            raise ValueError(f"classes must name at least two classes, got {labels}.")
        return labels

    def _set(self, polynomial: OnlinePolynomial, progress: _Progress, labels: np.ndarray) -> None:
        coefficients = polynomial.coefficients()
        self._polynomial, self._progress, self.classes_ = polynomial, progress, labels
        self.coef_, self.intercept_ = coefficients[:, 1:], coefficients[:, 0]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_samples,), or with more than two classes of each against the rest
        (n_samples, n_classes).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs


class _Progress:
    """How far a model has come: the rows seen, their mean number of non-zeros, and the expansions made."""

    def __init__(self) -> None:
        self.seen = 0
        self.n_expansions = 0
        self._weight = 0.0
        self._nonzeros = 0.0

    def count(self, X: Rows, weight: np.ndarray | None) -> None:
        weight = np.ones(X.shape[0]) if weight is None else weight
        nonzeros = X.count_nonzero(axis=1) if sparse.issparse(X) else np.count_nonzero(X, axis=1)
        self._weight += weight.sum(dtype=np.float64)
        self._nonzeros += float(weight @ nonzeros)

    @property
    def mean_nonzeros(self) -> float:
        return self._nonzeros / self._weight if self._weight > 0 else 0.0

    def until_expansion(self, first: int) -> int:
        """Rows until 1, 2, 4, 8, ... times ``first`` have been seen."""
        following = first
        while following <= self.seen:
            following *= 2
        return following - self.seen

    def at_expansion(self, first: int) -> bool:
        multiple = self.seen // first
        return self.seen == multiple * first and multiple > 0 and multiple & (multiple - 1) == 0


def _units(X: Rows) -> np.ndarray:
    """Powers of two that bring the largest entry of each column near 1; they cost no rounding, and save
    products from overflow.
    """
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    largest = np.maximum(high, -low)
    exponent = np.frexp(np.where(largest > 0, largest, 1))[1]
    limit = np.finfo(X.dtype).maxexp - 4
    return np.ldexp(np.ones(1, dtype=X.dtype), -exponent.clip(-limit, limit)).astype(X.dtype)


def _as(dtype: np.dtype[Any], values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=dtype)


def _against_the_rest(numbers: np.ndarray, n_classes: int) -> np.ndarray:
    """1 for the own class and 0 for others, (rows, classes); of two classes only the second."""
    return (numbers[:, None] == np.arange(n_classes)).astype(np.float64)[:, 1 if n_classes == 2 else 0 :]


def _name(monomial: tuple[int, ...], names: Any) -> str:
    powers = {column: monomial.count(column) for column in monomial}
    return " ".join(
        f"{names[column]}^{power}" if power > 1 else f"{names[column]}" for column, power in powers.items()
    )
