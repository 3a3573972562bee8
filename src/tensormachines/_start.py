"""Where a fit begins."""

from __future__ import annotations

import numpy as np

from ._blocks import Block
from ._layout import Layout
from .basis import Lifted

ROWS_LOOKED_AT = 4096
START_SIZE = 0.5  # between 0.1 and 1 the test error hardly depends on it (benchmarks/RESULTS.md)


def random_start(block: Block, layout: Layout, init_scale: float | str, random_state: np.random.RandomState) -> np.ndarray:
    """Normal factors, no linear part, no bias: params of shape (layout.size,).

    A number for ``init_scale`` is their standard deviation. With "auto", each term is scaled so that over the rows it has the root mean
    square START_SIZE / sqrt(number of terms): all terms together then begin at about that size, where a standardised target has size 1,
    whatever the units, the degree and the rank.
    """
    params = np.zeros(layout.size)
    factors = layout.factors(params)
    factors[:, :, 1:] = random_state.standard_normal(factors[:, :, 1:].shape)
    if init_scale == "auto":
        _scale_terms(block, layout, factors)
    else:
        factors *= init_scale
    return params.astype(block.dtype)


def _scale_terms(block: Block, layout: Layout, factors: np.ndarray) -> None:
    lifted, weight = _sample(block)
    share = weight / weight.sum()
    z = lifted.times(factors.reshape(layout.n_features, -1)).reshape(len(weight), layout.n_outputs, layout.n_projections)
    # First every projection on its own, so that no product can overflow whatever the units of X; then the products.
    size = _root_mean_square(share, z)
    factors /= size
    z /= size
    target = START_SIZE / np.sqrt(max(layout.n_terms, 1))
    for p, columns in layout.degrees():
        products = z[:, :, columns].reshape(len(weight), layout.n_outputs, p, layout.rank).prod(axis=2)
        scale = (target / _root_mean_square(share, products)) ** (1 / p)  # (n_outputs, rank)
        factors[:, :, columns] *= np.tile(scale, (1, p))


def _root_mean_square(share: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Over the rows; 1 where there is nothing but zeros."""
    size = np.sqrt(np.einsum("n,n...->...", share, z * z))
    return np.where(size > 0, size, 1)


def _sample(block: Block) -> tuple[Lifted, np.ndarray]:
    """Up to ROWS_LOOKED_AT rows with positive weight, evenly spread, in float64."""
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    present = np.flatnonzero(weight)
    chosen = present[:: -(-len(present) // ROWS_LOOKED_AT)]
    return block.basis.astype(np.dtype(np.float64)).lift(block.X[chosen].astype(np.float64)), weight[chosen]
