"""Targets that tests share."""

import numpy as np


def teacher(rng, rows=2000, dtype=np.float64):
    """A target that a machine of degree 3 and rank 1 can represent."""
    X = rng.standard_normal((rows, 5)).astype(dtype)
    y = 2 + X[:, 0] - 3 * X[:, 1] * X[:, 2] + X[:, 0] * X[:, 3] * (X[:, 4] + X[:, 1])
    return X, y
