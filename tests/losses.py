"""Every loss, with a number of outputs that it can have, and targets for it."""

from tensormachines._model.losses import LOGISTIC, MULTINOMIAL, SQUARED

LOSSES = {"squared": (SQUARED, 2), "logistic": (LOGISTIC, 1), "multinomial": (MULTINOMIAL, 3)}


def make_targets(rng, loss, rows, outputs):
    if loss.of_classes:
        return rng.integers(0, max(2, outputs), size=(rows, 1)).astype(float)
    return rng.standard_normal((rows, outputs))
