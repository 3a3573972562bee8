"""Greedy fits: one rank at a time, each fitted to the residual of the previous ones.

Livni, Shalev-Shwartz & Shamir, "On the computational efficiency of training neural networks" (2014), section
5, add terms of degree 2 or 3 one at a time. Here a step adds one term of every degree, which reaches a lower
objective in fewer evaluations. The linear part is fitted anew in every step; the terms of earlier steps stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._model.objective import Objective
from .solvers.lbfgs import lbfgs
from .solvers.protocol import Evaluation, Iterate, Outcome, Solution, Watch, in_units, minimise

Settle = Callable[[int, Solution], tuple[Solution, bool]]


def _settle(step: int, solution: Solution) -> tuple[Solution, bool]:
    return solution, solution.outcome not in (Outcome.STOPPED, Outcome.NOT_FINITE)


@dataclass(frozen=True)
class Step:
    """The objective as a function of the params that a step moves; the others stay fixed.

    ``reached`` are the params of the terms up to this step, because a model without later terms is cheaper to
    evaluate; the mask ``moved`` selects those that are free.
    """

    objective: Objective  # of that model
    params: np.ndarray
    reached: np.ndarray
    moved: np.ndarray

    def __call__(self, moving: np.ndarray) -> Evaluation:
        values, gradients = self.objective(np.stack([self.whole(each)[self.reached] for each in moving]))
        return values, np.ascontiguousarray(gradients[:, self.moved])

    @property
    def start(self) -> np.ndarray:
        return self.params[self.reached[self.moved]]

    def whole(self, moving: np.ndarray) -> np.ndarray:
        params = self.params.copy()
        params[self.reached[self.moved]] = moving
        return params


def greedy(
    objective: Objective,
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    units: np.ndarray | None = None,
    watch: Watch = lambda step, iterate: False,
    settle: Settle = _settle,
) -> list[Solution]:
    """Return the solutions with 0, 1, ... terms of each degree, in all params; n_iter counts all steps.

    A new term begins as in ``start``; ``units`` are the units of the params. ``max_iter`` and ``tol`` apply
    to one step. ``watch(number of the step, iterate)`` may stop a step.
    ``settle(number of the step, its solution)`` returns the solution to keep, and whether another step
    follows.
    """
    layout = objective.layout
    params = np.zeros_like(start)
    linear = layout.terms_before(0)
    path: list[Solution] = []
    for rank in range(layout.rank + 1 if layout.degree > 1 else 1):
        settled = np.setdiff1d(layout.terms_before(rank - 1), linear) if rank > 1 else linear[:0]
        reached = layout.terms_before(rank)
        new = np.setdiff1d(reached, np.concatenate([settled, linear]))
        params[new] = start[new]
        step = Step(
            replace(objective, layout=layout.with_rank(rank)), params, reached, ~np.isin(reached, settled)
        )
        iterations = path[-1].n_iter if path else 0
        solution, go_on = settle(rank, _take(step, rank, units, max_iter, tol, watch, iterations))
        path.append(solution)
        params = solution.params.copy()
        if not go_on:
            break
    return path


def _take(
    step: Step, number: int, units: np.ndarray | None, max_iter: int, tol: float, watch: Watch, n_iter: int
) -> Solution:
    """Return the solution of one step, in all params, after ``n_iter`` earlier iterations."""

    def watch_whole(solver: int, iterate: Iterate) -> bool:
        return watch(
            number, replace(iterate, params=step.whole(iterate.params), iteration=n_iter + iterate.iteration)
        )

    own = np.ones_like(step.start) if units is None else units[step.reached[step.moved]]
    (solution,) = minimise(
        step, [in_units(lbfgs(step.start / own, max_iter=max_iter, tol=tol), own)], watch_whole
    )
    return replace(solution, params=step.whole(solution.params), n_iter=n_iter + solution.n_iter)
