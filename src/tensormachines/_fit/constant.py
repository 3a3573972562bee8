"""The minimum that a fit must reach: a constant, or its trend or offset without any terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._model.losses import LOGISTIC
from .._model.objective import Objective
from .problem import Problem
from .solvers.protocol import Outcome, Solution

FAR_WORSE = 2.0  # times the loss of the constant
RAREST = 1e-12  # share of a class


def or_constant(
    problem: Problem,
    params: np.ndarray,
    best: Solution,
    values: Sequence[float],
    threads: int,
    cut_short: bool,
) -> tuple[np.ndarray, Solution]:
    """Return the params, or the params of a constant if its loss on the training rows is no higher.

    A fit that was ``cut_short`` may be worse, but not far worse; its outcome says so. The params are the mean
    of members, and ``values`` are the members' objectives. These bound the loss, so the rows are read again
    only if one of them is above the loss of the constant on a sample.
    """
    loss = Objective(problem.sample, problem.layout, problem.loss, 0.0, threads)
    constant = constant_params(problem, loss)
    with np.errstate(over="ignore", invalid="ignore"):
        if max(values) < loss.mean_loss(constant[None])[0]:
            return params, best
        both = np.stack([params.astype(problem.dtype), constant])
        of_model, of_constant = replace(loss, blocks=problem.blocks).mean_loss(both)
    if of_model < of_constant:
        return params, best
    outcome = best.outcome
    if of_constant == 0:
        outcome = Outcome.CONVERGED
    elif not of_model <= FAR_WORSE * of_constant:
        outcome = Outcome.WORSE
    elif cut_short:
        return params, replace(best, outcome=Outcome.BEHIND)
    return constant.astype(params.dtype), replace(best, value=float(of_constant), outcome=outcome)


def constant_params(problem: Problem, loss: Objective) -> np.ndarray:
    """Return the params of a model without terms: at the center of y, or at the shares of the classes."""
    layout = problem.layout
    params = np.zeros(layout.size, dtype=problem.dtype)
    if problem.loss.of_classes and problem.trend is None:
        _, gradients = loss(params[None])
        slopes = layout.bias(gradients[0]).astype(np.float64)
        if problem.loss == LOGISTIC:
            share = np.clip(0.5 - slopes, RAREST, 1 - RAREST)
            layout.bias(params)[...] = np.log(share / (1 - share))
        else:
            layout.bias(params)[...] = np.log(np.maximum(1 / layout.n_outputs - slopes, RAREST))
    return params
