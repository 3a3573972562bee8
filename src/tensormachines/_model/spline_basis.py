"""Splines and levels: a basis for raw columns of any kind.

Each column is replaced by functions of this column (see `_model.spline_column`), which are centred and
divided by the square root of the number of columns. A constant is appended.

All functions of a column are linear in the shares of its states (see `_model.spline_states`): for a sparse
row h of shares, the row in its basis is h @ table. So the product with factors is the sparse product h @
(table @ factors), and the rows in their basis are never computed."""

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
from .spline_column import USUAL_SHAPE, SplineColumn, SplineShape, cosines
from .spline_states import States

LARGEST_DENSE = 1 << 21  # functions times states


Transposed = tuple[np.ndarray, np.ndarray]  # a table, and the same transposed


@dataclass(frozen=True)
class Tables:
    """Numeric columns of one shape: their ``states`` (columns, n_states), ``functions`` (columns, width), and
    ``values`` (columns, n_states, width) minus the values at the reference state.

    ``transposed`` (columns, width, n_states) is contiguous: BLAS is several times faster on it."""

    states: np.ndarray
    functions: np.ndarray
    values: np.ndarray
    transposed: np.ndarray


class Functions(NamedTuple):
    """The functions of the basis at all states.

    ``numbers`` are the tables of numeric columns; ``categories`` are the (states, functions) of each
    category, which correspond one to one; ``same`` is what all rows share: the values at the references minus
    the means, and the constant."""

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
        """Return what two bases must share so that the params of one make sense with the other."""
        return "spline", tuple(
            (
                column.category,
                column.periodic,
                column.waves,
                column.n_lines,
                column.trend,
                len(column.jumps),
                column.width,
            )
            for column in self.columns
        )

    @property
    def groups(self) -> np.ndarray:
        """Return the column of X that each function comes from; -1 for the constant."""
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
        """Return the basis with the same states and all functions except jumps."""
        columns = tuple(replace(column, jumps=()) for column in self.columns)
        return replace(self, columns=columns, center=self.center[~self.is_jump[:-1]])

    @property
    def is_jump(self) -> np.ndarray:
        """Return a mask of the functions that are jumps."""
        each = []
        for column in self.columns:
            first = column.first_jump
            number = np.arange(column.width)
            each.append((number >= first) & (number < first + len(column.jumps)))
        return np.concatenate([*each, [False]])

    @property
    def is_indicator(self) -> np.ndarray:
        """Return a mask of the functions that indicate a level or missing entries."""
        each = [np.arange(column.width) >= column.n_numbers for column in self.columns]
        return np.concatenate([*each, [False]])

    @property
    def is_ramp(self) -> np.ndarray:
        """Return a mask of the functions that are ramps."""
        each = [np.arange(column.width) < column.n_ramps for column in self.columns]
        return np.concatenate([*each, [False]])

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "center": self.center, "shape": self.shape}

    @cached_property
    def states(self) -> States:
        return States(self.columns)

    def rows(self, X: Rows, packed: bool = False) -> Rows:
        """Return the shares of the states, (rows, row_width), in the type of this basis.

        The shares are packed on request, if they are of type float32."""
        dtype = self.center.dtype
        packed = packed and dtype == np.float32 and not sparse.issparse(X)
        return self.states.packed_shares(X) if packed else self.states.shares(X, dtype)

    def lift(self, shares: Rows) -> SplineRows:
        return SplineRows(shares.tocsr() if isinstance(shares, PackedShares) else shares, self)

    def spread(self, factors: np.ndarray) -> np.ndarray:
        """Map factors (width, k) to factors of the shares (states, k)."""
        spread = np.zeros((self.row_width, factors.shape[1]), dtype=factors.dtype)
        for tables in self._tables.numbers:
            values = tables.values.astype(factors.dtype, copy=False)
            spread[tables.states] = np.matmul(values, factors[tables.functions])
        for states, functions in self._tables.categories:
            spread[states] = factors[functions] * factors.dtype.type(self._size)
        spread[-1] = self.always.astype(factors.dtype, copy=False) @ factors
        return spread

    def gather(self, gradient: np.ndarray) -> np.ndarray:
        """Map a gradient for the factors of the shares (states, k) to one for the factors (width, k)."""
        gathered = np.outer(self.always.astype(gradient.dtype, copy=False), gradient[-1])
        for tables in self._tables.numbers:
            values = tables.transposed.astype(gradient.dtype, copy=False)
            gathered[tables.functions] += np.matmul(values, gradient[tables.states])
        for states, functions in self._tables.categories:
            gathered[functions] += gradient[states] * gradient.dtype.type(self._size)
        return gathered

    @cached_property
    def native_tables(self) -> Any:
        """Return the functions in the form of the compiled kernel, which spreads and gathers itself."""
        dtype = self.center.dtype
        tables = native.extension.spline_tables(self.always.astype(dtype), self.row_width, self._size)
        waves: dict[tuple[int, int, bool], tuple[Transposed, Transposed]] = {}  # most columns share them
        function = 0
        for column, state in zip(self.columns, self.states.first.tolist(), strict=False):
            n_knots = len(column.knots)
            if column.category:
                tables.add_category(state, function, column.width)
            elif column.width:
                # The kernel halves waves that are even or odd about the middle; periodic waves are not.
                halved = 0 if column.periodic else column.waves
                shape = n_knots, halved, column.outer
                if shape not in waves:
                    values = self._size * cosines(column.ranks, halved, self.shape.roughness)
                    even, odd = values[: -(-n_knots // 2), 1::2], values[: n_knots // 2, ::2]
                    waves[shape] = _both_ways(even, dtype), _both_ways(odd, dtype)
                others = _both_ways(self._size * column.table(self.shape)[:, halved:], dtype)
                tables.add_number(state, function, n_knots, column.reference, *waves[shape], others)
            function += column.width
        return tables

    @cached_property
    def _size(self) -> float:
        """Return the factor of all functions; columns that are always in the same state do not count."""
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
        """Return all functions at all states (row_width, width), minus what is the same in all rows."""
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
        """Return the rows minus `SplineBasis.always`: a category has one entry, whatever its levels."""
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
        """Return the rows as one dense matrix."""
        dense = self.shares @ self.basis.functions.toarray() if self.narrow else self.varying().toarray()
        return dense + self._always

    @property
    def _always(self) -> np.ndarray:
        return self.basis.always.astype(self.shares.dtype, copy=False)


def _both_ways(table: np.ndarray, dtype: np.dtype) -> Transposed:
    """Return a table and its transpose, both contiguous."""
    table = np.ascontiguousarray(table, dtype)
    return table, np.ascontiguousarray(table.T)


def wave_sizes(basis: SplineBasis, roughness: float) -> np.ndarray | None:
    """Return the sizes of coefficients, (width,), that give waves the strengths of another roughness.

    Return None if the basis already has this roughness."""
    if roughness == basis.shape.roughness:
        return None
    sizes = [np.ones(column.width) for column in basis.columns]
    for column, of_column in zip(basis.columns, sizes, strict=True):
        wanted, usual = (column.strengths(each) for each in (roughness, basis.shape.roughness))
        of_column[: column.waves] = np.sqrt(wanted / usual)
    return np.append(np.concatenate([np.ones(0), *sizes]), 1.0)
