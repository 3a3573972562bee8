"""Splines and levels: a basis that takes raw columns, whatever they hold.

A number is replaced by smooth functions of it, up to ``waves`` of them,

    sqrt(2 strength_k) cos(pi k u),  strength_k proportional to 1 / (1 + (pi k / roughness)^2),  k = 1, 2, ...

where u is its rank, from 0 to 1, made continuous by straight lines between knots at quantiles; so they are
piecewise linear functions of the number. An equal penalty on the coefficients of these waves is a prior on
functions: it favours smooth ones, as an Ornstein-Uhlenbeck process of the rank does. A straight line is added
to them, because a rank forgets how far apart numbers are. If a trend was fitted (`_fit.trend`), a second
straight line follows, which does not end; linear parts alone use it. Where the target jumps (`_fit.jumps`),
an indicator of the numbers above the threshold is added. A number with which outputs may only rise or fall
(`_fit.constraints`) has ramps instead of all these: each rises from one knot to the next. A category is
replaced by one indicator per level. Missing entries have an indicator, too. All of these are centred, divided
by the square root of the number of columns, and a constant is appended.

All functions of a column are linear in the shares of its states (see `_model.spline_states`): with h the
sparse row of shares, the basis is h @ table. So the product with factors is h @ (table @ factors), a sparse
product, and the rows in their basis never exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from . import native
from .affine_basis import AffineRows
from .moments import Moments, moments
from .packed_shares import PackedShares
from .rows import Rows
from .spline_states import States

LARGEST_DENSE = 1 << 21  # functions times states
RAMP_HEIGHT = 3.0  # of many, all of whose coefficients are penalised


Transposed = tuple[np.ndarray, np.ndarray]  # a table, and the same transposed


@dataclass(frozen=True)
class SplineShape:
    """The numbers that the functions of all columns share, see above.

    ``line`` is the standard deviation of a straight line, which ends ``line_clip`` deviations from the mean;
    ``constant`` is the function that is appended."""

    constant: float = 0.5
    roughness: float = 3.0
    line: float = 0.6
    line_clip: float = 10.0


USUAL_SHAPE = SplineShape()


@dataclass(frozen=True)
class SplineColumn:
    """A column: its states, see `_model.spline_states.StateColumn`, and the functions of them.

    A category has one function per level; a number has ``waves``, and a line through ``mean`` unless its
    ``deviation`` is 0. The line of a ``trend`` goes on to the first and the last knot if these are ``outer``
    ones: added outside the range of the training rows, where all other functions are constant. After each
    knot in ``jumps`` there is a jump: a function that rises from -1/2 to 1/2 before the next knot."""

    knots: np.ndarray
    category: bool
    missing: bool
    reference: int
    waves: int
    mean: float
    deviation: float
    trend: bool = False
    outer: bool = False
    jumps: tuple[int, ...] = ()

    @property
    def n_states(self) -> int:
        return len(self.knots) + self.missing

    @property
    def n_lines(self) -> int:
        return int(self.deviation > 0)

    @property
    def trend_function(self) -> int | None:
        """The number of the function that is a straight line throughout: the trend, or the only wave."""
        if self.trend:
            return self.waves + 1
        return 0 if self.waves == 1 and not self.category else None

    @property
    def ranks(self) -> np.ndarray:
        """The ranks of the knots: equally spaced, and at the ends those of outer knots."""
        inner = np.linspace(0, 1, len(self.knots) - 2 * self.outer)
        return np.concatenate([[0.0], inner, [1.0]]) if self.outer else inner

    @property
    def width(self) -> int:
        return (len(self.knots) if self.category else self.first_jump + len(self.jumps)) + self.missing

    @property
    def first_jump(self) -> int:
        """The number of the function of the first jump: waves and lines come before it."""
        return self.waves + self.n_lines + self.trend

    def table(self, shape: SplineShape) -> np.ndarray:
        """Return the functions of a number at its states, (n_states, width).

        (Every state of a category has a function of its own.)
        """
        n_knots = len(self.knots)
        table = np.zeros((self.n_states, self.width))
        table[:n_knots, : self.waves] = cosines(self.ranks, self.waves, shape.roughness)
        if self.n_lines:
            distance = (self.knots - self.mean) / self.deviation
            inner = np.clip(distance, *distance[[1, -2]]) if self.outer else distance
            table[:n_knots, self.waves] = shape.line * np.clip(inner, -shape.line_clip, shape.line_clip)
            if self.trend:
                table[:n_knots, self.waves + 1] = distance
        above = np.arange(n_knots)[:, None] > np.array(self.jumps, dtype=np.int64)
        # From -1/2 to 1/2: an entry that is missing, where none was in the fit, is halfway.
        height = RAMP_HEIGHT if self.n_ramps else 1.0
        table[:n_knots, self.first_jump : self.first_jump + len(self.jumps)] = height * (above - 0.5)
        table[n_knots:, self.width - self.missing :] = 1.0
        return table

    @property
    def thresholds(self) -> list[float]:
        """The number with the fewest digits between the two knots of each jump."""
        jumps = () if self.n_ramps else self.jumps
        return [_between(self.knots[knot], self.knots[knot + 1]) for knot in jumps]

    @property
    def n_ramps(self) -> int:
        """The number of functions of a number that has nothing but jumps, from each knot to the next."""
        return len(self.jumps) if not self.category and self.waves == 0 else 0

    def names(self, name: str, levels: Sequence[str] | None) -> list[str]:
        if self.category:
            functions = [f"{name} = {level}" for level in levels or [f"{knot:g}" for knot in self.knots]]
        else:
            functions = [f"{name} wave {k}" for k in range(1, self.waves + 1)]
            functions += [f"{name} line"] * self.n_lines + [f"{name} trend"] * self.trend
            if self.n_ramps:
                pairs = zip(self.knots, self.knots[1:], strict=False)
                functions += [f"{name} from {low:g} to {high:g}" for low, high in pairs]
            else:
                functions += [f"{name} > {threshold:.15g}" for threshold in self.thresholds]
        return functions + [f"{name} missing"] * self.missing


@dataclass(frozen=True)
class Tables:
    """Numbers of one shape: their ``states`` (columns, n_states), ``functions`` (columns, width), and
    ``values`` (columns, n_states, width), less those at the reference state.

    ``transposed`` (columns, width, n_states) is contiguous: BLAS is several times faster on it."""

    states: np.ndarray
    functions: np.ndarray
    values: np.ndarray
    transposed: np.ndarray


class Functions(NamedTuple):
    """The functions of the basis at all states.

    ``numbers`` are the tables of columns of numbers; ``categories`` the (states, functions) of each category,
    which correspond one to one; ``same`` is what all rows share: the values at the references, less the
    means, and the constant."""

    numbers: list[Tables]
    categories: list[tuple[slice, slice]]
    same: np.ndarray


@dataclass(frozen=True)
class SplineBasis:
    """A fitted basis; ``center`` (width - 1) are the means of all functions."""

    # The kernel does nothing to the rows of shares.
    shift: ClassVar[None] = None
    scale: ClassVar[None] = None
    zero_row: ClassVar[None] = None
    clip: ClassVar[float] = np.inf
    constant: ClassVar[float] = 0.0
    unit_rows: ClassVar[bool] = False

    columns: tuple[SplineColumn, ...]
    center: np.ndarray
    shape: SplineShape = USUAL_SHAPE

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
        """Return what two bases must share for the params of one to make sense with the other."""
        return "spline", tuple(
            (column.category, column.waves, column.n_lines, column.trend, len(column.jumps), column.width)
            for column in self.columns
        )

    @property
    def groups(self) -> np.ndarray:
        """Return for each function the column of X that it comes from; -1 for the constant."""
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

    @property
    def n_jumps(self) -> int:
        return sum(len(column.jumps) - column.n_ramps for column in self.columns)

    def without_jumps(self) -> SplineBasis:
        """Return the basis with the same states and all functions but jumps."""
        columns = tuple(replace(column, jumps=()) for column in self.columns)
        return replace(self, columns=columns, center=self.center[~self.is_jump[:-1]])

    @property
    def is_jump(self) -> np.ndarray:
        """Return for each function whether it is a jump."""
        each = []
        for column in self.columns:
            first = column.first_jump
            number = np.arange(column.width)
            each.append((number >= first) & (number < first + len(column.jumps)))
        return np.concatenate([*each, [False]])

    @property
    def is_ramp(self) -> np.ndarray:
        """Return for each function whether it is a ramp."""
        each = [np.arange(column.width) < column.n_ramps for column in self.columns]
        return np.concatenate([*each, [False]])

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "center": self.center, "shape": self.shape}

    @cached_property
    def states(self) -> States:
        return States(self.columns)

    def rows(self, X: Rows, packed: bool = False) -> Rows:
        """Return the shares of the states, (rows, row_width), in the type of this basis.

        They are packed on request, if they are of type float32 and the states of no column are too many."""
        dtype = self.center.dtype
        packed = packed and dtype == np.float32 and self.states.can_be_packed and not sparse.issparse(X)
        return self.states.packed_shares(X) if packed else self.states.shares(X, dtype)

    def lift(self, shares: Rows) -> SplineRows:
        return SplineRows(shares.tocsr() if isinstance(shares, PackedShares) else shares, self)

    def spread(self, factors: np.ndarray) -> np.ndarray:
        """Map factors (width, k) to those of the shares (states, k)."""
        spread = np.zeros((self.row_width, factors.shape[1]), dtype=factors.dtype)
        for tables in self._tables.numbers:
            values = tables.values.astype(factors.dtype, copy=False)
            spread[tables.states] = np.matmul(values, factors[tables.functions])
        for states, functions in self._tables.categories:
            spread[states] = factors[functions] * factors.dtype.type(self._size)
        spread[-1] = self.always.astype(factors.dtype, copy=False) @ factors
        return spread

    def gather(self, gradient: np.ndarray) -> np.ndarray:
        """Map the gradient of the factors of the shares (states, k) to that of the factors (width, k)."""
        gathered = np.outer(self.always.astype(gradient.dtype, copy=False), gradient[-1])
        for tables in self._tables.numbers:
            values = tables.transposed.astype(gradient.dtype, copy=False)
            gathered[tables.functions] += np.matmul(values, gradient[tables.states])
        for states, functions in self._tables.categories:
            gathered[functions] += gradient[states] * gradient.dtype.type(self._size)
        return gathered

    @cached_property
    def native_tables(self) -> Any:
        """Return the functions as the compiled kernel reads them, which spreads and gathers itself."""
        dtype = self.center.dtype
        tables = native.extension.spline_tables(self.always.astype(dtype), self.row_width, self._size)
        waves: dict[tuple[int, int, bool], tuple[Transposed, Transposed]] = {}  # most columns share them
        function = 0
        for column, state in zip(self.columns, self.states.first.tolist(), strict=False):
            n_knots = len(column.knots)
            if column.category:
                tables.add_category(state, function, column.width)
            elif column.width:
                shape = n_knots, column.waves, column.outer
                if shape not in waves:
                    values = self._size * cosines(column.ranks, column.waves, self.shape.roughness)
                    even, odd = values[: -(-n_knots // 2), 1::2], values[: n_knots // 2, ::2]
                    waves[shape] = _both_ways(even, dtype), _both_ways(odd, dtype)
                others = _both_ways(self._size * column.table(self.shape)[:, column.waves :], dtype)
                tables.add_number(state, function, n_knots, column.reference, *waves[shape], others)
            function += column.width
        return tables

    @cached_property
    def _size(self) -> float:
        """Return the factor of all functions: columns that are always in the same state do not count."""
        return float(1 / np.sqrt(max(1, int(np.count_nonzero(np.diff(self.states.first) > 1)))))

    @property
    def always(self) -> np.ndarray:
        """Return what is the same in all rows, (width,)."""
        return self._tables.same

    @cached_property
    def _tables(self) -> Functions:
        same = np.append(-self.center.astype(np.float64), self.shape.constant)
        numbers: dict[tuple[int, ...], list[tuple[np.ndarray, ...]]] = {}  # by shape
        categories = []
        first = 0
        for column, state in zip(self.columns, self.states.first.tolist(), strict=False):
            states, functions = slice(state, state + column.n_states), slice(first, first + column.width)
            first = functions.stop
            if column.category:
                categories.append((states, functions))
            elif column.width:
                values = column.table(self.shape)
                if column.reference >= 0:
                    same[functions] += self._size * values[column.reference]
                    values = values - values[column.reference]
                places = np.arange(states.start, states.stop), np.arange(functions.start, functions.stop)
                numbers.setdefault(values.shape, []).append((*places, self._size * values))
        tables = []
        for of_shape in numbers.values():
            of_states, of_functions, values = map(np.array, zip(*of_shape, strict=True))
            values = values.astype(self.center.dtype)
            transposed = np.ascontiguousarray(values.transpose(0, 2, 1))
            tables.append(Tables(of_states, of_functions, values, transposed))
        return Functions(tables, categories, same)

    @cached_property
    def functions(self) -> sparse.csr_array:
        """Return all functions at all states (row_width, width), less what is the same in all rows."""
        states, functions = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
        values = [np.zeros(0, self.center.dtype)]
        for tables in self._tables.numbers:
            states.append(np.broadcast_to(tables.states[:, :, None], tables.values.shape).ravel())
            functions.append(np.broadcast_to(tables.functions[:, None, :], tables.values.shape).ravel())
            values.append(tables.values.ravel())
        for of_states, of_functions in self._tables.categories:
            states.append(np.arange(of_states.start, of_states.stop))
            functions.append(np.arange(of_functions.start, of_functions.stop))
            values.append(np.full(of_states.stop - of_states.start, self._size, self.center.dtype))
        places = np.concatenate(states), np.concatenate(functions)
        return sparse.csr_array((np.concatenate(values), places), shape=(self.row_width, self.width))


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
        """Return the rows less `SplineBasis.always`: a category has one entry, however many its levels."""
        return sparse.csr_array(self.shares @ self.basis.functions)

    def absolute_sums(self, units: np.ndarray) -> np.ndarray:
        """Return the sum of absolute values of each row, with its columns multiplied by ``units``."""
        if self.narrow:
            return np.abs(self.explicit()) @ units
        return AffineRows(self.varying(), self._always).absolute_sums(units)

    def moments(self, weight: np.ndarray | None) -> Moments:
        """Return the moments of the functions."""
        if self.narrow:
            return moments(self.explicit(), weight)
        varying = moments(self.varying(), weight)
        return replace(varying, mean=varying.mean + self.basis.always)

    @property
    def narrow(self) -> bool:
        """Tell whether a dense matrix of the functions at all states is faster than a sparse one."""
        return self.basis.row_width * self.basis.width <= LARGEST_DENSE

    def explicit(self) -> Rows:
        """Return all of it as one dense matrix."""
        dense = self.shares @ self.basis.functions.toarray() if self.narrow else self.varying().toarray()
        return dense + self._always

    @property
    def _always(self) -> np.ndarray:
        return self.basis.always.astype(self.shares.dtype, copy=False)


def _between(low: float, high: float) -> float:
    """Return the number with the fewest digits from ``low`` on, and below ``high``."""
    middle = 0.5 * low + 0.5 * high
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return float(low)


def _both_ways(table: np.ndarray, dtype: np.dtype) -> Transposed:
    """Return a table and its transpose, both contiguous."""
    table = np.ascontiguousarray(table, dtype)
    return table, np.ascontiguousarray(table.T)


def cosines(ranks: np.ndarray, waves: int, roughness: float) -> np.ndarray:
    """Return the waves (ranks, waves)."""
    k = np.arange(1, waves + 1)
    return np.sqrt(2 * strengths(waves, roughness)) * np.cos(np.pi * k * ranks[:, None])


def strengths(waves: int, roughness: float) -> np.ndarray:
    """Return the strengths of the first waves; those of all waves add up to 1."""
    k = np.arange(1, waves + 1)
    # sum over k of 1 / (1 + (pi k / a)^2) is (a coth(a) - 1) / 2
    total = (roughness / np.tanh(roughness) - 1) / 2
    return 1 / (1 + (np.pi * k / roughness) ** 2) / total


def wave_sizes(basis: SplineBasis, roughness: float) -> np.ndarray | None:
    """Return the sizes of coefficients, (width,), that make waves as strong as another roughness does.

    They are None if the basis has that roughness."""
    if roughness == basis.shape.roughness:
        return None
    sizes = [np.ones(column.width) for column in basis.columns]
    for column, of_column in zip(basis.columns, sizes, strict=True):
        wanted, usual = (strengths(column.waves, each) for each in (roughness, basis.shape.roughness))
        of_column[: column.waves] = np.sqrt(wanted / usual)
    return np.append(np.concatenate([np.ones(0), *sizes]), 1.0)
