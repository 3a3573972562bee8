"""The state and the steps of the Sum-of-Functions Optimizer, see `sfo`."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .protocol import Evaluate, State
from .sfo_models import HISTORY, Newton, QuadraticModels
from .sfo_subspace import Subspace
from .state import COUNT, FLAG, VALUE, Array, Entry, Number, Numbers, Text, like, same

FIRST_STEP = 0.01  # share of the way to 0 if the first function were linear
LONGEST_STEP = 10.0  # times the mean length of the steps so far; 1 while a function is in doubt
SHORTEST_STEP = 1e-8
SMALLEST_SHARE = 1e-5  # of a step, after failures
FASTEST_RECOVERY = 10  # minimum number of steps to forget a failure
OUTLIER = 3.0  # standard deviations
CHOSEN_AT_ONCE = 4  # one in so many functions
NEVER = np.iinfo(np.int64).max

Evaluation = Generator[Evaluate, Any, None]


class SumOfFunctions:
    """The state of the optimiser.

    ``point`` is the current point; ``x`` and ``previous`` are coordinates in the subspace.
    """

    def __init__(self, start: np.ndarray, n_functions: int, seed: int, n_active: int = 2):
        fewest = min(2 * max(n_functions, HISTORY) + 2, len(start))
        self.capacity = math.ceil(1.5 * fewest)
        self.n_functions = n_functions
        self.n_active = min(n_active, n_functions)
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.n_evaluations = 0
        self.restart(start)

    def restart(self, point: np.ndarray) -> None:
        """Forget all evaluations and continue from a point."""
        self.space = Subspace(point, self.capacity)
        self.models = QuadraticModels(self.n_functions, self.space.capacity, self.space.size)
        self.x = point.astype(np.float64) if self.space.whole else np.zeros(0)
        self.previous = self.x
        self.point = point
        self.since_growth = 0
        self.n_steps = 0
        self.mean_length = 0.0
        self.share = 1.0  # of the full step
        self.improvement = 0.0  # predicted for the last step
        self.queue: list[int] = []  # functions to be evaluated next
        self.patience = np.full(self.n_functions, self.n_functions)  # steps until `due`
        self.due = np.full(self.n_functions, NEVER)  # the step after which a function in doubt is evaluated
        self.stationary = False
        self.broken = False

    def forget(self, function: int) -> None:
        """Forget a function that another one replaces."""
        self.models.forget(function)
        self.patience[function], self.due[function] = self.n_functions, NEVER
        self.stationary = False

    # ---- to resume in another process

    def state(self) -> State:
        """Return a copy of the whole state."""
        return {
            **{f"space.{name}": copy(value) for name, value in vars(self.space).items()},
            **{
                f"models.{name}": copy(value)
                for name, value in vars(self.models).items()
                if not name.startswith("_")
            },
            **{
                name: copy(value)
                for name, value in vars(self).items()
                if name not in ("space", "models", "random")
            },
            "random": json.dumps(self.random.bit_generator.state),
        }

    def entries(self, state: State) -> dict[str, Entry]:
        """Return the allowed entries of a state; its size, on which other entries depend, may be anything."""
        size = state.get("space.size")
        size = size if type(size) is int and 0 <= size <= self.space.capacity else self.space.size
        function = Number(int, low=0, high=self.n_functions - 1)
        return {
            **{f"space.{name}": entry for name, entry in self.space.entries(size).items()},
            **{f"models.{name}": entry for name, entry in self.models.entries(size).items()},
            **{name: same(getattr(self, name)) for name in ("capacity", "n_functions")},
            **{name: COUNT for name in ("n_evaluations", "since_growth", "n_steps")},
            **{name: Array((size,)) for name in ("x", "previous")},
            "point": like(self.point),
            "n_active": Number(int, low=1, high=self.n_functions),
            "mean_length": Number(float, low=0.0),
            "share": Number(float, low=0.0, high=1.0),
            "improvement": VALUE,
            "queue": Numbers(function, self.n_functions),
            "patience": Array(self.patience.shape, np.int64, low=1, high=self.n_functions),
            "due": Array(self.due.shape, np.int64, low=0),
            **{name: FLAG for name in ("stationary", "broken")},
            "random": Text(partial(_random_bits, bits=self.random.bit_generator)),
        }

    def restore(self, state: State) -> None:
        for name, value in state.items():
            owner, _, attribute = name.rpartition(".")
            if name == "random":
                _random_bits(value, self.random.bit_generator)
            else:
                setattr(getattr(self, owner) if owner else self, attribute, copy(value))

    # ---- what it knows

    @property
    def value(self) -> float:
        """Estimate the objective from the last evaluation of each function."""
        known = self.models.evaluations > 0
        return float(self.models.values[known].mean() * self.n_functions) if known.any() else math.inf

    @property
    def largest_gradient(self) -> float:
        return float(np.abs(self.space.vector(self.models.gradient(self.x))).max())

    # ---- one step

    def advance(self, function: int | None = None) -> Evaluation:
        """Evaluate one function (by default the most useful one) and go to the new minimum of the models.

        Models whose numbers overflow have no minimum; the state is then broken."""
        try:
            yield from self._advance(function)
        except (FloatingPointError, np.linalg.LinAlgError):
            self.broken = True

    def settle(self, function: int) -> Evaluation:
        """Evaluate a function after the last step, and go back if it has risen; take no further step."""
        try:
            yield from self._look(function, None)
        except (FloatingPointError, np.linalg.LinAlgError):
            self.broken = True

    def _advance(self, function: int | None) -> Evaluation:
        i, likely_next = self._choose() if function is None else (function, None)
        failed = yield from self._look(i, likely_next)
        if self.broken:
            return
        newton = self.models.newton(self.x)
        self._activate(failed, newton.factor)
        self._step(newton)

    def _look(self, i: int, likely_next: int | None) -> Generator[Evaluate, Any, bool]:
        """Evaluate a function at the point, go back if the last step failed, and return whether it did."""
        value, gradient = yield Evaluate(self.point, i, likely_next)
        self.n_evaluations += 1
        failed = self._failed(i, value, gradient)
        self._schedule(i, failed)
        if failed:
            yield from self._step_back(i, value, gradient)
        else:
            self._observe(i, value, self.point, gradient)
        return failed

    def _choose(self) -> tuple[int, int]:
        """Return the next function and a guess at the one after it.

        Functions in doubt come first, see `_schedule`, then new ones, then those that were evaluated farthest
        away, in the metric of the sum or in their own metric with equal probability. A few are chosen at a
        time, because a step or two hardly changes the order.
        """
        in_doubt = int(self.due.argmin())
        if self.due[in_doubt] <= self.n_steps:
            return in_doubt, in_doubt
        evaluations = self.models.evaluations[: self.n_active]
        if evaluations.min() < 2:
            self.queue = []
            first, *others = np.flatnonzero(evaluations < 2).tolist()
            return first, first if evaluations[first] == 0 or not others else others[0]
        if len(self.queue) < 2:  # the last one is the guess
            distances = self.models.distances(self.x, own=bool(self.random.random() < 0.5))[: self.n_active]
            few = max(1, self.n_active // CHOSEN_AT_ONCE)
            self.queue = np.argsort(-distances, kind="stable")[: few + 1].tolist()
        chosen = self.queue.pop(0)
        return chosen, self.queue[0] if self.queue else chosen

    def _schedule(self, i: int, failed: bool) -> None:
        """Schedule when a function that failed is evaluated again: after 1, 2, 4... steps without failure.

        If a single row makes a function steep, the other functions do not know it, and a few steps can take
        it far."""
        self.patience[i] = 1 if failed else min(2 * self.patience[i], self.n_functions)
        in_doubt = self.patience[i] < self.n_functions
        self.due[i] = self.n_steps + self.patience[i] if in_doubt else NEVER

    def _observe(self, i: int, value: float, position: np.ndarray, gradient: np.ndarray) -> None:
        coordinates = self._coordinates(gradient)
        x = self.x if position is self.point else self.previous
        scale = self.models.scales[i] if self.models.evaluations[i] else self._first_scale(value, gradient)
        rounding = 10 * float(np.finfo(gradient.dtype).eps)
        limits = rounding * _length(position), rounding * _length(coordinates)
        self.models.observe(i, value, x, coordinates, scale, shortest=limits[0], smallest=limits[1])

    def _coordinates(self, gradient: np.ndarray) -> np.ndarray:
        if self.space.full:
            self._collapse()
        coordinates = self.space.coordinates(gradient)
        if self.space.size > self.models.size:
            self.models.grow(self.space.size)
            self.x, self.previous = _extended(self.x), _extended(self.previous)
        return coordinates

    def _collapse(self) -> None:
        """Shrink the subspace to the span of the last positions and gradients and of the last two points."""
        K = self.space.size
        known = self.models.evaluations > 0
        positions = self.models.positions[known, :K] - self.x
        vectors = np.concatenate([self.models.gradients[known, :K], positions, self.previous[None] - self.x])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        kept, _ = np.linalg.qr((vectors / np.where(lengths > 0, lengths, 1)).T)
        center = self.x
        self.space.rotate(kept, center)
        self.models.rotate(kept, center)
        self.previous = (self.previous - center) @ kept
        self.x = np.zeros(self.space.size)

    def _first_scale(self, value: float, gradient: np.ndarray) -> float:
        """Return the curvature of a function for which only one gradient is known."""
        models = self.models
        if models.evaluations.any():
            eigenvalues = np.linalg.eigvalsh(models.curvature[: models.size, : models.size]) + models.diagonal
            positive = eigenvalues[eigenvalues > 0]
            if len(positive):
                return float(np.median(positive)) / np.count_nonzero(models.evaluations)
        slope = float(np.linalg.norm(gradient.astype(np.float64)))
        if slope == 0:
            return 1.0
        length = FIRST_STEP * abs(value) / slope
        if length > 0:
            return slope / length
        return slope / (FIRST_STEP * max(float(np.linalg.norm(self.point)), 1.0))

    # ---- failure

    def _failed(self, i: int, value: float, gradient: np.ndarray) -> bool:
        if not _finite(value, gradient):
            return True
        if self.n_steps == 0:
            return False
        models = self.models
        rounding = 10 * float(np.finfo(gradient.dtype).eps) * abs(value)
        if not models.evaluations[i]:
            others = models.values[models.evaluations > 0]
            return len(others) > 2 and value > others.mean() + OUTLIER * others.std() + rounding
        if value <= models.values[i]:
            return False  # it is lower than before, though by less than expected
        expected = models.model_value(i, self.x)
        others_improve = self.improvement - (models.model_value(i, self.previous) - expected)
        return value - expected > max(others_improve, 0.0) + rounding

    def _step_back(self, i: int, value: float, gradient: np.ndarray) -> Evaluation:
        """Evaluate where the last step began, and stay at the better of the two points."""
        before = self.space.point(self.previous)
        value_before, gradient_before = yield Evaluate(before, i)
        self.n_evaluations += 1
        self.share = max(0.5 * self.share, SMALLEST_SHARE)
        known, known_before = _finite(value, gradient), _finite(value_before, gradient_before)
        if not known_before and not known:
            return self._retreat(i)
        if known_before:
            self._observe(i, value_before, before, gradient_before)
        if known and not (known_before and value_before <= value):
            self._observe(i, value, self.point, gradient)
            return
        if known:
            change = self._coordinates(gradient) - self.models.gradients[i, : self.models.size]
            self.models.learn_pair(i, self.x - self.previous, change)
        self.x, self.point = self.previous, before

    def _retreat(self, i: int) -> None:
        """Go to the last point where the function was finite."""
        self.broken = not self.models.evaluations[i]
        self.x = self.previous = self.models.positions[i, : self.models.size].copy()
        self.point = self.space.point(self.x)

    # ---- growth and the step itself

    def _activate(self, failed: bool, factor: np.ndarray) -> None:
        """Add another function once the active ones have nothing new to tell."""
        if self.n_active == self.n_functions:
            return
        self.since_growth += 1
        if (self.models.evaluations[: self.n_active] < 2).any():
            return
        here = (self.models.positions[: self.n_active, : self.models.size] == self.x).all()
        if failed or here or self.since_growth >= self.n_active or self._noisy(factor):
            self.n_active += 1
            self.since_growth = 0

    def _noisy(self, factor: np.ndarray) -> bool:
        """Tell whether the standard error of the mean gradient reaches its length, in the metric of H^-1.

        The gradients are the last observed ones. Gradients of the models would not work: x is the minimum of
        their sum, so their mean is 0."""
        gradients = self.models.gradients[: self.n_active, : self.models.size]
        mean = gradients.mean(axis=0)
        whitened = lapack.dtrtrs(factor, np.vstack([gradients - mean, mean]).T, lower=1)[0]
        squares = (whitened**2).sum(axis=0)
        return squares[:-1].sum() / (self.n_active * (self.n_active - 1)) >= squares[-1]

    def _step(self, newton: Newton) -> None:
        taken = self.share
        length = taken * newton.length
        if length == 0:
            everywhere = (self.models.positions[:, : self.models.size] == self.x).all()
            self.stationary = bool(
                everywhere and self.n_active == self.n_functions and self.models.evaluations.all()
            )
            self.previous = self.x
            return
        if self.n_steps:
            longest = 1.0 if (self.due < NEVER).any() else LONGEST_STEP
            allowed = min(max(length, SHORTEST_STEP * self.mean_length), longest * self.mean_length)
            taken *= allowed / length
            length = allowed
        self.n_steps += 1
        self.mean_length += (length - self.mean_length) / self.n_steps
        recovery = 1 / max(self.n_functions, FASTEST_RECOVERY)
        self.share = recovery + self.share * (1 - recovery)
        self.improvement = taken * newton.slope * (1 - 0.5 * taken)  # because H step = gradient
        self.previous, self.x = self.x, self.x - taken * newton.step
        self.point = self.space.point(self.x)


def _random_bits(text: str, bits: np.random.BitGenerator) -> None:
    bits.state = json.loads(text)


def _finite(value: float, gradient: np.ndarray) -> bool:
    return math.isfinite(value) and (
        math.isfinite(np.dot(gradient, gradient)) or bool(np.isfinite(gradient).all())
    )


def _length(vector: np.ndarray) -> float:
    return math.sqrt(np.dot(vector, vector))


def _extended(coordinates: np.ndarray) -> np.ndarray:
    """Return np.append(coordinates, 0.0), in a fraction of its time."""
    longer = np.zeros(len(coordinates) + 1)
    longer[:-1] = coordinates
    return longer
