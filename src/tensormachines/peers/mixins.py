"""What peers make of the outputs of a model, and of the targets of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin


class Labels(ClassifierMixin):
    """The label of the largest output; of a single one, the second where it is positive.
    ``decision_function`` gives the outputs.
    """

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Labels, (n_samples,)."""
        outputs = self.decision_function(X)
        return self.classes_[(outputs > 0).astype(np.intp) if outputs.ndim == 1 else outputs.argmax(axis=1)]


class Probabilities(Labels):
    """Labels and probabilities, where outputs are log-odds."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, (n_samples, n_classes) in the order of ``classes_``."""
        outputs = self.decision_function(X)
        if outputs.ndim == 2:
            return self._of_several_classes(outputs)
        return np.column_stack([expit(-outputs), expit(outputs)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _of_several_classes(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(outputs, axis=1)


class OneAgainstTheRest(Probabilities):
    """Where each output is the log-odds of one class against all others; the probabilities are scaled to sum
    to 1.
    """

    def _of_several_classes(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(log_expit(outputs), axis=1)


def shift_and_scale(targets: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and deviation of each column; the deviation is 1 where a column is constant up to the
    rounding of its mean.
    """
    shift = np.average(targets, axis=0, weights=weight)
    largest = np.abs(targets - shift).max(axis=0)
    varies = largest > 8 * np.finfo(np.float64).eps * np.abs(shift)
    largest = np.where(varies, largest, 1.0)
    # In units of the largest: squares neither overflow nor vanish.
    scale = largest * np.sqrt(np.average(((targets - shift) / largest) ** 2, axis=0, weights=weight))
    return shift, np.where(varies & (scale > 0), scale, 1.0)
