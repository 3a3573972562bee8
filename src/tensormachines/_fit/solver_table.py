"""The table of solvers: number of parts of the rows, default number of iterations, and constructor of each.

To add a solver, write it in `solvers/` and add a line to SOLVERS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._data.row_assignment import part_count
from .._model.objective import Objective
from .greedy import greedy
from .minibatch_start import descend_by_minibatches, minibatches
from .problem import PartCount, Problem
from .settings import DEFAULT_TOL, Settings
from .solvers.adam import adam
from .solvers.lbfgs import lbfgs
from .solvers.projected_gradient import projected_gradient
from .solvers.protocol import Solver, State, in_units
from .solvers.sfo import sfo
from .units import ball, constrained_units, reach, step_units, units, within_constraints

FEWEST_PAIRS, MOST_PAIRS, BYTES_OF_PAIRS = 10, 100, 1 << 28  # of solver="lbfgs"
PAIRS_WITH_CURVATURE = 20  # of solver="kfac"
GREEDY_ITERATIONS = 50  # of each step of init="greedy"


@dataclass(frozen=True)
class Task:
    """The task of a solver: a problem, its penalised objective, the settings, a seed, and whether the start
    is improved: reached by an earlier fit, or returned by `improved_start`."""

    problem: Problem
    objective: Objective
    settings: Settings
    seed: int
    improved: bool

    @property
    def limits(self) -> dict[str, Any]:
        return {"max_iter": self.settings.max_iter, "tol": self.settings.tol}


Made = Callable[..., Solver]  # (start, resume=None) -> solver


@dataclass(frozen=True)
class SolverChoice:
    """A row of the table. ``make`` returns a function of the start and of a state to resume from.

    ``single``: whether splines are fitted in float32 for any type of X. Minibatch steps are noisy anyway; the
    models are as accurate, in half the time and memory.
    """

    make: Callable[[Task], Made]
    max_iter: int = 1000
    parts: PartCount | None = None
    single: bool = False


def minibatch_count(n_rows: int) -> int:
    """Return the number of minibatches: of a few hundred rows each, as long as there are a few dozen."""
    return max(1, min(max(24, n_rows // 512), -(-n_rows // 8)))


def _adam(task: Task) -> Made:
    scale = step_units(task.problem, task.objective.alpha)
    made = partial(
        adam,
        n_functions=task.objective.n_steps,
        max_iter=task.settings.max_iter,
        seed=task.seed,
        reach=reach(task.problem, scale),
        whole_epochs=task.objective.takes_epochs,
        strength=None if task.objective.columns is None else partial(_column_strength, task.objective, scale),
        lowest=task.problem.easily_reached(),
        project=_projection(task.problem),
        epochs_before=task.settings.epochs_before if task.improved else 0,
    )
    return _in_units(made, within_constraints(task.problem, scale))


def _projection(problem: Problem) -> Callable[[np.ndarray], np.ndarray] | None:
    if problem.constraints is None or not problem.constraints.monotonic:
        return None
    return partial(problem.constraints.project, layout=problem.layout, basis=problem.basis)


def _column_strength(objective: Objective, scale: np.ndarray | None, params: np.ndarray) -> np.ndarray:
    return objective.column_strength(params if scale is None else params * scale)


def _lbfgs(task: Task) -> Made:
    made = partial(lbfgs, history=_history(task), **task.limits)
    return _in_units(made, constrained_units(task.problem, task.objective.alpha))


def _history(task: Task) -> int:
    """Return the number of pairs of L-BFGS: "auto" is MOST_PAIRS, or as many as a memory limit allows."""
    if not isinstance(task.settings.history, str):
        return task.settings.history
    bytes_of_pair = 2 * task.problem.layout.size * task.problem.dtype.itemsize * task.settings.n_starts
    return int(np.clip(BYTES_OF_PAIRS // bytes_of_pair, FEWEST_PAIRS, MOST_PAIRS))


def _kfac(task: Task) -> Made:
    curvature = task.problem.curvature(task.objective.alpha)
    scale = units(task.problem, task.objective.alpha) if curvature is None else None  # it has its own units
    return _in_units(partial(lbfgs, history=PAIRS_WITH_CURVATURE, curvature=curvature, **task.limits), scale)


def _sfo(task: Task) -> Made:
    made = partial(sfo, n_functions=len(task.problem.blocks.weights), seed=task.seed, **task.limits)
    return _in_units(made, constrained_units(task.problem, task.objective.alpha))


def _projected(task: Task) -> Made:
    assert task.settings.max_norm is not None
    return partial(projected_gradient, project=ball(task.problem, task.settings.max_norm), **task.limits)


SOLVERS = {
    "adam": SolverChoice(_adam, max_iter=30, parts=minibatch_count, single=True),
    "kfac": SolverChoice(_kfac),
    "lbfgs": SolverChoice(_lbfgs),
    "sfo": SolverChoice(_sfo, parts=part_count),
}
PROJECTED = SolverChoice(_projected)  # for max_norm


def choice(solver: str, max_norm: float | None) -> SolverChoice:
    """Return the row of the table; a constrained problem is solved by projected gradients."""
    return SOLVERS[solver] if max_norm is None else PROJECTED


def make_solver(
    start: np.ndarray,
    problem: Problem,
    objective: Objective,
    settings: Settings,
    random_state: np.random.RandomState,
    improved: bool = False,
) -> Callable[..., Solver]:
    """Return a function that makes the solver, with an optional state to resume from.

    A start that is neither ``improved`` nor resumed is improved first when the solver runs.
    """
    task = Task(problem, objective, settings, _seed(settings, random_state), improved)
    made = choice(settings.solver, settings.max_norm).make(task)

    def begin(resume: State | None = None) -> Solver:
        first = start if resume or improved else _improved(start, task)
        return (yield from made(first, resume=resume))

    return begin


def improved_start(
    start: np.ndarray,
    problem: Problem,
    objective: Objective,
    settings: Settings,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Return what the solver that `make_solver` returns would make of its start."""
    return _improved(start, Task(problem, objective, settings, _seed(settings, random_state), improved=False))


def _seed(settings: Settings, random_state: np.random.RandomState) -> int:
    return 0 if settings.solver == "lbfgs" else random_state.randint(1 << 31)


def _in_units(made: Made, scale: np.ndarray | None) -> Made:
    """Let a solver see params / scale, and 0 where the scale is 0: those params stay 0."""
    if scale is None:
        return made

    def scaled(start: np.ndarray, resume: State | None = None) -> Solver:
        inside = np.divide(start, scale, out=np.zeros_like(start), where=scale != 0)
        return in_units(made(inside, resume=resume), scale)

    return scaled


def _improved(start: np.ndarray, task: Task) -> np.ndarray:
    problem, objective, settings = task.problem, task.objective, task.settings
    deadline = settings.deadline
    if settings.init == "greedy":
        scale = units(problem, objective.alpha)
        path = greedy(
            objective,
            start,
            max_iter=GREEDY_ITERATIONS,
            tol=DEFAULT_TOL,
            units=scale,
            watch=deadline.watch,
        )
        return path[-1].params
    if settings.solver != "kfac" or settings.max_norm is not None:
        return start
    parts = minibatches(problem.blocks, problem.layout.n_features)
    if parts is None:
        return start
    of_parts = replace(objective, blocks=parts, alpha=0.0)
    return descend_by_minibatches(of_parts, start, task.seed, deadline.is_over)
