"""The final iterations of "kfac" on a target without noise: Levenberg-Marquardt for models of few parameters.

The matrix is singular: multiplying one factor of a term by c and another by 1 / c gives the same model.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk

from .._model.block import Block, BlocksInMemory
from .._model.layout import Layout
from .._model.losses import SQUARED
from .._model.numpy_kernel import TensorRows
from .._model.objective import Objective
from .solvers.levenberg_marquardt import EXACT, levenberg_marquardt
from .solvers.protocol import Outcome, Solution, Watch, minimise

MOST_PARAMETERS = 2000
MOST_PRODUCTS = 1e11  # of a matrix: some seconds
NEARLY_EXACT = 1e-4  # objective for a target of variance 1
NUMBERS_AT_ONCE = 1 << 20


def polish(solution: Solution, objective: Objective, watch: Watch) -> Solution:
    """Fit a target that seems to be noise-free to full precision; return other solutions unchanged."""
    if not nearly_exact(solution, objective):
        return solution
    return minimise(objective, [levenberg_marquardt(solution, partial(gauss_newton, objective))], watch)[0]


def nearly_exact(solution: Solution, objective: Objective) -> bool:
    """Tell whether polishing is affordable and promising: little noise, and errors above the penalty."""
    return (
        EXACT < solution.value < NEARLY_EXACT
        and solution.outcome is not Outcome.STOPPED
        and objective.loss == SQUARED
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


def gauss_newton(
    objective: Objective, params: np.ndarray, numbers_at_once: int = NUMBERS_AT_ONCE
) -> np.ndarray:
    """Return the lower triangle of the weighted mean of J'J, plus the curvature of the penalty."""
    (total,) = objective.blocks.total(
        partial(_of_block, layout=objective.layout, params=params, numbers_at_once=numbers_at_once)
    )
    total /= objective.blocks.weights.sum()
    layout = objective.layout
    penalty = np.zeros(layout.size)
    layout.factors(penalty)[...] = (
        objective.alpha if objective.sizes is None else (objective.alpha / objective.sizes**2)[:, None]
    )
    total[np.diag_indices_from(total)] += penalty
    return total


def _of_block(block: Block, layout: Layout, params: np.ndarray, numbers_at_once: int) -> tuple[np.ndarray]:
    total = np.zeros((layout.size, layout.size), order="F")
    at_once = max(1, numbers_at_once // layout.size)
    for start in range(0, block.n_rows, at_once):
        rows = block.rows(slice(start, start + at_once))
        if rows.weight is not None:  # a row of weight 0 is absent, even if its terms overflow
            rows = rows.rows(np.flatnonzero(rows.weight))
        if not rows.n_rows:
            continue
        derivatives = _derivatives(rows, layout, params)
        total = dsyrk(1.0, derivatives.T, beta=1.0, c=total, lower=True, overwrite_c=True)
    return (total,)


def _derivatives(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    """Return the derivatives of the output of each row, times the root of its weight: (rows, size)."""
    lifted = block.basis.lift(block.X)
    explicit = lifted.explicit()
    rows: np.ndarray = explicit.toarray() if sparse.issparse(explicit) else explicit
    derivatives = np.ones((block.n_rows, layout.size))
    layout.factors(derivatives)[...] = rows[:, :, None] * TensorRows(lifted, layout, params).others()[:, None]
    return derivatives if block.weight is None else derivatives * np.sqrt(block.weight)[:, None]
