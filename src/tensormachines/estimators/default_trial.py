"""The default settings as one more candidate of a search, so that the search scores no worse than they do.

The race of a default fit chooses the penalty, degree and column weights itself, in finer steps than a
grid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from .._fit.settings import Deadline
from .._fit.solver_table import SOLVERS
from .._model.spline_column import USUAL_SHAPE
from .fold import Fold, Score
from .halving import Budget, Rung, Trial
from .polynomial_model import PolynomialModel

GRID = ("degrees", "ranks", "alphas", "bases", "relevances", "roughnesses", "trends", "max_iters", "solver")
AUTO = ("basis", "relevance", "trend", "degree", "rank", "alpha")
COST = 5  # of a default fit, in fits of the usual candidate (which has a third of the iterations)
SHARE = 1 / 4  # of the time budget, after which no further split is begun: each candidate needs as many


def has_usual_grid(search: Any) -> bool:
    """Tell whether the user lets the search choose all candidates."""
    usual = signature(type(search).__init__).parameters
    given = [(getattr(search, name), usual[name].default) for name in GRID]
    return all(type(value) is type(default) and value == default for value, default in given)


def default_settings(solver: str, jumps: bool | str) -> dict[str, Any]:
    usual = {"roughness": USUAL_SHAPE.roughness, "max_iter": SOLVERS[solver].max_iter}
    return {**dict.fromkeys(AUTO, "auto"), **usual, "jumps": jumps}


def try_default(
    estimator: PolynomialModel,
    rungs: Sequence[Rung],
    folds: Sequence[Fold],
    score: Score,
    budget: Budget,
) -> tuple[list[Trial], dict[str, bool]]:
    """Return a trial of default settings on the last rung, and whether its models have a trend and jumps.

    There is no trial if a fit failed or if there is no time at all. If SHARE of the time is too short for all
    splits, the trial has only the first splits. The index of its candidate is 0."""
    last = len(rungs) - 1
    some = folds[: rungs[last].n_splits(len(folds))]
    deadline = Deadline(budget.deadline([]), budget.clock)
    scores, fit_seconds, score_seconds = (np.full(len(some), np.nan) for _ in range(3))
    outputs, trends, jumps = [], [], []
    latest = budget.began + SHARE * (budget.end - budget.began)
    longest = 0.0  # seconds of a split, by the clock of the budget
    for s, fold in enumerate(some):
        of_split = budget.clock()
        if s and of_split + longest > latest:
            break
        began = time.perf_counter()
        fitted = fold.fit_alone(estimator, deadline) if of_split < deadline.end else None
        fit_seconds[s] = time.perf_counter() - began
        if fitted is None:
            return [], {"trend": False, "jumps": False}  # not known
        began = time.perf_counter()
        scores[s] = score(fitted, fold)
        outputs.append(fold.outputs(fitted).astype(np.float32))
        trends.append(fitted._machine.has_trend)
        jumps.append(fitted._machine.has_jumps)
        score_seconds[s] = time.perf_counter() - began
        longest = max(longest, budget.clock() - of_split)
    done = len(outputs)
    trial = Trial(0, last, scores[:done], fit_seconds[:done], score_seconds[:done], outputs)
    most = done / 2
    return [trial], {"trend": sum(trends) > most, "jumps": sum(jumps) > most}
