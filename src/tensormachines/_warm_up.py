"""A better start: a few epochs of Adam over minibatches, with a rate that nobody has to choose.

Kingma & Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1. Ten passes in small steps lead to where a hundred passes of
L-BFGS lead; from there on they are no longer better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._objective import Objective

EPOCHS = 10
MOST_STEPS = 4000
RATE = 0.1  # for up to STEPS_AT_THIS_RATE steps, and less for more
STEPS_AT_THIS_RATE = 1000
RISING = 0.05  # share of the steps in which the rate grows to its full size; then it falls to 0 along a cosine
STRETCHES = 40
OUT_OF_HAND = 4.0  # times the value at the start


def warm_up(minibatches: Objective, start: np.ndarray, seed: int) -> np.ndarray:
    """Params from which to go on, for an objective whose parts are minibatches; ``start`` itself where nothing better was found.

    Where the value of a minibatch gets out of hand, the stretch of steps up to there is undone, and the rate is a third from then on. The
    penalty is to be left out of the objective: in steps of equal size for all params it would wipe out the terms that the loss has not
    found a use for yet.
    """
    value = float(minibatches(start[None])[0][0])
    if not np.isfinite(value):
        return start
    random = np.random.default_rng(seed)
    usable = np.flatnonzero(minibatches.blocks.weights)
    order = np.concatenate([random.permutation(usable) for _ in range(EPOCHS)])[:MOST_STEPS]
    step = np.arange(1, len(order) + 1)
    rates = RATE * min(1.0, np.sqrt(STEPS_AT_THIS_RATE / len(order))) * np.minimum(1, step / (RISING * len(order)))
    rates *= 0.5 * (1 + np.cos(np.pi * step / len(order)))
    adam, reached = Adam(start, np.zeros_like(start), np.zeros_like(start)), value
    for numbers in np.array_split(np.arange(len(order)), min(STRETCHES, len(order))):
        trial = Adam(adam.params.copy(), adam.mean.copy(), adam.square.copy(), adam.steps)
        values = trial.descend(minibatches, order[numbers], rates[numbers], OUT_OF_HAND * value)
        if values is None:
            rates /= 3
        else:
            adam, reached = trial, float(np.mean(values))
    return adam.params if reached < value else start


@dataclass
class Adam:
    """Params, and the running means of the gradients and of their squares."""

    params: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    steps: int = 0

    def descend(self, minibatches: Objective, order: np.ndarray, rates: np.ndarray, bound: float) -> list[float] | None:
        """A step for each minibatch; gives their values, or None once one is not below ``bound``."""
        shares = minibatches.blocks.weights / minibatches.blocks.weights.sum()
        values = []
        for part, rate in zip(order.tolist(), rates.tolist(), strict=True):
            (value,), (gradient,) = minibatches.partial(self.params[None], part)
            values.append(float(value / shares[part]))
            if not values[-1] < bound:
                return None
            self._step(gradient / gradient.dtype.type(shares[part]), rate)
        return values

    def _step(self, gradient: np.ndarray, rate: float, of_mean: float = 0.9, of_square: float = 0.99) -> None:
        """In place: for a small model this costs as much as the minibatch."""
        real = gradient.dtype.type
        self.steps += 1
        move = gradient * real(1 - of_mean)
        self.mean *= real(of_mean)
        self.mean += move
        gradient *= gradient
        gradient *= real(1 - of_square)
        self.square *= real(of_square)
        self.square += gradient
        np.sqrt(self.square, out=move)
        move += real(1e-8)
        np.divide(self.mean, move, out=move)
        move *= real(rate * np.sqrt(1 - of_square**self.steps) / (1 - of_mean**self.steps))
        self.params -= move
