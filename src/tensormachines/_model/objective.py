"""The function that solvers minimise."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from . import kernel, native
from .block import Block, Blocks, BlocksInMemory, Shares
from .layout import Layout
from .losses import Loss
from .threads import in_threads

LARGEST_RATIO = 100.0  # mean norm over the columns of a factor, divided by the norm of one column
STEPS_AT_ONCE = 256  # between which Python can be interrupted
NUMBERS_AT_ONCE = 1 << 16  # of a dot product


@dataclass(frozen=True)
class Objective:
    """Mean loss over weighted blocks of rows, plus a penalty on everything but the biases.

        F(params) = (1 / total weight) * sum over blocks, rows of  weight * loss(y, f(x))
                    + alpha / 2 * |factors / sizes|^2

    where ``sizes`` (n_features) are the expected sizes of the coefficients of the features, by default 1. If
    a ``strength`` (size) is given, it replaces 1 / sizes^2; `column_strength` computes one from the
    ``columns`` (n_features) of X that the features come from.

    Calling it with params of shape (models, layout.size) returns the values (models,) in float64 and the
    gradients, in one pass over X. The objective is a sum over the parts of its blocks: given a ``part``, it
    returns this part with its share of the penalty. ``likely_next`` is a guess at the next part."""

    blocks: Blocks
    layout: Layout
    loss: Loss
    alpha: float
    threads: int = 1
    sizes: np.ndarray | None = None
    columns: np.ndarray | None = None

    def __call__(
        self,
        params: np.ndarray,
        part: int | None = None,
        likely_next: int | None = None,
        strengths: Sequence[np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        of_block = partial(
            kernel.value_and_gradient, layout=self.layout, params=params, loss=self.loss, threads=self.threads
        )
        values, gradients = self.blocks.total(of_block, part, likely_next)
        total_weight = self.blocks.weights.sum()
        values /= total_weight
        gradients /= params.dtype.type(total_weight)
        if self.alpha:
            for m in range(len(params)):
                strength = None if strengths is None else strengths[m]
                values[m] += self.penalise(params[m], gradients[m], part, strength)
        return values, gradients

    def partial(
        self,
        params: np.ndarray,
        part: int,
        likely_next: int | None = None,
        strengths: Sequence[np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return value and gradient of one part."""
        return self(params, part, likely_next, strengths)

    @property
    def takes_epochs(self) -> bool:
        """Tell whether `epochs` is available: with a compiled kernel and loss."""
        return native.compiled() and self.loss.code is not None

    @property
    def n_steps(self) -> int:
        """Return the number of steps of an epoch: one for each part, or for each minibatch of a share."""
        shares = self.blocks.shares if self.takes_epochs else None
        return len(self.blocks.weights) if shares is None else shares.n_minibatches

    def bind(self) -> None:
        """Bind the blocks to the compiled kernel; otherwise the first call of `epochs` does it."""
        _ = self._minibatches

    def epochs(self, requests: Sequence[Any]) -> list[tuple[float, float, int]]:
        """Take the steps of each request, an `Epoch` of `_fit.solvers.protocol`.

        Several threads share the models, or the rows if there is only one model. The result does not depend
        on the number of threads. If the rows are on several machines, each takes the steps along its own
        rows, and the result is the mean of their models (local SGD, Stich 2019)."""
        if (shares := self.blocks.shares) is not None:
            return [self._epoch_of_shares(shares, request) for request in requests]
        workers = min(self.threads, len(requests))
        of_each = self.threads if workers < 2 else 1
        return in_threads(partial(self._epoch, threads=of_each), requests, workers)

    def _epoch(self, request: Any, threads: int) -> tuple[float, float, int]:
        """Take the steps of one model."""
        strength = self._strength if request.strength is None else request.strength
        strength = None if strength is None else strength.astype(request.params.dtype, copy=False)
        total, largest, taken = 0.0, 0.0, 0
        with closing(self._stretches(request.order)) as stretches:
            for minibatches, order in stretches:
                some = slice(taken, taken + len(order))
                value, largest, steps = minibatches.epoch(
                    params=request.params,
                    mean=request.mean,
                    square=request.square,
                    order=order,
                    rates=request.rates[some],
                    corrections=request.corrections[some],
                    limit=request.limit - total,
                    units=request.units,
                    alpha=self.alpha if request.alpha is None else request.alpha,
                    strength=strength,
                    momentum=request.momentum,
                    memory=request.memory,
                    smallest=request.smallest,
                    negligible=request.negligible,
                    threads=threads,
                )
                total, taken = total + value, taken + steps
                if steps < len(order):
                    break
        return total, largest, taken

    def _epoch_of_shares(self, shares: Shares, request: Any) -> tuple[float, float, int]:
        """Take the steps of one model along the rows of several machines."""
        own = replace(self, blocks=BlocksInMemory([]))
        weight, value, largest, steps, *sums = shares.total(
            partial(_steps_of_share, objective=own, request=request)
        )
        for vector, total in zip((request.params, request.mean, request.square), sums, strict=True):
            vector[...] = total / vector.dtype.type(weight)
        return value / weight, largest / weight, steps // shares.n_shares

    def _stretches(self, order: np.ndarray) -> Generator[tuple[Any, np.ndarray], None, None]:
        """Iterate over minibatches and the order of some steps along them."""
        if isinstance(self.blocks, BlocksInMemory):
            for start in range(0, len(order), STEPS_AT_ONCE):
                yield self._minibatches, order[start : start + STEPS_AT_ONCE]
            return
        with closing(self.blocks.groups(order.tolist())) as groups:
            for group in groups:
                yield self._bound(group), np.arange(len(group.blocks))

    @cached_property
    def _minibatches(self) -> Any:
        assert isinstance(self.blocks, BlocksInMemory)
        return self._bound(self.blocks)

    def _bound(self, some: BlocksInMemory) -> Any:
        """Return some or all blocks in the form in which the compiled kernel takes steps along them."""
        kind = "FloatMinibatches" if some.blocks[0].dtype == np.float32 else "DoubleMinibatches"
        return getattr(native.extension, kind)(
            [block.native_block for block in some.blocks],
            some.weights,
            float(self.blocks.weights.sum()),
            kernel.native_layout(self.layout),
            self.loss.code,
            self.loss.parameter,
        )

    @cached_property
    def _strength(self) -> np.ndarray | None:
        """Return 1 / sizes^2 for each parameter; None if all sizes are 1."""
        if self.sizes is None:
            return None
        strength = np.ones(self.layout.size)
        self.layout.factors(strength)[...] = (1 / self.sizes**2)[:, None]
        return strength

    def column_strength(self, params: np.ndarray) -> np.ndarray:
        """Return a strength that temporarily favours factors of few columns.

        If the coefficients of a column in a factor have the norm n, their squares are weighted by (mean of n
        over the columns / n)^(1/2). Iterated, this is a penalty on the sum of n^(3/2), between ridge and
        group lasso."""
        assert self.columns is not None
        factors = self.layout.factors(params)
        begins = np.flatnonzero(np.diff(self.columns, prepend=-2))  # the features of a column are adjacent
        norms = np.sqrt(np.add.reduceat(factors * factors, begins, axis=0))
        of_input = self.columns[begins] >= 0  # all but the constant
        weights = np.ones_like(norms)
        weights[of_input] = _relative(norms[of_input])
        strength = np.ones_like(params) if self._strength is None else self._strength.astype(params.dtype)
        repeats = np.diff(begins, append=len(self.columns))
        self.layout.factors(strength)[...] *= np.repeat(weights, repeats, axis=0)
        return strength

    def penalise(
        self, params: np.ndarray, gradient: np.ndarray, part: int | None, strength: np.ndarray | None = None
    ) -> float:
        """Return the penalty of one model, or a part's share of it; add its gradient to ``gradient``."""
        weights = self.blocks.weights
        alpha = self.alpha if part is None else self.alpha * weights[part] / weights.sum()
        weighted = factors = params[self.layout.n_outputs :]
        strength = self._strength if strength is None else strength
        if strength is not None:
            weighted = factors * strength[self.layout.n_outputs :].astype(params.dtype)
        gradient[self.layout.n_outputs :] += params.dtype.type(alpha) * weighted
        return 0.5 * alpha * _product(factors, weighted)

    def mean_loss(self, params: np.ndarray) -> np.ndarray:
        """Return the values without the penalty."""
        of_block = partial(
            _loss_of_block, layout=self.layout, params=params, loss=self.loss, threads=self.threads
        )
        return self.blocks.total(of_block)[0] / self.blocks.weights.sum()


def _steps_of_share(
    share: BlocksInMemory, threads: int, objective: Objective, request: Any
) -> tuple[Any, ...]:
    """Take steps along the rows of one machine. Return its weight, its number of steps, and its weight times
    the value, the largest entry of the last gradient, and the vectors of Adam."""
    vectors = {name: getattr(request, name).copy() for name in ("params", "mean", "square")}
    weight = float(share.weights.sum())
    if weight == 0:  # nothing to learn from
        return weight, 0.0, 0.0, len(request.order), *map(np.zeros_like, vectors.values())
    ours = replace(objective, blocks=share, threads=threads or objective.threads)
    ((value, largest, steps),) = ours.epochs([replace(request, **vectors)])
    return weight, weight * value, weight * largest, steps, *(weight * each for each in vectors.values())


def _loss_of_block(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[np.ndarray]:
    z = kernel.outputs(block, layout, params, threads).reshape(block.n_rows, len(params), layout.n_outputs)
    z = z if block.offset is None else z + block.offset[:, None]
    weight = block.row_weights
    present = weight > 0
    losses = [loss.pointwise(block.targets, z[:, m])[0] for m in range(len(params))]
    return (np.array([weight[present] @ of_model[present] for of_model in losses]),)


def _relative(norms: np.ndarray) -> np.ndarray:
    """Return (mean / norm)^(1/2) along each column, clipped at its value for a norm of mean / 100.

    Return 1 where all norms are 0."""
    mean = norms.sum(axis=0) / max(1, len(norms))
    usable = (mean > 0) & np.isfinite(mean)
    mean = np.where(usable, mean, 1)
    return np.where(usable, np.sqrt(mean / np.maximum(norms, mean / LARGEST_RATIO)), 1)


def _product(x: np.ndarray, y: np.ndarray) -> float:
    """Return the dot product, summed in float64 by pieces: a float32 sum of millions loses four digits."""
    total = 0.0
    for start in range(0, len(x), NUMBERS_AT_ONCE):
        some = slice(start, start + NUMBERS_AT_ONCE)
        total += float(np.dot(x[some], y[some]))
    return total
