"""The race of alpha, relevance, degree and jumps "auto": which values do best on held-out rows?

The best penalty depends on the noise, and the other settings depend on the data; a rule based on the number
of rows knows neither. See the trials in benchmarks/trials.py."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil

import numpy as np
from scipy.optimize import minimize_scalar

from .._model import kernel
from .._model.block import Block, Blocks, fetch_parts
from .._model.layout import Layout
from .._model.losses import Loss
from .._model.spline_basis import SplineBasis
from .._model.threads import in_threads
from .problem import Problem
from .pruning import weigh_columns
from .settings import Settings
from .solver_table import make_solver
from .solvers.protocol import minimise
from .trend import Trend

SHARE = 1 / 3  # of the previous penalty, as long as smaller is better
MOST_STEPS = 4  # to smaller penalties
MOST_STEPS_UP = 4
TOO_CLOSE = 0.9  # if outputs should be scaled down to less than this, a larger penalty may help
FIRST_EPOCHS, EPOCHS = 8, 20  # of fits that test whether a smaller penalty can help at all, and of the others
FEWEST_STEPS = 120  # in the first fits
CORRECTION = 1.7  # short fits on some of the rows end before a small penalty harms
MOST_TRAINED, MOST_HELD_OUT = 16, 8  # parts
MOST_PARTS = MOST_TRAINED + MOST_HELD_OUT
FEWEST_ROWS = 300  # with fewer, held-out rows tell little
HIGHER_DEGREES, FEWEST_ROWS_OF_DEGREES = (4, 5), 20_000
TREND_ENTRIES = 1 << 18  # features times rows, for the trend that a race tries
FAR_BELOW = 0.95  # if the loss is above this share of a linear model's loss, a trend is tried
SHARE_LEFT = 8 / 15  # of the epochs of a fit, if it continues from a short fit


@dataclass(frozen=True)
class Outputs:
    """Targets of rows, outputs of a model with their offsets, and weights; adding two concatenates them."""

    loss: Loss
    y: np.ndarray
    z: np.ndarray
    offset: np.ndarray
    weights: np.ndarray

    def __add__(self, other: Outputs) -> Outputs:
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("y", "z", "offset", "weights")]
        return Outputs(self.loss, *(np.concatenate(pair) for pair in pairs))

    @cached_property
    def losses(self) -> np.ndarray:
        return self.loss.pointwise(self.y, self.z + self.offset)[0]

    @property
    def mean_loss(self) -> float:
        """Return the weighted mean loss; infinity if it is not finite, or if no row has a weight."""
        total = self.weights.sum()
        mean = float(self.weights @ self.losses / total) if total > 0 else np.inf
        return mean if np.isfinite(mean) else np.inf

    def scaled(self, scale: float) -> Outputs:
        """Return other outputs for the same targets."""
        return replace(self, z=scale * self.z)

    def times(self, unit: np.ndarray) -> Outputs:
        """Return the same outputs in other units of each target."""
        return replace(self, y=self.y * unit, z=self.z * unit, offset=self.offset * unit)

    @cached_property
    def best_scale(self) -> float:
        """Return the factor of the outputs, from 0 to 1, with the lowest mean loss."""
        found = minimize_scalar(
            lambda scale: self.scaled(scale).mean_loss,
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 0.01},
        )
        return float(found.x) if found.fun < self.mean_loss else 1.0

    def clearly_below(self, before: Outputs) -> bool:
        """Tell whether the mean loss is lower by more than its standard error."""
        gains = before.losses - self.losses
        if not (np.isfinite(gains).all() and self.weights.sum() > 0):
            return False
        mean = np.average(gains, weights=self.weights)
        error = np.sqrt(np.average((gains - mean) ** 2, weights=self.weights) / len(gains))
        return bool(mean > error)


@dataclass(frozen=True)
class Winner:
    """The start of a fit to all rows: its penalty, and its problem with shape, trend and feature sizes.

    ``params`` is where a short fit ended (in a race, the winning fit); None if there was none. The outputs of
    the fitted model must be multiplied by ``scale``."""

    problem: Problem
    alpha: float
    params: np.ndarray | None = None
    scale: float = 1.0

    def of(self, problem: Problem) -> Winner:
        """Return the same for a problem that has more rows."""
        ours = self.problem
        return replace(self, problem=replace(problem, sizes=ours.sizes, layout=ours.layout))

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the fit to all rows.

        If the fit begins with ``params``, columns have already been weighed, and fewer epochs are left."""
        if self.params is None:
            return replace(settings, alpha=self.alpha)
        fewer = settings.solver == "adam"
        max_iter = ceil(SHARE_LEFT * settings.max_iter) if fewer else settings.max_iter
        return replace(settings, alpha=self.alpha, max_iter=max_iter, relevance=0)


@dataclass(frozen=True)
class ShortFit:
    """A fit of a race: its problem, its final params, and its outputs for the held-out rows."""

    problem: Problem
    params: np.ndarray
    outputs: Outputs

    def clearly_below(self, before: ShortFit) -> bool:
        return self.outputs.clearly_below(before.outputs)


ShortFits = Generator[ShortFit, None, None]


@dataclass(frozen=True)
class Track:
    """What all fits of a race share: the ``problem`` of its rows, the problem of the rows ``trained`` on, and
    ``alpha``, the default penalty for these rows.

    Only races on ``all_rows`` can tell whether fits overfit their rows, because other races have fewer
    rows."""

    problem: Problem
    trained: Problem
    held_out: Blocks
    settings: Settings
    alpha: float
    random_state: np.random.RandomState
    all_rows: bool

    def fits(self, problem: Problem, start: np.ndarray, steps: Sequence[int], epochs: int) -> ShortFits:
        """Yield a fit for each penalty, in order; the fits do not depend on the number of threads.

        With several threads, as many fits run at a time; the last ones may be unused."""
        epochs = min(epochs, self.settings.max_iter)
        short = replace(self.settings, solver="adam", max_iter=epochs, init="random", early_stopping=False)
        threads = short.threads(problem.n_rows)
        objective = problem.objective(0.0, threads)
        side_by_side = min(threads, len(steps)) if objective.takes_epochs else 1
        if side_by_side > 1:
            objective.bind()  # once, because threads would do it at the same time
            short = replace(short, n_threads=threads // side_by_side)

        def fit(step: int) -> ShortFit:
            alpha = SHARE**step * self.alpha
            return _short_fit(problem, self.held_out, short, alpha, start, self.random_state)

        for first in range(0, len(steps), side_by_side):
            yield from in_threads(fit, steps[first : first + side_by_side], side_by_side)

    def long_fit(self, winner: Winner, blocks: Blocks) -> Outputs:
        """Return the outputs for held-out rows of a fit to other rows, as long as the fit to all rows."""
        problem, settings = replace(winner.problem, blocks=blocks), winner.settings(self.settings)
        assert winner.params is not None
        return _short_fit(
            problem, self.held_out, settings, winner.alpha, winner.params, self.random_state
        ).outputs


def race(problem: Problem, settings: Settings, random_state: np.random.RandomState) -> Winner:
    """Return the start of a fit to all rows, with the default penalty, a share or a multiple of it.

    The race trains on some of the parts for a few epochs and holds out others; all of these are brought into
    memory. Penalties are shares of the default penalty for the number of rows trained on. If there are jumps,
    fits with and without jumps come first. With splines, the winner then races against the same fit with
    columns weighed by their sizes, and against higher degrees, if the settings leave this open.

    If a linear model is nearly as good on the held-out rows, and more rows do not change this, another race
    is run on its residuals, and the better of both winners wins. With few rows, there is always a trend."""
    with_trend = settings.trend == "auto" and problem.can_have_trend
    n_parts = len(problem.blocks.weights)
    if problem.n_rows < FEWEST_ROWS or n_parts < 2:
        problem = problem.without_trend(problem.fit_trend()) if with_trend else problem
        return Winner(problem, settings.penalty(problem))
    n_trained = min(MOST_TRAINED, n_parts - max(1, n_parts // 5))
    n_near = n_trained + min(MOST_HELD_OUT, n_parts - n_trained)
    near = replace(problem, blocks=fetch_parts(problem.blocks, range(n_near)))

    def track(problem: Problem, all_rows: bool = n_near == n_parts) -> Track:
        trained = replace(problem, blocks=problem.blocks.some(range(n_trained)))
        held_out = problem.blocks.some(range(n_trained, n_near))
        alpha = settings.penalty(problem, max(1, problem.n_rows * n_trained // problem.recipe.n_parts))
        return Track(problem, trained, held_out, settings, alpha, deepcopy(random_state), all_rows)

    first, start, known = _race_of_jumps(
        track(near), None if near.jumping is None else track(near.with_jumps())
    )
    if first.problem.basis is not near.basis:
        problem = problem.with_jumps()
    winner, outputs = _run(first, start, known)
    winner = winner.of(problem)
    trend = first.trained.fit_trend(TREND_ENTRIES) if with_trend else None
    if trend is None or not _nearly_as_good(trend, first, outputs):
        return winner
    if not first.all_rows:
        others = [part for part in range(n_parts) if part not in range(n_trained, n_near)]
        outputs = first.long_fit(winner, problem.blocks.some(others))
        if not _nearly_as_good(trend, first, outputs):
            return winner
    rest = first.problem.without_trend(trend)
    beyond, of_rest = _run_of_rest(track(rest, all_rows=True))
    if not of_rest.times(rest.deviation / near.deviation).mean_loss < outputs.mean_loss:
        return winner
    return beyond.of(problem.without_trend(problem.fit_trend()))


def _race_of_jumps(plain: Track, jumping: Track | None) -> tuple[Track, np.ndarray, ShortFit | None]:
    """Return the track on which a short fit with the default penalty is better, its start, and that fit.

    The track with jumps is returned only if it is clearly better; there is no fit if there are no jumps."""
    start = _start(plain)
    if jumping is None:
        return plain, start, None
    jumping_start, epochs = _start(jumping), _first_epochs(plain.trained)
    (without,) = plain.fits(plain.trained, start, [0], epochs)
    (with_jumps,) = jumping.fits(jumping.trained, jumping_start, [0], epochs)
    if with_jumps.clearly_below(without):
        return jumping, jumping_start, with_jumps
    return plain, start, without


def _start(track: Track) -> np.ndarray:
    return track.problem.random_start(track.settings.init_scale, track.random_state)


def _run_of_rest(track: Track) -> tuple[Winner, Outputs]:
    """Return the winner of a short race on the residuals of a trend, which are small, and its outputs."""
    start = _start(track)
    epochs = _first_epochs(track.trained)
    (best,) = track.fits(track.trained, start, [0], epochs)
    steps, best = _larger_penalties(track, track.trained, start, epochs, best)
    return _winner(track, steps, best), best.outputs


def _run(track: Track, start: np.ndarray, known: ShortFit | None) -> tuple[Winner, Outputs]:
    """Return the winner of one race, and its outputs for the held-out rows.

    ``known`` is the first fit of the race, if it already exists."""
    settings, trained, problem = track.settings, track.trained, track.problem
    steps, epochs, best = _race_of_penalties(track, start, known)
    if isinstance(problem.basis, SplineBasis):
        if settings.relevance == "auto" and problem.basis.n_columns > 1:
            (found,) = track.fits(weigh_columns(trained, best.params), start, [steps], epochs)
            best = found if found.clearly_below(best) else best
        if settings.degree == "auto" and problem.n_rows >= FEWEST_ROWS_OF_DEGREES:
            best = _race_of_degrees(track, best, steps, epochs)
    return _winner(track, steps, best), best.outputs


def _winner(track: Track, steps: int, best: ShortFit) -> Winner:
    problem = track.problem
    alpha = (CORRECTION if steps > 0 else 1.0) * SHARE**steps * track.settings.penalty(problem)
    scale = best.outputs.best_scale if track.all_rows else 1.0
    scale = scale if best.outputs.scaled(scale).clearly_below(best.outputs) else 1.0
    problem = replace(problem, sizes=best.problem.sizes, layout=best.problem.layout)
    return Winner(problem, alpha, best.params, scale)


def _nearly_as_good(trend: Trend, track: Track, outputs: Outputs) -> bool:
    """Tell whether a trend fitted to the training rows is nearly as good as some outputs, or better."""
    loss = track.trained.loss
    (linear,) = track.held_out.total(lambda block: (_outputs(block, trend.outputs(block), loss),))
    return not (outputs.clearly_below(linear) and outputs.mean_loss < FAR_BELOW * linear.mean_loss)


def _race_of_penalties(track: Track, start: np.ndarray, known: ShortFit | None) -> tuple[int, int, ShortFit]:
    """Return by how many steps the penalty is below the default, and the winner with its epochs."""
    problem = track.trained
    first_epochs = _first_epochs(problem)
    if known is None:
        best, less = track.fits(problem, start, [0, 1], first_epochs)
    else:
        best, (less,) = known, track.fits(problem, start, [1], first_epochs)
    if not less.clearly_below(best):
        steps, best = _larger_penalties(track, problem, start, first_epochs, best)
        return steps, first_epochs, best
    steps = 0
    with closing(track.fits(problem, start, range(1, MOST_STEPS + 1), EPOCHS)) as each:
        for less in each:
            if steps and not less.clearly_below(best):
                break
            steps, best = steps + 1, less
    return steps, EPOCHS, best


def _first_epochs(problem: Problem) -> int:
    return min(max(FIRST_EPOCHS, -(-FEWEST_STEPS // len(problem.blocks.weights))), EPOCHS)


def _larger_penalties(
    track: Track, problem: Problem, start: np.ndarray, epochs: int, best: ShortFit
) -> tuple[int, ShortFit]:
    """Return by how many steps, 0 or less, the penalty is below the default, and the winner."""
    steps = 0
    if not (track.all_rows and best.outputs.best_scale < TOO_CLOSE):
        return steps, best
    with closing(track.fits(problem, start, range(-1, -MOST_STEPS_UP - 1, -1), epochs)) as each:
        for more in each:
            if not more.clearly_below(best):
                break
            steps, best = steps - 1, more
    return steps, best


def _race_of_degrees(track: Track, best: ShortFit, steps: int, epochs: int) -> ShortFit:
    """Return the best fit with increasing degrees, as long as they improve."""
    for degree in HIGHER_DEGREES:
        higher = best.problem.with_shape(degree, best.problem.layout.rank)
        start = higher.random_start(track.settings.init_scale, deepcopy(track.random_state))
        (found,) = track.fits(higher, start, [steps], epochs)
        if not found.clearly_below(best):
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
        _outputs_of_block, layout=problem.layout, params=params[None], loss=problem.loss, threads=threads
    )
    (outputs,) = held_out.total(of_block)
    return ShortFit(problem, params, outputs)


def _outputs_of_block(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[Outputs]:
    return (_outputs(block, kernel.outputs(block, layout, params, threads), loss),)


def _outputs(block: Block, z: np.ndarray, loss: Loss) -> Outputs:
    offset = np.zeros_like(z) if block.offset is None else block.offset
    weights = block.row_weights
    present = weights > 0
    return Outputs(
        loss, *(array[present].astype(np.float64) for array in (block.targets, z, offset, weights))
    )
