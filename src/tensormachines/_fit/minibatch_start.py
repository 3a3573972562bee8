"""A start for solver="kfac": a few epochs of Adam over minibatches.

Ten passes in small steps get as far as a hundred passes of L-BFGS; further small steps gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np
from scipy import sparse

from .._model.block import Blocks, BlocksInMemory
from .._model.objective import Objective
from .solvers.adam import adam_step, schedule

EPOCHS = 10
MOST_STEPS = 4000
RATE, STEPS_AT_THIS_RATE = 0.1, 1000  # more steps have a smaller learning rate
DIVERGED = 4.0  # times the value at the start
MOST_FAILURES = 3  # in a row
ROWS_OF_MINIBATCH, FEWEST_ROWS_OF_MINIBATCH = 512, 128  # the latter where there would be few minibatches
MANY_MINIBATCHES, FEWEST_MINIBATCHES = 30, 10


def minibatches(blocks: Blocks, n_features: int) -> Blocks | None:
    """Cut the rows into minibatches; return None where that would not help, or cost too much.

    Minibatch i of rows in memory holds every k-th row from i on, uncopied. k is a prime number, so that no
    period of the rows divides it.
    """
    if not isinstance(blocks, BlocksInMemory):
        return blocks if len(blocks.weights) >= FEWEST_MINIBATCHES else None
    (block,) = blocks.blocks
    count = max(
        block.n_rows // ROWS_OF_MINIBATCH, min(MANY_MINIBATCHES, block.n_rows // FEWEST_ROWS_OF_MINIBATCH)
    )
    entries = block.X.nnz / block.n_rows if sparse.issparse(block.X) else n_features
    if count < FEWEST_MINIBATCHES or n_features > ROWS_OF_MINIBATCH / 4 * entries:
        return None
    while any(count % k == 0 for k in range(2, isqrt(count) + 1)):
        count += 1
    return BlocksInMemory([block.rows(slice(number, None, count)) for number in range(count)])


@np.errstate(over="ignore", invalid="ignore")  # a minibatch that overflows has diverged
def descend_by_minibatches(
    objective: Objective, start: np.ndarray, seed: int, is_over: Callable[[], bool] = lambda: False
) -> np.ndarray:
    """Improve ``start`` by Adam on an objective whose parts are minibatches; return it if nothing is better.

    An epoch that does not end below the start, or in which a minibatch diverges, is undone, and the learning
    rate is divided by three. The objective should have no penalty: with steps of equal size for all params, a
    penalty would remove terms that the loss does not use yet. ``is_over`` is asked before every epoch.
    """
    weights = objective.blocks.weights
    usable = np.flatnonzero(weights)
    shares = weights / weights.sum()

    def evaluate(params: np.ndarray, part: int, following: int | None) -> tuple[float, np.ndarray]:
        """Return the mean loss of a minibatch and its gradient."""
        (value,), (gradient,) = objective.partial(params[None], part, following)
        gradient /= gradient.dtype.type(shares[part])
        return float(value / shares[part]), gradient

    at_start = np.full(len(weights), np.nan)
    parts = usable.tolist()
    at_start[usable] = [
        evaluate(start, part, following)[0] for part, following in zip(parts, [*parts[1:], None], strict=True)
    ]
    value = float(np.average(at_start[usable], weights=weights[usable]))
    if not np.isfinite(value):
        return start
    bounds = DIVERGED * np.maximum(at_start, value)
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(usable) for _ in range(EPOCHS)])[:MOST_STEPS].tolist()
    following = [*order[1:], None]
    rate = RATE * min(1.0, np.sqrt(STEPS_AT_THIS_RATE / len(order)))
    moments = start.copy(), np.zeros_like(start), np.zeros_like(start)  # params, mean, square
    steps_taken, failures = 0, 0
    for numbers in np.array_split(np.arange(len(order)), EPOCHS):
        if failures == MOST_FAILURES or is_over():
            break
        params, mean, square = (array.copy() for array in moments)
        values = []
        for number in numbers.tolist():
            part = order[number]
            loss, gradient = evaluate(params, part, following[number])
            if not loss < bounds[part]:
                break
            values.append(loss)
            step_rate = rate * schedule(number + 1, len(order))
            adam_step(params, gradient, mean, square, steps_taken + len(values), step_rate)
        if len(values) == len(numbers) and np.mean(values) < value:
            moments, failures = (params, mean, square), 0
            steps_taken += len(values)
        else:
            rate /= 3
            failures += 1
    return moments[0]
