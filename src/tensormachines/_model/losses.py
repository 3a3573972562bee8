"""Losses of a target and the outputs of a model, row by row, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, softmax


@dataclass(frozen=True)
class Loss:
    """A loss of targets y and outputs z (rows, outputs).

    ``pointwise(y, z)`` returns the loss of each row (rows,) and its derivative with respect to z (rows,
    outputs). ``second(z)`` returns the second derivatives with respect to each output (rows, outputs), for
    the curvature of kfac; they must not depend on y: where the exact ones do, give an upper bound, and
    ``exact_second=False``.

    y is (rows, outputs), or (rows, 1) with the number of the class if the loss is one ``of_classes``. Compare
    losses by ``==``, and write their functions at the top of a module: problems are pickled.
    """

    name: str
    code: int  # as in the enum Loss of src/native/kernel.hpp
    pointwise: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    second: Callable[[np.ndarray], np.ndarray]
    of_classes: bool = False
    exact_second: bool = True


def _squared(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    difference = z - y
    return 0.5 * np.einsum("ij,ij->i", difference, difference), difference


def _logistic(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign = 2 * y - 1
    return np.logaddexp(0, -sign * z)[:, 0], -sign * expit(-sign * z)


def _multinomial(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    own = (np.arange(len(z)), y[:, 0].astype(np.intp))
    log_total = logsumexp(z, axis=1)
    slope = np.exp(z - log_total[:, None])
    slope[own] -= 1
    return log_total - z[own], slope


def _second_logistic(z: np.ndarray) -> np.ndarray:
    return expit(z) * expit(-z)


def _second_multinomial(z: np.ndarray) -> np.ndarray:
    share = softmax(z, axis=1)
    return share * (1 - share)


SQUARED = Loss("squared", 0, _squared, np.ones_like)
LOGISTIC = Loss("logistic", 1, _logistic, _second_logistic, of_classes=True)
MULTINOMIAL = Loss("multinomial", 2, _multinomial, _second_multinomial, of_classes=True)
