"""The protocol of solvers: what they yield, what they return, and how several share their evaluations.

A solver is a generator that knows vectors and nothing else. It yields

    Evaluate(params)     and is sent (value, gradient);
    Evaluate(params, i)  and is sent the value and gradient of the i-th function of a sum;
    Epoch(...)           and is sent the result of Adam steps along all functions of a sum;
    Iterate(...)         after every iteration, and is sent True if it should stop there;

and returns a Solution. `Iterate.state()` returns the state of the solver. Another solver of the same kind
that is given this state continues as if it were the first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, cast

import numpy as np

State = dict[str, Any]  # arrays, numbers, lists of numbers


class Outcome(Enum):
    CONVERGED = "the objective no longer fell by more than tol"
    COMPLETE = "all epochs of the schedule were done"
    STATIONARY = "the gradient vanished"
    PRECISION = "no step could lower the objective further in this floating-point type"
    LIMIT = "the limit on iterations was reached"
    STOPPED = "stopped from outside, by early stopping or a callback"
    NOT_FINITE = "the objective was not finite at the start"
    WORSE = "a constant fitted the training rows better"
    BEHIND = "the fit was cut short where a constant fits the training rows better"


@dataclass(frozen=True)
class Evaluate:
    """A request for value and gradient.

    ``likely_next`` is the function that will probably be requested next, so that it can be fetched ahead.
    ``strength``, if given, weighs the squares of the params in the penalty of the objective.
    """

    params: np.ndarray
    function: int | None = None
    likely_next: int | None = None
    strength: np.ndarray | None = None


@dataclass(frozen=True)
class Epoch:
    """A request for one step of Adam along each function of a sum, in ``order``.

    ``params``, ``mean`` and ``square`` change in place. Each step has a rate and a correction; ``momentum``
    and the other constants are those of `solvers.adam`. The steps end when the sum of the values exceeds
    ``limit``, or when something is not finite; the arrays are then useless. Without rates nothing moves. The
    params of the objective are ``params * units``; ``alpha`` and ``strength``, if given, replace its own.

    The answer is the sum of the values, the largest entry of the last gradient, and the number of steps.
    """

    params: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    order: np.ndarray
    rates: np.ndarray
    corrections: np.ndarray
    limit: float
    momentum: float
    memory: float
    smallest: float
    negligible: float
    units: np.ndarray | None = None
    alpha: float | None = None
    strength: np.ndarray | None = None


@dataclass(frozen=True)
class Iterate:
    iteration: int
    params: np.ndarray
    value: float
    largest_gradient: float
    state: Callable[[], State]


@dataclass(frozen=True)
class Curves:
    """The value after each iteration of a solver, and the loss on held-out rows, if there are any."""

    values: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)

    def __add__(self, other: Curves) -> Curves:
        return Curves(self.values + other.values, self.held_out + other.held_out)


@dataclass(frozen=True)
class Solution:
    """The result of a solver; ``curves`` are the curves of its iterations, if they were recorded."""

    params: np.ndarray
    value: float
    n_iter: int
    n_evaluations: int
    outcome: Outcome
    curves: Curves = field(default_factory=Curves)


Solver = Generator[Evaluate | Epoch | Iterate, Any, Solution]
Evaluation = tuple[np.ndarray, np.ndarray]  # values (models,) and gradients (models, size)
Watch = Callable[[int, Iterate], bool]
Penalise = Callable[[np.ndarray, np.ndarray, int | None, np.ndarray | None], float]


class Function(Protocol):
    def __call__(self, params: np.ndarray, /) -> Evaluation: ...


class Sum(Function, Protocol):
    """A function that is a sum of functions. If solvers give strengths, it also takes ``strengths=``."""

    def partial(self, params: np.ndarray, part: int, likely_next: int | None, /) -> Evaluation: ...

    def epochs(self, requests: Sequence[Epoch], /) -> Sequence[tuple[float, float, int]]: ...


def minimise(
    objective: Function | Sum,
    solvers: Sequence[Solver],
    watch: Watch = lambda solver, iterate: False,
    together: bool = True,
) -> list[Solution]:
    """Run the solvers in parallel and return their solutions.

    Each call of the objective evaluates one point of every running solver. ``watch(number of the solver,
    iterate)`` sees every iteration and returns True to stop its solver. Unless ``together``, each point is
    evaluated separately, so that the result is bit-identical whatever other solvers run.
    """
    solutions: dict[int, Solution] = {}
    waiting: dict[int, Evaluate | Epoch] = {}

    def advance(number: int, answer: Any) -> None:
        """Let a solver run until it needs an evaluation or has ended."""
        try:
            request = solvers[number].send(answer)
            while isinstance(request, Iterate):
                request = solvers[number].send(watch(number, request))
            waiting[number] = request
        except StopIteration as end:
            solutions[number] = end.value

    # An overflow gives a value that is not finite, which the solvers check.
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(len(solvers)):
            advance(number, None)
        while waiting:
            numbers = _next_to_answer(waiting, together)
            answers = _answers(objective, [waiting.pop(number) for number in numbers])
            for number, answer in zip(numbers, answers, strict=True):
                advance(number, answer)
    return [solutions[number] for number in range(len(solvers))]


def _next_to_answer(waiting: Mapping[int, Evaluate | Epoch], together: bool) -> list[int]:
    """Return the indices of the solvers that wait for epochs, or else for the same function."""
    epochs = [number for number, request in waiting.items() if isinstance(request, Epoch)]
    if epochs:
        return epochs
    numbers = sorted(waiting)
    if not together:
        return numbers[:1]
    functions = {number: cast(Evaluate, waiting[number]).function for number in numbers}
    return [number for number in numbers if functions[number] == functions[numbers[0]]]


def _answers(objective: Function | Sum, requests: Sequence[Any]) -> Iterable[Any]:
    first = requests[0]
    if isinstance(first, Epoch):
        return cast(Sum, objective).epochs(requests)
    points = np.stack([request.params for request in requests])
    weighed = {} if first.strength is None else {"strengths": [request.strength for request in requests]}
    if first.function is None:
        values, gradients = cast(Any, objective)(points, **weighed)
    else:
        values, gradients = cast(Any, objective).partial(points, first.function, first.likely_next, **weighed)
    return zip(map(float, values), gradients, strict=True)


def in_units(solver: Solver, units: np.ndarray) -> Solver:
    """Turn a solver for params / units into a solver for params."""
    answer: Any = None
    while True:
        try:
            request = solver.send(answer)
        except StopIteration as end:
            return replace(end.value, params=end.value.params * units)
        if isinstance(request, Epoch):
            answer = yield replace(request, units=units)
            continue
        outside = replace(request, params=request.params * units)
        answer = yield outside
        if isinstance(outside, Evaluate):
            value, gradient = answer
            answer = value, gradient * units


def with_penalty(solver: Solver, alpha: float, penalise: Penalise) -> Solver:
    """Wrap a solver so that it adds its own penalty.

    The objective passed to `minimise` then has none, and solvers with different penalties share passes over
    the rows. ``penalise(params, gradient, function, strength)`` returns the penalty with ``alpha`` and adds
    its gradient to ``gradient``.
    """
    answer: Any = None
    while True:
        try:
            request = solver.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(request, Epoch):
            answer = yield replace(request, alpha=alpha)
            continue
        answer = yield request
        if isinstance(request, Evaluate):
            value, gradient = answer
            penalty = penalise(request.params, gradient, request.function, request.strength)
            answer = value + penalty, gradient


def best_of(solutions: Sequence[Solution]) -> Solution:
    """Return the solution with the lowest finite value."""
    return min(solutions, key=lambda solution: (not np.isfinite(solution.value), solution.value))


class Progress:
    """Tell whether an objective fell by less than a share ``tol`` over ``window`` iterations."""

    def __init__(self, tol: float, window: int = 10):
        self.tol = tol
        self.window = window
        self.values: list[float] = []  # at most ``window`` between iterations

    def stalled(self, value: float) -> bool:
        self.values.append(value)
        if len(self.values) <= self.window:
            return False
        return self.values.pop(0) - value <= self.tol * abs(value)
