"""What a solver is, what it returns, and how several of them share their evaluations.

A solver is a generator that knows vectors and nothing else. It yields

    Evaluate(params)     and is sent back (value, gradient);
    Evaluate(params, i)  and is sent back those of the i-th function of the sum that the objective is;
    Iterate(...)         after every iteration, and is sent back True to stop it there;

and returns a Solution. An Iterate can tell the State of its solver, from which another one of its kind goes
on as if it were the first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

State = dict[str, Any]  # arrays, numbers, lists of numbers


class Outcome(Enum):
    CONVERGED = "the objective no longer fell by more than tol"
    STATIONARY = "the gradient vanished"
    PRECISION = "no step could lower the objective further in this floating-point type"
    LIMIT = "the limit on iterations was reached"
    STOPPED = "stopped from outside, by early stopping or a callback"
    NOT_FINITE = "the objective was not finite at the start"


@dataclass(frozen=True)
class Evaluate:
    """``likely_next`` is a guess at the function that will be asked for next, which may be fetched meanwhile."""

    params: np.ndarray
    function: int | None = None
    likely_next: int | None = None


@dataclass(frozen=True)
class Iterate:
    iteration: int
    params: np.ndarray
    value: float
    gradient_norm: float
    state: Callable[[], State]


@dataclass(frozen=True)
class Solution:
    params: np.ndarray
    value: float
    n_iter: int
    n_evaluations: int
    outcome: Outcome


Solver = Generator[Evaluate | Iterate, Any, Solution]
Evaluation = tuple[np.ndarray, np.ndarray]  # values (models,) and gradients (models, size)
Watch = Callable[[int, Iterate], bool]


class Objective(Protocol):
    def __call__(self, params: np.ndarray, /) -> Evaluation: ...


class Sum(Objective, Protocol):
    """An objective that is a sum of functions."""

    def partial(self, params: np.ndarray, part: int, likely_next: int | None, /) -> Evaluation: ...


def minimise(
    objective: Objective | Sum,
    solvers: Sequence[Solver],
    watch: Watch = lambda solver, iterate: False,
    together: bool = True,
) -> list[Solution]:
    """Run the solvers side by side, so that each call of the objective evaluates one point of every one still
    running.

    ``watch(number of the solver, iterate)`` sees every iteration and may stop it. Unless ``together``, each
    point is evaluated by itself, which gives the same bits whatever the other solvers do."""
    solutions: dict[int, Solution] = {}
    waiting: dict[int, Evaluate] = {}

    def advance(number: int, answer: Any) -> None:
        """Let a solver run until it needs an evaluation or has ended."""
        try:
            request = solvers[number].send(answer)
            while isinstance(request, Iterate):
                request = solvers[number].send(watch(number, request))
            waiting[number] = request
        except StopIteration as end:
            solutions[number] = end.value

    # What overflows is not finite, and the solvers look at that.
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(len(solvers)):
            advance(number, None)
        while waiting:
            first = min(waiting)
            function = waiting[first].function
            numbers = (
                sorted(number for number, request in waiting.items() if request.function == function)
                if together
                else [first]
            )
            requests = [waiting.pop(number) for number in numbers]
            answers = _evaluate(objective, requests)
            for number, value, gradient in zip(numbers, *answers, strict=True):
                advance(number, (float(value), gradient))
    return [solutions[number] for number in range(len(solvers))]


def _evaluate(objective: Any, requests: Sequence[Evaluate]) -> Evaluation:
    """All of them ask for the same function."""
    points = np.stack([request.params for request in requests])
    if requests[0].function is None:
        return objective(points)
    return objective.partial(points, requests[0].function, requests[0].likely_next)


def in_units(solver: Solver, units: np.ndarray) -> Solver:
    """A solver for the params of the objective, from one for params that are to be multiplied by ``units``."""
    answer: Any = None
    while True:
        try:
            request = solver.send(answer)
        except StopIteration as end:
            return replace(end.value, params=end.value.params * units)
        outside = replace(request, params=request.params * units)
        answer = yield outside
        if isinstance(outside, Evaluate):
            value, gradient = answer
            answer = value, gradient * units


def best_of(solutions: Sequence[Solution]) -> Solution:
    """The one with the lowest value, if any of them is finite."""
    return min(solutions, key=lambda solution: (not np.isfinite(solution.value), solution.value))


class Progress:
    """Decides when a falling objective has fallen enough: by less than ``tol`` of itself over the last
    ``window`` iterations.
    """

    def __init__(self, tol: float, window: int = 10):
        self.tol = tol
        self.window = window
        self.values: list[float] = []

    def stalled(self, value: float) -> bool:
        self.values.append(value)
        if len(self.values) <= self.window:
            return False
        return self.values.pop(0) - value <= self.tol * abs(value)
