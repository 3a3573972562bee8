"""Splines and levels: a basis that takes the columns of a raw table, whatever they are.

A number is replaced by smooth functions of it, up to ``waves`` of them,

    sqrt(2 strength_k) cos(pi k u),      strength_k proportional to 1 / (1 + (pi k / roughness)^2),      k = 1, 2, ...

where u is its rank, from 0 to 1, made continuous by straight lines between knots at quantiles; so that they are piecewise linear functions
of the number. An equal penalty on the coefficients of these waves is a prior on functions: it favours smooth ones, as an
Ornstein-Uhlenbeck process of the rank does. A category is replaced by one indicator a level. Missing entries have an indicator, too. All
of these are centred, divided by the square root of the number of columns, and a constant is appended.

All functions of a column are linear in the shares of its states (`_hats.States`): with h the sparse row of shares, the basis is h @ table.
So the product with factors is h @ (table @ factors), a sparse product, and the rows in their basis never exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ._hats import States, share_above
from ._moments import Rows

MOST_KNOTS = 128
MOST_WAVES = 64  # of a column
MOST_WIDTH = 640  # of all columns together, as long as each has
FEWEST_WAVES = 4
ROUGHNESS = 3.0
CONSTANT = 0.5
COMMON = 0.3  # share of the rows from which on a state is left out of the rows of shares


@dataclass(frozen=True)
class SplineBasis:
    """A fitted basis. ``waves`` are the numbers of waves of each column, ``center`` (width - 1) the means of all functions."""

    # For the kernel, to which the rows of shares are a matrix as it is.
    shift: ClassVar[None] = None
    scale: ClassVar[None] = None
    zero_row: ClassVar[None] = None
    clip: ClassVar[float] = np.inf
    constant: ClassVar[float] = 0.0
    unit_rows: ClassVar[bool] = False

    states: States
    waves: tuple[int, ...]
    center: np.ndarray

    @property
    def n_columns(self) -> int:
        return len(self.waves)

    @property
    def row_width(self) -> int:
        return self.states.count

    @property
    def width(self) -> int:
        return len(self.center) + 1

    @property
    def columns(self) -> np.ndarray:
        """The column of X that each function is one of; -1 for the constant."""
        return np.append(np.repeat(np.arange(self.n_columns), [place.stop - place.start for _, place in self._places]), -1)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What two bases must share for the params of one to make sense with the other."""
        levels = tuple(len(knots) for knots, category in zip(self.states.knots, self.states.category, strict=True) if category)
        return "spline", self.waves, levels, tuple(self.states.missing.tolist())

    def describe(self) -> str:
        return f"{self.n_columns} columns as {self.width} splines and levels"

    def astype(self, dtype: np.dtype) -> SplineBasis:
        return replace(self, center=self.center.astype(dtype))

    def __getstate__(self) -> dict[str, Any]:
        return {"states": self.states, "waves": self.waves, "center": self.center}

    def names(self, columns: Sequence[str], levels: Sequence[Sequence[str] | None]) -> list[str]:
        """What each function means, given the names of the columns, and those of the levels of each category."""
        names = []
        for j, column in enumerate(columns):
            of_category = levels[j]
            if of_category is not None:
                names += [f"{column} = {level}" for level in of_category]
            else:
                names += [f"{column} wave {k}" for k in range(1, self.waves[j] + 1)]
            names += [f"{column} missing"] * int(self.states.missing[j])
        return [*names, "constant"]

    # ---- rows

    def rows(self, X: Rows) -> Rows:
        return self.states.shares(X)

    def lift(self, shares: Rows) -> SplineRows:
        return SplineRows(shares, self)

    # ---- factors

    def spread(self, factors: np.ndarray) -> np.ndarray:
        """Factors (width, k) to those of the shares (states, k)."""
        spread = np.zeros((self.row_width, factors.shape[1]), dtype=factors.dtype)
        for tables in self._tables:
            spread[tables.states] = np.matmul(tables.values.astype(factors.dtype, copy=False), factors[tables.columns])
        for states, columns, size in self._levels:
            spread[states] = factors[columns] * factors.dtype.type(size)
        spread[-1] = self._always.astype(factors.dtype, copy=False) @ factors
        return spread

    def gather(self, gradient: np.ndarray) -> np.ndarray:
        """Gradients of the shares' factors (states, k) to those of the factors (width, k)."""
        gathered = np.outer(self._always.astype(gradient.dtype, copy=False), gradient[-1])
        for tables in self._tables:
            gathered[tables.columns] += np.matmul(tables.transposed.astype(gradient.dtype, copy=False), gradient[tables.states])
        for states, columns, size in self._levels:
            gathered[columns] += gradient[states] * gradient.dtype.type(size)
        return gathered

    @cached_property
    def _size(self) -> float:
        """Of all functions of a column: those that have no states to tell apart do not count."""
        return 1 / np.sqrt(
            max(1, sum(len(knots) + missing > 1 for knots, missing in zip(self.states.knots, self.states.missing, strict=True)))
        )

    @cached_property
    def _places(self) -> list[tuple[slice, slice]]:
        """The states and the functions of each column."""
        widths = [
            (len(knots) if category else waves) + missing
            for knots, waves, category, missing in zip(
                self.states.knots, self.waves, self.states.category, self.states.missing, strict=True
            )
        ]
        ends = np.cumsum([0, *widths])
        first = self.states.first
        return [(slice(first[j], first[j + 1]), slice(ends[j], ends[j + 1])) for j in range(self.n_columns)]

    @cached_property
    def _levels(self) -> list[tuple[slice, slice, float]]:
        """Categories: every state has a function of its own."""
        return [(*place, self._size) for place, category in zip(self._places, self.states.category, strict=True) if category]

    def _table(self, j: int) -> np.ndarray:
        """The functions of a number at its states."""
        n_knots, waves, missing = len(self.states.knots[j]), self.waves[j], int(self.states.missing[j])
        table = np.zeros((n_knots + missing, waves + missing))
        table[:n_knots, :waves] = cosines(n_knots, waves)
        table[n_knots:, waves:] = 1.0
        return table * self._size

    @cached_property
    def _tables(self) -> list[Tables]:
        """Of numbers, those of equal shape together; from each is taken what stands at its reference."""
        groups: dict[tuple[int, int], list[int]] = {}
        for j, category in enumerate(self.states.category):
            states, columns = self._places[j]
            if not category and columns.stop > columns.start:
                groups.setdefault((states.stop - states.start, columns.stop - columns.start), []).append(j)
        return [self._group(numbers) for numbers in groups.values()]

    def _group(self, numbers: list[int]) -> Tables:
        tables = np.array([self._table(j) for j in numbers])
        for table, reference in zip(tables, self.states.reference[numbers], strict=True):
            if reference >= 0:
                table -= table[reference].copy()
        places = [self._places[j] for j in numbers]
        return Tables(
            np.array([np.arange(states.start, states.stop) for states, _ in places]),
            np.array([np.arange(columns.start, columns.stop) for _, columns in places]),
            tables.astype(self.center.dtype),
        )

    @cached_property
    def _always(self) -> np.ndarray:
        """What is the same in all rows: the references, minus the means; and the constant."""
        always = np.append(-self.center.astype(np.float64), CONSTANT)
        for j, reference in enumerate(self.states.reference.tolist()):
            if reference >= 0:
                always[self._places[j][1]] += self._table(j)[reference]
        return always


@dataclass(frozen=True)
class Tables:
    """Of ``values`` (columns, states, functions): the numbers of the ``states``, and those of the functions, ``columns``."""

    states: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @cached_property
    def transposed(self) -> np.ndarray:
        """(columns, functions, states), in that order in memory, too: BLAS is several times faster on it."""
        return np.ascontiguousarray(self.values.transpose(0, 2, 1))


@dataclass(frozen=True)
class SplineRows:
    """Rows in this basis, for the kernel in NumPy."""

    shares: Rows
    basis: SplineBasis

    def times(self, factors: np.ndarray) -> np.ndarray:
        return self.shares @ self.basis.spread(factors)

    def transposed_times(self, slopes: np.ndarray) -> np.ndarray:
        return self.basis.gather(self.shares.T @ slopes)

    def explicit(self) -> np.ndarray:
        return self.times(np.eye(self.basis.width, dtype=self.shares.dtype))


def cosines(n_knots: int, waves: int) -> np.ndarray:
    """The waves (n_knots, waves) at equally spaced ranks; without end, their strengths would add up to 1."""
    k = np.arange(1, waves + 1)
    rank = np.linspace(0, 1, n_knots)[:, None]
    # sum over k of 1 / (1 + (pi k a)^2) is (coth(1 / a) / a - 1) / 2
    total = (ROUGHNESS / np.tanh(ROUGHNESS) - 1) / 2
    strength = 1 / (1 + (np.pi * k / ROUGHNESS) ** 2) / total
    return np.sqrt(2 * strength) * np.cos(np.pi * k * rank)


def learn_splines(X: np.ndarray, weight: np.ndarray, levels: Sequence[int | None], dtype: np.dtype) -> SplineBasis:
    """From training rows of positive weight; ``levels`` has the number of levels of each category, None for a number."""
    knots, masses, missing = zip(*[_learn_column(X[:, j], weight, levels[j]) for j in range(X.shape[1])], strict=True)
    category = np.array([n_levels is not None for n_levels in levels])
    common = [
        int(np.argmax(mass)) if not of_category and len(mass) and mass.max() > COMMON else -1
        for mass, of_category in zip(masses, category, strict=True)
    ]
    states = States(knots, category, np.array(missing), np.array(common, dtype=np.int64))
    numbers = sum(len(column) > 1 for column, of_category in zip(knots, category, strict=True) if not of_category)
    most = int(np.clip(MOST_WIDTH // max(numbers, 1), FEWEST_WAVES, MOST_WAVES))
    waves = tuple(0 if of_category else min(most, len(column) - 1) for column, of_category in zip(knots, category, strict=True))
    width = sum(len(column) if of_category else n for column, of_category, n in zip(knots, category, waves, strict=True)) + int(
        states.missing.sum()
    )
    raw = SplineBasis(states, waves, np.zeros(width, dtype))
    center = np.concatenate([np.zeros(0), *(_mean(raw, j, masses[j]) for j in range(X.shape[1]))])
    return SplineBasis(states, waves, center.astype(dtype))


def _mean(basis: SplineBasis, j: int, masses: np.ndarray) -> np.ndarray:
    return masses * basis._size if basis.states.category[j] else masses @ basis._table(j)


def _learn_column(column: np.ndarray, weight: np.ndarray, n_levels: int | None) -> tuple[np.ndarray, np.ndarray, bool]:
    """Knots, the share of the weight that each state has, and whether some entries are missing."""
    present = ~np.isnan(column)
    missing = not bool(present.all())
    values, of_values = column[present].astype(np.float64), weight[present]
    total = float(weight.sum())
    absent = [float(weight[~present].sum()) / total] if missing else []
    if n_levels is not None:
        masses = np.bincount(values.astype(np.int64), of_values, n_levels) / total
        return np.arange(n_levels, dtype=np.float64), np.append(masses, absent), missing
    knots = _knots(values, of_values)
    if len(knots) < 2:
        return knots[:1], np.append(np.full(len(knots[:1]), of_values.sum() / total), absent), missing
    below = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    above = share_above(values, knots, below)
    masses = np.bincount(below, of_values * (1 - above), len(knots)) + np.bincount(below + 1, of_values * above, len(knots))
    return knots, np.append(masses / total, absent), missing


def _knots(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """All different values if they are few, otherwise quantiles: values that are there, so that the commonest are among them."""
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_KNOTS:
        return distinct
    reached = np.cumsum(np.bincount(number, weight))
    chosen = np.searchsorted(reached, np.linspace(0, 1, MOST_KNOTS) * reached[-1] * (1 - 1e-12))
    return distinct[np.unique(chosen)]
