"""The random start of a fit."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._model import kernel
from .._model.block import Block, Blocks
from .._model.layout import Layout

START_SIZE = 0.5  # between 0.1 and 1 the test error hardly depends on it (benchmarks/RESULTS.md)


def random_start(
    sample: Blocks,
    layout: Layout,
    init_scale: float | str,
    random_state: np.random.RandomState,
    dtype: np.dtype,
    sizes: np.ndarray,
    free: np.ndarray | None = None,
) -> np.ndarray:
    """Return params of shape (layout.size,): normal factors and weights, no linear part, no bias.

    A number for ``init_scale`` is the standard deviation of the factors. With "auto", each term is scaled to
    the root mean square START_SIZE / sqrt(number of terms) over a sample of rows. So all terms together have
    about the size START_SIZE (a standardised target has size 1) for any units, degree and rank. The weight of
    a shared term counts as one more of its factors. ``sizes`` (n_features) are relative: the coefficients of
    a feature that is much larger than the others should be correspondingly smaller, or the feature would
    dominate every projection. Params that are not ``free`` are 0.
    """
    params = np.zeros(layout.size, dtype=dtype)
    weights, terms = layout.weights(params), layout.terms(params)
    terms[...] = random_state.standard_normal(terms.shape)
    weights[...] = random_state.standard_normal(weights.shape)
    if free is not None:
        params[~free] = 0
    if init_scale != "auto":
        params *= dtype.type(init_scale)
        return params
    terms *= sizes.astype(dtype)[:, None, None]
    # First scale each projection, so that no product can overflow for any units of X; then scale the
    # products.
    projections = _sizes(sample, partial(_projections, layout=layout, params=params))
    terms /= layout.by_set(projections)
    products = _sizes(sample, partial(_products, layout=layout, params=params)).reshape(
        layout.n_sets, layout.degree - 1, layout.rank
    )
    target = START_SIZE / np.sqrt(max(layout.n_terms, 1))
    for p, columns in layout.degrees():
        of_weight = target ** (1 / (p + 1)) if layout.shared else 1.0
        weights[:, p - 2] *= of_weight
        share = (target / of_weight / products[:, p - 2]) ** (1 / p)
        terms[:, :, columns] *= np.tile(share, (1, layout.factors_in_term(p)))
    return params


def _sizes(sample: Blocks, features: partial[np.ndarray]) -> np.ndarray:
    """Return the root mean square over the rows of each feature that ``features`` computes for a block; 1 for
    a feature of zeros.
    """
    (squares,) = sample.total(partial(_squares, features=features))
    size = np.sqrt(squares / max(float(sample.weights.sum()), np.finfo(np.float64).tiny))
    return np.where(size > 0, size, 1)


def _squares(block: Block, features: partial[np.ndarray]) -> tuple[np.ndarray]:
    values = features(block).astype(np.float64)
    if block.weight is None:
        return (np.einsum("nk,nk->k", values, values),)
    present = block.weight > 0  # a row of weight 0 is absent, even if it overflows
    return (
        np.einsum("n,nk,nk->k", block.weight[present].astype(np.float64), values[present], values[present]),
    )


def _projections(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    """Return projections, (rows, n_columns): each is the output of a linear model."""
    linear = Layout(layout.n_features, degree=1, rank=1, n_outputs=layout.n_columns)
    each = np.zeros((1, linear.size), dtype=params.dtype)
    linear.factors(each)[...] = layout.factors(params)
    return kernel.outputs(block, linear, each)


def _products(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    return kernel.terms(block, layout, params[None])
