"""Several quantile levels in one model: one model, with one output, per level.

The predictions for a row are sorted, so that quantiles never cross; sorting never moves them further from the
true quantiles (Chernozhukov, Fernandez-Val and Galichon 2010)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._data.training import RowsInMemory
from .._fit.pose import Target
from .._fit.settings import Deadline
from .._model.layout import one_of_several, side_by_side
from .._model.machine import Machine
from .held_out_rows import GivenRows
from .training_facts import TRAINING_FACTS

OF_COLUMNS = ("n_features_in_", "feature_names_in_", "_columns", "_target_link", "_largest_outputs")


def levels_of(estimator: Any) -> list[float] | None:
    """Return the quantile levels if there are several; refuse levels that are not numbers in rising order."""
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


def require_same_levels(estimator: Any) -> None:
    """Refuse to continue a fitted model with different levels."""
    before, now = getattr(estimator, "quantiles_", None), levels_of(estimator)
    before = None if before is None else before.tolist()
    if before != now:
        was, is_now = (f"the quantiles {each}" if each else "no list of quantiles" for each in (before, now))
        raise ValueError(f"A fit of {is_now} cannot continue a model of {was}: fit a clone.")


def of_each_level(estimator: Any) -> list[Any]:
    """Return a copy of the estimator for each single level; the estimator itself if it has no levels."""
    levels = levels_of(estimator)
    if levels is None:
        return [estimator]
    models = [clone(estimator).set_params(quantile=level) for level in levels]
    for model in models:
        model._known_columns, model._kinds = estimator._known_columns, estimator._kinds
    return models


def fit_levels(estimator: Any, rows: Any, deadline: Deadline, given: GivenRows | None) -> list[str]:
    """Fit a model for each level to the same rows (X, y, weight), and join their attributes in the estimator;
    return warnings.

    All models have the same splines: these do not depend on y, and without squared error there are neither
    jumps nor a trend."""
    require_one_target(rows[1])
    models, messages = of_each_level(estimator), []
    _share_seed(estimator, models)
    if estimator.warm_start and hasattr(estimator, "_machine"):
        _continue(estimator, models)
    for k, model in enumerate(models):
        if estimator.checkpoint is not None:
            path = Path(estimator.checkpoint)
            model.checkpoint = path.with_name(f"{path.stem}-{model.quantile}{path.suffix}")
        messages += model._fit(*rows, deadline.share(len(models) - k), given)
    _become(estimator, models)
    estimator.__dict__.pop("_stream", None)  # of an earlier fit
    return list(dict.fromkeys(messages))


def learn_levels(estimator: Any, training: RowsInMemory) -> None:
    """Let the models of all levels learn from the rows of a block, see `partial_fit`."""
    require_one_target(training.chunk.y)
    models = of_each_level(estimator)
    _share_seed(estimator, models)
    if hasattr(estimator, "_machine"):
        _continue(estimator, models)
    streams = deepcopy(getattr(estimator, "_stream", []))  # if one model refuses a block, none changes
    for model, stream in zip(models, streams, strict=False):
        model._stream = stream
    for model in models:
        vars(model).update(_columns_of(estimator))
        model._learn_block(training, Target(loss=model._loss()))
    _become(estimator, models)
    estimator._stream = [model._stream for model in models]


def _share_seed(estimator: Any, models: Sequence[Any]) -> None:
    """Start all models from the same random numbers; without a seed, take these from the checkpoint."""
    seed = estimator.random_state
    if not (isinstance(seed, Integral) or (seed is None and estimator.checkpoint is not None)):
        seed = check_random_state(seed).randint(1 << 31)
    for model in models:
        model.random_state = seed


def _continue(estimator: Any, models: Sequence[Any]) -> None:
    """Give the model of each level what the last fit learned for it."""
    require_same_levels(estimator)
    machine = estimator._machine
    for k, model in enumerate(models):
        own = one_of_several((machine.layout, machine.params), k)
        names = ("n_iter_", "alpha_", "_n_rows")
        learnt = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
        learnt |= {"_machine": Machine(machine.basis, *own), "_squeezed": True}
        vars(model).update(_columns_of(estimator) | learnt)


def _become(estimator: Any, models: Sequence[Any]) -> None:
    """Give the estimator the outputs of the models of its levels, and remove what an earlier fit left."""
    for name in (*TRAINING_FACTS, *OF_COLUMNS):
        estimator.__dict__.pop(name, None)
    vars(estimator).update(side_by_side_attributes(models))


def _columns_of(model: Any) -> dict[str, Any]:
    return {name: vars(model)[name] for name in OF_COLUMNS if name in vars(model)}


def side_by_side_attributes(models: Sequence[Any]) -> dict[str, Any]:
    """Return the attributes of a model that joins the outputs of single-level models."""
    first = models[0]
    machines = [model._machine for model in models]
    layout, params = side_by_side([(machine.layout, machine.params) for machine in machines])
    learnt = _columns_of(first) | {
        "_machine": Machine(first._machine.basis, layout, params),
        "_squeezed": False,
        "quantiles_": np.array([model.quantile for model in models]),
        "n_iter_": max(model.n_iter_ for model in models),
    }
    joins: dict[str, Callable[[Sequence[Any]], Any]] = {
        **dict.fromkeys(("_mean_outputs", "_mean_parts"), np.concatenate),
        **dict.fromkeys(("_importances", "alpha_", "objective_"), _mean),
        **dict.fromkeys(("loss_curve_", "validation_loss_curve_"), _mean_curve),
        "_n_rows": max,
    }
    if "solver_" in vars(first):
        learnt["solver_"] = first.solver_
    for name, join in joins.items():
        if all(name in vars(model) for model in models):
            learnt[name] = join([vars(model)[name] for model in models])
    return learnt


def _mean(values: Sequence[Any]) -> Any:
    return np.mean(values, axis=0)


def _mean_curve(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of curves; shorter curves are extended by their last value."""
    longest = max(map(len, curves))
    return _mean([np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves])
