"""What is fitted: rows and targets as the solver sees them, and the way back to the user's units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._blocks import Block
from ._layout import Layout
from ._losses import SQUARED, Loss
from ._machine import Machine
from ._objective import Objective
from .basis import Rows, fit_basis, is_constant


class Problem:
    """Weighted rows in a basis that is learnt from them, with a target that is standardised for the squared loss.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (rows, columns)
    y : ndarray of shape (rows, targets), float64
        See `_losses.Loss`.
    weight : ndarray of shape (rows,), optional
    held_out : ndarray of row numbers, optional
        Rows to validate on. They get weight 0 in training, which spares a copy of all the others.
    """

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        held_out: np.ndarray | None,
        *,
        basis: str | None,
        degree: int,
        rank: int,
        n_outputs: int,
        loss: Loss,
    ):
        if weight is not None:
            weight = weight / weight.max()  # only ratios matter, and these survive in float32
        training = weight
        if held_out is not None:
            training = np.ones(len(y)) if weight is None else weight.copy()
            training[held_out] = 0
            if not training.any() or (weight is not None and not weight[held_out].any()):
                raise ValueError("early_stopping needs rows of positive weight both to train on and to hold out.")
        fitted = fit_basis(basis, X, np.ones(len(y)) if training is None else training)
        self.loss = loss
        self.layout = Layout(fitted.width, degree, rank, n_outputs)
        self.center, self.spread = np.zeros(n_outputs), np.ones(n_outputs)
        if loss is SQUARED:
            self.center, self.spread = _center_and_spread(y, training)
            if not np.abs([self.center, self.spread]).max() < 1e-3 * np.finfo(X.dtype).max:
                raise ValueError(f"y has values too large for {X.dtype}: divide it by a power of ten, or give X in float64.")
            y = (y - self.center) / self.spread
        self.block = Block(X, fitted, y, training)
        self.held_out: Block | None = None
        if held_out is not None:
            self.held_out = Block(X[held_out], fitted, y[held_out], None if weight is None else weight[held_out])

    def objective(self, alpha: float, threads: int) -> Objective:
        return Objective([self.block], self.layout, self.loss, alpha, threads)

    def machine(self, params: np.ndarray) -> Machine:
        """The model that a solver's params stand for, in the units of the target."""
        params = self.layout.scale_outputs(params, self.spread.astype(params.dtype))
        self.layout.bias(params)[...] += self.center
        return Machine(self.block.basis, self.layout, params)

    def params(self, machine: Machine) -> np.ndarray:
        """The other way round."""
        if machine.layout != self.layout or machine.basis.kind != self.block.basis.kind:
            raise ValueError(
                f"warm_start needs a model of the same shape and basis as before: that was {machine.layout}, this is {self.layout}. "
                "Set warm_start=False to start afresh."
            )
        params = machine.params.astype(np.float64)
        self.layout.bias(params)[...] -= self.center
        return self.layout.scale_outputs(params, 1 / self.spread).astype(self.block.dtype)

    def ball(self, max_norm: float) -> Callable[[np.ndarray], np.ndarray]:
        """Projection onto: every factor and linear part of norm at most ``max_norm``, in the units of the target."""
        layout = self.layout
        radius = np.empty((layout.n_outputs, layout.n_projections))
        radius[:, 0] = max_norm / self.spread
        for p, columns in layout.degrees():
            radius[:, columns] = (max_norm / self.spread ** (1 / p))[:, None]

        def project(params: np.ndarray) -> np.ndarray:
            projected = params.copy()
            factors = layout.factors(projected)
            norms = np.linalg.norm(factors, axis=0)
            factors *= np.where(norms > radius, radius / np.where(norms > 0, norms, 1), 1)
            return projected

        return project


def _center_and_spread(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each output; the latter 1 for a constant."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.average(y, axis=0, weights=weight)
        spread = np.sqrt(np.average((y - center) ** 2, axis=0, weights=weight))
        constant = is_constant(center, spread, len(y))
    return center, np.where(constant, 1.0, spread)
