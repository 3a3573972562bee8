"""The kernel: computes value and gradient from rows and parameters, in one pass over X.

There are two kernels with the same contract: the compiled one here, and one in NumPy, which is the reference
in the tests and the fallback if the extension could not be built. ``params`` is (models, layout.size); all
models share the pass. Sums over rows are weighted sums, not means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from . import native, numpy_kernel
from .block import Block
from .layout import Layout
from .losses import SQUARED, Loss


def value_and_gradient(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums over the rows of the loss (models,) in float64, and of its gradient (models, size)."""
    if not native.compiled():
        return numpy_kernel.value_and_gradient(block, layout, params, loss)
    if loss.code is None:
        return _by_slopes(block, layout, params, loss, threads)
    factors = _side_by_side(layout, params)
    values, gradient = np.empty(len(params)), np.empty_like(params)
    # The gradient of the factors of one model has the layout of its params, so it is written in place.
    in_place = len(params) == 1
    of_factors = _side_by_side(layout, gradient) if in_place else np.empty_like(factors)
    block.native_block.value_and_gradient(
        native_layout(layout),
        params[:, : layout.head],
        factors,
        loss.code,
        loss.parameter,
        values,
        gradient[:, : layout.head],
        of_factors,
        threads,
    )
    if not in_place:
        by_model = of_factors.reshape(layout.n_features, len(params), layout.n_columns)
        layout.factors(gradient)[...] = by_model.transpose(1, 0, 2)
    return values, gradient


@np.errstate(over="ignore", invalid="ignore")
def _by_slopes(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same as `value_and_gradient` for a loss that is not compiled, in two passes.

    The slope of squared error is z - y, so with the targets z - slope, its gradient equals that of any
    loss."""
    values, gradients = np.empty(len(params)), np.empty_like(params)
    z = outputs(block, layout, params, threads).reshape(block.n_rows, len(params), -1)
    z = z if block.offset is None else z + block.offset[:, None]
    weight = block.row_weights
    present = weight > 0  # other rows may overflow
    for m in range(len(params)):
        losses, slopes = loss.pointwise(block.targets, z[:, m])
        values[m] = weight[present] @ losses[present]
        like_squared = replace(block, y=np.where(present[:, None], z[:, m] - slopes, 0))
        one = slice(m, m + 1)
        gradients[one] = value_and_gradient(like_squared, layout, params[one], SQUARED, threads)[1]
    return values, gradients


def outputs(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return f of every row and model, (rows, models * n_outputs)."""
    if not native.compiled():
        return numpy_kernel.outputs(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_outputs), dtype=block.dtype)
    factors = _side_by_side(layout, params)
    block.native_block.outputs(native_layout(layout), params[:, : layout.head], factors, result, threads)
    return result


def terms(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the terms of every row, (rows, models * n_sets * n_terms), ordered by set, degree and rank."""
    if not native.compiled():
        return numpy_kernel.terms(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_sets * layout.n_terms), dtype=block.dtype)
    factors = _side_by_side(layout, params)
    block.native_block.terms(native_layout(layout), params[:, : layout.head], factors, result, threads)
    return result


def native_layout(layout: Layout) -> Any:
    return native.extension.Layout(layout.code, layout.degree, layout.rank, layout.n_outputs, layout.shared)


def _side_by_side(layout: Layout, params: np.ndarray) -> np.ndarray:
    """Return the factors of all models, (n_features, models * n_columns)."""
    if len(params) == 1:
        return layout.factors(params[0])
    return np.ascontiguousarray(layout.factors(params).transpose(1, 0, 2)).reshape(layout.n_features, -1)
