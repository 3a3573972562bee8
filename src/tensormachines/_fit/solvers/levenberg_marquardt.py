"""Levenberg-Marquardt: the last stretch to a target without noise, for models of few parameters.

Where the squared errors almost vanish, the Gauss-Newton matrix is the curvature itself, and its steps
converge faster than any others. It is singular, because a factor times c and another of its term times 1 / c
make the same model: hence the damping (Nocedal & Wright, Numerical Optimization, 2nd ed., section 10.3). Its
units are the diagonal, but none is far below the largest: the factors of a term that the target does not need
go to 0 together, and their curvature with them, so that in units of it their steps would be far too long.

The matrix costs as much as hundreds of evaluations, but solving with it only some ten of them: so each one is
used with several dampings, and the lowest value wins."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from ..._model.block import Block, BlocksInMemory
from ..._model.layout import Layout
from ..._model.losses import SQUARED
from ..._model.numpy_kernel import TensorRows
from ..._model.objective import Objective
from .protocol import Evaluate, Iterate, Outcome, Solution, Solver

MOST_PARAMETERS = 2000
MOST_PRODUCTS = 1e11  # of a matrix: some seconds
NEARLY_EXACT = 1e-4  # an objective, for targets of variance 1
EXACT = 1e-18
NUMBERS_AT_ONCE = 1 << 20
MOST_STEPS = 30
LEAST_FALL = 1e-3  # of the objective in a step
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING, CHANGE_OF_DAMPING = 1e-4, 1e-14, 1e6, 10.0
LEAST_UNIT = 0.01  # of the largest number on the diagonal

Matrix = Callable[[np.ndarray], np.ndarray]


def nearly_exact(solution: Solution, objective: Objective) -> bool:
    """Whether the steps are affordable, and may be worth it: little noise in the target, and errors that
    outweigh the penalty.
    """
    return (
        EXACT < solution.value < NEARLY_EXACT
        and solution.outcome is not Outcome.STOPPED
        and objective.loss is SQUARED
        and type(objective.layout) is Layout
        and objective.layout.n_outputs == 1
        and solution.params.dtype == np.float64
        and _affordable(objective)
        and float(objective.mean_loss(solution.params[None])[0]) > 0.5 * solution.value
    )


def _affordable(objective: Objective) -> bool:
    size = objective.layout.size
    if not isinstance(objective.blocks, BlocksInMemory) or size > MOST_PARAMETERS:
        return False
    return sum(block.n_rows for block in objective.blocks.blocks) * size**2 <= MOST_PRODUCTS


@dataclass(frozen=True)
class Point:
    params: np.ndarray
    value: float
    gradient: np.ndarray


def levenberg_marquardt(before: Solution, matrix: Matrix) -> Solver:
    """Go on from a solution to a lower one if there is any; ``matrix(params)`` gives the lower triangle of
    the curvature there.
    """
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
    return Solution(
        here.params, here.value, before.n_iter + step, before.n_evaluations + evaluations, outcome
    )


def _search(
    here: Point, matrix: np.ndarray, damping: float
) -> Generator[Evaluate, Any, tuple[Point | None, float, int]]:
    """The lowest point among those of several dampings, the damping that led there, and how many were
    evaluated.

    More and more of it until the value falls; or if it falls at once, less and less as long as it falls
    further."""
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


def gauss_newton(objective: Objective, params: np.ndarray) -> np.ndarray:
    """The lower triangle of J'J, weighted, over the total weight, plus the curvature of the penalty."""
    (total,) = objective.blocks.total(partial(_of_block, layout=objective.layout, params=params))
    total /= objective.blocks.weights.sum()
    layout = objective.layout
    penalty = np.zeros(layout.size)
    layout.factors(penalty)[...] = (
        objective.alpha if objective.sizes is None else (objective.alpha / objective.sizes**2)[:, None, None]
    )
    total[np.diag_indices_from(total)] += penalty
    return total


def _of_block(block: Block, layout: Layout, params: np.ndarray) -> tuple[np.ndarray]:
    total = np.zeros((layout.size, layout.size), order="F")
    at_once = max(1, NUMBERS_AT_ONCE // layout.size)
    for start in range(0, block.n_rows, at_once):
        rows = block.rows(slice(start, start + at_once))
        if rows.weight is not None:  # a row of weight 0 is absent, even where its terms overflow
            rows = rows.rows(np.flatnonzero(rows.weight))
        if not rows.n_rows:
            continue
        derivatives = _derivatives(rows, layout, params)
        total = dsyrk(1.0, derivatives.T, beta=1.0, c=total, lower=True, overwrite_c=True)
    return (total,)


def _derivatives(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    """Of the output of each row, times the root of its weight: (rows, size)."""
    lifted = block.basis.lift(block.X)
    explicit = lifted.explicit()
    rows: np.ndarray = explicit.toarray() if sparse.issparse(explicit) else explicit
    derivatives = np.ones((block.n_rows, layout.size))
    layout.factors(derivatives)[...] = (
        rows[:, :, None, None] * TensorRows(lifted, layout, params).others()[:, None]
    )
    return derivatives if block.weight is None else derivatives * np.sqrt(block.weight)[:, None]
