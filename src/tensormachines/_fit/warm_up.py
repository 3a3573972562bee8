"""A better start: a few epochs of Adam over minibatches, with a rate that nobody has to choose.

Kingma & Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1. Ten passes in small steps lead
to where a hundred passes of L-BFGS lead; from there on they are no longer better."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._model.objective import Objective
from .solvers.adam import MEMORY, MOMENTUM, adam_step

EPOCHS = 10
MOST_STEPS = 4000
RATE = 0.1  # for up to STEPS_AT_THIS_RATE steps, and less for more
STEPS_AT_THIS_RATE = 1000
RISING = (
    0.05  # share of the steps in which the rate grows to its full size; then it falls to 0 along a cosine
)
OUT_OF_HAND = 4.0  # times what it was at the start
MOST_FAILURES = 3  # one after another


def warm_up(minibatches: Objective, start: np.ndarray, seed: int) -> np.ndarray:
    """Params from which to go on, for an objective whose parts are minibatches; ``start`` itself where
    nothing better was found.

    Where an epoch does not end below the start, or the value of a single minibatch gets out of hand, the
    epoch is undone, and the rate is a third from then on. The penalty is to be left out of the objective: in
    steps of equal size for all params it would wipe out the terms that the loss has not found a use for yet.
    """
    usable = np.flatnonzero(minibatches.blocks.weights)
    adam = Adam(minibatches, start.copy(), np.zeros_like(start), np.zeros_like(start))
    at_start = np.full(len(minibatches.blocks.weights), np.nan)
    at_start[usable] = [adam.evaluate(part)[0] for part in usable.tolist()]
    value = float(np.average(at_start[usable], weights=minibatches.blocks.weights[usable]))
    if not np.isfinite(value):
        return start
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(usable) for _ in range(EPOCHS)])[:MOST_STEPS]
    step = np.arange(1, len(order) + 1)
    rates = (
        RATE
        * min(1.0, np.sqrt(STEPS_AT_THIS_RATE / len(order)))
        * np.minimum(1, step / (RISING * len(order)))
    )
    rates *= 0.5 * (1 + np.cos(np.pi * step / len(order)))
    failures = 0
    for numbers in np.array_split(np.arange(len(order)), EPOCHS):
        trial = replace(adam, params=adam.params.copy(), mean=adam.mean.copy(), square=adam.square.copy())
        values = trial.descend(order[numbers], rates[numbers], OUT_OF_HAND * np.maximum(at_start, value))
        if values is None or not np.mean(values) < value:
            rates /= 3
            failures += 1
        else:
            adam, failures = trial, 0
        if failures == MOST_FAILURES:
            break
    return adam.params


@dataclass
class Adam:
    """Params, and the running means of the gradients and of their squares."""

    minibatches: Objective
    params: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    steps: int = 0

    def __post_init__(self) -> None:
        weights = self.minibatches.blocks.weights
        self.shares = weights / weights.sum()

    def evaluate(self, part: int) -> tuple[float, np.ndarray]:
        """Mean loss of a minibatch, and its gradient."""
        (value,), (gradient,) = self.minibatches.partial(self.params[None], part)
        gradient /= gradient.dtype.type(self.shares[part])
        return float(value / self.shares[part]), gradient

    def descend(self, order: np.ndarray, rates: np.ndarray, bounds: np.ndarray) -> list[float] | None:
        """A step for each minibatch; gives their values, or None once one is not below its bound."""
        values = []
        for part, rate, bound in zip(order.tolist(), rates.tolist(), bounds[order].tolist(), strict=True):
            value, gradient = self.evaluate(part)
            if not value < bound:
                return None
            self.steps += 1
            adam_step(
                self.params,
                gradient,
                self.mean,
                self.square,
                rate / (1 - MOMENTUM**self.steps),
                1 / (1 - MEMORY**self.steps),
            )
            values.append(value)
        return values
