"""What is fitted: rows and targets as the solver sees them, and the conversion back to the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import Self

import numpy as np

from .._data.training import Recipe
from .._model.basis import Basis
from .._model.block import Block, Blocks, BlocksInMemory, ChangedBlocks, in_basis
from .._model.layout import AnovaLayout, Layout, weighted_sum
from .._model.losses import SQUARED, Loss
from .._model.machine import Machine
from .._model.moments import Moments, moments
from .._model.objective import Objective
from .._model.spline_basis import SplineBasis
from .constraints import Constraints
from .curvature import MOST_FEATURES, Curvature
from .curvature_rows import curvature_rows, mean_squares
from .random_start import START_SIZE, random_start
from .trend import MOST_ENTRIES, Trend, fit_trend

SHRINK, MOST_SHRINKS = 0.7, 30

PartCount = Callable[[int], int]  # number of parts, from the number of rows


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows in a basis learned from them; numeric targets are standardised, and classes are numbered.

    Solvers see ``params`` of the standardised target; `machine` converts them to the units of the user: it
    multiplies outputs by ``deviation`` and adds ``center``, see `_fit.target_units`. `params` converts a
    machine back. ``noise`` multiplies the default penalty. ``largest`` is the same as in `TargetUnits`.

    ``blocks`` are the training rows, ``sample`` is a sample of them, and ``held_out`` are the rows for early
    stopping. ``sizes`` are the expected sizes of the coefficients of the features, see `Objective`.
    ``column_squares`` are the mean squares of columns that the basis does not scale, if they were measured.
    ``dtype`` is the type of blocks and params, ``machine_dtype`` the type of machines. If there is a
    ``trend``, in the units of the target, the params belong to a model of its residuals. ``jumping`` is the
    basis with additional jumps, if there are jumps that the basis lacks.
    """

    n_rows: int
    flat: bool
    checksum: int
    dtype: np.dtype
    machine_dtype: np.dtype
    sparse: bool
    labels: np.ndarray | None
    center: np.ndarray
    deviation: np.ndarray
    loss: Loss
    basis: Basis
    layout: Layout
    parts: PartCount | None
    column_squares: np.ndarray | None
    recipe: Recipe
    blocks: Blocks
    sample: Blocks
    held_out: Blocks | None
    sizes: np.ndarray | None = None
    trend: Trend | None = None
    noise: float = 1.0
    largest: np.ndarray | None = None
    jumping: SplineBasis | None = None
    constraints: Constraints | None = None

    def without_rows(self) -> Self:
        """Return the same problem without its rows."""
        return replace(self, blocks=BlocksInMemory([]), sample=BlocksInMemory([]), held_out=None)

    def with_shape(self, degree: int, rank: int) -> Self:
        """Return the same rows in the same basis, for a model of another shape."""
        return replace(self, layout=replace(self.layout, degree=degree, rank=rank))

    def with_share(self, share: float, seed: int) -> Self:
        """Return the same problem with a random share of the rows, and the number of parts for so few rows.

        The basis and the units of the target remain those learned from all rows.
        """
        if share >= 1:
            return self
        assert isinstance(self.blocks, BlocksInMemory), "only rows in memory can be cut"
        blocks = self.blocks.blocks
        n_parts = 1 if self.parts is None else min(self.parts(ceil(share * self.n_rows)), len(blocks))
        of_part = min(1.0, share * len(blocks) / n_parts)
        random = np.random.default_rng(seed)

        def some_rows(block: Block) -> Block:
            return block.rows(np.sort(random.permutation(block.n_rows)[: ceil(of_part * block.n_rows)]))

        kept = blocks[:n_parts]
        return replace(self, blocks=BlocksInMemory([some_rows(b) for b in kept] if of_part < 1 else kept))

    def with_jumps(self) -> Self:
        """Return the same rows in the basis that has jumps."""
        assert self.jumping is not None
        basis, of_blocks = self.jumping, self.jumping.astype(self.dtype)
        sizes = None
        if self.sizes is not None:
            sizes = np.ones(basis.width)
            sizes[~basis.is_jump] = self.sizes
        return replace(
            self._with_blocks(partial(in_basis, basis=of_blocks)),
            basis=basis,
            layout=replace(self.layout, n_features=basis.width),
            recipe=replace(self.recipe, basis=of_blocks),
            sizes=sizes,
            trend=None if self.trend is None else self.trend.beside(basis),
            jumping=None,
        )

    @property
    def can_have_trend(self) -> bool:
        splines = isinstance(self.basis, SplineBasis) and not isinstance(self.layout, AnovaLayout)
        unsigned = self.constraints is None or not self.constraints.monotonic
        return splines and unsigned and (self.loss == SQUARED or self.loss.of_classes)

    def fit_trend(self, most_entries: int = MOST_ENTRIES) -> Trend | None:
        """Return the trend of the targets; None if there are too many features for the rows."""
        basis = self.recipe.basis
        assert isinstance(basis, SplineBasis), "only splines have a trend"
        return fit_trend(self.blocks, basis, self.loss, self.layout.n_outputs, most_entries)

    def without_trend(self, trend: Trend | None) -> Self:
        """Return the problem that remains after a trend of the targets: numbers minus the trend, or classes
        with the trend as the offset of their outputs. Without a trend, return the same problem."""
        if trend is None:
            return self
        if self.loss.of_classes:
            rest = self._with_blocks(lambda block: replace(block, offset=trend.outputs(block)))
            return replace(rest, trend=trend)

        def left(block: Block) -> Block:
            return replace(block, y=block.targets - trend.outputs(block))

        def in_units(block: Block) -> Block:
            rest = left(block)
            return replace(rest, y=rest.targets / deviation)

        (found,) = ChangedBlocks(self.blocks, left).total(_moments_of_targets)
        deviation = np.where(found.deviation > 0, found.deviation, 1.0)
        rest = self._with_blocks(in_units)
        return replace(rest, deviation=self.deviation * deviation, trend=trend.times(self.deviation))

    def _with_blocks(self, change: Callable[[Block], Block]) -> Self:
        """Return the problem with each block changed."""
        held_out = None if self.held_out is None else self.held_out.changed(change)
        return replace(
            self, blocks=self.blocks.changed(change), sample=self.sample.changed(change), held_out=held_out
        )

    def adopt(self, basis: Basis) -> Self:
        """Return the problem with the basis of another fit, if it is of the same kind, for later rows."""
        both_splines = isinstance(basis, SplineBasis) and isinstance(self.basis, SplineBasis)
        if not (both_splines or basis.kind == self.basis.kind):
            return self
        basis = basis.astype(self.dtype)
        layout = replace(self.layout, n_features=basis.width)
        return replace(self, basis=basis, layout=layout, recipe=replace(self.recipe, basis=basis))

    def objective(self, alpha: float, threads: int) -> Objective:
        columns = self.basis.groups if isinstance(self.basis, SplineBasis) else None
        return Objective(self.blocks, self.layout, self.loss, alpha, threads, self.sizes, columns)

    @cached_property
    def free(self) -> np.ndarray | None:
        """Return a mask of the params that may differ from 0; None if all may."""
        return None if self.constraints is None else self.constraints.free(self.layout, self.basis)

    def easily_reached(self) -> float:
        """Return approximately the loss of a start, which is near the mean of y, for a loss with a log link.

        Such a loss is exponential in the outputs, and a solver never recovers from a few steps that are too
        long."""
        if not self.loss.log_link:
            return np.inf
        losses, weight = self.sample.total(partial(_losses_at_zero, loss=self.loss))
        return losses / max(weight, np.finfo(float).tiny) + 0.5 * START_SIZE**2

    def random_start(self, init_scale: float | str, random_state: np.random.RandomState) -> np.ndarray:
        sizes = np.ones(self.layout.n_features) if self.sizes is None else self.sizes
        if self.sparse and self.column_squares is not None:
            squares = np.where(np.isfinite(self.column_squares), self.column_squares, 1.0)
            sizes = sizes / np.sqrt(np.maximum(1, squares))
        start = random_start(self.sample, self.layout, init_scale, random_state, self.dtype, sizes, self.free)
        return self._calm(start) if self.loss.log_link and init_scale == "auto" else start

    def _calm(self, start: np.ndarray) -> np.ndarray:
        """Return a smaller start if the exponentials of a few outputs dwarf those of the other rows."""
        objective = Objective(self.sample, self.layout, self.loss, 0.0)
        for _ in range(MOST_SHRINKS):
            if objective.mean_loss(start[None])[0] <= 2 * self.easily_reached():
                break
            self.layout.terms(start)[...] *= SHRINK
        return start

    def curvature(self, alpha: float) -> Curvature | None:
        """Return the curvature for "kfac"; None for factorization machines, whose terms are not products."""
        if isinstance(self.layout, AnovaLayout):
            return None
        return Curvature(self.layout, self.loss, alpha, *self._curvature_rows, self.sizes)

    @cached_property
    def _curvature_rows(self) -> tuple[Block, np.ndarray | None]:
        rows = curvature_rows(self.sample, self.blocks, self.basis)
        return rows, mean_squares(self.blocks, rows) if self.layout.n_features > MOST_FEATURES else None

    def machine(self, params: np.ndarray) -> Machine:
        """Convert params of a solver to a machine, in the units of the target."""
        params = params.astype(self.machine_dtype)
        params = self.layout.scale_outputs(params, self.deviation.astype(params.dtype))
        self.layout.bias(params)[...] += self.center
        machine = Machine(self.basis, self.layout, params)
        return machine if self.trend is None else self.trend.add_to(machine)

    def with_trend(self, params: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return the same rows, to be read a few times, in a basis with the trend, and params that include
        it.
        """
        if self.trend is None:
            return self, params
        basis, machine = self.trend.basis.astype(self.dtype), self.machine(params)

        def widened(block: Block) -> Block:
            return replace(block, basis=basis, offset=None)

        blocks, sample = (ChangedBlocks(each, widened) for each in (self.blocks, self.sample))
        wide = replace(self, blocks=blocks, sample=sample, held_out=None)
        wide = replace(wide, basis=basis, layout=machine.layout, trend=None)
        return wide, wide.params(machine)

    def params(self, machine: Machine) -> np.ndarray:
        """Convert a fitted machine back to params of a solver."""
        basis = self.basis if self.trend is None else self.trend.basis
        layout = replace(self.layout, n_features=basis.width)
        if machine.layout != layout or machine.basis.kind != basis.kind:
            raise ValueError(
                "A fit can only continue from a model of the same shape and basis: the model has "
                f"{_shape_in_words(machine.layout, machine.basis)}, this fit has "
                f"{_shape_in_words(layout, basis)}. Other rows may have other levels, missing values or "
                "jumps: learn from new rows by partial_fit, or set warm_start=False to start anew."
            )
        if self.trend is not None:
            assert isinstance(self.basis, SplineBasis)
            machine = self.trend.take_from(machine, self.basis)
        params = machine.params.astype(np.float64)
        self.layout.bias(params)[...] -= self.center
        return self.layout.scale_outputs(params, 1 / self.deviation).astype(self.dtype)

    def average(self, models: Sequence[np.ndarray]) -> tuple[Self, np.ndarray]:
        """Return the mean of several models: a problem with the shape of the mean, and its params."""
        if len(models) == 1:
            return self, models[0]
        share = 1 / len(models)
        layout, params = weighted_sum([(self.layout, model) for model in models], [share] * len(models))
        return replace(self, layout=layout), params


def _moments_of_targets(block: Block) -> tuple[Moments]:
    return (moments(block.targets, block.weight),)


def _losses_at_zero(block: Block, loss: Loss) -> tuple[float, float]:
    weight = block.row_weights
    losses = loss.pointwise(block.targets, np.zeros_like(block.targets))[0]
    return float(weight @ losses), float(weight.sum())


def _shape_in_words(layout: Layout, basis: Basis) -> str:
    of_outputs = f"{layout.n_outputs} outputs{' with shared factors' if layout.shared else ''}"
    shape = f"degree {layout.degree}, rank {layout.rank}, {of_outputs}"
    return f"{shape}, {layout.n_features} features of {basis.describe()}"
