"""The columns of a frame as a matrix of floats: numbers unchanged, categories as the numbers of their levels,
NaN where missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .column_counts import ColumnCounts, FrameCounts, NumberCounts, count_columns
from .frame import Frame, Levels, RawColumn, column_label, is_number, number_levels

FEWEST_ROWS, FEWEST_SHARE = 5, 0.02  # a level with fewer rows than both (a number, a share) is pooled
MOST_LEVELS = 10_000  # including the pool


class LevelCodes(dict[str | None, float]):
    """Codes by level, None for a missing one; other levels have the code ``unknown``."""

    def __init__(self, levels: Iterable[str], unknown: float) -> None:
        super().__init__((level, code) for code, level in enumerate(levels))
        self[None] = np.nan
        self.unknown = unknown

    def __missing__(self, level: str | None) -> float:
        return self.unknown


@dataclass(frozen=True)
class Column:
    """One fitted column: a number where ``levels`` is None, otherwise a category.

    A category is encoded as the position of its level in ``levels``. Levels too rare to be there are
    ``pooled``: they share the code ``len(levels)``, and levels never seen go with them. Where the fit had no
    rare levels, a level never seen is missing, NaN.

    Booleans are the numbers 0 and 1: then one coefficient tells what True changes, and the model is the same
    as for a column of 0 and 1."""

    levels: tuple[str, ...] | None = None
    pooled: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return {"levels": self.levels, "pooled": self.pooled}  # without the codes, which follow from them

    @property
    def kind(self) -> str:
        return "number" if self.levels is None else "category"

    @property
    def n_codes(self) -> int:
        """Number of codes of a category; 0 for a number."""
        return 0 if self.levels is None else len(self.levels) + self.pooled

    @property
    def level_names(self) -> list[str] | None:
        """Names by code; None for a number."""
        return None if self.levels is None else [*self.levels, *["rare levels"] * self.pooled]

    @cached_property
    def _codes(self) -> LevelCodes:
        return LevelCodes(self.levels or (), len(self.levels or ()) if self.pooled else np.nan)

    def code(self, level: str | None) -> float:
        """Return the code of one level of a category; None is a missing one."""
        return self._codes[level]

    def codes(self, levels: Iterable[str | None]) -> list[float]:
        return list(map(self._codes.__getitem__, levels))

    def encode(self, column: RawColumn, label: str) -> np.ndarray:
        if self.levels is None:
            return _numbers(column, label)
        if isinstance(column, np.ndarray):
            column = number_levels(column)
            self.refuse_numbers(column, label)
        codes = self.codes((*column.names, None))
        return np.array(codes, dtype=np.float64)[column.codes]  # code -1, missing, takes the last

    def refuse_numbers(self, levels: Levels, label: str) -> None:
        """Refuse levels that are all numbers where no level of the fit was one.

        A single number, as a frame of one row has it, may be a level never seen before, or too rarely."""
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
        """For each column "number" or "category"."""
        return tuple(column.kind for column in self.columns)

    @cached_property
    def categories(self) -> dict[int, Column]:
        """The categories among the columns, by the number of the column."""
        return {j: column for j, column in enumerate(self.columns) if column.levels is not None}

    @property
    def n_codes(self) -> tuple[int | None, ...]:
        """The number of codes of each category, None for a number."""
        return tuple(None if column.levels is None else column.n_codes for column in self.columns)

    def encode(self, frame: Frame, dtype: np.dtype | type | None = None) -> np.ndarray:
        """Return the matrix (rows, columns) of a frame with these columns.

        Unless ``dtype`` is given, it is float32 if all columns of numbers are, else float64."""
        if frame.shape[1] != len(self.columns):
            raise ValueError(f"X has {frame.shape[1]} columns, in the fit there were {len(self.columns)}.")
        encoded = [
            column.encode(raw, column_label(self.names, j))
            for j, (column, raw) in enumerate(zip(self.columns, frame.columns, strict=True))
        ]
        if dtype is None:
            numbers = zip(self.columns, encoded, strict=True)
            dtype = matrix_type([values.dtype for column, values in numbers if column.levels is None])
        matrix = np.empty(frame.shape, dtype)
        for j, values in enumerate(encoded):
            matrix[:, j] = values
        return matrix


def matrix_type(dtypes: Sequence[np.dtype]) -> np.dtype:
    """Return float32 where that is the type of all numbers together, else float64."""
    return np.dtype(np.float32 if dtypes and np.result_type(*dtypes) == np.float32 else np.float64)


def learn_columns(frame: Frame, sample_weight: np.ndarray | None = None) -> Columns:
    """Learn the levels of a frame's categories; see `count_columns` for the weights."""
    return columns_of(frame.names, count_columns(frame, sample_weight))


def columns_of(names: Sequence[str] | None, counts: FrameCounts) -> Columns:
    """Return the columns of rows with these counts."""
    columns = tuple(_learn_column(column, counts.weight) for column in counts.columns)
    return Columns(None if names is None else tuple(names), columns)


def _learn_column(column: ColumnCounts, weight: float) -> Column:
    """Keep the levels that are common enough to stand for themselves, in their order."""
    if isinstance(column, NumberCounts):
        return Column()
    totals = column.totals
    seen = [name for name, total in totals.items() if total > 0]
    fewest = min(FEWEST_ROWS, FEWEST_SHARE * weight)
    kept = {name for name in seen if totals[name] >= fewest}
    pooled = column.forgotten or len(kept) < len(seen)
    if len(kept) + pooled > MOST_LEVELS:
        kept = set(sorted(kept, key=lambda name: (-totals[name], name))[: MOST_LEVELS - 1])
    order = seen if column.ordered else _in_order(seen)
    return Column(tuple(name for name in order if name in kept), pooled or len(kept) < len(seen))


def _in_order(names: list[str]) -> list[str]:
    """Sort names by value if all are numbers, otherwise by the alphabet."""
    numbers = Levels(np.arange(len(names)), names).as_numbers()
    if numbers is None or not np.isfinite(numbers).all():
        return sorted(names)
    return [name for _, name in sorted(zip(numbers.tolist(), names, strict=True))]


def _numbers(column: RawColumn, label: str) -> np.ndarray:
    numbers = column if isinstance(column, np.ndarray) else column.as_numbers()
    if numbers is None:
        assert isinstance(column, Levels)
        example = next(name for name in column.names if not is_number(name))
        raise ValueError(f"{label} held numbers in the fit, now it holds strings such as {example!r}.")
    return numbers
