"""The start of a fit to all rows: a race, the end of another fit, or a fit to some of the rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from .._model.block import fetch_parts
from .._model.machine import Machine
from .fit import find_relevance
from .problem import Problem
from .pruning import with_relevance
from .race import MOST_PARTS, Winner, race
from .settings import Settings
from .solver_table import SOLVERS, make_solver
from .solvers.protocol import minimise


@dataclass(frozen=True)
class Before:
    """The end of a fit that another fit continues: its machine, its penalty, and the relevance of columns in
    its race, if known."""

    machine: Machine
    alpha: float | None
    relevance: np.ndarray | None


def begin(
    problem: Problem, settings: Settings, random_state: np.random.RandomState, before: Before | None
) -> Winner:
    """Return the start of a fit: that of a race, unless the penalty is given or it continues ``before``."""
    had_trend = before is not None and before.machine.has_trend
    if problem.can_have_trend and (settings.trend is True or had_trend):
        problem = problem.without_trend(problem.fit_trend())
    if not settings.races:
        winner = Winner(problem, settings.penalty(problem))
        if settings.starts_near and before is None:
            return _fit_near(winner, settings, deepcopy(random_state))
        return winner
    if before is not None and before.alpha is not None:
        degree = before.machine.layout.degree if settings.degree == "auto" else problem.layout.degree
        if settings.relevance == "auto":
            problem = with_relevance(problem, before.relevance)
        return Winner(problem.with_shape(degree, problem.layout.rank), float(before.alpha))
    winner = race(problem, settings, deepcopy(random_state))  # a copy: a race leaves the start alone
    return winner if settings.goes_on else replace(winner, params=None)


def _fit_near(winner: Winner, settings: Settings, random_state: np.random.RandomState) -> Winner:
    """Return where "adam" ends on the few parts that a race would use, which are brought into memory.

    From there, a full-batch solver needs far fewer passes than from a random start."""
    problem = winner.problem
    n_near = min(MOST_PARTS, len(problem.blocks.weights))
    near = replace(problem, blocks=fetch_parts(problem.blocks, range(n_near)))
    epochs = min(SOLVERS["adam"].max_iter, settings.max_iter)
    by_adam = replace(settings, solver="adam", max_iter=epochs, early_stopping=False)
    near = find_relevance(near, by_adam, random_state)
    objective = near.objective(winner.alpha, settings.threads(problem.n_rows))
    start = near.random_start(settings.init_scale, random_state)
    solver = make_solver(start, near, objective, by_adam, random_state)()
    (end,) = minimise(objective, [solver], settings.deadline.watch)
    if not np.isfinite(end.value):
        return winner
    return replace(winner, problem=replace(problem, sizes=near.sizes), params=end.params)
