"""The curvature of solver="kfac", which is L-BFGS with a Kronecker-factored inverse curvature.

The Gauss-Newton matrix of the factors is the mean over rows of h (l l') (x) (t t'), where t is the
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
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh

from .._model.basis import AffineRows, RowsInBasis
from .._model.block import Block
from .._model.layout import Layout
from .._model.losses import Loss
from .._model.numpy_kernel import TensorRows, sum_up

MOST_FEATURES = 1024  # with more, A is diagonal
DAMPING = 0.1
LEAST_CURVATURE = 1e-12  # of the largest: a smaller one without a penalty is a rounding error

Solve = Callable[[np.ndarray], np.ndarray]


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
        weight = rows.row_weights
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
    damped = np.maximum(damped, LEAST_CURVATURE * damped.max())
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
