"""The trend: a linear function of the columns, fitted exactly first; the terms are fitted to its residuals.

A penalised spline comes close to a straight line but does not reach it; many such splines together are far
from a linear truth. Ridge or logistic regression finds it at once. If numbers follow the trend closely, the
trend extrapolates beyond the range of the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._model.affine_basis import AffineBasis
from .._model.block import Block, Blocks, BlocksInMemory
from .._model.layout import Layout
from .._model.losses import SQUARED, Loss
from .._model.machine import Machine
from .._model.objective import Objective
from .._model.packed_shares import PackedShares
from .._model.spline_basis import SplineBasis
from .._model.spline_column import SplineColumn

MOST_LEVELS = 64  # maximum for a category to be part of the trend
MOST_ENTRIES = 1 << 22  # rows times features, for the rows that a trend is fitted to
PENALTIES = 10.0 ** np.arange(-3, 6)  # of ridge regression; generalised cross-validation chooses
LOGISTIC_PENALTY = 1.0  # per row, as in scikit-learn
LOGISTIC_STEPS = 50
CLOSE = 0.75  # share of the variance that a trend must explain to extrapolate
REACH = 3.0  # how far it extrapolates, in ranges of the training rows


@dataclass(frozen=True)
class Trend:
    """A machine of degree 1, in a basis with the functions of another basis, at the places ``others``, and
    the lines of trends. ``goes_on``: whether it extrapolates beyond the range of the training rows."""

    machine: Machine
    others: np.ndarray
    goes_on: bool = False

    @property
    def basis(self) -> SplineBasis:
        assert isinstance(self.machine.basis, SplineBasis)
        return self.machine.basis

    @property
    def bias(self) -> np.ndarray:
        """(n_outputs,)"""
        return self.machine.layout.bias(self.machine.params)

    @property
    def linear(self) -> np.ndarray:
        """(width of the basis, n_outputs)"""
        return self.machine.layout.linear(self.machine.params)

    def times(self, scale: np.ndarray) -> Trend:
        """Return the trend with its outputs multiplied by ``scale`` (n_outputs)."""
        params = self.machine.layout.scale_outputs(self.machine.params, scale)
        return replace(self, machine=replace(self.machine, params=params))

    def outputs(self, block: Block) -> np.ndarray:
        """Return the trend of the rows of a block in the other basis, (rows, n_outputs)."""
        return self.bias + self.basis.lift(block.X).times(self.linear)

    def beside(self, jumping: SplineBasis) -> Trend:
        """Return the same trend for the other basis with additional jumps."""
        basis, others = with_trends(jumping.astype(np.dtype(np.float64)))
        layout = replace(self.machine.layout, n_features=basis.width)
        params = np.zeros(layout.size)
        layout.bias(params)[...] = self.bias
        layout.linear(params)[~basis.is_jump] = self.linear
        return replace(self, machine=Machine(basis, layout, params), others=others)

    def add_to(self, machine: Machine) -> Machine:
        """Return the sum of a machine in the other basis and the trend."""
        layout = replace(machine.layout, n_features=self.basis.width)
        params = np.zeros(layout.size, dtype=machine.params.dtype)
        params[: layout.head] = machine.params[: layout.head]
        layout.factors(params)[self.others] = machine.layout.factors(machine.params)
        layout.bias(params)[...] += self.bias
        layout.linear(params)[...] += self.linear
        basis = with_outer_knots(self.basis) if self.goes_on else self.basis
        return Machine(basis.astype(params.dtype), layout, params)

    def take_from(self, machine: Machine, basis: SplineBasis) -> Machine:
        """Return the machine in the other ``basis`` whose sum with the trend is (nearly) a given machine."""
        params = machine.params.copy()
        machine.layout.bias(params)[...] -= self.bias
        machine.layout.linear(params)[...] -= self.linear
        layout = replace(machine.layout, n_features=basis.width)
        params = np.append(params[: layout.head], machine.layout.factors(params)[self.others])
        return Machine(basis.astype(params.dtype), layout, params)


def fit_trend(
    blocks: Blocks, basis: SplineBasis, loss: Loss, n_outputs: int, most_entries: int = MOST_ENTRIES
) -> Trend | None:
    """Return the trend of blocks in a spline ``basis``: ridge regression for numbers, logistic regression for
    classes. Return None if there are no features, or too many for the rows.

    At most as many rows as have ``most_entries`` entries are collected, wherever the blocks are."""
    basis, others = with_trends(basis.astype(np.dtype(np.float64)))
    features = _features(basis.columns)
    (n_rows,) = blocks.total(_count)
    stride = -(-n_rows * max(1, len(features)) // most_entries)
    if not len(features) or (stride > 1 and n_rows // stride < 2 * len(features)):
        return None
    functions = basis.functions[:, features] / basis._size
    (some,) = blocks.total(partial(_some_rows, stride=stride, functions=functions))
    Z, y, weight = (np.concatenate(arrays) for arrays in zip(*some, strict=True))
    present = weight > 0
    Z, y, weight = Z[present], y[present], weight[present]
    mean = np.average(Z, axis=0, weights=weight)
    if loss == SQUARED:
        coef, bias, close = _ridge(Z - mean, y, weight)
    else:
        (coef, bias), close = _logistic(Z - mean, y, weight, loss, n_outputs), False
    if not np.isfinite(coef).all():
        return None
    layout = Layout(basis.width, 1, 1, n_outputs)
    params = np.zeros(layout.size)
    layout.linear(params)[features] = coef / basis._size
    # The features are the functions of the basis, without what is the same in all rows.
    layout.bias(params)[...] = bias - mean @ coef - basis.always[features] @ coef / basis._size
    return Trend(Machine(basis, layout, params), others, close)


def _count(block: Block) -> tuple[int]:
    return (block.n_rows,)


def _some_rows(block: Block, stride: int, functions: Any) -> tuple[list[tuple[np.ndarray, ...]]]:
    """Return copies of the functions, the targets and the weights of every ``stride``-th row."""
    some = block.rows(np.arange(0, block.n_rows, stride)) if stride > 1 else block
    shares = some.X.tocsr() if isinstance(some.X, PackedShares) else some.X
    weight = some.row_weights
    return ([((shares @ functions).toarray(), some.targets.astype(np.float64), weight)],)


def _features(columns: Sequence[SplineColumn]) -> np.ndarray:
    """Return the functions in a trend: straight lines, levels of small categories, missing values."""
    first, features = 0, []
    for column in columns:
        if column.category and len(column.knots) <= MOST_LEVELS:
            features += list(range(first, first + column.width))
        elif column.trend_function is not None:
            features.append(first + column.trend_function)
            features += [first + column.width - 1] * column.missing
        first += column.width
    return np.array(features, dtype=np.int64)


def _ridge(Z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return coefficients (features, n_outputs), intercepts, and whether the trend is close to the target.

    The penalty minimises the generalised cross-validation error (Golub, Heath and Wahba 1979)."""
    root = np.sqrt(weight / weight.mean())[:, None]
    bias = np.average(y, axis=0, weights=weight)
    Z, y = root * Z, root * (y - bias)
    wide = Z.shape[1] > len(Z)
    squares, vectors = np.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
    squares = np.maximum(squares, 0)
    target = vectors.T @ (y if wide else Z.T @ y)
    total = np.sum(y**2)

    def residual(penalty: float) -> tuple[float, float]:
        """Return the residual sum of squares, and the generalised cross-validation error."""
        kept = penalty / (squares + penalty)
        if wide:
            left = float(np.sum((kept[:, None] * target) ** 2))
        else:
            explained = target**2 * ((1 + kept) / (squares + penalty))[:, None]
            left = max(0.0, float(total - explained.sum()))
        freedom = len(Z) - 1 - np.sum(1 - kept)
        return left, left / max(freedom, 1e-3) ** 2

    penalty = min(PENALTIES, key=lambda penalty: residual(penalty)[1])
    coef = vectors @ (target / (squares + penalty)[:, None])
    error = residual(penalty)[1] * len(Z) ** 2
    return Z.T @ coef if wide else coef, bias, bool(error < (1 - CLOSE) * total)


def _logistic(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray, loss: Loss, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and intercepts of logistic regression, which never extrapolates."""
    layout = Layout(Z.shape[1], 1, 1, n_outputs)
    block = Block(Z, AffineBasis(Z.shape[1]), y, weight)
    objective = Objective(BlocksInMemory([block]), layout, loss, LOGISTIC_PENALTY / weight.sum(), 1)

    def evaluate(params: np.ndarray) -> tuple[float, np.ndarray]:
        (value,), (gradient,) = objective(params[None])
        return float(value), gradient

    found = minimize(
        evaluate, np.zeros(layout.size), jac=True, method="L-BFGS-B", options={"maxiter": LOGISTIC_STEPS}
    )
    return layout.linear(found.x), layout.bias(found.x)


def with_trends(basis: SplineBasis) -> tuple[SplineBasis, np.ndarray]:
    """Return the basis with a trend line for each number that has a line, and the places of all other
    functions in it."""
    columns = tuple(replace(column, trend=column.n_lines > 0) for column in basis.columns)
    wide = replace(basis, columns=columns)
    added = np.concatenate([np.zeros(0), *(_is_trend(column) for column in columns), [0]]).astype(bool)
    center = np.zeros(len(added) - 1, basis.center.dtype)
    others = np.flatnonzero(~added)
    center[others[:-1]] = basis.center
    return replace(wide, center=center), others


def _is_trend(column: SplineColumn) -> np.ndarray:
    return np.arange(column.width) == (column.waves + 1 if column.trend else -1)


def with_outer_knots(basis: SplineBasis) -> SplineBasis:
    """Return the same basis with two more knots, outside the range, for each number that has a trend."""
    return replace(basis, columns=tuple(_extended(column) for column in basis.columns))


def _extended(column: SplineColumn) -> SplineColumn:
    if not column.trend:
        return column
    with np.errstate(over="ignore"):
        reach = REACH * (column.knots[-1] - column.knots[0])
        knots = np.concatenate([[column.knots[0] - reach], column.knots, [column.knots[-1] + reach]])
    if not (np.isfinite(knots).all() and (np.diff(0.5 * knots) > 0).all()):
        return column
    moved = 0 if column.reference < 0 else 1 if column.reference < len(column.knots) else 2
    jumps = tuple(knot + 1 for knot in column.jumps)
    return replace(column, knots=knots, reference=column.reference + moved, outer=True, jumps=jumps)
