"""L-BFGS with a line search for the strong Wolfe conditions.

Nocedal & Wright, Numerical Optimization (2nd ed.): algorithm 7.4 (two-loop recursion), 3.5 and 3.6 (line
search).

The recursion begins with a multiple of the identity, or of a given inverse curvature, which is recomputed
from time to time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs

from .protocol import Evaluate, Iterate, Outcome, Progress, Solution, Solver, State
from .state import COUNT, FLAG, VALUE, Array, Entry, Number, Numbers, check, length, like

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
LONGEST_SEARCH = 40
TINY = 1e-300
FIRST_PERIOD = 10  # iterations before the curvature is recomputed; the period then doubles

Solve = Callable[[np.ndarray], np.ndarray]
Curvature = Callable[[np.ndarray], Solve | None]


@dataclass(frozen=True)
class Point:
    """A place on the line x + step * direction, with value, gradient, and slope along the line."""

    step: float
    params: np.ndarray
    value: float
    gradient: np.ndarray
    slope: float


def lbfgs(
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    history: int = 10,
    curvature: Curvature | None = None,
    resume: State | None = None,
) -> Solver:
    """Minimise from ``start``, or from a state. See `protocol`.

    ``curvature(params)`` returns a function that multiplies a vector by the inverse curvature there, or None.
    """
    progress = Progress(tol)
    inverse = InverseCurvature(curvature)
    pairs: deque[Pair] = deque(maxlen=history)
    if resume is None:
        value, gradient = yield Evaluate(start)
        here = Point(0.0, start, value, gradient, float(gradient.sum()))
        if not _finite(here):
            return Solution(start, value, 0, 1, Outcome.NOT_FINITE)
        iteration, evaluations, stalled = 0, 1, progress.stalled(value)
    else:
        check(resume, _entries(resume, start, history, max_iter, progress.window))
        here = Point(0.0, resume["params"], resume["value"], resume["gradient"], 0.0)
        for step, change in zip(resume["steps"], resume["changes"], strict=True):
            _remember(pairs, step.copy(), change.copy())  # some BLAS round differently at other alignments
        iteration, evaluations = resume["iteration"], resume["evaluations"]
        progress.values, stalled = resume["progress"], resume["stalled"]
        inverse.restore(resume)

    def state() -> State:
        return {
            "params": here.params,
            "value": here.value,
            "gradient": here.gradient,
            "iteration": iteration,
            "evaluations": evaluations,
            **inverse.state(),
            "steps": np.array([pair.step for pair in pairs], start.dtype).reshape(-1, len(start)),
            "changes": np.array([pair.change for pair in pairs], start.dtype).reshape(-1, len(start)),
            "progress": list(progress.values),
            "stalled": stalled,
        }

    blas = get_blas_funcs(("axpy", "dot"), (start,))
    while True:
        if stalled or iteration >= max_iter:
            outcome = Outcome.CONVERGED if stalled else Outcome.LIMIT
            break
        norm = float(np.abs(here.gradient).max())
        if norm == 0.0:
            outcome = Outcome.STATIONARY
            break
        inverse.keep_up(here.params)
        direction, slope = _direction(here.gradient, pairs, inverse.solve, blas)
        if not math.isfinite(slope):  # the square of the gradient overflows
            outcome = Outcome.PRECISION
            break
        first = (
            1.0 if pairs or inverse.solve else min(1.0, 1.0 / max(float(np.linalg.norm(here.gradient)), TINY))
        )
        found, used = yield from line_search(here, direction, slope, first)
        evaluations += used
        if found is None:
            if not pairs and not inverse.solve:
                outcome = Outcome.PRECISION
                break
            if not pairs:
                inverse.solve = None
            # The curvature was misleading: try without the pairs, then along the gradient.
            pairs.clear()
            continue
        _remember(pairs, found.params - here.params, found.gradient - here.gradient)
        here = found
        iteration += 1
        stalled = progress.stalled(here.value)
        if (yield Iterate(iteration, here.params, here.value, norm, state)):
            outcome = Outcome.STOPPED
            break
    return Solution(here.params, here.value, iteration, evaluations, outcome)


def _entries(state: State, start: np.ndarray, history: int, max_iter: int, window: int) -> dict[str, Entry]:
    n_pairs = min(length(state.get("steps")), history)
    curvature: dict[str, Entry] = {"place": like(start), "age": COUNT, "period": COUNT, "curved": FLAG}
    return {
        **{name: like(start) for name in ("params", "gradient")},
        **{name: Array((n_pairs, len(start)), start.dtype) for name in ("steps", "changes")},
        **(curvature if "place" in state else {}),
        "value": VALUE,
        "iteration": Number(int, low=0, high=max_iter),
        "evaluations": COUNT,
        "progress": Numbers(VALUE, window),
        "stalled": FLAG,
    }


class InverseCurvature:
    """``solve`` multiplies by the inverse curvature that was computed last; None is the identity."""

    def __init__(self, curvature: Curvature | None):
        self.curvature = curvature
        self.solve: Solve | None = None
        self.place: np.ndarray | None = None
        self.age = 0
        self.period = FIRST_PERIOD

    def keep_up(self, params: np.ndarray) -> None:
        """Recompute the curvature when it is due; called before every step."""
        if self.curvature is None:
            return
        if self.place is None or self.age >= self.period:
            self.period *= 1 if self.place is None else 2
            self.place, self.solve, self.age = params, self.curvature(params), 0
        self.age += 1

    def state(self) -> State:
        return (
            {}
            if self.place is None
            else {
                "place": self.place,
                "age": self.age,
                "period": self.period,
                "curved": self.solve is not None,
            }
        )

    def restore(self, state: State) -> None:
        if self.curvature is not None and "place" in state:
            self.place, self.age, self.period = state["place"].copy(), state["age"], state["period"]
            self.solve = self.curvature(self.place) if state["curved"] else None


@dataclass(frozen=True)
class Pair:
    """A step s and the change y of the gradient along it, with s'y."""

    step: np.ndarray
    change: np.ndarray
    product: float


def _remember(pairs: deque[Pair], step: np.ndarray, change: np.ndarray) -> None:
    product = float(np.dot(step, change))
    if product > 1e-10 * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
        pairs.append(Pair(step, change, product))


def _direction(
    gradient: np.ndarray, pairs: deque[Pair], solve: Solve | None, blas: list[Any]
) -> tuple[np.ndarray, float]:
    """Return minus the approximate inverse Hessian times the gradient (two-loop recursion), and its slope."""
    add, dot = blas  # add(x, y, a=a) is y += a x, in place and in one pass
    direction = -gradient
    shares = []
    for pair in reversed(pairs):
        share = dot(pair.step, direction) / pair.product
        add(pair.change, direction, a=-share)
        shares.append(share)
    if solve:
        direction = solve(direction)
    if pairs:
        last = pairs[-1]
        squared = dot(last.change, solve(last.change) if solve else last.change)
        if squared != 0:  # squares of gradients underflow near a minimum of 0
            direction *= gradient.dtype.type(last.product / squared)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        add(pair.step, direction, a=share - dot(pair.change, direction) / pair.product)
    slope = float(np.dot(gradient, direction))
    if not slope < 0:  # rounding errors have spoiled the pairs
        pairs.clear()
        direction = -gradient
        slope = float(np.dot(gradient, direction))
    return direction, slope


def _finite(point: Point) -> bool:
    """Return whether value and slope are finite; a gradient that is not finite has no finite slope."""
    return math.isfinite(point.value) and math.isfinite(point.slope)


def line_search(
    here: Point, direction: np.ndarray, slope: float, step: float
) -> Generator[Evaluate, Any, tuple[Point | None, int]]:
    """Return a point that satisfies the strong Wolfe conditions, and the number of evaluations.

    If there is none, return the lowest point with sufficient decrease, or None. The search maintains brackets
    [low, high], where low is the better end (algorithms 3.5 and 3.6 in one loop). A value that is not finite
    means that the step is too long.
    """
    low = Point(0.0, here.params, here.value, here.gradient, slope)
    high: Point | None = None
    for used in range(1, LONGEST_SEARCH + 1):
        params = here.params + here.params.dtype.type(step) * direction
        value, gradient = yield Evaluate(params)
        trial = Point(step, params, value, gradient, float(np.dot(gradient, direction)))
        too_long = (
            not _finite(trial)
            or value > here.value + SUFFICIENT_DECREASE * step * slope
            or value >= low.value
        )
        if not too_long and abs(trial.slope) <= -CURVATURE * slope:
            return trial, used
        if too_long:
            high = trial
        else:
            if trial.slope * ((high.step if high else np.inf) - low.step) >= 0:
                high = low
            low = trial
        step = 4.0 * step if high is None else _between(low, high)
        if high is not None and abs(high.step - low.step) <= 1e-9 * max(high.step, low.step):
            break
    return (low if low.step > 0 else None), used


def _between(low: Point, high: Point) -> float:
    """Return the minimum of the cubic through both ends, kept away from them, or else the middle."""
    width = high.step - low.step
    middle = low.step + 0.5 * width
    # A polynomial of high degree rises so steeply that a cubic through its wall would only halve the step,
    # again and again.
    if not _finite(high) or high.value - low.value > 100 * abs(low.slope * width):
        return low.step + 0.1 * width
    secant = 3.0 * (low.value - high.value) / width + low.slope + high.slope
    root = secant * secant - low.slope * high.slope
    if not root >= 0:
        return middle
    root = np.copysign(np.sqrt(root), width)
    bottom = high.slope - low.slope + 2.0 * root
    if bottom == 0:
        return middle
    step = high.step - width * (high.slope + root - secant) / bottom
    share = (step - low.step) / width
    return float(low.step + width * min(max(share, 0.1), 0.9)) if np.isfinite(share) else middle
