"""Units of the params: the scales of a solver's steps, and the ball of max_norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._model.block import Block
from .problem import Problem

REST_OF_TERM = 0.05  # mean square of the rest of a term: terms are small fractions of a target of variance 1


def units(problem: Problem, alpha: float) -> np.ndarray | None:
    """Return the expected sizes of the params; for unscaled sparse columns, units of equal curvature.

    A bag of words has columns that are non-zero in nearly all rows, and others in one row of ten thousand;
    without units, L-BFGS needs several times as many iterations. The curvature of a coefficient is about the
    mean square of its column times the mean square of the rest of its term. (For dense columns far from 0
    this is a bad estimate, because they share a direction.)
    """
    squares, sizes = problem.column_squares if problem.sparse else None, problem.sizes
    if squares is None and sizes is None:
        return None
    units = np.ones(problem.layout.size)
    factors = problem.layout.factors(units)
    if squares is None:
        factors *= np.asarray(sizes)[:, None]
        return units.astype(problem.dtype)
    smallest = np.finfo(problem.dtype).tiny  # a smaller curvature would have a unit that overflows
    n_linear = problem.layout.n_outputs
    for columns, rest in [(slice(0, n_linear), 1.0), (slice(n_linear, None), REST_OF_TERM)]:
        curvature = rest * squares + (alpha if sizes is None else alpha / sizes**2)
        usable = np.isfinite(curvature) & (curvature > smallest)
        factors[:, columns] = (1 / np.sqrt(np.where(usable, curvature, 1.0)))[:, None]
    return units.astype(problem.dtype)


def step_units(problem: Problem, alpha: float) -> np.ndarray | None:
    """Return units for a solver whose steps have the same size for all params.

    In these units, dense columns are as large as standardised columns.
    """
    if problem.sparse or problem.column_squares is None:
        return units(problem, alpha)
    squares = problem.column_squares
    usable = np.isfinite(squares) & (squares > np.finfo(problem.dtype).tiny)
    sizes = np.ones(problem.layout.n_features) if problem.sizes is None else problem.sizes
    scale = sizes / np.sqrt(np.where(usable, squares, 1.0) * problem.layout.n_features)
    result = np.ones(problem.layout.size)
    problem.layout.factors(result)[...] = scale[:, None]
    return result.astype(problem.dtype)


def constrained_units(problem: Problem, alpha: float) -> np.ndarray | None:
    """Return `units`, 0 for params that the constraints keep at 0."""
    return within_constraints(problem, units(problem, alpha))


def within_constraints(problem: Problem, units: np.ndarray | None) -> np.ndarray | None:
    """Return the units, all 1 if there are none, or 0 for params that the constraints keep at 0."""
    if problem.free is None:
        return units
    return problem.free.astype(problem.dtype) if units is None else units * problem.free


def reach(problem: Problem, units: np.ndarray | None) -> float:
    """Return the mean over the sampled rows of the sum of the absolute values of a row in its basis.

    Columns that the basis does not scale are measured in the ``units`` of their coefficients.
    """
    of_columns = None
    if units is not None and problem.column_squares is not None:
        of_columns = problem.layout.factors(units)[:, -1].astype(np.float64)
    total, weight = problem.sample.total(partial(_absolute_sums, units=of_columns))
    return float(total / max(weight, np.finfo(float).tiny))


def _absolute_sums(block: Block, units: np.ndarray | None) -> tuple[float, float]:
    weight = block.row_weights
    sums = block.absolute_sums if units is None else block.basis.lift(block.X).absolute_sums(units)
    return float(weight @ sums), float(weight.sum())


def ball(problem: Problem, max_norm: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the projection onto params whose factors and linear parts have norms of at most ``max_norm``.

    The same bound applies to the weights of each shared term. Norms are in the units of the target.
    """
    layout = problem.layout
    radius = np.full(layout.n_columns, max_norm)
    radius[: layout.n_outputs] = max_norm / problem.deviation
    if not layout.shared:
        for p, columns in layout.degrees():
            layout.by_set(radius)[:, columns] = (max_norm / problem.deviation ** (1 / p))[:, None]

    def project(params: np.ndarray) -> np.ndarray:
        projected = params.copy()
        factors = layout.factors(projected)
        norms = np.linalg.norm(factors, axis=0)
        factors *= np.where(norms > radius, radius / np.where(norms > 0, norms, 1), 1)
        weights = layout.weights(projected)
        if layout.shared:
            norms = np.linalg.norm(weights * problem.deviation[:, None, None], axis=0)
            weights *= np.where(norms > max_norm, max_norm / np.where(norms > 0, norms, 1), 1)
        return projected

    return project
