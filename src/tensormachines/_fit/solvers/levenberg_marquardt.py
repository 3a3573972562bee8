"""Levenberg-Marquardt, for sums of squares that almost vanish at the minimum.

For such sums, the Gauss-Newton matrix is the curvature itself, and its steps converge faster than any others.
The matrix may be singular, hence the damping (Nocedal & Wright, Numerical Optimization, 2nd ed., section
10.3). The damping is in units of the diagonal, but no unit is far below the largest: if params and their
curvature go to 0 together, steps in units of this curvature would be far too long.

Computing the matrix costs as much as hundreds of evaluations, but solving with it only as much as about ten.
So each matrix is used with several dampings, and the lowest value wins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .protocol import Evaluate, Iterate, Outcome, Solution, Solver

EXACT = 1e-18
MOST_STEPS = 30
LEAST_FALL = 1e-3  # relative decrease of the objective in a step
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING, CHANGE_OF_DAMPING = 1e-4, 1e-14, 1e6, 10.0
LEAST_UNIT = 0.01  # of the largest number on the diagonal

Matrix = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Point:
    params: np.ndarray
    value: float
    gradient: np.ndarray


def levenberg_marquardt(before: Solution, matrix: Matrix) -> Solver:
    """Improve a solution; ``matrix(params)`` returns the lower triangle of the curvature."""
    value, gradient = yield Evaluate(before.params)
    here = Point(before.params, value, gradient)
    damping, evaluations, step = FIRST_DAMPING, 1, 0
    outcome = before.outcome
    while step < MOST_STEPS:
        found, damping, used = yield from _search(here, matrix(here.params), damping)
        evaluations += used
        if found is None:
            outcome = Outcome.PRECISION
            break
        fall, here = here.value - found.value, found
        step += 1
        norm = float(np.abs(here.gradient).max())
        if (yield Iterate(before.n_iter + step, here.params, here.value, norm, dict)):
            outcome = Outcome.STOPPED
            break
        if fall <= LEAST_FALL * here.value or here.value <= EXACT:
            outcome = Outcome.CONVERGED
            break
    if step == 0:
        return before
    return replace(
        before,
        params=here.params,
        value=here.value,
        n_iter=before.n_iter + step,
        n_evaluations=before.n_evaluations + evaluations,
        outcome=outcome,
    )


def _search(
    here: Point, matrix: np.ndarray, damping: float
) -> Generator[Evaluate, Any, tuple[Point | None, float, int]]:
    """Return the lowest point of several dampings (None if none is lower), its damping, and evaluations.

    The damping grows until the value falls; if the value falls at once, the damping shrinks as long as it
    falls further.
    """
    diagonal = matrix.diagonal()
    units = np.maximum(diagonal, LEAST_UNIT * diagonal.max())
    best, best_damping, failed, used = here, damping, False, 0
    while LEAST_DAMPING <= damping <= MOST_DAMPING:
        direction = _solve(matrix, damping * units, -here.gradient)
        lower = False
        if direction is not None:
            trial = Point(here.params + direction, *(yield Evaluate(here.params + direction)))
            used += 1
            lower = trial.value < best.value and bool(np.isfinite(trial.gradient).all())
        if lower:
            best, best_damping = trial, damping
        if (lower and failed) or (best is not here and not lower):
            break
        failed = not lower
        damping *= 1 / CHANGE_OF_DAMPING if lower else CHANGE_OF_DAMPING
    return (None if best is here else best), best_damping, used


def _solve(matrix: np.ndarray, damping: np.ndarray, vector: np.ndarray) -> np.ndarray | None:
    damped = matrix.copy(order="F")
    damped[np.diag_indices_from(damped)] += damping
    try:
        solved: np.ndarray = cho_solve(
            cho_factor(damped, lower=True, overwrite_a=True, check_finite=False), vector, check_finite=False
        )
    except LinAlgError:
        return None
    return solved if np.isfinite(solved).all() else None
