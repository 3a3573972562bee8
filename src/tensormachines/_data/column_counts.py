"""Facts about columns that add up over pieces of a frame: ranges of numbers and dates, and level counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from heapq import nlargest
from typing import TypeAlias

import numpy as np

from .dates import CYCLES, days, is_dates
from .frame import Frame, Levels, RawColumn, is_number

MOST_COUNTED = 100_000  # levels per column; if there are more, the rarest are dropped, to bound memory
FEWEST_NUMBERS = 5  # among at least this many distinct numbers, a text looks like a mistake


@dataclass(frozen=True)
class NumberCounts:
    """A column of numbers. ``consecutive``: each is the previous one plus 1; ``whole``: all are integers."""

    n_rows: int
    n_missing: int
    least: float
    most: float
    total: float
    first: float
    last: float
    consecutive: bool
    whole: bool

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        if isinstance(other, LevelCounts):
            return other._with_numbers(self)
        if isinstance(other, DateCounts):
            return NotImplemented
        return NumberCounts(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            min(self.least, other.least),
            max(self.most, other.most),
            self.total + other.total,
            self.first,
            other.last,
            self.consecutive and other.consecutive and other.first - self.last == 1,
            self.whole and other.whole,
        )


@dataclass(frozen=True)
class LevelCounts:
    """A column of levels: ``totals`` has the number of rows of each level, in order of appearance.

    ``forgotten``: some levels are missing, because at most MOST_COUNTED are counted at a time.
    """

    n_rows: int
    n_missing: int
    totals: dict[str, float]
    ordered: bool = False
    forgotten: bool = False

    def __add__(self, other: ColumnCounts) -> LevelCounts:
        if isinstance(other, NumberCounts):
            return self._with_numbers(other)
        if isinstance(other, DateCounts):
            return NotImplemented
        totals, forgotten = self.totals.copy(), self.forgotten or other.forgotten
        for name, total in other.totals.items():
            totals[name] = totals.get(name, 0.0) + total
        if len(totals) > MOST_COUNTED:
            kept = set(nlargest(MOST_COUNTED // 2, totals, key=totals.__getitem__))
            totals, forgotten = {name: total for name, total in totals.items() if name in kept}, True
        return LevelCounts(
            self.n_rows + other.n_rows, self.n_missing + other.n_missing, totals, self.ordered, forgotten
        )

    def among_numbers(self) -> str | None:
        """Return a level that looks like a mistake because nearly all others are numbers."""
        return among_numbers(self.totals)

    def _with_numbers(self, other: NumberCounts) -> LevelCounts:
        """Add rows that were read as numbers; of these, only missing values can be told apart."""
        return LevelCounts(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            self.totals,
            self.ordered,
            self.forgotten or other.n_missing < other.n_rows,
        )


def among_numbers(levels: Collection[str]) -> str | None:
    """Return a level that looks like a mistake because nearly all others are numbers."""
    others = [name for name in levels if not is_finite_number(name)]
    numbers = len(levels) - len(others)
    return others[0] if others and numbers >= max(FEWEST_NUMBERS, 2 * len(others)) else None


def is_finite_number(text: str) -> bool:
    return is_number(text) and bool(np.isfinite(float(text)))


@dataclass(frozen=True)
class DateCounts:
    """A column of dates: the numbers that it may become, its ``days`` and, by name, its positions in cycles.

    File readers ensure that a column holds dates in all its pieces, or in none."""

    days: NumberCounts
    places: dict[str, NumberCounts]

    @property
    def n_rows(self) -> int:
        return self.days.n_rows

    @property
    def n_missing(self) -> int:
        return self.days.n_missing

    def __add__(self, other: ColumnCounts) -> DateCounts:
        if not isinstance(other, DateCounts):
            return NotImplemented
        places = {name: _sum(place, other.places[name]) for name, place in self.places.items()}
        return DateCounts(_sum(self.days, other.days), places)

    def cycles(self) -> tuple[str, ...]:
        """Return the cycles that the rows complete at least once, and in which their position varies; others
        tell no more than the days.
        """
        span = self.days.most - self.days.least
        return tuple(
            name
            for name, place in self.places.items()
            if span >= CYCLES[name].days and place.most > place.least
        )


def _sum(one: NumberCounts, other: NumberCounts) -> NumberCounts:
    total = one + other
    assert isinstance(total, NumberCounts)
    return total


ColumnCounts: TypeAlias = NumberCounts | LevelCounts | DateCounts


@dataclass(frozen=True)
class FrameCounts:
    """Counts for every column; ``weight`` is the total number of rows counted, see `count_columns`."""

    weight: float
    columns: tuple[ColumnCounts, ...]

    def __add__(self, other: FrameCounts) -> FrameCounts:
        pairs = zip(self.columns, other.columns, strict=True)
        return FrameCounts(self.weight + other.weight, tuple(one + another for one, another in pairs))


def count_columns(frame: Frame, sample_weight: np.ndarray | None = None) -> FrameCounts:
    """Count the levels of a frame.

    A row of weight 0 does not count, and a row of weight 2 counts twice. A row of weight 0.1 counts once,
    because weights need not be numbers of rows.
    """
    counts = np.ones(len(frame)) if sample_weight is None else np.maximum(sample_weight, sample_weight > 0)
    return FrameCounts(float(counts.sum()), tuple(count_column(column, counts) for column in frame.columns))


def count_column(column: RawColumn, counts: np.ndarray) -> ColumnCounts:
    if isinstance(column, Levels):
        present = column.codes >= 0
        totals: dict[str, float] = {}
        found = np.bincount(column.codes[present], counts[present], len(column.names))
        for name, total in zip(column.names, found.tolist(), strict=True):
            totals[name] = totals.get(name, 0.0) + total
        return LevelCounts(len(column), int((~present).sum()), totals, column.ordered)
    if is_dates(column):
        dates = column[counts > 0]
        places = {name: count_numbers(cycle.place(dates)) for name, cycle in CYCLES.items()}
        return DateCounts(count_numbers(days(dates)), places)
    return count_numbers(column)


def count_numbers(column: np.ndarray) -> NumberCounts:
    values = column.astype(np.float64, copy=False)
    numbers = values[~np.isnan(values)]
    first, last = (float(values[0]), float(values[-1])) if len(values) else (np.nan, np.nan)
    return NumberCounts(
        len(values),
        len(values) - len(numbers),
        float(numbers.min(initial=np.inf)),
        float(numbers.max(initial=-np.inf)),
        float(numbers.sum()),
        first,
        last,
        bool((np.diff(values) == 1).all()) and first == first,
        bool((numbers == np.round(numbers)).all()),
    )
