"""Quantiles of several levels in one model: a model for each level, one output each.

Predictions of a row are put in order, so that quantiles never cross; that brings them no further from the
true ones (Chernozhukov, Fernandez-Val and Galichon 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._model.layout import side_by_side
from .._model.machine import Machine
from .fold import Rows
from .held_out_rows import GivenRows


def levels_of(estimator: Any) -> list[float] | None:
    """Return the levels of quantiles if there are several; refuse those that are none, or not in order."""
    if estimator.loss != "quantile" or not np.ndim(estimator.quantile):
        return None
    if estimator.intervals or estimator.warm_start or estimator.checkpoint is not None:
        raise ValueError("Several quantiles have no intervals, warm_start or checkpoint: give one.")
    levels = list(estimator.quantile)
    numbers = all(isinstance(level, Real) for level in levels)
    if not numbers or not levels or not all(0 < level < 1 for level in levels):
        raise ValueError(f"quantile must hold numbers between 0 and 1, got {estimator.quantile!r}.")
    if (np.diff(levels) <= 0).any():
        raise ValueError(f"quantile must hold levels in rising order, got {estimator.quantile!r}.")
    return [float(level) for level in levels]


def fit_levels(
    estimator: Any, levels: Sequence[float], rows: Rows, given: GivenRows | None
) -> dict[str, Any]:
    """Fit a model for each level to the same rows; return the attributes of the model that has them all.

    The splines of all are the same: they do not depend on y, and without squared error there are neither
    jumps nor a trend."""
    if np.ndim(rows[1]) == 2 and np.shape(rows[1])[1] > 1:
        raise ValueError("Several quantiles need one target: fit a model for each of them.")
    seed = estimator.random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(1 << 31)
    held_out = {}
    if given is not None:
        held_out = {"X_val": given.X, "y_val": given.y, "sample_weight_val": given.weight}
    alike = [clone(estimator).set_params(quantile=level, random_state=seed) for level in levels]
    models = [each.fit(*rows, **held_out) for each in alike]
    first = models[0]
    machines = [model._machine for model in models]
    layout, params = side_by_side([(machine.layout, machine.params) for machine in machines])
    learnt = {
        name: value
        for name, value in vars(first).items()
        if name.endswith("_") or name in ("_columns", "_target_link", "_largest_outputs")
    }
    joined = {
        "_machine": Machine(first._machine.basis, layout, params),
        "_squeezed": False,
        "_mean_outputs": np.concatenate([model._mean_outputs for model in models]),
        "_importances": np.mean([model._importances for model in models], axis=0),
        "alpha_": float(np.mean([model.alpha_ for model in models])),
        "n_iter_": max(model.n_iter_ for model in models),
        "objective_": float(np.mean([model.objective_ for model in models])),
        "quantiles_": np.array(levels),
    }
    if all(hasattr(model, "_mean_parts") for model in models):
        joined["_mean_parts"] = np.concatenate([model._mean_parts for model in models])
    for curve in ("loss_curve_", "validation_loss_curve_"):  # of several fits
        learnt.pop(curve, None)
    return learnt | joined
