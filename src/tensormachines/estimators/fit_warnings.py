"""What a user should know about the end of a fit."""

from __future__ import annotations

from typing import Any

from .._fit.solvers.protocol import Outcome, Solution


def fit_warnings(estimator: Any, best: Solution) -> list[str]:
    """Return warnings about a solution that is not at a minimum."""
    name = type(estimator).__name__
    if best.outcome is Outcome.WORSE:
        return [
            f"{name} fitted its own training rows worse than a constant, and returns that constant. "
            'Use basis="standard" or "spline", a lower degree, a larger alpha, or another solver.'
        ]
    if best.outcome is Outcome.BEHIND:
        return [
            f"{name} ended at max_iter={estimator.max_iter} or before, and fits its own training rows worse "
            "than a constant would. Allow more iterations, or use a larger alpha or another solver."
        ]
    if best.outcome is Outcome.PRECISION and best.n_iter == 0:
        return [
            f"{name} found no step that lowers the objective from its random start. "
            'The scales of the columns of X may differ too much: use basis="standard".'
        ]
    intended = estimator.solver_ != estimator.solver  # the replacement is meant to use all its iterations
    if best.outcome is Outcome.LIMIT and not estimator.early_stopping and not intended:
        limit = estimator.max_iter or estimator._max_iter()  # greedy terms have max_iter iterations each
        return [
            f"{name} stopped at max_iter={limit} before the objective "
            f"settled to tol={estimator.tol}. The model is usable; more iterations may improve it."
        ]
    return []
