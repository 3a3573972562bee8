"""Rows and targets for losses of regressors, and settings that fit them exactly."""

import numpy as np

EXACT = {"degree": 1, "rank": 1, "basis": None, "solver": "lbfgs", "tol": 1e-13, "max_iter": 5000}
LOG_LINKS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
ROBUST = {"absolute_error": 0.5, "quantile": 0.8, "huber": 0.5}
QUANTILE = {"quantile": 0.8}  # ignored by the others


def rows(rng, n=400):
    return rng.standard_normal((n, 3))


def targets(rng, X, loss):
    f = X @ [0.5, -0.5, 0.25] + 1
    if loss == "poisson":
        return rng.poisson(np.exp(f)).astype(float)
    if loss in LOG_LINKS:
        y = np.exp(f) * rng.gamma(2, 0.5, len(X))
        return y if loss == "gamma" else np.where(rng.random(len(X)) < 0.3, 0, y)
    return f + 0.5 * rng.standard_t(3, len(X))
