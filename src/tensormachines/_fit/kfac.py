"""The curvature of the objective, in a form that is easily inverted.

The Gauss-Newton matrix of the factors is the mean over rows of h (l l') (x) (t t'): t is the row in its
basis, l the derivatives of the output with respect to the projections of t, h the second derivative of the
loss, and (x) the Kronecker product. Its eigenvectors are taken to be the products of those of

    C = mean of h l l'    and    A = mean of h (l' C^-1 l) t t',

and its eigenvalues the mean squares of the derivatives along these products (George et al., "Fast approximate
natural gradient descent in a Kronecker-factored eigenbasis", 2018). The outputs share A, each has its own C.
A sample of the rows is enough for all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh

from .._model.basis import AnyBasis, Basis, Lifted, LiftedRows
from .._model.block import Block, Blocks
from .._model.layout import Layout
from .._model.losses import Loss
from .._model.moments import ROWS_AT_ONCE, Rows
from .._model.numpy_kernel import TensorRows, sum_up

ROWS_SAMPLED = 1536
MOST_OUTLIERS = 512
OUTLYING = 4.0  # times the mean square of the norm of a row
MOST_FEATURES = 1024  # of which eigenvectors are computed
DAMPING = 0.1

Solve = Callable[[np.ndarray], np.ndarray]


class Curvature:
    """A function of params that gives another one: the product with the inverse curvature there; or None
    where that is not finite.

    Parameters
    ----------
    rows : Block
        A sample; only ratios of its weights matter.
    mean_squares : ndarray of shape (n_features,), optional
        Of the columns in their basis. If given, it is taken for A, as a diagonal matrix, which is all that
        very many features allow.
    sizes : ndarray of shape (n_features,), optional
        Of the coefficients, see `Objective`.
    """

    def __init__(
        self,
        layout: Layout,
        loss: Loss,
        alpha: float,
        rows: Block,
        mean_squares: np.ndarray | None = None,
        sizes: np.ndarray | None = None,
    ):
        self.layout = layout
        self.loss = loss
        self.alpha = alpha
        self.lifted: LiftedRows = rows.basis.lift(rows.X)
        self.mean_squares = mean_squares
        self.sizes = None if sizes is None else sizes.astype(rows.dtype)
        if mean_squares is None:
            explicit = self.lifted.explicit()
            self.matrix: np.ndarray = explicit.toarray() if sparse.issparse(explicit) else explicit
            self.lifted = Lifted(self.matrix)
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
        self.weight = weight / weight.sum()

    def __call__(self, params: np.ndarray) -> Solve | None:
        slopes = self._slopes(params)
        squares = np.einsum("nkr,nkr->kr", slopes, slopes)
        if not np.isfinite(squares).all():
            return None
        try:
            axes = np.stack(
                [
                    eigh(each.T @ each, driver="evd", check_finite=False)[1]
                    for each in slopes.transpose(1, 0, 2)
                ]
            )
            along = np.matmul(slopes.transpose(1, 0, 2), axes) ** 2  # (outputs, rows, projections)
            features, curvature = self._with_features(along)
        except LinAlgError:
            return None
        inverse = (1 / _damped(curvature, self.alpha)).astype(params.dtype)
        of_bias = np.where(squares[:, 0] > 0, squares[:, 0], 1).astype(
            params.dtype
        )  # the linear part has l = 1, like the bias
        return partial(
            _solve,
            layout=self.layout,
            sizes=self.sizes,
            features=features,
            axes=axes,
            inverse=inverse,
            of_bias=of_bias,
        )

    def _slopes(self, params: np.ndarray) -> np.ndarray:
        """l times the root of weight and h, (rows, n_outputs, n_projections)."""
        rows = TensorRows(self.lifted, self.layout, params)
        second = self.loss.second(sum_up(rows, self.layout, params))
        return rows.others() * np.sqrt(second * self.weight[:, None]).astype(params.dtype)[:, :, None]

    def _with_features(self, along: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Eigenvectors of A, unless it is diagonal, and the curvature (n_outputs, n_features, n_projections)
        along them.
        """
        total = along.sum(axis=1)
        sizes = 1.0 if self.sizes is None else self.sizes
        if self.mean_squares is not None:
            return None, (self.mean_squares * sizes**2)[:, None] * total[:, None, :]
        matrix = self.matrix * sizes  # of coefficients in units of their sizes, which are all penalised alike
        mean = total.mean(axis=1, keepdims=True)
        shares = np.einsum("knr,kr->n", along, 1 / (total + DAMPING * np.where(mean > 0, mean, 1)))
        features = eigh((matrix * shares[:, None]).T @ matrix, driver="evd", check_finite=False)[1]
        return features, np.matmul(((matrix @ features) ** 2).T, along)


def _damped(curvature: np.ndarray, alpha: float) -> np.ndarray:
    """Every one raised by a share of the mean of its row and of its column: where there is almost none, steps
    must not be without bound.
    """
    mean = curvature.mean(axis=1, keepdims=True) + curvature.mean(axis=2, keepdims=True)
    damped = curvature + 0.5 * np.sqrt(DAMPING) * mean + alpha
    return np.where(damped > np.finfo(curvature.dtype).tiny, damped, 1)


def _solve(
    vector: np.ndarray,
    layout: Layout,
    sizes: np.ndarray | None,
    features: np.ndarray | None,
    axes: np.ndarray,
    inverse: np.ndarray,
    of_bias: np.ndarray,
) -> np.ndarray:
    solved = np.empty_like(vector)
    layout.bias(solved)[...] = layout.bias(vector) / of_bias
    by_output = layout.factors(vector).transpose(1, 0, 2)
    if sizes is not None:
        by_output = by_output * sizes[:, None]
    if features is None:
        product = np.matmul(np.matmul(by_output, axes) * inverse, axes.transpose(0, 2, 1))
    else:
        rotated = np.matmul(np.matmul(features.T, by_output), axes)
        product = np.matmul(np.matmul(features, rotated * inverse), axes.transpose(0, 2, 1))
    layout.factors(solved)[...] = (product if sizes is None else product * sizes[:, None]).transpose(1, 0, 2)
    return solved


# ---- the sample


@dataclass(frozen=True)
class Gathered:
    """Rows with their weights and squared norms.

    Together with others, only the ``most`` with the largest norms stay.
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


def curvature_rows(sample: Blocks, blocks: Blocks, basis: AnyBasis) -> Block:
    """Some rows of ``sample``, and the outliers among those of ``blocks``: a few of them can make up most of
    the curvature.
    """
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


def _may_lie_far_out(basis: AnyBasis) -> bool:
    """Splines and rows of norm 1 are bounded."""
    return isinstance(basis, Basis) and not basis.unit_rows


def _gather(block: Block, above: float | None, most: int) -> tuple[Gathered]:
    """Rows of positive weight, those with a squared norm above a bound if there is one."""
    pieces = [
        block.rows(slice(start, start + ROWS_AT_ONCE)) for start in range(0, block.n_rows, ROWS_AT_ONCE)
    ]
    norms = np.ones(block.n_rows)
    if isinstance(block.basis, Basis) and pieces:
        norms = np.concatenate([block.basis.lift(piece.X).squared_norms() for piece in pieces])
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    rows = np.flatnonzero(weight > 0 if above is None else (weight > 0) & (norms > above))
    if len(rows) > most:
        rows = np.sort(rows[np.argsort(-norms[rows], kind="stable")[:most]])
    return (Gathered(block.X[rows], weight[rows], norms[rows], most),)


def mean_squares(blocks: Blocks, sample: Block) -> np.ndarray:
    """Of all columns in their basis; for splines, those of a sample."""
    if not isinstance(sample.basis, Basis):
        return np.average(sample.basis.lift(sample.X).explicit() ** 2, axis=0, weights=sample.weight)
    (squares,) = blocks.total(_column_squares)
    return squares / blocks.weights.sum()


def _column_squares(block: Block) -> tuple[np.ndarray]:
    assert isinstance(block.basis, Basis)
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    total = np.zeros(block.basis.width)
    for start in range(0, block.n_rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        total += block.basis.lift(block.X[piece]).column_squares(weight[piece])
    return (total,)
