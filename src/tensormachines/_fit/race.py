"""The race of alpha, relevance and degree "auto": which of them do best on held-out rows?

How strong the penalty should be depends on the noise, and the rest on the table; a rule of the number of rows
knows neither. See the trials in benchmarks/trials.py."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np

from .._model import kernel
from .._model.block import Block, Blocks, some_parts
from .._model.layout import Layout
from .._model.losses import Loss
from .._model.spline_basis import SplineBasis
from .._model.threads import in_threads
from .problem import Problem
from .pruning import weigh_columns
from .settings import Settings
from .solver_table import make_solver
from .solvers.protocol import minimise

SHARE = 1 / 3  # of the penalty before, for as long as less is better
MOST_STEPS = 4
FIRST_EPOCHS, EPOCHS = 8, 20  # of fits that tell whether less may be better at all, and of the others
CORRECTION = 1.7  # short fits on some of the rows end before a small penalty harms
MOST_TRAINED, MOST_HELD_OUT = 16, 8  # parts
FEWEST_ROWS = 300  # with fewer, those held out tell little
HIGHER_DEGREES, FEWEST_ROWS_OF_DEGREES = (4, 5), 20_000
SHARE_LEFT = 8 / 15  # of the epochs of a fit, for one that goes on from a short fit


@dataclass(frozen=True)
class Losses:
    """Losses and weights of rows; the sum of two is both, one after the other."""

    losses: np.ndarray
    weights: np.ndarray

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            np.concatenate([self.losses, other.losses]), np.concatenate([self.weights, other.weights])
        )

    def clearly_below(self, before: Losses) -> bool:
        """Tell whether the mean loss is lower by more than its standard error."""
        gains = before.losses - self.losses
        if not (np.isfinite(gains).all() and self.weights.sum() > 0):
            return False
        mean = np.average(gains, weights=self.weights)
        error = np.sqrt(np.average((gains - mean) ** 2, weights=self.weights) / len(gains))
        return bool(mean > error)


@dataclass(frozen=True)
class Winner:
    """The beginning of a fit to all rows: its penalty (alpha, and the sizes of features) and its shape.

    ``params`` is where the short fit that won has ended, None if there was no race."""

    alpha: float
    sizes: np.ndarray | None
    layout: Layout
    params: np.ndarray | None = None

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the fit to all rows, which is shorter if it begins with ``params``."""
        max_iter = settings.max_iter if self.params is None else ceil(SHARE_LEFT * settings.max_iter)
        return replace(settings, alpha=self.alpha, max_iter=max_iter)


@dataclass(frozen=True)
class ShortFit:
    """A fit of a race: its problem, the params where it ended, and its losses on the rows held out."""

    problem: Problem
    params: np.ndarray
    losses: Losses


ShortFits = Generator[ShortFit, None, None]


@dataclass(frozen=True)
class Track:
    """The things that all fits of a race share; ``alpha`` is the usual penalty of the rows trained on."""

    held_out: Blocks
    settings: Settings
    alpha: float
    random_state: np.random.RandomState

    def fits(self, problem: Problem, start: np.ndarray, steps: Sequence[int], epochs: int) -> ShortFits:
        """Yield a fit with each penalty, one after the other, the same for any number of threads.

        With several threads that many fits run at a time; the last of them may be in vain."""
        epochs = min(epochs, self.settings.max_iter)
        short = replace(self.settings, max_iter=epochs, init="random", early_stopping=False)
        threads = short.threads(problem.n_rows)
        objective = problem.objective(0.0, threads)
        side_by_side = min(threads, len(steps)) if objective.takes_epochs else 1
        if side_by_side > 1:
            objective.bind()  # once: threads would do it at the same time
            short = replace(short, n_threads=threads // side_by_side)

        def fit(step: int) -> ShortFit:
            alpha = SHARE**step * self.alpha
            return _short_fit(problem, self.held_out, short, alpha, start, self.random_state)

        for first in range(0, len(steps), side_by_side):
            yield from in_threads(fit, steps[first : first + side_by_side], side_by_side)


def race(problem: Problem, settings: Settings, random_state: np.random.RandomState) -> Winner:
    """Return what a fit to all rows begins with: the usual penalty, or a share of it.

    Some of the parts are trained on for a few epochs, and others are held out. Shares are of the usual
    penalty for as many rows as are trained on. With splines, the winner then races against the same fit with
    columns weighed by their sizes in it, and against higher degrees, where the settings leave that open."""
    usual, n_parts = settings.penalty(problem), len(problem.blocks.weights)
    if problem.n_rows < FEWEST_ROWS or n_parts < 2:
        return Winner(usual, problem.sizes, problem.layout)
    n_trained = min(MOST_TRAINED, n_parts - max(1, n_parts // 5))
    n_held_out = min(MOST_HELD_OUT, n_parts - n_trained)
    trained = replace(problem, blocks=some_parts(problem.blocks, range(n_trained)))
    held_out = some_parts(problem.blocks, range(n_trained, n_trained + n_held_out))
    alpha = settings.penalty(problem, max(1, problem.n_rows * n_trained // n_parts))
    start = problem.random_start(settings.init_scale, random_state)
    track = Track(held_out, settings, alpha, random_state)
    steps, epochs, best = _race_of_penalties(track, trained, start)
    if isinstance(problem.basis, SplineBasis):
        if settings.relevance == "auto" and problem.basis.n_columns > 1:
            (found,) = track.fits(weigh_columns(trained, best.params), start, [steps], epochs)
            best = found if found.losses.clearly_below(best.losses) else best
        if settings.degree == "auto" and problem.n_rows >= FEWEST_ROWS_OF_DEGREES:
            best = _race_of_degrees(track, best, steps, epochs)
    chosen = CORRECTION * SHARE**steps * usual if steps else usual
    return Winner(chosen, best.problem.sizes, best.problem.layout, best.params)


def _race_of_penalties(track: Track, problem: Problem, start: np.ndarray) -> tuple[int, int, ShortFit]:
    """Return by how many steps the penalty is less than the usual one, and the winner with its epochs."""
    best, less = track.fits(problem, start, [0, 1], FIRST_EPOCHS)
    if not less.losses.clearly_below(best.losses):
        return 0, FIRST_EPOCHS, best
    steps = 0
    with closing(track.fits(problem, start, range(1, MOST_STEPS + 1), EPOCHS)) as each:
        for less in each:
            if steps and not less.losses.clearly_below(best.losses):
                break
            steps, best = steps + 1, less
    return steps, EPOCHS, best


def _race_of_degrees(track: Track, best: ShortFit, steps: int, epochs: int) -> ShortFit:
    """Return the best of fits with ever higher degrees, for as long as they are better."""
    for degree in HIGHER_DEGREES:
        higher = best.problem.with_shape(degree, best.problem.layout.rank)
        start = higher.random_start(track.settings.init_scale, deepcopy(track.random_state))
        (found,) = track.fits(higher, start, [steps], epochs)
        if not found.losses.clearly_below(best.losses):
            break
        best = found
    return best


def _short_fit(
    problem: Problem,
    held_out: Blocks,
    settings: Settings,
    alpha: float,
    start: np.ndarray,
    random_state: np.random.RandomState,
) -> ShortFit:
    threads = settings.threads(problem.n_rows)
    objective = problem.objective(alpha, threads)
    solver = make_solver(start, problem, objective, settings, deepcopy(random_state))()
    params = minimise(objective, [solver], settings.deadline.watch)[0].params
    of_block = partial(
        _losses_of_block, layout=problem.layout, params=params[None], loss=problem.loss, threads=threads
    )
    (losses,) = held_out.total(of_block)
    return ShortFit(problem, params, losses)


def _losses_of_block(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[Losses]:
    z = kernel.outputs(block, layout, params, threads)
    weights = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    present = weights > 0
    return (
        Losses(loss.pointwise(block.targets[present], z[present])[0].astype(np.float64), weights[present]),
    )
