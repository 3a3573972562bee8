"""The place of each number of a Tensor Machine in its flat parameter vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np


@dataclass(frozen=True)
class Layout:
    """The shape of one model, and the views of its flat vector.

        f_k(x) = bias_k + <linear_k, x> + sum over p = 2..degree, i = 1..rank of  prod_{j=1..p} <v_kpij, x>

    ``params`` is a vector of ``size`` numbers: the biases (n_outputs), then the factors (n_features,
    n_outputs, n_projections), so that all that multiplies one feature is contiguous. The projections of an
    output are its linear part, then degree by degree the factors j = 1..p, ``rank`` of each. Arrays called
    params may hold several models, one per row."""

    code: ClassVar[int] = 0  # of the compiled kernel

    n_features: int
    degree: int
    rank: int
    n_outputs: int = 1

    def factors_in_term(self, p: int) -> int:
        return p

    @property
    def n_projections(self) -> int:
        return 1 + self.rank * (self.degree * (self.degree + 1) // 2 - 1)

    @property
    def n_terms(self) -> int:
        """Return the number of products (of two and more factors) of one output."""
        return (self.degree - 1) * self.rank

    @property
    def size(self) -> int:
        return self.n_outputs * (1 + self.n_features * self.n_projections)

    def degrees(self) -> Iterator[tuple[int, slice]]:
        """Yield each degree p from 2 on, and its projections, which reshape to (factors_in_term(p), rank)."""
        start = 1
        for p in range(2, self.degree + 1):
            stop = start + self.factors_in_term(p) * self.rank
            yield p, slice(start, stop)
            start = stop

    def bias(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_outputs)."""
        return params[..., : self.n_outputs]

    def factors(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_features, n_outputs, n_projections)."""
        return params[..., self.n_outputs :].reshape(
            *params.shape[:-1], self.n_features, self.n_outputs, self.n_projections
        )

    def linear(self, params: np.ndarray) -> np.ndarray:
        """Return the linear part of one model, (n_outputs, n_features)."""
        return self.factors(params)[:, :, 0].T

    def factors_by_degree(self, params: np.ndarray) -> dict[int, np.ndarray]:
        """Return the factors of one model: {p: (n_outputs, rank, p, n_features)}."""
        factors, shape = self.factors(params), (self.n_features, self.n_outputs, -1, self.rank)
        return {
            p: factors[:, :, columns].reshape(shape).transpose(1, 3, 2, 0) for p, columns in self.degrees()
        }

    def terms_before(self, rank: int) -> np.ndarray:
        """Return the places of the params of the model with only the first ``rank`` terms of each degree."""
        numbers = self.factors(np.arange(self.size))
        kept = [numbers[:, :, :1]]
        for _, columns in self.degrees():
            terms = numbers[:, :, columns].reshape(*numbers.shape[:2], -1, self.rank)[..., :rank]
            kept.append(terms.reshape(*numbers.shape[:2], terms.shape[2] * terms.shape[3]))
        return np.concatenate([np.arange(self.n_outputs), np.concatenate(kept, axis=2).ravel()])

    def with_rank(self, rank: int) -> Self:
        return replace(self, rank=rank) if rank else replace(self, degree=1, rank=1)

    def average(self, models: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return the mean of several models, one per row, as a layout whose rank is their sum, and params."""
        layout = self.with_rank(len(models) * self.rank) if self.degree > 1 else self
        mean = np.empty(layout.size, dtype=models.dtype)
        layout.bias(mean)[...] = self.bias(models).mean(axis=0)
        ours, theirs = layout.factors(mean), self.factors(models)
        ours[:, :, 0] = theirs[..., 0].mean(axis=0)
        for (p, columns), (_, of_one) in zip(layout.degrees(), self.degrees(), strict=True):
            terms = theirs[..., of_one].reshape(
                len(models), self.n_features, self.n_outputs, self.factors_in_term(p), self.rank
            )
            beside = np.moveaxis(terms, 0, 3).reshape(self.n_features, self.n_outputs, -1)
            ours[:, :, columns] = beside * models.dtype.type(len(models) ** (-1 / p))
        return layout, mean

    def scale_outputs(self, params: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return one model with its outputs multiplied by ``scale`` > 0 (n_outputs).

        The factors of a term share its multiplier equally."""
        scaled = params.copy()
        self.bias(scaled)[...] *= scale
        factors = self.factors(scaled)
        factors[:, :, 0] *= scale
        for p, columns in self.degrees():
            factors[:, :, columns] *= (scale ** (1.0 / p))[:, None]
        return scaled


@dataclass(frozen=True)
class AnovaLayout(Layout):
    """A factorization machine: a term has one factor, and is a sum over sets of p different features,

        f_k(x) = bias_k + <linear_k, x>
            + sum over p = 2..degree, i = 1..rank of  sum over t1 < ... < tp of  prod_{t=t1..tp} v_kpi[t] x_t

    As in a product, multiplying the factor by c multiplies the term by c^p."""

    code: ClassVar[int] = 1

    def factors_in_term(self, p: int) -> int:
        return 1

    @property
    def n_projections(self) -> int:
        return 1 + self.rank * (self.degree - 1)

    def factors_by_degree(self, params: np.ndarray) -> dict[int, np.ndarray]:
        """Return the factors of one model: {p: (n_outputs, rank, n_features)}."""
        factors = self.factors(params)
        return {p: factors[:, :, columns].transpose(1, 2, 0) for p, columns in self.degrees()}
