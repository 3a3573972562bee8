"""Spectral projected gradient: minimisation over a set onto which points can be projected.

Birgin, Martinez & Raydan, SIAM J. Optim. 10 (2000), algorithm 2.1 (non-monotone search along the feasible
direction).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from .protocol import Evaluate, Iterate, Outcome, Progress, Solution, Solver, State
from .state import COUNT, FLAG, VALUE, Number, Numbers, check, like

SUFFICIENT_DECREASE = 1e-4
SHORTEST, LONGEST = 1e-10, 1e10
REMEMBERED_VALUES = 10
MOST_HALVINGS = 40


def projected_gradient(
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    *,
    max_iter: int,
    tol: float,
    resume: State | None = None,
) -> Solver:
    """Minimise from ``start``, or from a state, over the set of ``project``. See `protocol`."""
    progress = Progress(tol)
    if resume is None:
        params = project(start)
        value, gradient = yield Evaluate(params)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return Solution(params, value, 0, 1, Outcome.NOT_FINITE)
        best, best_value = params, value
        recent = deque([value], maxlen=REMEMBERED_VALUES)
        length = 1.0 / max(float(np.abs(project(params - gradient) - params).max()), SHORTEST)
        iteration, evaluations, stalled = 0, 1, progress.stalled(value)
    else:
        check(
            resume,
            {
                **{name: like(start) for name in ("params", "gradient", "best")},
                "value": VALUE,
                "best_value": VALUE,
                "recent": Numbers(VALUE, REMEMBERED_VALUES, fewest=1),
                "length": Number(float, low=SHORTEST, high=LONGEST),
                "iteration": Number(int, low=0, high=max_iter),
                "evaluations": COUNT,
                "progress": Numbers(VALUE, progress.window),
                "stalled": FLAG,
            },
        )
        params, value, gradient = resume["params"], resume["value"], resume["gradient"]
        best, best_value = resume["best"], resume["best_value"]
        recent = deque(resume["recent"], maxlen=REMEMBERED_VALUES)
        length, iteration, evaluations = resume["length"], resume["iteration"], resume["evaluations"]
        progress.values, stalled = resume["progress"], resume["stalled"]

    def state() -> State:
        return {
            "params": params,
            "value": value,
            "gradient": gradient,
            "best": best,
            "best_value": best_value,
            "recent": list(recent),
            "length": length,
            "iteration": iteration,
            "evaluations": evaluations,
            "progress": list(progress.values),
            "stalled": stalled,
        }

    while True:
        if stalled or iteration >= max_iter:
            outcome = Outcome.CONVERGED if stalled else Outcome.LIMIT
            break
        direction = project(params - params.dtype.type(length) * gradient) - params
        slope = float(gradient @ direction)
        norm = float(np.abs(direction).max()) / length
        if slope >= 0:
            outcome = Outcome.STATIONARY
            break
        step, ceiling = 1.0, max(recent)
        for _ in range(MOST_HALVINGS):
            trial = params + params.dtype.type(step) * direction
            trial_value, trial_gradient = yield Evaluate(trial)
            evaluations += 1
            if np.isfinite(trial_value) and trial_value <= ceiling + SUFFICIENT_DECREASE * step * slope:
                break
            step = _shorter(step, slope, trial_value - value)
        else:
            outcome = Outcome.PRECISION
            break
        moved, change = trial - params, trial_gradient - gradient
        curvature = float(moved @ change)
        length = min(max(float(moved @ moved) / curvature, SHORTEST), LONGEST) if curvature > 0 else LONGEST
        params, value, gradient = trial, trial_value, trial_gradient
        recent.append(value)
        if value < best_value:
            best, best_value = params, value
        iteration += 1
        stalled = progress.stalled(best_value)
        if (yield Iterate(iteration, params, value, norm, state)):
            outcome = Outcome.STOPPED
            break
    return Solution(best, best_value, iteration, evaluations, outcome)


def _shorter(step: float, slope: float, rise: float) -> float:
    """Return the minimum of the parabola through the last trial, within [0.1, 0.5] of its step."""
    if not np.isfinite(rise):
        return 0.1 * step
    bottom = -0.5 * step * step * slope / (rise - step * slope)
    return min(max(bottom, 0.1 * step), 0.5 * step)
