"""Quantiles of several levels in one model: a model for each level, one output each.

Predictions of a row are put in order, so that quantiles never cross; that brings them no further from the
true ones (Chernozhukov, Fernandez-Val and Galichon 2010)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._fit.settings import Deadline
from .._model.layout import side_by_side
from .._model.machine import Machine
from .held_out_rows import GivenRows
from .training_facts import TRAINING_FACTS


def levels_of(estimator: Any) -> list[float] | None:
    """Return the levels of quantiles if there are several; refuse others than numbers in rising order."""
    if estimator.loss != "quantile" or not np.ndim(estimator.quantile):
        return None
    if estimator.intervals:
        raise ValueError(f"intervals need a single quantile, got {estimator.quantile!r}.")
    levels = list(estimator.quantile)
    numbers = all(isinstance(level, Real) for level in levels)
    if not numbers or not levels or not all(0 < level < 1 for level in levels):
        raise ValueError(f"quantile must hold numbers between 0 and 1, got {estimator.quantile!r}.")
    if (np.diff(levels) <= 0).any():
        raise ValueError(f"quantile must hold levels in rising order, got {estimator.quantile!r}.")
    return [float(level) for level in levels]


def require_one_target(y: Any) -> None:
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise ValueError("Several quantiles need one target: fit a model for each of them.")


def of_each_level(estimator: Any) -> list[Any]:
    """Return estimators like this one, each of a single level; the estimator itself if it has no levels."""
    levels = levels_of(estimator)
    if levels is None:
        return [estimator]
    models = [clone(estimator).set_params(quantile=level) for level in levels]
    for model in models:
        model._known_columns, model._kinds = estimator._known_columns, estimator._kinds
    return models


def fit_levels(estimator: Any, rows: Any, deadline: Deadline, given: GivenRows | None) -> list[str]:
    """Fit a model for each level to the same rows (X, y, weight), and give the estimator the attributes of
    them all; return warnings.

    The splines of all are the same: they do not depend on y, and without squared error there are neither
    jumps nor a trend."""
    if estimator.warm_start or estimator.checkpoint is not None:
        raise ValueError(f"warm_start and checkpoint need a single quantile, got {estimator.quantile!r}.")
    require_one_target(rows[1])
    seed = estimator.random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(1 << 31)
    models, messages = of_each_level(estimator), []
    for k, model in enumerate(models):
        model.set_params(random_state=seed)
        messages += model._fit(*rows, deadline.share(len(models) - k), given)
    for name in ("_stream", *TRAINING_FACTS):  # of an earlier fit
        estimator.__dict__.pop(name, None)
    for name, value in side_by_side_attributes(models).items():
        setattr(estimator, name, value)
    return list(dict.fromkeys(messages))


def side_by_side_attributes(models: Sequence[Any]) -> dict[str, Any]:
    """Return the attributes of the model that has the outputs of models of a level each."""
    first = models[0]
    machines = [model._machine for model in models]
    layout, params = side_by_side([(machine.layout, machine.params) for machine in machines])
    columns = ("n_features_in_", "feature_names_in_", "_columns", "_target_link", "_largest_outputs")
    learnt = {name: vars(first)[name] for name in (*columns, "solver_") if name in vars(first)}
    learnt |= {
        "_machine": Machine(first._machine.basis, layout, params),
        "_squeezed": False,
        "quantiles_": np.array([model.quantile for model in models]),
        "n_iter_": max(model.n_iter_ for model in models),
    }
    joins: dict[str, Callable[[Sequence[Any]], Any]] = {
        **dict.fromkeys(("_mean_outputs", "_mean_parts"), np.concatenate),
        **dict.fromkeys(("_importances", "alpha_", "objective_"), _mean),
        **dict.fromkeys(("loss_curve_", "validation_loss_curve_"), _mean_curve),
    }
    for name, join in joins.items():
        if all(name in vars(model) for model in models):
            learnt[name] = join([vars(model)[name] for model in models])
    return learnt


def _mean(values: Sequence[Any]) -> Any:
    return np.mean(values, axis=0)


def _mean_curve(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of curves; those that end before the others stay at their last value."""
    longest = max(map(len, curves))
    return _mean([np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves])
