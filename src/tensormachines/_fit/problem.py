"""What is fitted: rows and targets as the solver sees them, and the way back to the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, isqrt

import numpy as np
from scipy import sparse

from .._data.row_assignment import part_count
from .._data.table import Recipe, Summarise, Summary, Table, ValidationRows
from .._model.basis import AnyBasis, fit_basis
from .._model.block import Block, Blocks, BlocksInMemory
from .._model.layout import AnovaLayout, Layout
from .._model.losses import LOGISTIC, MULTINOMIAL, SQUARED
from .._model.machine import Machine
from .._model.moments import Moments, moments
from .._model.objective import Objective
from .._model.spline_basis import SplineBasis, SplineRows, learn_splines
from .kfac import MOST_FEATURES, Curvature, curvature_rows, mean_squares
from .random_start import random_start

SPLINE = "spline"
ROWS_SAMPLED = 4096  # for the scale of the start
ROWS_OF_MINIBATCH, FEWEST_ROWS_OF_MINIBATCH = 512, 128  # fewer rows where there would not be many minibatches
MANY_MINIBATCHES, FEWEST_MINIBATCHES = 30, 10
# mean square of what a projection is multiplied with: terms are small fractions of a target of variance 1
REST_OF_TERM = 0.05

NEGLIGIBLE = 2e-5  # share of the variance of a factor
LEAST_RELEVANT = 1e-3  # what is left of the squared size of a column in one round

PartCount = Callable[[int], int]  # of the number of rows

# Weights of the classes by label, from the labels and the weights of their rows.
ClassFactors = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Target:
    """What y holds: numbers, or labels of classes.

    Where the ``labels`` are known beforehand, y holds their numbers 0, 1, ...; otherwise the labels
    themselves."""

    classification: bool = False
    labels: np.ndarray | None = None
    class_factors: ClassFactors | None = None


@dataclass(frozen=True)
class Bases:
    """Names of the bases for rows that are dense, and for rows that are sparse.

    ``levels``: of dense rows, the number of levels of each column that is a category, None for a number; or
    None if all are numbers."""

    dense: str | None
    sparse: str | None
    levels: tuple[int | None, ...] | None = None


class Problem:
    """The rows of a table in a basis that is learnt from them, with a target that is standardised for the
    squared loss.

    ``layout(n_features=..., n_outputs=...)`` makes the shape of the model. ``seed`` decides which rows go to
    which part, and ``parts`` tells how many of these there are to be; without it, a table in memory stays in
    one piece, uncopied. ``column_sizes``: whether a solver will ask for `step_units`; dense columns that stay
    as they are need not be measured otherwise."""

    def __init__(
        self,
        table: Table,
        target: Target,
        validation: ValidationRows,
        *,
        bases: Bases,
        layout: Callable[..., Layout],
        parts: PartCount | None,
        seed: int,
        fingerprint: bool = False,
        column_sizes: bool = True,
    ):
        by_label = target.class_factors is not None
        measured = column_sizes or bases.dense is not None
        summary: Summary = table.total(
            Summarise(
                target.classification, by_label, validation, fingerprint, bases.dense == SPLINE, measured
            )
        )
        self.n_rows = summary.n_rows
        self.flat = table.flat
        self.checksum = summary.checksum
        self.dtype = summary.dtype
        classes, self.labels = _classes(summary, target)
        factors = _class_factors(summary, target, classes, self.labels)
        rows = summary.moments({} if factors is None else dict(zip(classes.tolist(), factors, strict=True)))
        _require_rows(
            rows.weight, summary.validation_weight, validated=validation.fraction > 0 or validation.given
        )
        self.center, self.spread = _center_and_spread(summary)
        self.loss = (LOGISTIC if len(classes) == 2 else MULTINOMIAL) if target.classification else SQUARED
        n_outputs = len(classes) if self.loss is MULTINOMIAL else len(self.center)
        self.basis = _learn_basis(bases, summary, rows)
        self.layout = layout(n_features=self.basis.width, n_outputs=n_outputs)
        self.parts = parts
        self.sizes: np.ndarray | None = None
        as_they_are = (
            rows.mean_squares
            if self.basis.scale is None and not isinstance(self.basis, SplineBasis)
            else None
        )
        self.mean_squares = (
            as_they_are if summary.sparse else None
        )  # of sparse columns that the basis leaves as they are
        self.dense_squares = None if summary.sparse or not measured else as_they_are
        self.recipe = Recipe(
            basis=self.basis,
            n_parts=1 if parts is None and not table.streams else (parts or part_count)(summary.n_rows),
            stride=-(-summary.n_rows // ROWS_SAMPLED),
            seed=seed,
            validation=validation,
            center=self.center,
            spread=self.spread,
            largest_weight=summary.largest_weight,
            classes=classes if target.classification else None,
            class_factors=factors,
        )
        self.blocks, self.sample, self.held_out = table.blocks(self.recipe)

    def without_rows(self) -> Problem:
        """The same, but for the rows."""
        problem = copy(self)
        problem.blocks = problem.sample = BlocksInMemory([])
        problem.held_out = None
        return problem

    def with_shape(self, degree: int, rank: int) -> Problem:
        """The same rows in the same basis, for a model of another shape."""
        problem = copy(self)
        problem.layout = replace(self.layout, degree=degree, rank=rank)
        return problem

    def with_share(self, share: float, seed: int) -> Problem:
        """The same with only a share of the rows, at random, in as many parts as a table of so many rows has.

        Basis and units of the target stay as they were learnt from all rows.
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

        problem = copy(self)
        problem.blocks = BlocksInMemory(
            [some_rows(block) if of_part < 1 else block for block in blocks[:n_parts]]
        )
        return problem

    def adopt(self, basis: AnyBasis) -> None:
        """Go on with the basis of another fit, of the same name, for the rows to come."""
        both_splines = isinstance(basis, SplineBasis) and isinstance(
            self.basis, SplineBasis
        )  # of which few rows have fewer
        if both_splines or basis.kind == self.basis.kind:
            self.basis = basis.astype(self.dtype)
            self.layout = replace(self.layout, n_features=basis.width)
            self.recipe = replace(self.recipe, basis=self.basis)

    def random_start(self, init_scale: float | str, random_state: np.random.RandomState) -> np.ndarray:
        sizes = np.ones(self.layout.n_features) if self.sizes is None else self.sizes
        if self.mean_squares is not None:
            sizes = sizes / np.sqrt(
                np.maximum(1, np.where(np.isfinite(self.mean_squares), self.mean_squares, 1.0))
            )
        return random_start(self.sample, self.layout, init_scale, random_state, self.dtype, sizes)

    def objective(self, alpha: float, threads: int) -> Objective:
        return Objective(self.blocks, self.layout, self.loss, alpha, threads, self.sizes)

    def weigh_columns(self, params: np.ndarray) -> None:
        """Expect of each column of X coefficients of the size that they have in a model, on average over all
        its factors.

        So columns that matter are penalised less from now on, and those that do not, more: what is repeated a
        few times ends where a column is as small as it is expected to be (automatic relevance determination,
        MacKay 1994), or left out."""
        before = np.ones(self.layout.n_features) if self.sizes is None else self.sizes
        factors = self.layout.factors(params).reshape(self.layout.n_features, -1).astype(np.float64)
        found = np.mean((factors / before[:, None]) ** 2, axis=1)  # of the size that was expected
        column, inverse = np.unique(self.basis.groups, return_inverse=True)
        found = np.bincount(inverse, found) / np.bincount(inverse)
        of_input = column >= 0  # the constant is no column
        if not (of_input.any() and found[of_input].any()):
            return
        squares = np.bincount(inverse, before**2) / np.bincount(inverse)
        squares[of_input] *= np.maximum(found[of_input] / found[of_input].mean(), LEAST_RELEVANT)
        squares[of_input] /= squares[of_input].mean()
        self.sizes = np.sqrt(squares)[inverse]

    def minibatches(self) -> Blocks | None:
        """The rows in small parts; None where that would be no help, or would cost too much.

        Those of a table in memory are every so many rows, uncopied; these are a prime number, which no
        regularity of the table divides."""
        if not isinstance(self.blocks, BlocksInMemory):
            return self.blocks if len(self.blocks.weights) >= FEWEST_MINIBATCHES else None
        (block,) = self.blocks.blocks
        count = max(
            block.n_rows // ROWS_OF_MINIBATCH, min(MANY_MINIBATCHES, block.n_rows // FEWEST_ROWS_OF_MINIBATCH)
        )
        entries = block.X.nnz / block.n_rows if sparse.issparse(block.X) else self.layout.n_features
        if count < FEWEST_MINIBATCHES or self.layout.n_features > ROWS_OF_MINIBATCH / 4 * entries:
            return None
        while any(count % k == 0 for k in range(2, isqrt(count) + 1)):
            count += 1
        return BlocksInMemory([block.rows(slice(number, None, count)) for number in range(count)])

    def curvature(self, alpha: float) -> Curvature | None:
        """None for a factorization machine, whose terms are no products of projections."""
        if isinstance(self.layout, AnovaLayout):
            return None
        return Curvature(self.layout, self.loss, alpha, *self._curvature_data, self.sizes)

    @cached_property
    def _curvature_data(self) -> tuple[Block, np.ndarray | None]:
        rows = curvature_rows(self.sample, self.blocks, self.basis)
        return rows, mean_squares(self.blocks, rows) if self.layout.n_features > MOST_FEATURES else None

    def machine(self, params: np.ndarray) -> Machine:
        """The model that a solver's params stand for, in the units of the target."""
        params = self.layout.scale_outputs(params, self.spread.astype(params.dtype))
        self.layout.bias(params)[...] += self.center
        return Machine(self.basis, self.layout, params)

    def params(self, machine: Machine) -> np.ndarray:
        """The other way round."""
        if machine.layout != self.layout or machine.basis.kind != self.basis.kind:
            raise ValueError(
                f"To go on from a model it must have the same shape and basis: that was {machine.layout} of {machine.basis.describe()}, "
                f"this is {self.layout} of {self.basis.describe()}. "
                "Set warm_start=False to start afresh, or fit a clone."
            )
        params = machine.params.astype(np.float64)
        self.layout.bias(params)[...] -= self.center
        return self.layout.scale_outputs(params, 1 / self.spread).astype(self.dtype)

    def average(self, models: Sequence[np.ndarray]) -> tuple[Problem, np.ndarray]:
        """The mean of several models: the problem for models of its shape, and its params."""
        if len(models) == 1:
            return self, models[0]
        problem = copy(self)
        problem.layout, params = self.layout.average(np.stack(models))
        return problem, params

    def reach(self, units: np.ndarray | None) -> float:
        """The mean over the sampled rows of the sum of the absolute values that a row has in its basis.

        Where that leaves the columns as they are, they are measured in the ``units`` of their coefficients.
        """
        of_columns = np.ones(self.layout.n_features)
        if units is not None and not (self.mean_squares is None and self.dense_squares is None):
            of_columns = self.layout.factors(units)[:, 0, -1].astype(np.float64)
        total, weight = self.sample.total(partial(_absolute_sums, units=of_columns))
        return float(total / max(weight, np.finfo(float).tiny))

    def without_noise(self, params: np.ndarray) -> np.ndarray:
        """Params of splines without those that hardly matter: of every factor, together NEGLIGIBLE of its
        variance over the rows.

        A penalty lets no coefficient be exactly 0, but without the smallest ones a model takes half the
        space."""
        if not isinstance(self.basis, SplineBasis):
            return params
        (moments,) = self.sample.total(_moments_in_basis)
        variance = moments.squares / max(moments.weight, np.finfo(float).tiny)
        variance[-1] = moments.mean[-1] ** 2  # the constant
        kept = params.copy()
        factors = self.layout.factors(kept)
        share = variance[:, None, None] * factors.astype(np.float64) ** 2
        order = np.argsort(share, axis=0)
        noise = np.cumsum(np.take_along_axis(share, order, axis=0), axis=0) <= NEGLIGIBLE * share.sum(axis=0)
        small = np.zeros(share.shape, dtype=bool)
        np.put_along_axis(small, order, noise, axis=0)
        factors[small] = 0
        return kept

    def step_units(self, alpha: float) -> np.ndarray | None:
        """Units for a solver whose steps have one size for all params: in these, dense columns are as large
        as standardised ones are.
        """
        if self.dense_squares is None:
            return self.units(alpha)
        smallest = np.finfo(self.dtype).tiny
        squares = np.where(
            np.isfinite(self.dense_squares) & (self.dense_squares > smallest), self.dense_squares, 1.0
        )
        sizes = np.ones(self.layout.n_features) if self.sizes is None else self.sizes
        units = np.ones(self.layout.size)
        self.layout.factors(units)[...] = (sizes / np.sqrt(squares * self.layout.n_features))[:, None, None]
        return units.astype(self.dtype)

    def units(self, alpha: float) -> np.ndarray | None:
        """Units of the params: their sizes; for sparse columns that the basis leaves as they are, such that
        they have the same curvature.

        A bag of words has columns that nearly all rows have, and others that one in ten thousand has: without
        units L-BFGS needs several times as many iterations. The curvature of a coefficient is about the mean
        square of its column, times that of the rest of its term. (Of dense columns that is a bad guess where
        they are far from 0: they share a direction.)"""
        if self.mean_squares is None and self.sizes is None:
            return None
        units = np.ones(self.layout.size)
        factors = self.layout.factors(units)
        if self.mean_squares is None:
            factors *= np.asarray(self.sizes)[:, None, None]
            return units.astype(self.dtype)
        smallest = np.finfo(self.dtype).tiny  # of a curvature whose unit does not overflow
        for columns, rest in [(slice(0, 1), 1.0), (slice(1, None), REST_OF_TERM)]:
            curvature = rest * self.mean_squares + (alpha if self.sizes is None else alpha / self.sizes**2)
            factors[:, :, columns] = (
                1 / np.sqrt(np.where(np.isfinite(curvature) & (curvature > smallest), curvature, 1.0))
            )[:, None, None]
        return units.astype(self.dtype)

    def ball(self, max_norm: float) -> Callable[[np.ndarray], np.ndarray]:
        """Projection onto: every factor and linear part of norm at most ``max_norm``, in the units of the
        target.
        """
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


def _learn_basis(bases: Bases, summary: Summary, rows: Moments) -> AnyBasis:
    if summary.sparse and bases.sparse == SPLINE:
        raise ValueError(
            'basis="spline" needs dense rows, X is sparse: use basis="auto", which leaves sparse rows as they are.'
        )
    if summary.sparse or bases.dense != SPLINE:
        return fit_basis(bases.sparse if summary.sparse else bases.dense, rows, summary.dtype)
    assert summary.sample is not None
    levels = summary.levels or bases.levels or (None,) * summary.sample.X.shape[1]
    return learn_splines(summary.sample.X, summary.sample.weight, levels, summary.dtype)


def _absolute_sums(block: Block, units: np.ndarray) -> tuple[float, float]:
    """Of all rows of the sample: some of every block would be others wherever the table is."""
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    return float(weight @ block.basis.lift(block.X).absolute_sums(units)), float(weight.sum())


def _moments_in_basis(block: Block) -> tuple[Moments]:
    rows = block.basis.lift(block.X)
    assert isinstance(rows, SplineRows)
    varying = moments(rows.varying(), block.weight)
    return (replace(varying, mean=varying.mean + rows.basis.always),)


def _classes(summary: Summary, target: Target) -> tuple[np.ndarray, np.ndarray | None]:
    """The classes as y has them, in order, and as the user calls them; none in regression."""
    if not target.classification:
        return np.empty(0), None
    if target.labels is not None:
        return np.arange(len(target.labels), dtype=np.float64), target.labels
    labels = np.array(sorted(summary.label_weights))
    if len(labels) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {labels.tolist()[0]!r}.")
    return labels, labels


def _class_factors(
    summary: Summary, target: Target, classes: np.ndarray, labels: np.ndarray | None
) -> np.ndarray | None:
    """What the weights of the rows of each class are multiplied by."""
    if target.class_factors is None or labels is None:
        return None
    totals = np.array([summary.label_weights.get(label, 0.0) for label in classes.tolist()])
    factors = target.class_factors(labels, totals)
    return factors / factors.max()


def _center_and_spread(summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """The units of each output: mean and standard deviation (1 for a constant) of the targets; none for
    classes.
    """
    if summary.targets is None:
        return np.zeros(1), np.ones(1)
    center, deviation = summary.targets.mean, summary.targets.deviation
    spread = np.where(deviation == 0, 1.0, deviation)
    if not np.abs([center, spread]).max() < 1e-3 * np.finfo(summary.dtype).max:
        raise ValueError(
            f"y has values too large for {summary.dtype}: divide it by a power of ten, or give X in float64."
        )
    return center, spread


def _require_rows(training: float, validation: float, validated: bool) -> None:
    if validated and not (training > 0 and validation > 0):
        raise ValueError("early_stopping needs rows of positive weight both to train on and to hold out.")
    if not training > 0:
        raise ValueError("sample_weight and class_weight leave no row with a positive weight.")
