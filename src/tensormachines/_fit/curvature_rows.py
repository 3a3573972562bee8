"""The rows that the curvature of solver="kfac" is computed from: a sample, and outliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from .._model.basis import AffineBasis, Basis
from .._model.block import Block, Blocks
from .._model.moments import ROWS_AT_ONCE
from .._model.rows import Rows

ROWS_SAMPLED = 1536
MOST_OUTLIERS = 512
OUTLYING = 4.0  # times the mean squared norm of a row


@dataclass(frozen=True)
class Gathered:
    """Rows with their weights and squared norms.

    Adding two keeps the ``most`` rows with the largest norms.
    """

    X: Rows
    weight: np.ndarray
    norms: np.ndarray
    most: int

    def __add__(self, other: Gathered) -> Gathered:
        X = (
            sparse.vstack([self.X, other.X], format="csr")
            if sparse.issparse(self.X)
            else np.concatenate([self.X, other.X])
        )
        both = Gathered(
            X,
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.norms, other.norms]),
            self.most,
        )
        return (
            both
            if len(both.weight) <= self.most
            else both.rows(np.argsort(-both.norms, kind="stable")[: self.most])
        )

    def rows(self, selected: np.ndarray) -> Gathered:
        return Gathered(self.X[selected], self.weight[selected], self.norms[selected], self.most)


def curvature_rows(sample: Blocks, blocks: Blocks, basis: Basis) -> Block:
    """Sample rows, and add the outliers of all rows: a few outliers can make up most of the curvature."""
    all_of_it = np.iinfo(np.int64).max
    (some,) = sample.total(partial(_gather, above=None, most=all_of_it))
    stride = -(-len(some.weight) // ROWS_SAMPLED)
    if stride == 1 or not _may_lie_far_out(basis):
        chosen = some.rows(np.arange(0, len(some.weight), stride))
        return Block(chosen.X, basis, weight=chosen.weight)
    (far,) = blocks.total(
        partial(
            _gather, above=OUTLYING * float(np.average(some.norms, weights=some.weight)), most=MOST_OUTLIERS
        )
    )
    near = some.rows(np.flatnonzero(some.norms < far.norms.min(initial=np.inf))[::stride])
    share = (blocks.weights.sum() - far.weight.sum()) / near.weight.sum()
    near = Gathered(near.X, near.weight * share, near.norms, all_of_it)
    chosen = near + far
    return Block(chosen.X, basis, weight=chosen.weight)


def _may_lie_far_out(basis: Basis) -> bool:
    """Tell whether rows can be outliers: splines and rows of norm 1 are bounded."""
    return isinstance(basis, AffineBasis) and not basis.unit_rows


def _gather(block: Block, above: float | None, most: int) -> tuple[Gathered]:
    """Return the rows of positive weight; if ``above`` is given, only rows with a larger squared norm."""
    pieces = [
        block.rows(slice(start, start + ROWS_AT_ONCE)) for start in range(0, block.n_rows, ROWS_AT_ONCE)
    ]
    norms = np.ones(block.n_rows)
    if isinstance(block.basis, AffineBasis) and pieces:
        norms = np.concatenate([block.basis.lift(piece.X).squared_norms() for piece in pieces])
    weight = block.row_weights
    rows = np.flatnonzero(weight > 0 if above is None else (weight > 0) & (norms > above))
    if len(rows) > most:
        rows = np.sort(rows[np.argsort(-norms[rows], kind="stable")[:most]])
    return (Gathered(block.X[rows], weight[rows], norms[rows], most),)


def mean_squares(blocks: Blocks, sample: Block) -> np.ndarray:
    """Return the mean squares of the columns in their basis; for splines, on a sample."""
    if not isinstance(sample.basis, AffineBasis):
        return np.average(sample.basis.lift(sample.X).explicit() ** 2, axis=0, weights=sample.weight)
    (squares,) = blocks.total(_column_squares)
    return squares / blocks.weights.sum()


def _column_squares(block: Block) -> tuple[np.ndarray]:
    assert isinstance(block.basis, AffineBasis)
    weight = block.row_weights
    total = np.zeros(block.basis.width)
    for start in range(0, block.n_rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        total += block.basis.lift(block.X[piece]).column_squares(weight[piece])
    return (total,)
