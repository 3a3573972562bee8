"""Which columns and coefficients matter: expected sizes of columns, and coefficients that can be dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._model.block import Block
from .._model.moments import Moments
from .._model.objective import Objective
from .._model.spline_basis import SplineBasis, SplineRows, wave_sizes
from .problem import Problem

NEGLIGIBLE = 2e-5  # share of the variance of a factor
NOTICEABLE = 0.01  # rise of the mean log-loss; up to 0.0016 in default fits of 27 tables
LEAST_RELEVANT = 1e-3  # a round shrinks the squared size of a column at most to this share


def weigh_columns(problem: Problem, params: np.ndarray) -> Problem:
    """Return the problem with expected coefficient sizes taken from a fitted model, by column.

    Columns that matter are then penalised less, and the others more. After a few rounds, a column has its
    expected size (automatic relevance determination, MacKay 1994) or is left out.
    """
    layout = problem.layout
    before = np.ones(layout.n_features) if problem.sizes is None else problem.sizes
    factors = layout.factors(params).astype(np.float64)
    squares = (factors / before[:, None]) ** 2  # in units of the expected size
    free = None if problem.free is None else layout.factors(problem.free)
    found = squares.mean(axis=1) if free is None else squares.sum(axis=1) / free.sum(axis=1)
    column, inverse = np.unique(problem.basis.groups, return_inverse=True)
    found = np.bincount(inverse, found) / np.bincount(inverse)
    of_input = column >= 0  # all but the constant
    if not (of_input.any() and found[of_input].any()):
        return problem
    expected = np.bincount(inverse, before**2) / np.bincount(inverse)
    growth = np.ones(len(column))
    growth[of_input] = np.maximum(found[of_input] / found[of_input].mean(), LEAST_RELEVANT)
    growth[of_input] *= expected[of_input].mean() / (growth * expected)[of_input].mean()
    return replace(problem, sizes=before * np.sqrt(growth)[inverse])


def relevance_of_columns(problem: Problem, roughness: float) -> np.ndarray | None:
    """Return the ratio of the expected to the default size of the coefficients of each column, (n_columns,).

    Return None if all sizes are the default ones."""
    if not isinstance(problem.basis, SplineBasis) or problem.sizes is None:
        return None
    usual = wave_sizes(problem.basis, roughness)
    ratios = problem.sizes if usual is None else problem.sizes / usual
    of_input = problem.basis.groups >= 0
    relevance = np.ones(problem.basis.n_columns)
    relevance[problem.basis.groups[of_input]] = ratios[of_input]
    return None if np.allclose(relevance, 1) else relevance


def with_relevance(problem: Problem, relevance: np.ndarray | None) -> Problem:
    """Return the problem with the default coefficient sizes times the relevance of their columns."""
    groups = problem.basis.groups
    if relevance is None or len(relevance) != problem.basis.n_columns:
        return problem  # a model of other columns is refused later
    usual = 1.0 if problem.sizes is None else problem.sizes
    return replace(problem, sizes=usual * np.where(groups >= 0, relevance[groups], 1.0))


def without_noise(problem: Problem, params: np.ndarray) -> np.ndarray:
    """Set to 0 the spline coefficients of each factor that together have a negligible share of its variance.

    A penalty leaves no coefficient exactly 0, but without the smallest ones a model takes half the space. All
    are kept if that changes the loss of classes: without a penalty, log-odds may be in the thousands, and a
    small share of their variance decides.
    """
    if not isinstance(problem.basis, SplineBasis):
        return params
    (found,) = problem.sample.total(_moments_in_basis)
    variance = found.squares / max(found.weight, np.finfo(float).tiny)
    variance[-1] = found.mean[-1] ** 2  # the constant
    # A sample lacks most of the rare levels, but each has at least one row.
    rare = problem.basis.is_indicator * problem.basis._size**2 / problem.n_rows
    variance = np.maximum(variance, rare)
    kept = params.copy()
    factors = problem.layout.factors(kept)
    share = variance[:, None] * factors.astype(np.float64) ** 2
    order = np.argsort(share, axis=0)
    noise = np.cumsum(np.take_along_axis(share, order, axis=0), axis=0) <= NEGLIGIBLE * share.sum(axis=0)
    small = np.zeros(share.shape, dtype=bool)
    np.put_along_axis(small, order, noise, axis=0)
    factors[small] = 0
    if problem.loss.of_classes:
        both = np.stack([params, kept]).astype(problem.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            before, after = Objective(problem.sample, problem.layout, problem.loss, 0.0).mean_loss(both)
        if not after <= before + NOTICEABLE:
            return params
    return kept


def _moments_in_basis(block: Block) -> tuple[Moments]:
    rows = block.basis.lift(block.X)
    assert isinstance(rows, SplineRows)
    return (rows.moments(block.weight),)
