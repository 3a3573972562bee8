"""Where each number of a Tensor Machine stands in its flat parameter vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """The shape of one model, and the views of its flat vector.

        f_k(x) = bias_k + <linear_k, x> + sum over degree p = 2..degree, rank i of  prod_{j=1..p} <factor_kpij, x>

    ``params`` is a vector of ``size`` numbers: the biases (n_outputs), then the factors (n_features, n_outputs, n_projections), so that all
    that multiplies one feature is contiguous. The projections of an output are its linear part, then degree by degree the factors j = 1..p,
    ``rank`` of each. Arrays called params may hold several models, one a row.
    """

    n_features: int
    degree: int
    rank: int
    n_outputs: int = 1

    @property
    def n_projections(self) -> int:
        return 1 + self.rank * (self.degree * (self.degree + 1) // 2 - 1)

    @property
    def n_terms(self) -> int:
        """Products (of two and more factors) of one output."""
        return (self.degree - 1) * self.rank

    @property
    def size(self) -> int:
        return self.n_outputs * (1 + self.n_features * self.n_projections)

    def degrees(self) -> Iterator[tuple[int, slice]]:
        """Each degree p from 2 on, with the projections that belong to it; these reshape to (p, rank)."""
        start = 1
        for p in range(2, self.degree + 1):
            yield p, slice(start, start + p * self.rank)
            start += p * self.rank

    def bias(self, params: np.ndarray) -> np.ndarray:
        """View of shape (..., n_outputs)."""
        return params[..., : self.n_outputs]

    def factors(self, params: np.ndarray) -> np.ndarray:
        """View of shape (..., n_features, n_outputs, n_projections)."""
        return params[..., self.n_outputs :].reshape(*params.shape[:-1], self.n_features, self.n_outputs, self.n_projections)

    def linear(self, params: np.ndarray) -> np.ndarray:
        """The linear part of one model, (n_outputs, n_features)."""
        return self.factors(params)[:, :, 0].T

    def factors_by_degree(self, params: np.ndarray) -> dict[int, np.ndarray]:
        """The factors of one model: {p: (n_outputs, rank, p, n_features)}."""
        factors = self.factors(params)
        return {
            p: factors[:, :, columns].reshape(self.n_features, self.n_outputs, p, self.rank).transpose(1, 3, 2, 0)
            for p, columns in self.degrees()
        }

    def scale_outputs(self, params: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """One model whose outputs are multiplied by ``scale`` > 0 (n_outputs); a term shares its part equally among its factors."""
        scaled = params.copy()
        self.bias(scaled)[...] *= scale
        factors = self.factors(scaled)
        factors[:, :, 0] *= scale
        for p, columns in self.degrees():
            factors[:, :, columns] *= (scale ** (1.0 / p))[:, None]
        return scaled
