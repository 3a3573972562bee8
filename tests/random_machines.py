"""Fitted models whose params are then drawn at random: so all of their coefficients count, not only those
that data would want.
"""

from __future__ import annotations

import warnings

import numpy as np

from tensormachines import TensorMachineRegressor

BASES = [None, "unit", "standard", "sphere", "spline"]
random = np.random.default_rng(0)
X = random.normal(size=(60, 4)) + np.array([0, 3, 0, -1])
X[7] = 0
X[:, 2] = random.integers(0, 2, 60)
y = X[:, 0] * X[:, 1] + X[:, 3] + 10
LABELS = random.integers(0, 3, 60)


def machine(basis, degree=3, rank=2, data=X, target=y, cls=TensorMachineRegressor, **settings):
    model = cls(degree=degree, rank=rank, basis=basis, max_iter=1, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*worse than a constant")
        model.fit(data, target)
    fitted = model._machine
    model._machine = type(fitted)(
        fitted.basis, fitted.layout, np.random.default_rng(1).normal(size=len(fitted.params))
    )
    if hasattr(model, "_mean_parts"):
        del model._mean_parts  # those of the fit
    return model
