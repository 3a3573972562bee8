"""The function that solvers minimise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import _kernel
from ._blocks import Block
from ._layout import Layout
from ._losses import Loss


class Objective:
    """Mean loss over weighted blocks of rows, plus a penalty on everything but the biases.

        F(params) = (1 / total weight) * sum over blocks, rows of  weight * loss(y, f(x))  +  alpha / 2 * |factors|^2

    Calling it with params of shape (models, layout.size) gives the values (models,) in float64 and the gradients, in one pass over X.
    """

    def __init__(self, blocks: Sequence[Block], layout: Layout, loss: Loss, alpha: float, threads: int = 1):
        self.blocks = blocks
        self.layout = layout
        self.loss = loss
        self.alpha = alpha
        self.threads = threads
        self.total_weight = sum(block.total_weight for block in blocks)

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = _kernel.value_and_gradient(self.blocks[0], self.layout, params, self.loss, self.threads)
        for block in self.blocks[1:]:
            value, gradient = _kernel.value_and_gradient(block, self.layout, params, self.loss, self.threads)
            values += value
            gradients += gradient
        values /= self.total_weight
        gradients /= self.total_weight
        if self.alpha:
            for m in range(len(params)):
                factors = params[m, self.layout.n_outputs :]
                values[m] += 0.5 * self.alpha * _squared_norm(factors)
                gradients[m, self.layout.n_outputs :] += self.alpha * factors
        return values, gradients

    def mean_loss(self, params: np.ndarray) -> np.ndarray:
        """The values without the penalty."""
        totals = np.zeros(len(params))
        for block in self.blocks:
            z = _kernel.outputs(block, self.layout, params, self.threads).reshape(block.n_rows, len(params), -1)
            weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
            present = weight > 0
            totals += [weight[present] @ self.loss.pointwise(block.targets, z[:, m])[0][present] for m in range(len(params))]
        return totals / self.total_weight


def _squared_norm(x: np.ndarray, at_once: int = 1 << 16) -> float:
    """In float64, a piece at a time: over millions of float32 numbers a float32 sum would lose four digits."""
    pieces = (x[start : start + at_once] for start in range(0, len(x), at_once))
    return sum(float(np.dot(piece, piece)) for piece in pieces)
