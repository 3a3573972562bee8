"""What a solver is, what it returns, and how several of them share their evaluations.

A solver is a generator that knows vectors and nothing else. It yields

    Evaluate(params)  and is sent back (value, gradient);
    Iterate(...)      after every iteration, and is sent back True to stop it there;

and returns a Solution.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class Outcome(Enum):
    CONVERGED = "the objective no longer fell by more than tol"
    STATIONARY = "the gradient vanished"
    PRECISION = "no step could lower the objective further in this floating-point type"
    LIMIT = "the limit on iterations was reached"
    STOPPED = "stopped from outside, by early stopping or a callback"
    NOT_FINITE = "the objective was not finite at the start"


@dataclass(frozen=True)
class Evaluate:
    params: np.ndarray


@dataclass(frozen=True)
class Iterate:
    iteration: int
    params: np.ndarray
    value: float
    gradient_norm: float


@dataclass(frozen=True)
class Solution:
    params: np.ndarray
    value: float
    n_iter: int
    n_evaluations: int
    outcome: Outcome


Solver = Generator[Evaluate | Iterate, Any, Solution]
Objective = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Watch = Callable[[int, Iterate], bool]


def minimise(objective: Objective, solvers: Sequence[Solver], watch: Watch = lambda solver, iterate: False) -> list[Solution]:
    """Run the solvers side by side, so that each call of the objective evaluates one point of every one still running.

    ``watch(number of the solver, iterate)`` sees every iteration and may stop it.
    """
    solutions: dict[int, Solution] = {}
    waiting: dict[int, np.ndarray] = {}

    def advance(number: int, answer: Any) -> None:
        """Let a solver run until it needs an evaluation or has ended."""
        try:
            request = solvers[number].send(answer)
            while isinstance(request, Iterate):
                request = solvers[number].send(watch(number, request))
            waiting[number] = request.params
        except StopIteration as end:
            solutions[number] = end.value

    # What overflows is not finite, and the solvers look at that.
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(len(solvers)):
            advance(number, None)
        while waiting:
            numbers = sorted(waiting)
            points = np.stack([waiting.pop(number) for number in numbers])
            for number, value, gradient in zip(numbers, *objective(points), strict=True):
                advance(number, (float(value), gradient))
    return [solutions[number] for number in range(len(solvers))]


def best_of(solutions: Sequence[Solution]) -> Solution:
    """The one with the lowest value, if any of them is finite."""
    return min(solutions, key=lambda solution: (not np.isfinite(solution.value), solution.value))


class Progress:
    """Decides when a falling objective has fallen enough: by less than ``tol`` of itself over the last ``window`` iterations."""

    def __init__(self, tol: float, window: int = 10):
        self.tol = tol
        self.window = window
        self.values: list[float] = []

    def stalled(self, value: float) -> bool:
        self.values.append(value)
        if len(self.values) <= self.window:
            return False
        return self.values.pop(0) - value <= self.tol * abs(value)
