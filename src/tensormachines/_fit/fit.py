"""The fit itself: turns a problem and settings into solutions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from .._model.objective import Objective
from .checkpoint import Checkpoint
from .monitors import EarlyStopping, Recorder
from .polish import polish
from .problem import Problem
from .pruning import weigh_columns, without_noise
from .settings import USUAL_DEGREE, Settings, usual_rank
from .solver_table import improved_start, make_solver
from .solvers.protocol import Iterate, Solution, Watch, best_of, minimise, with_penalty

LONGEST_SHORT_FIT = 10  # iterations


def solve(
    problem: Problem,
    settings: Settings,
    random_state: np.random.RandomState,
    *,
    warm: np.ndarray | None = None,
    watchers: Sequence[Watch] = (),
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Minimise the objective from all starts; return the best solution for each member.

    ``warm`` replaces the first random start.
    """
    threads = settings.threads(problem.n_rows)
    problem = find_relevance(problem, settings, random_state)
    objective = problem.objective(settings.penalty(problem), threads)
    n_starts = settings.n_starts
    starts = [problem.random_start(settings.init_scale, random_state) for _ in range(n_starts)]
    if warm is not None:
        starts[0] = warm
    # All solvers get the same random numbers, so they request the same minibatches at the same time, and
    # share them.
    makers = [
        make_solver(start, problem, objective, settings, deepcopy(random_state), improved=start is warm)
        for start in starts
    ]
    recorder = Recorder(problem, threads, n_starts)
    early = EarlyStopping(recorder.curves, settings.n_iter_no_change) if settings.early_stopping else None
    monitors: list[Recorder | EarlyStopping] = [recorder, *([early] if early else [])]
    all_watchers: list[Watch] = [*watchers, *monitors]
    if checkpoint:
        checkpoint.keep_with(monitors, starts)

    def watch(solver: int, iterate: Iterate) -> bool:
        stop = any([watcher(solver, iterate) for watcher in all_watchers])
        return stop or (checkpoint is not None and checkpoint.watch(solver, iterate))

    solvers = [
        checkpoint.solver(number, make, start) if checkpoint else make()
        for number, (make, start) in enumerate(zip(makers, starts, strict=True))
    ]
    ends = minimise(objective, solvers, watch, together=checkpoint is None)
    solutions = [replace(end, curves=curves) for end, curves in zip(ends, recorder.curves, strict=True)]
    if checkpoint:
        checkpoint.write()
    of_members = [range(member, n_starts, settings.n_members) for member in range(settings.n_members)]
    if early:
        return [early.best_of(solutions, numbers) for numbers in of_members]
    best = [best_of([solutions[number] for number in numbers]) for numbers in of_members]
    if settings.solver == "kfac" and settings.max_norm is None:
        best = [_polish(solution, objective, recorder, settings) for solution in best]
    return best


def _polish(solution: Solution, objective: Objective, recorder: Recorder, settings: Settings) -> Solution:
    def watch(solver: int, iterate: Iterate) -> bool:
        recorder.add(solution.curves, iterate)
        return settings.deadline.watch(solver, iterate)

    return polish(solution, objective, watch)


def find_relevance(problem: Problem, settings: Settings, random_state: np.random.RandomState) -> Problem:
    """Return the problem with columns weighed by short fits, ``settings.relevance`` times.

    The short fits have the default shape and penalty, so that all candidates of a search weigh columns alike.
    "auto" is left to a race, see `_fit.race`."""
    rounds = settings.relevance if isinstance(settings.relevance, int) else 0
    rank = usual_rank(problem.layout.n_outputs if problem.layout.shared else 1)
    usual = problem.with_shape(USUAL_DEGREE, rank)
    short = replace(settings, alpha="rows", max_iter=min(settings.max_iter, LONGEST_SHORT_FIT))
    for _ in range(rounds):
        objective = usual.objective(short.penalty(usual), settings.threads(problem.n_rows))
        start = usual.random_start(settings.init_scale, random_state)
        solver = make_solver(start, usual, objective, short, random_state)()
        solution = minimise(objective, [solver], settings.deadline.watch)[0]
        usual = weigh_columns(usual, solution.params)
    return replace(problem, sizes=usual.sizes)


def fit_together(
    problem: Problem, candidates: Sequence[Settings], random_state: np.random.RandomState
) -> list[Solution]:
    """Fit settings that differ only in alpha in shared passes over the rows; return the best of each.

    The shared objective has no penalty; each solver adds its own. The start of "kfac" is improved without a
    penalty, and so once for all candidates.
    """
    first = candidates[0]
    threads = first.threads(problem.n_rows)
    starts = [problem.random_start(first.init_scale, random_state) for _ in range(first.n_restarts)]
    without_penalty = problem.objective(0.0, threads)
    once = first.solver == "kfac" and first.init != "greedy"
    if once:
        starts = [
            improved_start(start, problem, without_penalty, first, deepcopy(random_state)) for start in starts
        ]
    solvers = []
    for settings in candidates:
        objective = problem.objective(settings.penalty(problem), threads)
        for start in starts:
            make = make_solver(start, problem, objective, settings, deepcopy(random_state), improved=once)
            solvers.append(with_penalty(make(), objective.alpha, objective.penalise))
    solutions = minimise(without_penalty, solvers, first.deadline.watch)
    n_starts = len(starts)
    return [best_of(solutions[number : number + n_starts]) for number in range(0, len(solutions), n_starts)]


def combine(
    problem: Problem, solutions: Sequence[Solution], scale: float = 1.0
) -> tuple[Problem, np.ndarray, Solution]:
    """Return the mean of the members times ``scale``, without negligible coefficients, with its problem and
    the best solution."""
    best = best_of(solutions)
    # A member that overflowed would spoil the mean.
    finite = [solution for solution in solutions if np.isfinite(solution.value)]
    members = [solution.params.astype(problem.machine_dtype) for solution in finite or [best]]
    problem, params = problem.average(members)
    if scale != 1:
        params = problem.layout.scale_outputs(params, np.full(problem.layout.n_outputs, scale, params.dtype))
    return problem, without_noise(problem, params), best


def data_in_words(problem: Problem) -> dict[str, Any]:
    """Return facts that distinguish the data of a checkpoint from others."""
    size = f"{problem.n_rows} rows x {problem.basis.n_columns} columns of {problem.dtype}"
    return {"data": f"{size}, checksum {problem.checksum:016x}"}
