"""The penalty of alpha="auto": the share of the usual one that does best on held-out rows.

How strong it should be depends on the noise, which a rule of the number of rows does not know. See the trials
in benchmarks/trials.py."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._model import kernel
from .._model.block import Block, Blocks, some_parts
from .._model.layout import Layout
from .._model.losses import Loss
from .problem import Problem
from .settings import Settings
from .solver_table import make_solver
from .solvers.protocol import minimise

SHARE = 1 / 3  # of the penalty before, for as long as less is better
MOST_STEPS = 4
FIRST_EPOCHS, EPOCHS = 10, 20  # of fits that tell whether less may be better at all, and of the others
CORRECTION = 1.7  # short fits on some of the rows end before a small penalty harms
MOST_TRAINED, MOST_HELD_OUT = 16, 8  # parts
FEWEST_ROWS = 300  # with fewer, those held out tell little


@dataclass(frozen=True)
class Losses:
    """Losses and weights of rows; the sum of two is both, one after the other."""

    losses: np.ndarray
    weights: np.ndarray

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            np.concatenate([self.losses, other.losses]), np.concatenate([self.weights, other.weights])
        )


def race(problem: Problem, settings: Settings, random_state: np.random.RandomState) -> float:
    """Return the penalty for a fit to all rows: the usual one, or a share of it.

    Some of the parts are trained on for a few epochs, and others are held out. Shares are of the usual
    penalty for as many rows as are trained on."""
    usual, n_parts = settings.penalty(problem), len(problem.blocks.weights)
    if problem.n_rows < FEWEST_ROWS or n_parts < 2:
        return usual
    n_trained = min(MOST_TRAINED, n_parts - max(1, n_parts // 5))
    n_held_out = min(MOST_HELD_OUT, n_parts - n_trained)
    trained = replace(problem, blocks=some_parts(problem.blocks, range(n_trained)))
    held_out = some_parts(problem.blocks, range(n_trained, n_trained + n_held_out))
    n_rows = max(1, problem.n_rows * n_trained // n_parts)
    alpha = settings.penalty(problem, n_rows)
    start = problem.random_start(settings.init_scale, random_state)

    def losses(steps: int, epochs: int) -> Losses:
        epochs = min(epochs, settings.max_iter)
        short = replace(settings, max_iter=epochs, init="random", early_stopping=False)
        return _losses(trained, held_out, short, SHARE**steps * alpha, start, random_state)

    if not _clearly_better(losses(1, FIRST_EPOCHS), losses(0, FIRST_EPOCHS)):
        return usual
    best, before = 1, losses(1, EPOCHS)
    while best < MOST_STEPS and _clearly_better(found := losses(best + 1, EPOCHS), before):
        best, before = best + 1, found
    return CORRECTION * SHARE**best * usual


def _losses(
    problem: Problem,
    held_out: Blocks,
    settings: Settings,
    alpha: float,
    start: np.ndarray,
    random_state: np.random.RandomState,
) -> Losses:
    """Return the losses of the rows held out, by a short fit, and their weights."""
    threads = settings.threads(problem.n_rows)
    objective = problem.objective(alpha, threads)
    solver = make_solver(start, problem, objective, settings, deepcopy(random_state))()
    params = minimise(objective, [solver], settings.deadline.watch)[0].params
    of_block = partial(
        _losses_of_block, layout=problem.layout, params=params[None], loss=problem.loss, threads=threads
    )
    (found,) = held_out.total(of_block)
    return found


def _losses_of_block(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[Losses]:
    z = kernel.outputs(block, layout, params, threads)
    weights = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    present = weights > 0
    return (
        Losses(loss.pointwise(block.targets[present], z[present])[0].astype(np.float64), weights[present]),
    )


def _clearly_better(found: Losses, before: Losses) -> bool:
    """Tell whether the mean loss is lower by more than its standard error."""
    gains = before.losses - found.losses
    if not (np.isfinite(gains).all() and found.weights.sum() > 0):
        return False
    mean = np.average(gains, weights=found.weights)
    error = np.sqrt(np.average((gains - mean) ** 2, weights=found.weights) / len(gains))
    return bool(mean > error)
