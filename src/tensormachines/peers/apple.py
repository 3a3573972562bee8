"""Apple: a sparse polynomial found online, by expanding the monomials with the largest weights."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._data.training import merge_rows
from .._model.rows import Rows
from ..estimators.classification import labels_of_stream, numbers_of
from ..estimators.fit_scope import all_or_nothing
from ..estimators.own_names import own_names
from ..estimators.sklearn_private import Interval, fit_context
from .apple_learner import Learner, Schedule
from .mixins import OneAgainstTheRest, Regression, Rival, shift_and_scale
from .online_polynomial import LOGISTIC, SQUARED

PARAMETERS = """

    f(x) = intercept + sum over the monomials m found so far of coef_m * m(x), m(x) = prod over j in m of x_j.

    The first monomials are the columns themselves. After an epoch (a pass over the rows), the s monomials
    with the largest weights that are not yet expanded are expanded: their products with every column,
    including their own columns, become monomials too. s = (mean number of non-zeros in a row) ** expansion.
    The rows are learned one by one by the normalised adaptive gradient. Its steps, and therefore the model,
    do not depend on the units of the columns.

    Parameters
    ----------
    degree : int, default=3
        Highest degree of a monomial.
    expansion : float, default=0.75
        Exponent that determines how many monomials are expanded at a time: from 0 (one monomial) to 1 (as
        many as a row has non-zeros), or more. The number of monomials, and with it the time of an epoch,
        grows to n_expansions * (non-zeros in a row) ** expansion * columns: use 0.5 for hundreds of dense
        columns.
    n_expansions : int, default=10
        Number of expansions: one after each of the first epochs.
    max_iter : int, default=20
        Number of epochs.
    learning_rate : float, default=4.0
        No step overshoots, however large the rate is. After the last expansion the rate falls linearly from
        epoch to epoch, except in a stream.
    alpha : float, default=0.0
        Penalty: the objective is the mean loss of a row + alpha/2 * sum over m of
        share_m * (scale_m * coef_m)**2, where scale_m is the largest value of monomial m, and share_m is the
        share of rows in which it is not 0.
    shuffle : bool, default=True
        Whether each epoch takes the rows in a new random order. The rows of a small data set are then sorted
        first, so that the result does not depend on their order. If False, rows are taken in the given order.
    expand_after : int, default=1000
        Only for `partial_fit`: monomials are expanded after 1, 2, 4, 8, ... times this number of rows.
    random_state : int, RandomState instance or None, default=None
        Order of the rows.

    Attributes
    ----------
    monomials_ : list of tuple of int
        For each monomial, the sorted indices of the columns whose product it is; a column may occur several
        times.
    monomial_names_ : list of str
        The monomials with the names of the columns, such as "age height^2".
    coef_ : ndarray of shape (n_monomials,){shapes}
    intercept_ : {intercept}
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if all columns of X have names.{classes}

    References
    ----------
    A. Agarwal, A. Beygelzimer, D. Hsu, J. Langford, M. Telgarsky, "Scalable Nonlinear Learning with Adaptive
    Polynomial Expansions", 2014; S. Ross, P. Mineiro, J. Langford, "Normalized Online Learning", 2013.
"""


class Apple(Rival):
    """Settings, monomials and learning, shared by the regressor and the classifier."""

    _order = "C"
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    @property
    def monomials_(self) -> list[tuple[int, ...]]:
        check_is_fitted(self)
        polynomial = self._learner.polynomial
        return [polynomial.columns(number) for number in range(1, polynomial.n_monomials)]

    @property
    def monomial_names_(self) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"x{c}" for c in range(self.n_features_in_)])
        return [_name(monomial, names) for monomial in self.monomials_]

    def _schedule(self) -> Schedule:
        settings = self.get_params()
        del settings["random_state"]
        return Schedule(**settings, loss=self._loss)

    def _learn_epochs(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None) -> Learner:
        """Return a new learner after all epochs; ``targets`` is (rows, outputs)."""
        if self.shuffle:
            X, targets, weight = merge_rows(X, targets, weight)
        learner = Learner(X, targets.shape[1])
        random_state = check_random_state(self.random_state)
        learner.learn_epochs(X, targets, weight, self._schedule(), random_state)
        return learner

    def _outputs(self, X: Any) -> np.ndarray:
        X = self._check_rows(X)
        return self._learner.outputs(X).astype(X.dtype, copy=False)


@own_names
class AppleRegressor(Regression, Apple):
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

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None, flat: bool) -> None:
        shift, scale = shift_and_scale(targets, weight)
        self._set(self._learn_epochs(X, (targets - shift) / scale, weight), shift, scale, flat)
        self.n_iter_ = self.max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, each once and in order. After `fit`, continue from the fitted model.

        The first rows determine the units of the target, so they should be typical of later rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        """
        with all_or_nothing(self):
            first = not hasattr(self, "_learner")
            X, targets, weight, flat = self._check_targets(X, y, sample_weight, reset=first)
            if first:
                shift, scale = shift_and_scale(targets, weight)
                learner = Learner(X, targets.shape[1])
                self.n_iter_ = 1
            else:
                learner, shift, scale, flat = self._learner, self._shift, self._scale, self._flat
            if targets.shape[1] != len(shift):
                raise ValueError(f"y must have {len(shift)} outputs as before, got {targets.shape[1]}.")
            learner = learner.after_rows(X, (targets - shift) / scale, weight, self._schedule())
            self._set(learner, shift, scale, flat)
        return self

    def _set(self, learner: Learner, shift: np.ndarray, scale: np.ndarray, flat: bool) -> None:
        with np.errstate(over="ignore"):
            coefficients = learner.polynomial.coefficients() * scale[:, None]
        intercept = coefficients[:, 0] + shift
        self._learner, self._shift, self._scale, self._flat = learner, shift, scale, flat
        self.coef_ = coefficients[0, 1:] if flat else coefficients[:, 1:]
        self.intercept_ = intercept[0] if flat else intercept

    def _outputs(self, X: Any) -> np.ndarray:
        outputs = super()._outputs(X)
        outputs = (outputs * self._scale + self._shift).astype(outputs.dtype)
        return outputs[:, 0] if self._flat else outputs


@own_names
class AppleClassifier(OneAgainstTheRest, Apple):
    __doc__ = (
        "Logistic regression with a sparse polynomial that is found online (Apple); with more than two "
        "classes each against the rest."
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

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: np.ndarray | None) -> None:
        self._set(self._learn_epochs(X, self._one_hot(numbers).astype(np.float64), weight))
        self.n_iter_ = self.max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, each once and in order. After `fit`, continue from the fitted model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that will ever occur. Required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        """
        with all_or_nothing(self):
            first = not hasattr(self, "_learner")
            X, y, weight = self._check_training_data(X, y, sample_weight, reset=first)
            self.classes_ = labels_of_stream(classes, None if first else self.classes_)
            targets = self._one_hot(numbers_of(self.classes_, y)).astype(np.float64)
            if first:
                self.n_iter_ = 1
            learner = Learner(X, targets.shape[1]) if first else self._learner
            self._set(learner.after_rows(X, targets, weight, self._schedule()))
        return self

    def _set(self, learner: Learner) -> None:
        coefficients = learner.polynomial.coefficients()
        self._learner, self.coef_, self.intercept_ = learner, coefficients[:, 1:], coefficients[:, 0]


def _name(monomial: tuple[int, ...], names: Any) -> str:
    powers = {column: monomial.count(column) for column in monomial}
    return " ".join(
        f"{names[column]}^{power}" if power > 1 else f"{names[column]}" for column, power in powers.items()
    )
