"""Quantiles of several levels in one model: a model for each level, one output each.

Predictions of a row are put in order, so that quantiles never cross; that brings them no further from the
true ones (Chernozhukov, Fernandez-Val and Galichon 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._model.layout import side_by_side
from .._model.machine import Machine
from .fold import Rows
from .held_out_rows import GivenRows
from .training_facts import TRAINING_FACTS


def levels_of(estimator: Any) -> list[float] | None:
    """Return the levels of quantiles if there are several; refuse others than numbers in rising order."""
    if estimator.loss != "quantile" or not np.ndim(estimator.quantile):
        return None
    if estimator.intervals or estimator.warm_start or estimator.checkpoint is not None:
        raise ValueError(
            f"intervals, warm_start and checkpoint need a single quantile, got {estimator.quantile!r}."
        )
    levels = list(estimator.quantile)
    numbers = all(isinstance(level, Real) for level in levels)
    if not numbers or not levels or not all(0 < level < 1 for level in levels):
        raise ValueError(f"quantile must hold numbers between 0 and 1, got {estimator.quantile!r}.")
    if (np.diff(levels) <= 0).any():
        raise ValueError(f"quantile must hold levels in rising order, got {estimator.quantile!r}.")
    return [float(level) for level in levels]


def fit_levels(estimator: Any, levels: Sequence[float], rows: Rows, given: GivenRows | None) -> None:
    """Fit a model for each level to the same rows, and give the estimator the attributes of them all.

    The splines of all are the same: they do not depend on y, and without squared error there are neither
    jumps nor a trend."""
    if np.ndim(rows[1]) == 2 and np.shape(rows[1])[1] > 1:
        raise ValueError("Several quantiles need one target: fit a model for each of them.")
    seed = estimator.random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(1 << 31)
    models = [clone(estimator).set_params(quantile=level, random_state=seed) for level in levels]
    for model in models:
        model._known_columns = estimator._known_columns
    messages = [message for model in models for message in model._fit(*rows, given=given)]
    for name in ("_stream", *TRAINING_FACTS):  # of an earlier fit
        estimator.__dict__.pop(name, None)
    for name, value in _joined(models).items():
        setattr(estimator, name, value)
    estimator.quantiles_ = np.array(levels)
    for message in dict.fromkeys(messages):
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
    estimator._notice_columns(rows[0], stacklevel=5)


def _joined(models: Sequence[Any]) -> dict[str, Any]:
    """Return the attributes of the model that has the outputs of several models."""
    first = models[0]
    machines = [model._machine for model in models]
    layout, params = side_by_side([(machine.layout, machine.params) for machine in machines])
    of_columns = ("n_features_in_", "feature_names_in_", "_columns", "_target_link", "_largest_outputs")
    learnt = {name: vars(first)[name] for name in of_columns if name in vars(first)}
    learnt |= {
        "_machine": Machine(first._machine.basis, layout, params),
        "_squeezed": False,
        "_mean_outputs": np.concatenate([model._mean_outputs for model in models]),
        "_importances": np.mean([model._importances for model in models], axis=0),
        "solver_": first.solver_,
        "alpha_": float(np.mean([model.alpha_ for model in models])),
        "n_iter_": max(model.n_iter_ for model in models),
        "objective_": float(np.mean([model.objective_ for model in models])),
    }
    if all(hasattr(model, "_mean_parts") for model in models):
        learnt["_mean_parts"] = np.concatenate([model._mean_parts for model in models])
    return learnt
