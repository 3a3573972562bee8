"""Input checks, `fit`, labels and probabilities, shared by the rival methods."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._model.rows import Rows
from ..estimators.classification import encode_labels
from ..estimators.fit_scope import all_or_nothing
from ..estimators.sklearn_private import check_sample_weight, fit_context
from ..estimators.validation import require_some_weight

FLOATS = [np.float64, np.float32]


class Rival(BaseEstimator):
    """An estimator that accepts dense or CSR rows in float64 or float32, and sample weights."""

    _order: ClassVar[str | None] = None  # memory order of dense rows; None for any
    _needs_weights: ClassVar[bool] = False  # whether missing weights become weights of 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Rows, np.ndarray, Any]:
        """Return rows, target and float64 weights; weights may be None if they are optional and not given."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, order=self._order, **options)
        if sample_weight is None and not self._needs_weights:
            return X, y, None
        weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        require_some_weight(weight, "sample_weight")
        return X, y, weight

    def _check_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, order=self._order, reset=False)

    def _outputs(self, X: Any) -> np.ndarray:
        """Return the outputs of new rows, (n_samples,) or (n_samples, n_outputs)."""
        raise NotImplementedError


class Regression(RegressorMixin, Rival):
    """A regressor that `_fit_targets` fits."""

    _several_outputs: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_outputs
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        """
        with all_or_nothing(self):
            self._fit_targets(*self._check_targets(X, y, sample_weight))
        return self

    def _check_targets(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Rows, np.ndarray, Any, bool]:
        """Return rows, float64 targets (rows, outputs), weights, and whether y has one dimension."""
        options |= {"multi_output": self._several_outputs, "y_numeric": True}
        X, y, weight = self._check_training_data(X, y, sample_weight, **options)
        return X, y.astype(np.float64, copy=False).reshape(len(y), -1), weight, y.ndim == 1

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: Any, flat: bool) -> None:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Return predicted targets of shape (n_samples,) or (n_samples, n_outputs), like the y of the fit."""
        return self._outputs(X)


class Labels(ClassifierMixin, Rival):
    """A classifier that `_fit_numbers` fits, and that predicts the label of the largest output.

    With two classes there is one output, and the second class is predicted if the output is positive.
    """

    classes_: np.ndarray

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight)
            self.classes_, numbers = encode_labels(y)
            self._fit_numbers(X, numbers, weight)
        return self

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: Any) -> None:
        """Fit to the class indices 0, 1, ..., in the order of ``classes_``."""
        raise NotImplementedError

    def _one_hot(self, numbers: np.ndarray) -> np.ndarray:
        """Return one-hot classes, (rows, classes); with two classes, only the column of the second class."""
        n_classes = len(self.classes_)
        return numbers[:, None] == np.arange(1 if n_classes == 2 else 0, n_classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return one output per row, (n_samples,), positive for the second class; with more than two classes,
        one output per class, (n_samples, n_classes).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.ndim == 2 and len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Return labels, (n_samples,)."""
        outputs = self.decision_function(X)
        return self.classes_[(outputs > 0).astype(np.intp) if outputs.ndim == 1 else outputs.argmax(axis=1)]


class Probabilities(Labels):
    """A classifier whose outputs are log-odds."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, (n_samples, n_classes) in the order of ``classes_``."""
        outputs = self.decision_function(X)
        if outputs.ndim == 2:
            return self._several_probabilities(outputs)
        return np.column_stack([expit(-outputs), expit(outputs)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return logarithms of the probabilities, (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _several_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(outputs, axis=1)


class OneAgainstTheRest(Probabilities):
    """A classifier whose outputs are the log-odds of each class against all others; the probabilities are
    scaled to sum to 1.
    """

    def _several_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(log_expit(outputs), axis=1)


def shift_and_scale(targets: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and standard deviation of each column; the deviation is 1 if a column is
    constant up to the rounding of its mean.
    """
    shift = np.average(targets, axis=0, weights=weight)
    largest = np.abs(targets - shift).max(axis=0)
    varies = largest > 8 * np.finfo(np.float64).eps * np.abs(shift)
    largest = np.where(varies, largest, 1.0)
    # In units of the largest value, squares neither overflow nor vanish.
    scale = largest * np.sqrt(np.average(((targets - shift) / largest) ** 2, axis=0, weights=weight))
    return shift, np.where(varies & (scale > 0), scale, 1.0)
