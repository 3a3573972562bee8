"""The kernel: rows and parameters to value and gradient, in one pass over X.

There are two with one contract: the compiled one here, and one in NumPy that is its truth in the tests and
serves where the extension could not be built. ``params`` is (models, layout.size); all models share the pass.
Sums over rows are weighted sums, not means."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import native, numpy_kernel
from .block import Block
from .layout import Layout
from .losses import SQUARED, Loss

GRADIENT, OUTPUTS, TERMS = 0, 1, 2  # what the compiled kernel is asked for


def value_and_gradient(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums over the rows of the loss (models,) in float64, and of its gradient (models,
    layout.size).
    """
    if not native.compiled():
        return numpy_kernel.value_and_gradient(block, layout, params, loss)
    models = len(params)
    bias, factors = _stack(layout, params)
    spread = block.basis.spread(factors)
    values, bias_gradient = np.zeros(models), np.zeros(models * layout.n_outputs)
    gradient = np.empty_like(params)
    # One model's factor gradient has the layout of its params: unless the basis spreads factors, it is
    # written where it belongs.
    in_place = models == 1 and spread is factors
    factor_gradient = _stack(layout, gradient)[1] if in_place else np.empty_like(spread)
    _run(GRADIENT, block, layout, bias, spread, loss, factor_gradient, values, bias_gradient, threads)
    layout.bias(gradient)[...] = bias_gradient.reshape(models, -1)
    if not in_place:
        by_model = block.basis.gather(factor_gradient).reshape(
            layout.n_features, models, layout.n_outputs, layout.n_projections
        )
        layout.factors(gradient)[...] = by_model.transpose(1, 0, 2, 3)
    return values, gradient


def outputs(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """f of every row and model, (rows, models * n_outputs)."""
    if not native.compiled():
        return numpy_kernel.outputs(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_outputs), dtype=block.dtype)
    bias, factors = _stack(layout, params)
    _run(
        OUTPUTS,
        block,
        layout,
        bias,
        block.basis.spread(factors),
        SQUARED,
        result,
        np.empty(0),
        np.empty(0),
        threads,
    )
    return result


def terms(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """The products of every row and model, (rows, models * n_outputs * n_terms): by output, degree, rank."""
    if not native.compiled():
        return numpy_kernel.terms(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_outputs * layout.n_terms), dtype=block.dtype)
    bias, factors = _stack(layout, params)
    _run(
        TERMS,
        block,
        layout,
        bias,
        block.basis.spread(factors),
        SQUARED,
        result,
        np.empty(0),
        np.empty(0),
        threads,
    )
    return result


def _stack(layout: Layout, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Biases of all models (models * n_outputs), and their factors side by side (n_features, models *
    n_outputs * n_projections).
    """
    if len(params) == 1:
        return params[0, : layout.n_outputs], params[0, layout.n_outputs :].reshape(layout.n_features, -1)
    beside = layout.factors(params).transpose(1, 0, 2, 3)
    return layout.bias(params).ravel(), np.ascontiguousarray(beside).reshape(layout.n_features, -1)


def _run(
    want: int, block: Block, layout: Layout, bias: np.ndarray, factors: np.ndarray, loss: Loss, *rest: Any
) -> None:
    X, basis = block.X, block.basis
    result, values, bias_gradient, threads = rest
    dense = isinstance(X, np.ndarray)
    native.extension.evaluate(
        want,
        X if dense else X.data,
        None if dense else X.indptr,
        None if dense else X.indices,
        X.shape[1],
        basis.shift,
        basis.scale,
        basis.clip,
        basis.constant,
        basis.unit_rows,
        None if dense else basis.zero_row,
        layout.code,
        bias,
        factors,
        layout.degree,
        layout.rank,
        layout.n_outputs,
        len(bias) // layout.n_outputs,
        loss.code,
        block.y,
        block.weight,
        result,
        values,
        bias_gradient,
        threads,
    )
