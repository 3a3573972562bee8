"""Losses of a target and the outputs of a model, row by row, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp


@dataclass(frozen=True)
class Loss:
    """``pointwise(y, z)`` gives the loss of each row (rows) and its derivative with respect to z (rows, outputs).

    y is (rows, outputs) for squared; for logistic and multinomial it is (rows, 1), holding 0 or 1, or the number of the class.
    """

    name: str
    code: int  # of the compiled kernel
    pointwise: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


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


SQUARED = Loss("squared", 0, _squared)
LOGISTIC = Loss("logistic", 1, _logistic)
MULTINOMIAL = Loss("multinomial", 2, _multinomial)
