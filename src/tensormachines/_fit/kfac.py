"""The solver "kfac": L-BFGS from a warm start, with a Kronecker-factored inverse curvature.

Warm start: a few epochs of Adam over minibatches. Ten passes in small steps get as far as a hundred passes of
L-BFGS; after that they are no longer better.

Curvature: the Gauss-Newton matrix of the factors is the mean over rows of h (l l') (x) (t t'), where t is the
row in its basis, l the derivatives of the output with respect to the projections of t, h the second
derivative of the loss, and (x) the Kronecker product. Its eigenvectors are approximated by the products of
those of

    C = mean of h l l'    and    A = mean of h (l' C^-1 l) t t',

and its eigenvalues by the mean squares of the derivatives along these products (George et al., "Fast
approximate natural gradient descent in a Kronecker-factored eigenbasis", 2018). All outputs share A, and each
has its own C. Shared terms have one C, the sum over the outputs, and their weights have a diagonal matrix. A
sample of the rows is enough for all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import isqrt

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh

from .._model.basis import AffineBasis, AffineRows, Basis, RowsInBasis
from .._model.block import Block, Blocks, BlocksInMemory
from .._model.layout import Layout
from .._model.losses import Loss
from .._model.moments import ROWS_AT_ONCE
from .._model.numpy_kernel import TensorRows, sum_up
from .._model.objective import Objective
from .._model.rows import Rows
from .solvers.adam import adam_step, schedule

PAIRS = 20  # of L-BFGS
ROWS_SAMPLED = 1536
MOST_OUTLIERS = 512
OUTLYING = 4.0  # times the mean squared norm of a row
MOST_FEATURES = 1024  # with more, A is diagonal
DAMPING = 0.1

EPOCHS = 10
MOST_STEPS = 4000
RATE, STEPS_AT_THIS_RATE = 0.1, 1000  # more steps have a smaller learning rate
DIVERGED = 4.0  # times the value at the start
MOST_FAILURES = 3  # in a row
ROWS_OF_MINIBATCH, FEWEST_ROWS_OF_MINIBATCH = 512, 128  # the latter where there would be few minibatches
MANY_MINIBATCHES, FEWEST_MINIBATCHES = 30, 10

Solve = Callable[[np.ndarray], np.ndarray]


# ---- the warm start


def minibatches(blocks: Blocks, n_features: int) -> Blocks | None:
    """Cut the rows into minibatches; return None where that would not help, or cost too much.

    Minibatch i of rows in memory holds every k-th row from i on, uncopied. k is a prime number, so that no
    period of the rows divides it.
    """
    if not isinstance(blocks, BlocksInMemory):
        return blocks if len(blocks.weights) >= FEWEST_MINIBATCHES else None
    (block,) = blocks.blocks
    count = max(
        block.n_rows // ROWS_OF_MINIBATCH, min(MANY_MINIBATCHES, block.n_rows // FEWEST_ROWS_OF_MINIBATCH)
    )
    entries = block.X.nnz / block.n_rows if sparse.issparse(block.X) else n_features
    if count < FEWEST_MINIBATCHES or n_features > ROWS_OF_MINIBATCH / 4 * entries:
        return None
    while any(count % k == 0 for k in range(2, isqrt(count) + 1)):
        count += 1
    return BlocksInMemory([block.rows(slice(number, None, count)) for number in range(count)])


def warm_start(minibatches: Objective, start: np.ndarray, seed: int) -> np.ndarray:
    """Improve ``start`` by Adam on an objective whose parts are minibatches; return it if nothing is better.

    An epoch that does not end below the start, or in which a minibatch diverges, is undone, and the learning
    rate is divided by three. The objective should have no penalty: with steps of equal size for all params, a
    penalty would remove terms that the loss does not use yet.
    """
    weights = minibatches.blocks.weights
    usable = np.flatnonzero(weights)
    shares = weights / weights.sum()

    def evaluate(params: np.ndarray, part: int) -> tuple[float, np.ndarray]:
        """Return the mean loss of a minibatch and its gradient."""
        (value,), (gradient,) = minibatches.partial(params[None], part)
        gradient /= gradient.dtype.type(shares[part])
        return float(value / shares[part]), gradient

    at_start = np.full(len(weights), np.nan)
    at_start[usable] = [evaluate(start, part)[0] for part in usable.tolist()]
    value = float(np.average(at_start[usable], weights=weights[usable]))
    if not np.isfinite(value):
        return start
    bounds = DIVERGED * np.maximum(at_start, value)
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(usable) for _ in range(EPOCHS)])[:MOST_STEPS]
    rate = RATE * min(1.0, np.sqrt(STEPS_AT_THIS_RATE / len(order)))
    moments = start.copy(), np.zeros_like(start), np.zeros_like(start)  # params, mean, square
    steps_taken, failures = 0, 0
    for numbers in np.array_split(np.arange(len(order)), EPOCHS):
        params, mean, square = (array.copy() for array in moments)
        values = []
        for number in numbers.tolist():
            part = int(order[number])
            loss, gradient = evaluate(params, part)
            if not loss < bounds[part]:
                break
            values.append(loss)
            step_rate = rate * schedule(number + 1, len(order))
            adam_step(params, gradient, mean, square, steps_taken + len(values), step_rate)
        if len(values) == len(numbers) and np.mean(values) < value:
            moments, failures = (params, mean, square), 0
            steps_taken += len(values)
        else:
            rate /= 3
            failures += 1
        if failures == MOST_FAILURES:
            break
    return moments[0]


# ---- the curvature


class Curvature:
    """A map from params to the multiplication by the inverse curvature there, or to None if it is not finite.

    Parameters
    ----------
    rows : Block
        A sample of the rows; only ratios of their weights matter.
    mean_squares : ndarray of shape (n_features,), optional
        Mean squares of the columns in their basis. If given, A is their diagonal matrix: very many features
        allow no more.
    sizes : ndarray of shape (n_features,), optional
        Expected sizes of the coefficients, see `Objective`.
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
        self.lifted: RowsInBasis = rows.basis.lift(rows.X)
        self.mean_squares = mean_squares
        self.sizes = None if sizes is None else sizes.astype(rows.dtype)
        if mean_squares is None:
            explicit = self.lifted.explicit()
            self.matrix: np.ndarray = explicit.toarray() if sparse.issparse(explicit) else explicit
            self.lifted = AffineRows(self.matrix)
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
        self.weight = weight / weight.sum()

    def __call__(self, params: np.ndarray) -> Solve | None:
        rows = TensorRows(self.lifted, self.layout, params)
        second = self.loss.second(sum_up(rows, self.layout, params)) * self.weight[:, None]
        roots = np.sqrt(second).astype(params.dtype)
        columns, axes, along = [], [], []
        try:
            for own, slopes in _groups(self.layout, params, rows.others(), roots):
                if not np.isfinite(np.vdot(slopes, slopes)):
                    return None
                products = sum(each.T @ each for each in slopes)
                columns.append(own)
                axes.append(eigh(products, driver="evd", check_finite=False)[1])
                along.append(sum((each @ axes[-1]) ** 2 for each in slopes))
            features, curvatures = self._with_features(along)
        except LinAlgError:
            return None
        of_bias = second.sum(axis=0)
        of_weights = second.T @ rows.terms()[:, 0] ** 2 if self.layout.shared else np.empty(0)
        return partial(
            _solve,
            layout=self.layout,
            sizes=self.sizes,
            features=features,
            columns=columns,
            axes=axes,
            inverses=[(1 / _damped(each, self.alpha)).astype(params.dtype) for each in curvatures],
            of_bias=np.where(of_bias > 0, of_bias, 1).astype(params.dtype),
            of_weights=_damped(of_weights, self.alpha).astype(params.dtype)
            if of_weights.size
            else of_weights,
        )

    def _with_features(self, along: list[np.ndarray]) -> tuple[np.ndarray | None, list[np.ndarray]]:
        """Return the eigenvectors of A (None if A is diagonal), and the curvature of each group along them.

        The curvatures have the shape (n_features, columns of the group).
        """
        totals = [of_group.sum(axis=0) for of_group in along]
        sizes = 1.0 if self.sizes is None else self.sizes
        if self.mean_squares is not None:
            return None, [np.outer(self.mean_squares * sizes**2, total) for total in totals]
        matrix = self.matrix * sizes  # in units of their sizes, all coefficients are penalised alike
        shares = np.zeros(len(matrix), dtype=matrix.dtype)
        for of_group, total in zip(along, totals, strict=True):
            mean = total.mean()
            shares += of_group @ (1 / (total + DAMPING * (mean if mean > 0 else 1)))
        features = eigh((matrix * shares[:, None]).T @ matrix, driver="evd", check_finite=False)[1]
        squares = ((matrix @ features) ** 2).T
        return features, [squares @ of_group for of_group in along]


def _groups(
    layout: Layout, params: np.ndarray, others: np.ndarray, roots: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the columns that share a C, and l times the square root of h: (outputs, rows, columns).

    A group is the linear part and the terms of an output. Shared terms are a separate group, on which all
    outputs depend.
    """
    n_outputs, of_set = layout.n_outputs, np.arange(layout.set_columns)
    for k in range(n_outputs):
        own = (
            np.append(k, n_outputs + k * layout.set_columns + of_set) if not layout.shared else np.array([k])
        )
        yield own, (others[:, own] * roots[:, k, None])[None]
    if layout.shared and layout.set_columns:
        weights = np.empty((n_outputs, layout.set_columns), dtype=params.dtype)
        for p, columns in layout.degrees():
            weights[:, columns] = np.tile(layout.weights(params)[:, p - 2], (1, p))
        own = n_outputs + of_set
        yield own, others[:, own] * weights[:, None] * roots.T[:, :, None]


def _damped(curvature: np.ndarray, alpha: float) -> np.ndarray:
    """Raise each curvature by a share of the mean of its row and column, so that steps stay bounded."""
    mean = curvature.mean(axis=0, keepdims=True) + curvature.mean(axis=1, keepdims=True)
    damped = curvature + 0.5 * np.sqrt(DAMPING) * mean + alpha
    return np.where(damped > np.finfo(curvature.dtype).tiny, damped, 1)


def _solve(
    vector: np.ndarray,
    layout: Layout,
    sizes: np.ndarray | None,
    features: np.ndarray | None,
    columns: list[np.ndarray],
    axes: list[np.ndarray],
    inverses: list[np.ndarray],
    of_bias: np.ndarray,
    of_weights: np.ndarray,
) -> np.ndarray:
    solved = np.empty_like(vector)
    layout.bias(solved)[...] = layout.bias(vector) / of_bias
    if layout.shared:
        weights = layout.weights(vector)
        layout.weights(solved)[...] = weights / of_weights.reshape(weights.shape)
    factors = layout.factors(vector) if sizes is None else layout.factors(vector) * sizes[:, None]
    rotated = factors if features is None else features.T @ factors
    for own, of_group, inverse in zip(columns, axes, inverses, strict=True):
        layout.factors(solved)[:, own] = (rotated[:, own] @ of_group * inverse) @ of_group.T
    if features is not None:
        layout.factors(solved)[...] = features @ layout.factors(solved)
    if sizes is not None:
        layout.factors(solved)[...] *= sizes[:, None]
    return solved


# ---- the sample of rows


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
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
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
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    total = np.zeros(block.basis.width)
    for start in range(0, block.n_rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        total += block.basis.lift(block.X[piece]).column_squares(weight[piece])
    return (total,)
