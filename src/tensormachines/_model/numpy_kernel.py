"""The kernel in NumPy: see `_model.kernel` for the contract."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse

from .basis import RowsInBasis
from .block import Block
from .layout import AnovaLayout, Layout
from .losses import Loss
from .rows import ROWS_AT_ONCE, Rows


def value_and_gradient(
    block: Block, layout: Layout, params: np.ndarray, loss: Loss
) -> tuple[np.ndarray, np.ndarray]:
    values = np.zeros(len(params))
    gradient = np.zeros(params.shape)
    for part in _parts(block):
        if part.weight is not None:  # a row of weight 0 is absent, even where its terms overflow
            part = part.rows(np.flatnonzero(part.weight))
        if not part.n_rows:
            continue
        lifted = part.basis.lift(part.X)
        for m, model in enumerate(params):
            rows = _rows(lifted, layout, model)
            losses, slope = loss.pointwise(part.targets, sum_up(rows, layout, model))
            if part.weight is not None:
                losses = losses * part.weight
                slope = slope * part.weight[:, None]
            values[m] += losses.sum(dtype=np.float64)
            layout.bias(gradient[m])[...] += slope.sum(axis=0)
            layout.factors(gradient[m])[...] += rows.gradient(slope)
    return values, gradient.astype(params.dtype)


def outputs(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    each = [[sum_up(_rows(rows, layout, model), layout, model) for model in params] for rows in lifted]
    return np.vstack([np.hstack(models) for models in each]).astype(block.dtype, copy=False)


def terms(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    each = [[_rows(rows, layout, model).products() for model in params] for rows in lifted]
    width = layout.n_outputs * layout.n_terms
    flat = [np.hstack([products.reshape(len(products), width) for products in models]) for models in each]
    return np.vstack(flat).astype(block.dtype, copy=False)


def _parts(block: Block) -> list[Block]:
    return [
        block.rows(slice(start, start + ROWS_AT_ONCE))
        for start in range(0, max(block.n_rows, 1), ROWS_AT_ONCE)
    ]


class RowsOfModel(Protocol):
    """Rows with one model."""

    def linear(self) -> np.ndarray:
        """(rows, n_outputs)"""

    def products(self) -> np.ndarray:
        """(rows, n_outputs, n_terms)"""

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the factors (n_features, n_outputs, n_projections), given the
        slope of the loss of each row (rows, n_outputs).
        """


def _rows(lifted: RowsInBasis, layout: Layout, model: np.ndarray) -> RowsOfModel:
    return (
        AnovaRows(lifted, layout, model)
        if isinstance(layout, AnovaLayout)
        else TensorRows(lifted, layout, model)
    )


def sum_up(rows: RowsOfModel, layout: Layout, model: np.ndarray) -> np.ndarray:
    return layout.bias(model) + rows.linear() + rows.products().sum(axis=2)


class TensorRows:
    """Rows with one Tensor Machine."""

    def __init__(self, lifted: RowsInBasis, layout: Layout, model: np.ndarray):
        self.lifted = lifted
        self.layout = layout
        product = lifted.times(layout.factors(model).reshape(layout.n_features, -1))
        self.projections = product.reshape(-1, layout.n_outputs, layout.n_projections)

    def linear(self) -> np.ndarray:
        return self.projections[:, :, 0]

    def products(self) -> np.ndarray:
        none = np.empty((len(self.projections), self.layout.n_outputs, 0), dtype=self.projections.dtype)
        return np.concatenate(
            [none, *(self._by_factor(columns, p).prod(axis=2) for p, columns in self.layout.degrees())],
            axis=2,
        )

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        slopes = self.others() * slope[:, :, None]
        gradient = self.lifted.transposed_times(slopes.reshape(len(slopes), -1))
        return gradient.reshape(self.layout.n_features, self.layout.n_outputs, -1)

    def others(self) -> np.ndarray:
        """Return the derivatives of the outputs with respect to the projections, (rows, n_outputs,
        n_projections): the product of the other factors of each term.
        """
        others = np.ones_like(self.projections)
        for p, columns in self.layout.degrees():
            others[:, :, columns] = _leave_one_out(self._by_factor(columns, p)).reshape(
                others[:, :, columns].shape
            )
        return others

    def _by_factor(self, columns: slice, p: int) -> np.ndarray:
        return self.projections[:, :, columns].reshape(
            len(self.projections), self.layout.n_outputs, p, self.layout.rank
        )


def _leave_one_out(factor: np.ndarray) -> np.ndarray:
    """Return for each factor (axis 2) the product of the *others*.

    It is prefix times suffix, because a projection may be exactly zero."""
    others = np.ones_like(factor)
    for j in range(1, factor.shape[2]):
        others[:, :, j] = others[:, :, j - 1] * factor[:, :, j - 1]
    suffix = np.ones_like(factor[:, :, 0])
    for j in range(factor.shape[2] - 1, -1, -1):
        others[:, :, j] *= suffix
        suffix = suffix * factor[:, :, j]
    return others


class AnovaRows:
    """Rows with one factorization machine.

    With u_t = v_t x_t, Newton's identities give the elementary symmetric polynomials A_m from the power sums
    P_i = sum of u_t^i,

        m A_m = sum over i = 1..m of (-1)^(i-1) A_{m-i} P_i
        dA_m / dv_t = x_t sum over i < m of (-u_t)^i A_{m-1-i}

    so that everything is products of matrices, which may be sparse. They cancel where one entry dwarfs the
    others, hence float64; the compiled kernel adds entry by entry instead."""

    def __init__(self, lifted: RowsInBasis, layout: Layout, model: np.ndarray):
        self.layout = layout
        self.factors = layout.factors(model).astype(np.float64)
        self.matrix = lifted.explicit().astype(np.float64)
        self.polynomials = {p: self._polynomials(columns, p) for p, columns in layout.degrees()}

    def linear(self) -> np.ndarray:
        return self._times(1, self.factors[:, :, :1])[:, :, 0]

    def products(self) -> np.ndarray:
        none = np.empty((self.matrix.shape[0], self.layout.n_outputs, 0))
        return np.concatenate(
            [none, *(polynomials[p] for p, polynomials in self.polynomials.items())], axis=2
        )

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        gradient = np.zeros_like(self.factors)
        gradient[:, :, 0] = self._power(1).T @ slope
        for p, columns in self.layout.degrees():
            for i in range(p):
                weighted = (slope[:, :, None] * self.polynomials[p][p - 1 - i]).reshape(len(slope), -1)
                product = (self._power(i + 1).T @ weighted).reshape(gradient[:, :, columns].shape)
                gradient[:, :, columns] += (-self.factors[:, :, columns]) ** i * product
        return gradient

    def _polynomials(self, columns: slice, p: int) -> list[np.ndarray]:
        """Return A_0 ... A_p, each (rows, n_outputs, rank)."""
        sums = [self._times(i, self.factors[:, :, columns]) for i in range(1, p + 1)]
        polynomials = [np.ones((self.matrix.shape[0], self.layout.n_outputs, self.layout.rank))]
        for m in range(1, p + 1):
            alternating = ((-1) ** (i - 1) * polynomials[m - i] * sums[i - 1] for i in range(1, m + 1))
            polynomials.append(sum(alternating, start=np.zeros_like(polynomials[0])) / m)
        return polynomials

    def _times(self, i: int, factors: np.ndarray) -> np.ndarray:
        """Return the power sums P_i, (rows, n_outputs, columns of factors)."""
        product = self._power(i) @ (factors**i).reshape(self.layout.n_features, -1)
        return product.reshape(-1, *factors.shape[1:])

    def _power(self, i: int) -> Rows:
        return self.matrix.power(i) if sparse.issparse(self.matrix) else self.matrix**i
