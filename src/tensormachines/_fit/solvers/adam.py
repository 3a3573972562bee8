"""Adam over the functions of a sum, with a learning rate that rises, then falls to 0 along a cosine.

Kingma & Ba (2015), with the schedule of Loshchilov & Hutter (2017). The learning rate need not be chosen:
steps are small fractions of the params of a model whose rows have a norm of about 1, and become smaller if
there are more of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np

from ..._model import native
from .protocol import Epoch, Evaluate, Iterate, Outcome, Solution, Solver, State
from .state import COUNT, VALUE, Number, check, like

RATE, USUAL_STEPS, USUAL_REACH = 0.06, 500, 8.0
WARM_UP = 0.05  # share of the steps in which the learning rate rises
MOMENTUM, MEMORY = 0.9, 0.99
SMALLEST = 1e-15  # root mean square of a gradient that counts as 0
NEGLIGIBLE = 1e-9  # smaller params become 0, before products of a vanishing term become denormal numbers
DIVERGED = 4.0  # times the lowest objective of an epoch
RETREATS = 12  # to the start of the last epoch that was finite, each time with half the learning rate

Strength = Callable[[np.ndarray], np.ndarray]


def adam(
    start: np.ndarray,
    *,
    n_functions: int,
    max_iter: int,
    seed: int,
    reach: float = 0.0,
    whole_epochs: bool = False,
    strength: Strength | None = None,
    lowest: float = math.inf,
    project: Callable[[np.ndarray], np.ndarray] | None = None,
    epochs_before: int = 0,
    resume: State | None = None,
) -> Solver:
    """Minimise from ``start``, or from a state; an iteration is an epoch. See `protocol`.

    ``reach`` is the mean over rows of the largest change of a linear form when each coefficient changes by at
    most 1. ``whole_epochs``: whether the objective takes all steps of an epoch at once. ``strength`` returns
    how strongly each of the params is penalised in an epoch that begins with these params. ``lowest`` is a
    value that is easily reached: an epoch far above it and above the start has diverged, even the first
    epoch. ``project`` returns the nearest allowed params; each epoch ends there. ``epochs_before`` led to the
    start: the learning rate continues as if all epochs were in one schedule, because a rate that rises again
    throws the params far away, and a few epochs do not bring them back.
    """
    before = epochs_before * n_functions
    steps = before + max_iter * n_functions
    rate = RATE * (USUAL_STEPS / max(steps, 1)) ** (1 / 3) * min(1.0, USUAL_REACH / max(reach, USUAL_REACH))
    zeros = np.zeros_like(start)
    if resume is not None:
        check(
            resume,
            {
                **{name: like(start) for name in ("params", "mean", "square", "safe")},
                "step": Number(int, low=0, high=max_iter * n_functions),
                "evaluations": COUNT,
                "epoch": Number(int, low=0, high=max_iter),
                "retreats": Number(int, low=0, high=RETREATS),
                "lowest": VALUE,
            },
        )
    state: State = resume or {
        "params": start,
        "mean": zeros,
        "square": zeros,
        "safe": start,
        "epoch": 0,
        "step": 0,
        "evaluations": 0,
        "retreats": 0,
        "lowest": lowest,
    }
    if resume is None and lowest < math.inf:
        value = yield from _value(start, n_functions, whole_epochs, strength)
        state["lowest"] = max(lowest, value)
    outcome = Outcome.COMPLETE
    while state["epoch"] < max_iter:
        params, mean, square = state["params"].copy(), state["mean"].copy(), state["square"].copy()
        numbers = np.arange(state["step"] + 1, state["step"] + 1 + n_functions)
        halved = 0.5 ** state["retreats"]
        epoch = Epoch(
            params,
            mean,
            square,
            order=np.random.default_rng([seed, state["epoch"]]).permutation(n_functions),
            rates=halved * rate * schedule(before + numbers, steps) / (1 - MOMENTUM**numbers),
            corrections=1 / (1 - MEMORY**numbers),
            limit=DIVERGED * state["lowest"],
            momentum=MOMENTUM,
            memory=MEMORY,
            smallest=SMALLEST,
            negligible=NEGLIGIBLE,
            strength=None if strength is None else strength(params),
        )
        total, largest, taken = (yield epoch) if whole_epochs else (yield from _step_by_step(epoch))
        state["evaluations"] += min(taken + 1, n_functions)
        if taken == n_functions:
            params = params if project is None else project(params)
            state |= {"safe": state["params"], "params": params, "mean": mean, "square": square}
            state |= {"step": state["step"] + taken, "epoch": state["epoch"] + 1}
            state["lowest"] = min(total, state["lowest"]) if total > 0 else math.inf
            if (yield Iterate(state["epoch"], params, total, largest * n_functions, partial(dict, state))):
                outcome = Outcome.STOPPED
                break
            continue
        if state["retreats"] == RETREATS:
            outcome = Outcome.PRECISION if state["epoch"] else Outcome.NOT_FINITE
            break
        state |= {"params": state["safe"], "mean": zeros, "square": zeros, "retreats": state["retreats"] + 1}
    params = state["params"]
    value = yield from _value(params, n_functions, whole_epochs, strength)
    if not math.isfinite(value):
        params = state["safe"]
        value = yield from _value(params, n_functions, whole_epochs, strength)
    return Solution(params, value, state["epoch"], state["evaluations"] + n_functions, outcome)


def _value(
    params: np.ndarray, n_functions: int, whole_epochs: bool, strength: Strength | None
) -> Generator[Epoch | Evaluate, Any, float]:
    """Return the sum of all functions."""
    of_params = None if strength is None else strength(params)
    if not whole_epochs:
        value, _ = yield Evaluate(params, strength=of_params)
        return float(value)
    vector, none = params.copy(), np.empty(0)
    total, _, taken = yield Epoch(
        vector,
        mean=vector,
        square=vector,
        order=np.arange(n_functions),
        rates=none,
        corrections=none,
        limit=math.inf,
        momentum=MOMENTUM,
        memory=MEMORY,
        smallest=SMALLEST,
        negligible=NEGLIGIBLE,
        strength=of_params,
    )
    return total if taken == n_functions else math.inf


def _step_by_step(epoch: Epoch) -> Generator[Evaluate, Any, tuple[float, float, int]]:
    """Take the steps of an epoch one by one, each from a value and gradient."""
    total, largest, order = 0.0, 0.0, epoch.order.tolist()
    for taken, (function, following) in enumerate(zip(order, [*order[1:], None], strict=True)):
        value, gradient = yield Evaluate(epoch.params, function, following, epoch.strength)
        total += value
        largest = float(np.abs(gradient).max(initial=0.0))
        if not (math.isfinite(total) and math.isfinite(largest)) or total > epoch.limit:
            return total, largest, taken
        rate, correction = float(epoch.rates[taken]), float(epoch.corrections[taken])
        _step(epoch.params, gradient, epoch.mean, epoch.square, rate, correction)
    return total, largest, len(order)


def adam_step(
    params: np.ndarray, gradient: np.ndarray, mean: np.ndarray, square: np.ndarray, step: int, rate: float
) -> None:
    """Take step number ``step`` (counted from 1) in place. The scale of the gradient does not matter."""
    _step(params, gradient, mean, square, rate / (1 - MOMENTUM**step), 1 / (1 - MEMORY**step))


def _step(
    params: np.ndarray,
    gradient: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    size: float,
    correction: float,
) -> None:
    if native.compiled():
        native.extension.adam_step(
            params, gradient, mean, square, MOMENTUM, MEMORY, size, correction, SMALLEST, NEGLIGIBLE
        )
        return
    mean += (1 - MOMENTUM) * (gradient - mean)
    square += (1 - MEMORY) * (gradient * gradient - square)
    params -= size * mean / (np.sqrt(square * correction) + SMALLEST)
    params[np.abs(params) < NEGLIGIBLE] = 0


def schedule(step: Any, steps: int) -> Any:
    """Return the share of the learning rate for step number ``step`` of ``steps``."""
    done = step / steps
    return np.minimum(1.0, done / WARM_UP) * 0.5 * (1 + np.cos(np.pi * done))
