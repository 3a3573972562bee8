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
        if part.weight is not None:  # a row of weight 0 is absent, even if its terms overflow
            part = part.rows(np.flatnonzero(part.weight))
        if not part.n_rows:
            continue
        lifted = part.basis.lift(part.X)
        for m, model in enumerate(params):
            rows = _rows(lifted, layout, model)
            z = sum_up(rows, layout, model)
            z = z if part.offset is None else z + part.offset
            losses, slope = loss.pointwise(part.targets, z)
            if part.weight is not None:
                losses = losses * part.weight
                slope = slope * part.weight[:, None]
            values[m] += losses.sum(dtype=np.float64)
            _add_gradient(rows, layout, model, slope, gradient[m])
    return values, gradient.astype(params.dtype)


def outputs(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    each = [[sum_up(_rows(rows, layout, model), layout, model) for model in params] for rows in lifted]
    return np.vstack([np.hstack(models) for models in each]).astype(block.dtype, copy=False)


def terms(block: Block, layout: Layout, params: np.ndarray) -> np.ndarray:
    lifted = (part.basis.lift(part.X) for part in _parts(block))
    each = [[_rows(rows, layout, model).terms() for model in params] for rows in lifted]
    width = layout.n_sets * layout.n_terms
    flat = [np.hstack([of_model.reshape(len(of_model), width) for of_model in models]) for models in each]
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

    def terms(self) -> np.ndarray:
        """(rows, n_sets, n_terms)"""

    def gradient(self, of_linear: np.ndarray, of_terms: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the factors (n_features, n_columns), given the slopes of the
        loss with respect to the linear parts (rows, n_outputs) and the terms (rows, n_sets, n_terms).
        """


def _rows(lifted: RowsInBasis, layout: Layout, model: np.ndarray) -> RowsOfModel:
    return (
        AnovaRows(lifted, layout, model)
        if isinstance(layout, AnovaLayout)
        else TensorRows(lifted, layout, model)
    )


def sum_up(rows: RowsOfModel, layout: Layout, model: np.ndarray) -> np.ndarray:
    """Return the outputs, (rows, n_outputs)."""
    terms = rows.terms()
    of_terms = terms[:, 0] @ _weights(layout, model).T if layout.shared else terms.sum(axis=2)
    return layout.bias(model) + rows.linear() + of_terms


def _weights(layout: Layout, model: np.ndarray) -> np.ndarray:
    """(n_outputs, n_terms)"""
    return layout.weights(model).reshape(layout.n_outputs, layout.n_terms)


def _add_gradient(
    rows: RowsOfModel, layout: Layout, model: np.ndarray, slope: np.ndarray, gradient: np.ndarray
) -> None:
    """Add the gradient of one model, given the slope of the loss of each row (rows, n_outputs)."""
    layout.bias(gradient)[...] += slope.sum(axis=0)
    if layout.shared:
        of_weights = slope.T @ rows.terms()[:, 0]
        layout.weights(gradient)[...] += of_weights.reshape(layout.weights(gradient).shape)
        of_terms = (slope @ _weights(layout, model))[:, None]
    else:
        of_terms = np.repeat(slope[:, :, None], layout.n_terms, axis=2)
    layout.factors(gradient)[...] += rows.gradient(slope, of_terms)


class TensorRows:
    """Rows with one Tensor Machine."""

    def __init__(self, lifted: RowsInBasis, layout: Layout, model: np.ndarray):
        self.lifted = lifted
        self.layout = layout
        self.projections = lifted.times(layout.factors(model))  # (rows, n_columns)

    def linear(self) -> np.ndarray:
        return self.projections[:, : self.layout.n_outputs]

    def terms(self) -> np.ndarray:
        none = np.empty((len(self.projections), self.layout.n_sets, 0), dtype=self.projections.dtype)
        return np.concatenate([none, *(factors.prod(axis=2) for factors in self._by_factor())], axis=2)

    def gradient(self, of_linear: np.ndarray, of_terms: np.ndarray) -> np.ndarray:
        slopes = self.others()
        slopes[:, : self.layout.n_outputs] *= of_linear
        of_sets, rank = self.layout.by_set(slopes), self.layout.rank
        for p, columns in self.layout.degrees():
            of_degree = of_terms[:, :, (p - 2) * rank : (p - 1) * rank]
            of_sets[:, :, columns] *= np.tile(of_degree, (1, 1, p))
        return self.lifted.transposed_times(slopes)

    def others(self) -> np.ndarray:
        """Return the derivatives of linear parts and terms with respect to the projections, (rows,
        n_columns): 1, and the product of the other factors of each term.
        """
        others = np.ones_like(self.projections)
        of_sets = self.layout.by_set(others)
        for (_, columns), factors in zip(self.layout.degrees(), self._by_factor(), strict=True):
            of_sets[:, :, columns] = _leave_one_out(factors).reshape(of_sets[:, :, columns].shape)
        return others

    def _by_factor(self) -> list[np.ndarray]:
        """Return the projections of the terms of each degree p, (rows, n_sets, p, rank)."""
        of_sets = self.layout.by_set(self.projections)
        return [
            of_sets[:, :, columns].reshape(*of_sets.shape[:2], p, self.layout.rank)
            for p, columns in self.layout.degrees()
        ]


def _leave_one_out(factor: np.ndarray) -> np.ndarray:
    """Return for each factor (axis 2) the product of the *others*.

    Compute it as prefix times suffix, because a projection may be exactly zero."""
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

    so that everything is matrix products, and the matrices may be sparse. Sums cancel if one entry dwarfs the
    others, hence float64; the compiled kernel adds entry by entry instead."""

    def __init__(self, lifted: RowsInBasis, layout: Layout, model: np.ndarray):
        self.layout = layout
        self.of_linear = layout.linear(model).astype(np.float64)
        self.of_terms = layout.terms(model).astype(np.float64)
        self.matrix = lifted.explicit().astype(np.float64)
        self.polynomials = {p: self._polynomials(columns, p) for p, columns in layout.degrees()}

    def linear(self) -> np.ndarray:
        return self.matrix @ self.of_linear

    def terms(self) -> np.ndarray:
        none = np.empty((self.matrix.shape[0], self.layout.n_sets, 0))
        return np.concatenate(
            [none, *(polynomials[p] for p, polynomials in self.polynomials.items())], axis=2
        )

    def gradient(self, of_linear: np.ndarray, of_terms: np.ndarray) -> np.ndarray:
        gradient = np.zeros_like(self.of_terms)
        for p, columns in self.layout.degrees():
            for i in range(p):
                weighted = (of_terms[:, :, columns] * self.polynomials[p][p - 1 - i]).reshape(
                    len(of_terms), -1
                )
                product = (self._power(i + 1).T @ weighted).reshape(gradient[:, :, columns].shape)
                gradient[:, :, columns] += (-self.of_terms[:, :, columns]) ** i * product
        return np.hstack([self.matrix.T @ of_linear, gradient.reshape(self.layout.n_features, -1)])

    def _polynomials(self, columns: slice, p: int) -> list[np.ndarray]:
        """Return A_0 ... A_p, each (rows, n_sets, rank)."""
        sums = [self._times(i, self.of_terms[:, :, columns]) for i in range(1, p + 1)]
        polynomials = [np.ones((self.matrix.shape[0], self.layout.n_sets, self.layout.rank))]
        for m in range(1, p + 1):
            alternating = ((-1) ** (i - 1) * polynomials[m - i] * sums[i - 1] for i in range(1, m + 1))
            polynomials.append(sum(alternating, start=np.zeros_like(polynomials[0])) / m)
        return polynomials

    def _times(self, i: int, factors: np.ndarray) -> np.ndarray:
        """Return the power sums P_i, (rows, n_sets, columns of factors)."""
        product = self._power(i) @ (factors**i).reshape(self.layout.n_features, -1)
        return product.reshape(-1, *factors.shape[1:])

    def _power(self, i: int) -> Rows:
        return self.matrix.power(i) if sparse.issparse(self.matrix) else self.matrix**i
