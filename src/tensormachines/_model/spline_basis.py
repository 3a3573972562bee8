"""Splines and levels: a basis that takes the columns of a raw table, whatever they are.

A number is replaced by smooth functions of it, up to ``waves`` of them,

    sqrt(2 strength_k) cos(pi k u),      strength_k proportional to 1 / (1 + (pi k / roughness)^2),      k = 1, 2, ...

where u is its rank, from 0 to 1, made continuous by straight lines between knots at quantiles; so that they
are piecewise linear functions of the number. An equal penalty on the coefficients of these waves is a prior
on functions: it favours smooth ones, as an Ornstein-Uhlenbeck process of the rank does. A straight line
stands beside them, because a rank forgets how far apart numbers are. A category is replaced by one indicator
a level. Missing entries have an indicator, too. All of these are centred, divided by the square root of the
number of columns, and a constant is appended.

All functions of a column are linear in the shares of its states (`_model.spline_states.States`): with h the
sparse row of shares, the basis is h @ table. So the product with factors is h @ (table @ factors), a sparse
product, and the rows in their basis never exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .basis import Lifted
from .moments import Rows
from .spline_states import States, share_above

MOST_KNOTS, FEWEST_KNOTS = 128, 16  # of a column
MOST_STATES = 8192  # knots of all columns together, as long as each has the fewest
MOST_WAVES, FEWEST_WAVES = 64, 3  # of a column
MOST_WIDTH = 640  # waves of all columns together, as long as each has the fewest
ROUGHNESS = 3.0
LINE, CLIP = 0.3, 10.0  # the standard deviation of a line, and how many of them from the mean it ends
CONSTANT = 0.5
COMMON = 0.3  # share of the rows from which on a state is left out of the rows of shares


@dataclass(frozen=True)
class SplineColumn:
    """A column: its states, see `_model.spline_states.States`, and what functions of them there are.

    A category has one function a level. A number has ``waves`` of them, and a line through ``mean`` unless
    its ``deviation`` is 0."""

    knots: np.ndarray
    category: bool
    missing: bool
    reference: int
    waves: int
    mean: float
    deviation: float

    @property
    def n_states(self) -> int:
        return len(self.knots) + self.missing

    @property
    def n_lines(self) -> int:
        return int(self.deviation > 0)

    @property
    def width(self) -> int:
        return (len(self.knots) if self.category else self.waves + self.n_lines) + self.missing

    def table(self) -> np.ndarray:
        """The functions of a number at its states, (n_states, width).

        (Every state of a category has a function of its own.)
        """
        table = np.zeros((self.n_states, self.width))
        table[: len(self.knots), : self.waves] = cosines(len(self.knots), self.waves)
        if self.n_lines:
            table[: len(self.knots), self.waves] = LINE * np.clip(
                (self.knots - self.mean) / self.deviation, -CLIP, CLIP
            )
        table[len(self.knots) :, self.waves + self.n_lines :] = 1.0
        return table

    def names(self, name: str, levels: Sequence[str] | None) -> list[str]:
        functions = [f"{name} = {level}" for level in levels or [f"{knot:g}" for knot in self.knots]]
        if not self.category:
            functions = [f"{name} wave {k}" for k in range(1, self.waves + 1)] + [
                f"{name} line"
            ] * self.n_lines
        return functions + [f"{name} missing"] * self.missing


@dataclass(frozen=True)
class Tables:
    """Columns of one shape: their ``states`` (columns, n_states), ``functions`` (columns, width), ``values``
    (columns, n_states, width).
    """

    states: np.ndarray
    functions: np.ndarray
    values: np.ndarray

    @cached_property
    def transposed(self) -> np.ndarray:
        """In that order in memory, too: BLAS is several times faster on it."""
        return np.ascontiguousarray(self.values.transpose(0, 2, 1))


@dataclass(frozen=True)
class SplineBasis:
    """A fitted basis; ``center`` (width - 1) are the means of all functions."""

    # For the kernel, to which the rows of shares are a matrix as it is.
    shift: ClassVar[None] = None
    scale: ClassVar[None] = None
    zero_row: ClassVar[None] = None
    clip: ClassVar[float] = np.inf
    constant: ClassVar[float] = 0.0
    unit_rows: ClassVar[bool] = False

    columns: tuple[SplineColumn, ...]
    center: np.ndarray

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def row_width(self) -> int:
        return self.states.count

    @property
    def width(self) -> int:
        return len(self.center) + 1

    @property
    def kind(self) -> tuple[Any, ...]:
        """What two bases must share for the params of one to make sense with the other."""
        return "spline", tuple(
            (column.category, column.waves, column.n_lines, column.width) for column in self.columns
        )

    @property
    def groups(self) -> np.ndarray:
        """Functions that are weighed together have the same number: those of a column. -1 is the constant."""
        return np.append(np.repeat(np.arange(self.n_columns), [column.width for column in self.columns]), -1)

    def names(self, columns: Sequence[str], levels: Sequence[Sequence[str] | None]) -> list[str]:
        each = [
            column.names(name, of_level)
            for column, name, of_level in zip(self.columns, columns, levels, strict=True)
        ]
        return [name for of_column in each for name in of_column] + ["constant"]

    def describe(self) -> str:
        return f"{self.n_columns} columns as {self.width} splines and levels"

    def astype(self, dtype: np.dtype) -> SplineBasis:
        return replace(self, center=self.center.astype(dtype))

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "center": self.center}

    # ---- rows

    @cached_property
    def states(self) -> States:
        category, missing, reference = zip(
            *((c.category, c.missing, c.reference) for c in self.columns), strict=True
        )
        return States(
            tuple(c.knots for c in self.columns),
            np.array(category),
            np.array(missing),
            np.array(reference, dtype=np.int64),
        )

    def rows(self, X: Rows) -> Rows:
        return self.states.shares(X)

    def lift(self, shares: Rows) -> SplineRows:
        return SplineRows(shares, self)

    # ---- factors

    def spread(self, factors: np.ndarray) -> np.ndarray:
        """Factors (width, k) to those of the shares (states, k)."""
        spread = np.zeros((self.row_width, factors.shape[1]), dtype=factors.dtype)
        for tables in self._tables:
            spread[tables.states] = np.matmul(
                tables.values.astype(factors.dtype, copy=False), factors[tables.functions]
            )
        for states, functions in self._levels:
            spread[states] = factors[functions] * factors.dtype.type(self._size)
        spread[-1] = self.always.astype(factors.dtype, copy=False) @ factors
        return spread

    def gather(self, gradient: np.ndarray) -> np.ndarray:
        """Gradients of the shares' factors (states, k) to those of the factors (width, k)."""
        gathered = np.outer(self.always.astype(gradient.dtype, copy=False), gradient[-1])
        for tables in self._tables:
            gathered[tables.functions] += np.matmul(
                tables.transposed.astype(gradient.dtype, copy=False), gradient[tables.states]
            )
        for states, functions in self._levels:
            gathered[functions] += gradient[states] * gradient.dtype.type(self._size)
        return gathered

    @cached_property
    def _size(self) -> float:
        """Of all functions: columns that are always in the same state do not count."""
        return float(1 / np.sqrt(max(1, sum(column.n_states > 1 for column in self.columns))))

    @cached_property
    def _places(self) -> list[tuple[slice, slice]]:
        """The states and the functions of each column."""
        states = np.cumsum([0, *(column.n_states for column in self.columns)]).tolist()
        functions = np.cumsum([0, *(column.width for column in self.columns)]).tolist()
        return [(slice(*states[j : j + 2]), slice(*functions[j : j + 2])) for j in range(self.n_columns)]

    @cached_property
    def _levels(self) -> list[tuple[slice, slice]]:
        """Of categories, where every state has a function of its own."""
        return [place for place, column in zip(self._places, self.columns, strict=True) if column.category]

    @cached_property
    def _tables(self) -> list[Tables]:
        """Of numbers, those of equal shape together; from each is taken what stands at its reference."""
        groups: dict[tuple[int, int], list[int]] = {}
        for j, column in enumerate(self.columns):
            if not column.category and column.width:
                groups.setdefault((column.n_states, column.width), []).append(j)
        return [self._group(numbers) for numbers in groups.values()]

    def _group(self, numbers: list[int]) -> Tables:
        tables = [self.columns[j].table() for j in numbers]
        references = [self.columns[j].reference for j in numbers]
        values = [
            table - table[reference] if reference >= 0 else table
            for table, reference in zip(tables, references, strict=True)
        ]
        states, functions = zip(*(self._places[j] for j in numbers), strict=True)
        return Tables(
            np.array([np.arange(place.start, place.stop) for place in states]),
            np.array([np.arange(place.start, place.stop) for place in functions]),
            (self._size * np.array(values)).astype(self.center.dtype),
        )

    @cached_property
    def functions(self) -> sparse.csr_array:
        """All functions at all states (row_width, width), but for what is the same in all rows."""
        states, functions, values = (
            [np.zeros(0, dtype=np.intp)],
            [np.zeros(0, dtype=np.intp)],
            [np.zeros(0, self.center.dtype)],
        )
        for tables in self._tables:
            states.append(np.broadcast_to(tables.states[:, :, None], tables.values.shape).ravel())
            functions.append(np.broadcast_to(tables.functions[:, None, :], tables.values.shape).ravel())
            values.append(tables.values.ravel())
        for of_states, of_functions in self._levels:
            states.append(np.arange(of_states.start, of_states.stop))
            functions.append(np.arange(of_functions.start, of_functions.stop))
            values.append(np.full(of_states.stop - of_states.start, self._size, self.center.dtype))
        places = np.concatenate(states), np.concatenate(functions)
        return sparse.csr_array((np.concatenate(values), places), shape=(self.row_width, self.width))

    @cached_property
    def always(self) -> np.ndarray:
        """What is the same in all rows: the references, minus the means; and the constant."""
        always = np.append(-self.center.astype(np.float64), CONSTANT)
        for column, (_, functions) in zip(self.columns, self._places, strict=True):
            if column.reference >= 0:
                always[functions] += self._size * column.table()[column.reference]
        return always


@dataclass(frozen=True)
class SplineRows:
    """Rows in this basis, for the kernel in NumPy."""

    shares: Rows
    basis: SplineBasis

    def times(self, factors: np.ndarray) -> np.ndarray:
        return self.shares @ self.basis.spread(factors)

    def transposed_times(self, slopes: np.ndarray) -> np.ndarray:
        return self.basis.gather(self.shares.T @ slopes)

    def varying(self) -> sparse.csr_array:
        """What tells the rows apart: all of them but `SplineBasis.always`. Of a category with thousands of
        levels, each has one entry.
        """
        return sparse.csr_array(self.shares @ self.basis.functions)

    def absolute_sums(self, units: np.ndarray) -> np.ndarray:
        return Lifted(self.varying(), self.basis.always.astype(self.shares.dtype, copy=False)).absolute_sums(
            units
        )

    def explicit(self) -> np.ndarray:
        return self.varying().toarray() + self.basis.always.astype(self.shares.dtype, copy=False)


def cosines(n_knots: int, waves: int) -> np.ndarray:
    """The waves (n_knots, waves) at equally spaced ranks; without end, their strengths would add up to 1."""
    k = np.arange(1, waves + 1)
    rank = np.linspace(0, 1, n_knots)[:, None]
    # sum over k of 1 / (1 + (pi k / a)^2) is (a coth(a) - 1) / 2
    total = (ROUGHNESS / np.tanh(ROUGHNESS) - 1) / 2
    strength = 1 / (1 + (np.pi * k / ROUGHNESS) ** 2) / total
    return np.sqrt(2 * strength) * np.cos(np.pi * k * rank)


# ---- learning


def learn_splines(
    X: np.ndarray, weight: np.ndarray, levels: Sequence[int | None], dtype: np.dtype
) -> SplineBasis:
    """From training rows of positive weight; ``levels`` has the number of levels of each category, None for a
    number.
    """
    most = int(
        np.clip(MOST_STATES // max(1, sum(n_levels is None for n_levels in levels)), FEWEST_KNOTS, MOST_KNOTS)
    )
    knots = [_knots(X[:, j], weight, n_levels, most) for j, n_levels in enumerate(levels)]
    numbers = sum(
        len(of_column) > 1 for of_column, n_levels in zip(knots, levels, strict=True) if n_levels is None
    )
    most = min(MOST_WAVES, int(np.sqrt(len(X)) / 2))  # what so many rows could tell apart
    waves = max(FEWEST_WAVES, min(most, MOST_WIDTH // max(numbers, 1)))
    learnt = [
        _learn_column(X[:, j], weight, of_column, levels[j] is not None, waves)
        for j, of_column in enumerate(knots)
    ]
    basis = SplineBasis(tuple(column for column, _ in learnt), np.zeros(0, dtype))
    center = [
        basis._size * (masses if column.category else masses @ column.table()) for column, masses in learnt
    ]
    return replace(basis, center=np.concatenate([np.zeros(0), *center]).astype(dtype))


def _knots(column: np.ndarray, weight: np.ndarray, n_levels: int | None, most: int) -> np.ndarray:
    """All different values if they are few, otherwise quantiles: values that are there, so that the commonest
    are among them.
    """
    if n_levels is not None:
        return np.arange(n_levels, dtype=np.float64)
    present = ~np.isnan(column)
    distinct, number = np.unique(column[present].astype(np.float64), return_inverse=True)
    if len(distinct) <= most:
        return distinct[
            np.diff(0.5 * distinct, prepend=-np.inf) > 0
        ]  # shares are told by halves, which may be equal where numbers end
    reached = np.cumsum(np.bincount(number, weight[present]))
    chosen = np.searchsorted(reached, np.linspace(0, 1, most) * reached[-1] * (1 - 1e-12))
    return distinct[np.unique(chosen)]


def _learn_column(
    column: np.ndarray, weight: np.ndarray, knots: np.ndarray, category: bool, waves: int
) -> tuple[SplineColumn, np.ndarray]:
    """The column, and the share of the weight that each of its states has."""
    present = ~np.isnan(column)
    missing = not bool(present.all())
    masses = _masses(column[present].astype(np.float64), weight[present], knots, category)
    masses = np.append(masses, weight[~present].sum()) if missing else masses
    masses = masses / weight.sum()
    waves = 0 if category else max(0, min(waves, len(knots) - 1))
    mean, deviation = _moments(knots, masses[: len(knots)]) if waves > 1 else (0.0, 0.0)
    common = not category and len(masses) > 0 and masses.max() > COMMON
    return SplineColumn(
        knots, category, missing, int(masses.argmax()) if common else -1, waves, mean, deviation
    ), masses


def _masses(values: np.ndarray, weight: np.ndarray, knots: np.ndarray, category: bool) -> np.ndarray:
    """The weight of each knot or level."""
    if category or len(knots) < 2:
        return np.bincount(
            values.astype(np.int64) if category else np.zeros(len(values), dtype=np.int64), weight, len(knots)
        )
    below = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    above = share_above(values, knots, below)
    return np.bincount(below, weight * (1 - above), len(knots)) + np.bincount(
        below + 1, weight * above, len(knots)
    )


def _moments(knots: np.ndarray, masses: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, 0 if that is not a finite number: then there can be no line."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = masses / masses.sum()
        mean = float(share @ knots)
        deviation = float(np.sqrt(share @ (knots - mean) ** 2))
    return (mean, deviation) if np.isfinite(deviation) else (0.0, 0.0)
