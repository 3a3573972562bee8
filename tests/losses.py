"""Every loss, with a number of outputs that it can have, and targets for it."""

import numpy as np

from tensormachines._model.losses import (
    ABSOLUTE,
    GAMMA,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    SQUARED,
    huber,
    quantile,
    tweedie,
)

LOSSES = {
    "squared": (SQUARED, 2),
    "logistic": (LOGISTIC, 1),
    "multinomial": (MULTINOMIAL, 3),
    "labels": (LOGISTIC, 2),
    "poisson": (POISSON, 2),
    "gamma": (GAMMA, 2),
    "tweedie": (tweedie(1.3), 2),
    "absolute": (ABSOLUTE, 2),
    "quantile": (quantile(0.8), 2),
    "huber": (huber(0.7), 2),
}


def make_targets(rng, loss, rows, outputs):
    if loss == MULTINOMIAL:
        return rng.integers(0, outputs, size=(rows, 1)).astype(float)
    if loss == LOGISTIC:
        return rng.integers(0, 2, size=(rows, outputs)).astype(float)
    y = rng.standard_normal((rows, outputs))
    return np.exp(y) if loss.positive else np.maximum(y, 0) if loss.not_negative else y
