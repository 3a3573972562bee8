"""The function that solvers minimise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from . import kernel
from .block import Block, Blocks
from .layout import Layout
from .losses import Loss


@dataclass(frozen=True)
class Objective:
    """Mean loss over weighted blocks of rows, plus a penalty on everything but the biases.

        F(params) = (1 / total weight) * sum over blocks, rows of  weight * loss(y, f(x))
                    + alpha / 2 * |factors / sizes|^2

    where ``sizes`` (n_features), all 1 unless they are given, are the sizes that the coefficients of the
    features are expected to have.

    Calling it with params of shape (models, layout.size) returns the values (models,) in float64 and the
    gradients, in one pass over X. It is a sum over the parts of its blocks: given a ``part``, it returns that
    part with its share of the penalty. ``likely_next`` is a guess at the part that comes next."""

    blocks: Blocks
    layout: Layout
    loss: Loss
    alpha: float
    threads: int = 1
    sizes: np.ndarray | None = None

    def __call__(
        self, params: np.ndarray, part: int | None = None, likely_next: int | None = None
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
                values[m] += self.penalise(params[m], gradients[m], part)
        return values, gradients

    def partial(
        self, params: np.ndarray, part: int, likely_next: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return value and gradient of one part."""
        return self(params, part, likely_next)

    def penalise(self, params: np.ndarray, gradient: np.ndarray, part: int | None) -> float:
        """Return the penalty of one model, or the share of a part in it; add its gradient to ``gradient``."""
        weights = self.blocks.weights
        alpha = self.alpha if part is None else self.alpha * weights[part] / weights.sum()
        weighted = factors = params[self.layout.n_outputs :]
        if self.sizes is not None:
            strength = (1 / self.sizes**2).astype(params.dtype)
            weighted = (factors.reshape(self.layout.n_features, -1) * strength[:, None]).ravel()
        gradient[self.layout.n_outputs :] += params.dtype.type(alpha) * weighted
        return 0.5 * alpha * _product(factors, weighted)

    def mean_loss(self, params: np.ndarray) -> np.ndarray:
        """Return the values without the penalty."""
        of_block = partial(
            _loss_of_block, layout=self.layout, params=params, loss=self.loss, threads=self.threads
        )
        return self.blocks.total(of_block)[0] / self.blocks.weights.sum()


def _loss_of_block(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[np.ndarray]:
    z = kernel.outputs(block, layout, params, threads).reshape(block.n_rows, len(params), -1)
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    present = weight > 0
    losses = [loss.pointwise(block.targets, z[:, m])[0] for m in range(len(params))]
    return (np.array([weight[present] @ of_model[present] for of_model in losses]),)


def _product(x: np.ndarray, y: np.ndarray, at_once: int = 1 << 16) -> float:
    """Return the dot product, a piece at a time in float64: a float32 sum of millions loses four digits."""
    total = 0.0
    for start in range(0, len(x), at_once):
        total += float(np.dot(x[start : start + at_once], y[start : start + at_once]))
    return total
