"""The columns of a frame as a matrix of floats: numbers unchanged, categories as level codes, dates as
several numbers, NaN for missing values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .column_counts import (
    MOST_COUNTED,
    ColumnCounts,
    DateCounts,
    FrameCounts,
    NumberCounts,
    count_columns,
)
from .dates import CYCLES, NO_DATE, days, is_dates, parse_dates
from .frame import Frame, Levels, RawColumn, all_different, column_label, is_number, number_levels

FEWEST_ROWS, FEWEST_SHARE = 2, 0.02  # a level with fewer rows than this number and this share is pooled
FEWEST_OF_MANY, MANY, MOST_POOLED = 5, 0.1, 0.5  # the same if there are many levels; shares of the rows
MOST_LEVELS = MOST_COUNTED  # including the pool; files count no more, so the same limit applies in memory


class LevelCodes(dict[str | None, float]):
    """Codes by level, with None for missing; other levels have the code ``unknown``."""

    def __init__(self, levels: Iterable[str], unknown: float) -> None:
        super().__init__((level, code) for code, level in enumerate(levels))
        self[None] = np.nan
        self.unknown = unknown

    def __missing__(self, level: str | None) -> float:
        return self.unknown


@dataclass(frozen=True)
class Column:
    """One fitted column: dates if it has ``cycles``, a category if it has ``levels``, otherwise a number.

    A category is encoded as the position of its level in ``levels``. Levels that are too rare are ``pooled``:
    they share the code ``len(levels)`` with unseen levels. If the fit had no rare levels, an unseen level is
    missing, NaN.

    Booleans are the numbers 0 and 1, so that one coefficient tells what True changes, and the model is the
    same as for a column of 0 and 1.

    A date becomes several numeric columns: its days, and its position in each of ``cycles``, keys of
    `dates.CYCLES`."""

    levels: tuple[str, ...] | None = None
    pooled: bool = False
    cycles: tuple[str, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Without the codes, which follow from the levels.
        return {"levels": self.levels, "pooled": self.pooled, "cycles": self.cycles}

    @property
    def kind(self) -> str:
        return "date" if self.cycles is not None else "number" if self.levels is None else "category"

    @property
    def parts(self) -> dict[str, Column]:
        """Return the columns of the matrix, by the suffix that is added to the name of this column.

        No number of a date has the name of the date, so that an export cannot confuse the two."""
        if self.cycles is None:
            return {"": self}
        return {f": {part}": Column() for part in ("days", *self.cycles)}

    @property
    def n_codes(self) -> int:
        """Return the number of codes of a category; 0 for a number."""
        return 0 if self.levels is None else len(self.levels) + self.pooled

    @property
    def level_names(self) -> list[str] | None:
        """Return the names by code; None for a number."""
        return None if self.levels is None else [*self.levels, *["rare levels"] * self.pooled]

    @cached_property
    def _codes(self) -> LevelCodes:
        return LevelCodes(self.levels or (), len(self.levels or ()) if self.pooled else np.nan)

    def code(self, level: str | None) -> float:
        """Return the code of one level of a category; None stands for missing."""
        return self._codes[level]

    def codes(self, levels: Iterable[str | None]) -> list[float]:
        return list(map(self._codes.__getitem__, levels))

    def encode(self, column: RawColumn, label: str) -> list[np.ndarray]:
        """Return the columns of the matrix."""
        if self.cycles is not None:
            dates = _dates(column, label)
            return [days(dates), *(CYCLES[cycle].place(dates) for cycle in self.cycles)]
        return [_numbers(column, label) if self.levels is None else self._codes_of(column, label)]

    def _codes_of(self, column: RawColumn, label: str) -> np.ndarray:
        if is_dates(column):
            raise ValueError(f"{label} held strings in the fit, now it holds dates.")
        if isinstance(column, np.ndarray):
            column = number_levels(column)
            self.refuse_numbers(column, label)
        codes = self.codes((*column.names, None))
        return np.array(codes, dtype=np.float64)[column.codes]  # code -1, missing, takes the last

    def refuse_numbers(self, levels: Levels, label: str) -> None:
        """Refuse levels that are all numbers if no level of the fit was a number.

        A single number, as in a frame of one row, may be an unseen or a rare level."""
        unknown = (
            len(levels.names) > 1
            and not self.pooled
            and not any(name in self._codes for name in levels.names)
        )
        if unknown and self.levels and not any(map(is_number, self.levels)):
            raise ValueError(
                f"{label} held strings such as {self.levels[0]!r} in the fit, now it holds numbers."
            )


@dataclass(frozen=True)
class Columns:
    """The fitted columns of a frame, in order, with their ``names`` if they have any."""

    names: tuple[str, ...] | None
    columns: tuple[Column, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return "number", "category" or "date" for each column."""
        return tuple(column.kind for column in self.columns)

    @cached_property
    def has_dates(self) -> bool:
        return "date" in self.kinds

    @cached_property
    def categories(self) -> dict[int, Column]:
        """Return the categories among the columns, by column index."""
        return {j: column for j, column in enumerate(self.columns) if column.levels is not None}

    @cached_property
    def encoded(self) -> tuple[Column, ...]:
        """Return the columns of the matrix: numbers and categories."""
        if not self.has_dates:
            return self.columns
        return tuple(part for column in self.columns for part in column.parts.values())

    @property
    def encoded_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns of the matrix; None if they are x0, x1, ..."""
        if not self.has_dates:
            return self.names
        names = self.names or [f"x{j}" for j in range(len(self.columns))]
        pairs = zip(names, self.columns, strict=True)
        return tuple(all_different(name + part for name, column in pairs for part in column.parts))

    @cached_property
    def starts(self) -> np.ndarray:
        """Return the index of the first matrix column of each column."""
        return np.cumsum([0, *(len(column.parts) for column in self.columns)])[:-1]

    @property
    def sources(self) -> list[int]:
        """Return the index of the column that each matrix column comes from."""
        return [j for j, column in enumerate(self.columns) for _ in column.parts]

    def sums(self, encoded: np.ndarray) -> np.ndarray:
        """Return the sum over the matrix columns (last axis) of each column."""
        return np.add.reduceat(encoded, self.starts, axis=-1)

    @property
    def n_codes(self) -> tuple[int | None, ...]:
        """Return the number of codes of each matrix column that is a category, None for a number."""
        return tuple(None if column.levels is None else column.n_codes for column in self.encoded)

    def encode(self, frame: Frame, dtype: np.dtype | type | None = None) -> np.ndarray:
        """Return the matrix (rows, encoded columns) of a frame with these columns.

        Unless ``dtype`` is given, the type is float32 if all numeric columns are float32, else float64."""
        if frame.shape[1] != len(self.columns):
            raise ValueError(f"X has {frame.shape[1]} columns, in the fit there were {len(self.columns)}.")
        encoded = [
            values
            for j, (column, raw) in enumerate(zip(self.columns, frame.columns, strict=True))
            for values in column.encode(raw, column_label(self.names, j))
        ]
        if dtype is None:
            numbers = zip(self.encoded, encoded, strict=True)
            dtype = matrix_type([values.dtype for column, values in numbers if column.levels is None])
        matrix = np.empty((len(frame), len(encoded)), dtype)
        for j, values in enumerate(encoded):
            matrix[:, j] = values
        return matrix


def matrix_type(dtypes: Sequence[np.dtype]) -> np.dtype:
    """Return float32 if that is the common type of all numbers, else float64."""
    return np.dtype(np.float32 if dtypes and np.result_type(*dtypes) == np.float32 else np.float64)


def learn_columns(frame: Frame, sample_weight: np.ndarray | None = None) -> Columns:
    """Learn the levels of a frame's categories; see `count_columns` for the weights."""
    return columns_of(frame.names, count_columns(frame, sample_weight))


def columns_of(names: Sequence[str] | None, counts: FrameCounts) -> Columns:
    """Return the columns of rows with these counts."""
    columns = tuple(_learn_column(column, counts.weight) for column in counts.columns)
    return Columns(None if names is None else tuple(names), columns)


def _learn_column(column: ColumnCounts, weight: float) -> Column:
    """Keep the levels that are frequent enough for their own code, in order."""
    if isinstance(column, NumberCounts):
        return Column()
    if isinstance(column, DateCounts):
        return Column(cycles=column.cycles())
    totals = column.totals
    seen = [name for name, total in totals.items() if total > 0]
    fewest = _fewest(np.array([totals[name] for name in seen]), weight)
    kept = {name for name in seen if totals[name] >= fewest}
    pooled = column.forgotten or len(kept) < len(seen)
    if len(kept) + pooled > MOST_LEVELS:
        kept = set(sorted(kept, key=lambda name: (-totals[name], name))[: MOST_LEVELS - 1])
    order = seen if column.ordered else _in_order(seen)
    return Column(tuple(name for name in order if name in kept), pooled or len(kept) < len(seen))


def _fewest(totals: np.ndarray, weight: float) -> float:
    """Return the minimum number of rows of a level with its own code.

    The minimum is higher if there are many levels, unless most of the rows would then be pooled."""
    many = len(totals) > MANY * weight
    few_pooled = totals[totals < FEWEST_OF_MANY].sum() <= MOST_POOLED * weight
    return min(FEWEST_OF_MANY if many and few_pooled else FEWEST_ROWS, FEWEST_SHARE * weight)


def _in_order(names: list[str]) -> list[str]:
    """Sort names by value if all are numbers, otherwise alphabetically."""
    numbers = Levels(np.arange(len(names)), names).as_numbers()
    if numbers is None or not np.isfinite(numbers).all():
        return sorted(names)
    return [name for _, name in sorted(zip(numbers.tolist(), names, strict=True))]


def _dates(column: RawColumn, label: str) -> np.ndarray:
    if is_dates(column):
        return np.asarray(column)
    if isinstance(column, np.ndarray):
        if not np.isnan(column).all():
            raise ValueError(f"{label} held dates in the fit, now it holds numbers.")
        return np.full(len(column), NO_DATE)
    dates = column.as_dates()
    if dates is None:
        example = next(name for name in column.names if parse_dates([name]) is None)
        raise ValueError(f"{label} held dates in the fit, now it holds strings such as {example!r}.")
    return dates


def _numbers(column: RawColumn, label: str) -> np.ndarray:
    if is_dates(column):
        raise ValueError(f"{label} held numbers in the fit, now it holds dates.")
    numbers = column if isinstance(column, np.ndarray) else column.as_numbers()
    if numbers is None:
        assert isinstance(column, Levels)
        example = next(name for name in column.names if not is_number(name))
        if all(name.lower() in ("true", "false") for name in column.names):  # booleans are numbers in a fit
            raise ValueError(
                f"{label} held booleans or numbers in the fit, now it holds strings such as {example!r}: "
                "convert them to booleans."
            )
        raise ValueError(f"{label} held numbers in the fit, now it holds strings such as {example!r}.")
    return numbers
