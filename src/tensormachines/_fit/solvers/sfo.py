"""The Sum-of-Functions Optimizer (Sohl-Dickstein, Poole & Ganguli, ICML 2014).

The objective is a sum of N functions. Each evaluation computes the value and gradient of one function, which
improve a quadratic model of it; each step goes to the minimum of the sum of all models. Everything happens in
the subspace spanned by the last positions and gradients of all functions. No parameter needs tuning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .protocol import Evaluate, Iterate, Outcome, Progress, Solution, Solver, State
from .state import FLAG, VALUE, Number, Numbers, check, like
from .sum_of_functions import SumOfFunctions

OPTIMISER = "optimiser."  # before the names of its entries in a state
LARGEST_LOSS = 0.5  # share of the total gain, or of the best value


def sfo(
    start: np.ndarray,
    n_functions: int,
    *,
    max_iter: int,
    tol: float,
    seed: int,
    resume: State | None = None,
) -> Solver:
    """Minimise from ``start``, or from a state; an iteration has one evaluation per function. See
    `protocol`."""
    optimiser = SumOfFunctions(start, n_functions, seed)
    progress = Progress(tol)
    best = Best(start, math.inf, -math.inf)
    iteration, stalled = 0, False
    if resume is not None:
        of_optimiser = {
            name.removeprefix(OPTIMISER): value
            for name, value in resume.items()
            if name.startswith(OPTIMISER)
        }
        check(
            resume,
            {
                "iteration": Number(int, low=0, high=max_iter),
                "progress": Numbers(VALUE, progress.window),
                "stalled": FLAG,
                "best.point": like(start),
                "best.value": VALUE,
                "best.first": VALUE,
                **{OPTIMISER + name: entry for name, entry in optimiser.entries(of_optimiser).items()},
            },
        )
        iteration, progress.values, stalled = resume["iteration"], resume["progress"], resume["stalled"]
        best = Best(resume["best.point"], resume["best.value"], resume["best.first"])
        optimiser.restore(of_optimiser)

    def state() -> State:
        return {
            "iteration": iteration,
            "progress": list(progress.values),
            "stalled": stalled,
            **{f"best.{name}": value for name, value in vars(best).items()},
            **{OPTIMISER + name: value for name, value in optimiser.state().items()},
        }

    while True:
        if stalled or iteration >= max_iter:
            outcome = Outcome.CONVERGED if stalled else Outcome.LIMIT
            break
        while (
            optimiser.n_evaluations < (iteration + 1) * n_functions
            and not optimiser.stationary
            and not optimiser.broken
        ):
            yield from optimiser.advance()
        if optimiser.broken:
            if not math.isfinite(best.value):
                return Solution(start, math.nan, iteration, optimiser.n_evaluations, Outcome.NOT_FINITE)
            optimiser.restart(best.point)
            outcome = Outcome.PRECISION
            break
        best = best.or_better(optimiser)
        if optimiser.stationary:
            outcome = Outcome.STATIONARY
            break
        value, norm = optimiser.value, optimiser.largest_gradient
        if best.lost(value):
            optimiser.restart(best.point)
            value = best.value
        iteration += 1
        stalled = tol > 0 and progress.stalled(best.value)
        if (yield Iterate(iteration, optimiser.point, value, norm, state)):
            outcome = Outcome.STOPPED
            break
    candidates = [optimiser.point] if best.point is optimiser.point else [optimiser.point, best.point]
    values = []
    for point in candidates:
        values.append((yield Evaluate(point))[0])
    value, point = min(
        zip(values, candidates, strict=True), key=lambda pair: (not math.isfinite(pair[0]), pair[0])
    )
    return Solution(point, value, iteration, optimiser.n_evaluations + len(candidates) * n_functions, outcome)


@dataclass(frozen=True)
class Best:
    """The point at the end of the best pass so far, its estimated objective, and the first estimate."""

    point: np.ndarray
    value: float
    first: float

    def or_better(self, optimiser: SumOfFunctions) -> Best:
        """Return the better of the two; an estimate counts only if it includes all functions."""
        if not (optimiser.models.evaluations.all() and optimiser.value < self.value):
            return self
        return Best(
            optimiser.point, optimiser.value, self.first if math.isfinite(self.first) else optimiser.value
        )

    def lost(self, value: float) -> bool:
        """Tell whether most of the gain is lost again, which means that the models mislead."""
        if not math.isfinite(self.value):
            return False
        return not value <= self.value + LARGEST_LOSS * max(self.first - self.value, abs(self.value))
