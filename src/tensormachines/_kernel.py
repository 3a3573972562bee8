"""The kernel: rows and parameters to value and gradient, in one pass over X.

There are two with one contract: the compiled one, and a NumPy one that is its truth in the tests and serves where the extension could not
be built. ``params`` is (models, layout.size); all models share the pass. Sums over rows are weighted sums, not means.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ._blocks import Block
from ._layout import Layout
from ._losses import SQUARED, Loss
from ._moments import ROWS_AT_ONCE

try:
    _native: Any = import_module("._native", __package__)
except ImportError:
    _native = None

GRADIENT, OUTPUTS, TERMS = 0, 1, 2  # what the compiled kernel is asked for


def value_and_gradient(block: Block, layout: Layout, params: np.ndarray, loss: Loss, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums over the rows of the loss (models,) in float64, and of its gradient (models, layout.size)."""
    if not _compiled():
        return numpy_value_and_gradient(block, layout, params, loss)
    models = len(params)
    bias, factors = _stack(layout, params)
    values, bias_gradient = np.zeros(models), np.zeros(models * layout.n_outputs)
    gradient = np.empty_like(params)
    # One model's factor gradient has the layout of its params: it is written where it belongs.
    factor_gradient = _stack(layout, gradient)[1] if models == 1 else np.empty_like(factors)
    _run(GRADIENT, block, layout, bias, factors, loss, factor_gradient, values, bias_gradient, threads)
    layout.bias(gradient)[...] = bias_gradient.reshape(models, -1)
    if models > 1:
        by_model = factor_gradient.reshape(layout.n_features, models, layout.n_outputs, layout.n_projections)
        layout.factors(gradient)[...] = by_model.transpose(1, 0, 2, 3)
    return values, gradient


def outputs(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """f of every row and model, (rows, models * n_outputs)."""
    if not _compiled():
        return numpy_outputs(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_outputs), dtype=block.dtype)
    _run(OUTPUTS, block, layout, *_stack(layout, params), SQUARED, result, np.empty(0), np.empty(0), threads)
    return result


def terms(block: Block, layout: Layout, params: np.ndarray, threads: int = 1) -> np.ndarray:
    """The products of every row and model, (rows, models * n_outputs * n_terms): by output, degree, rank."""
    if not _compiled():
        return numpy_terms(block, layout, params)
    result = np.empty((block.n_rows, len(params) * layout.n_outputs * layout.n_terms), dtype=block.dtype)
    _run(TERMS, block, layout, *_stack(layout, params), SQUARED, result, np.empty(0), np.empty(0), threads)
    return result


@cache
def _compiled() -> bool:
    if _native is None:
        warnings.warn(
            "tensormachines runs without its compiled kernel, several times slower: it was installed without a C++17 compiler. "
            "Install GCC or Clang and reinstall.",
            RuntimeWarning,
            stacklevel=2,
        )
    return _native is not None


def _stack(layout: Layout, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Biases of all models (models * n_outputs), and their factors side by side (n_features, models * n_outputs * n_projections)."""
    if len(params) == 1:
        return params[0, : layout.n_outputs], params[0, layout.n_outputs :].reshape(layout.n_features, -1)
    beside = layout.factors(params).transpose(1, 0, 2, 3)
    return layout.bias(params).ravel(), np.ascontiguousarray(beside).reshape(layout.n_features, -1)


def _run(want: int, block: Block, layout: Layout, bias: np.ndarray, factors: np.ndarray, loss: Loss, *rest: Any) -> None:
    X, basis = block.X, block.basis
    result, values, bias_gradient, threads = rest
    dense = isinstance(X, np.ndarray)
    _native.evaluate(
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


# ---- NumPy


def numpy_value_and_gradient(block: Block, layout: Layout, params: np.ndarray, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    values = np.zeros(len(params))
    gradient = np.zeros(params.shape)
    for part in _parts(block):
        if part.weight is not None:  # a row of weight 0 is absent, even where its terms overflow
            part = part.rows(np.flatnonzero(part.weight))
        lifted = part.basis.lift(part.X)
        for m, model in enumerate(params):
            z = _projections(lifted, layout, model)
            losses, slope = loss.pointwise(part.targets, _sum_up(layout, model, z))
            if part.weight is not None:
                losses = losses * part.weight
                slope = slope * part.weight[:, None]
            values[m] += losses.sum(dtype=np.float64)
            layout.bias(gradient[m])[...] += slope.sum(axis=0)
            slopes = _slopes(layout, z, slope).reshape(len(z), -1)
            layout.factors(gradient[m])[...] += lifted.transposed_times(slopes).reshape(layout.n_features, layout.n_outputs, -1)
    return values, gradient.astype(params.dtype)


def numpy_outputs(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    return np.vstack([np.hstack([_sum_up(layout, model, _projections(rows, layout, model)) for model in params]) for rows in lifted])


def numpy_terms(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    products = [[_products(layout, _projections(rows, layout, model)) for model in params] for rows in lifted]
    return np.vstack([np.hstack([product.reshape(len(product), -1) for product in models]) for models in products])


def _parts(block: Block) -> list[Block]:
    return [block.rows(slice(start, start + ROWS_AT_ONCE)) for start in range(0, max(block.n_rows, 1), ROWS_AT_ONCE)]


def _projections(lifted: Any, layout: Layout, model: np.ndarray) -> np.ndarray:
    """(rows, n_outputs, n_projections)"""
    product = lifted.times(layout.factors(model).reshape(layout.n_features, -1))
    return product.reshape(-1, layout.n_outputs, layout.n_projections)


def _by_factor(layout: Layout, z: np.ndarray, columns: slice, p: int) -> np.ndarray:
    return z[:, :, columns].reshape(len(z), layout.n_outputs, p, layout.rank)


def _products(layout: Layout, z: np.ndarray) -> np.ndarray:
    """(rows, n_outputs, n_terms)"""
    products = [_by_factor(layout, z, columns, p).prod(axis=2) for p, columns in layout.degrees()]
    return np.concatenate([np.empty((len(z), layout.n_outputs, 0), dtype=z.dtype), *products], axis=2)


def _sum_up(layout: Layout, model: np.ndarray, z: np.ndarray) -> np.ndarray:
    return layout.bias(model) + z[:, :, 0] + _products(layout, z).sum(axis=2)


def _slopes(layout: Layout, z: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Derivatives with respect to the projections: slope times the product of the *other* factors, as prefix times suffix."""
    slopes = np.empty_like(z)
    slopes[:, :, 0] = slope
    for p, columns in layout.degrees():
        factor = _by_factor(layout, z, columns, p)
        others = np.ones_like(factor)
        for j in range(1, p):
            others[:, :, j] = others[:, :, j - 1] * factor[:, :, j - 1]
        suffix = np.ones_like(factor[:, :, 0])
        for j in range(p - 1, -1, -1):
            others[:, :, j] *= suffix
            suffix = suffix * factor[:, :, j]
        slopes[:, :, columns] = (others * slope[:, :, None, None]).reshape(len(z), layout.n_outputs, -1)
    return slopes
