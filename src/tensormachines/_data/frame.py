"""The raw table of a user: named columns of numbers, dates or levels, wherever they came from.

DataFrames, object arrays, lists and the cells of files become a `Frame` once, on input (`dataframes`,
`files`); all other code reads frames or matrices of floats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from .dates import DATES, NO_DATE, is_dates, parse_dates

WHOLE = re.compile(r"[+-]?[0-9]{1,300}")


@dataclass(frozen=True)
class Levels:
    """A column of names: row i holds ``names[codes[i]]``, or is missing if ``codes[i]`` is -1.

    The same name may occur twice. ``ordered`` says that the order of the names means something.
    """

    codes: np.ndarray
    names: list[str]
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Levels:
        return Levels(self.codes[rows], self.names, self.ordered)

    def compact(self) -> Levels:
        """Return the column without names that no row has."""
        used, codes = np.unique(self.codes[self.codes >= 0], return_inverse=True)
        compact = np.full(len(self.codes), -1)
        compact[self.codes >= 0] = codes
        return Levels(compact, [self.names[code] for code in used], self.ordered)

    def as_numbers(self) -> np.ndarray | None:
        """Return the numbers that the names spell; None if some name is not a number."""
        if not all(map(is_number, self.names)):
            return None
        return np.array([*map(float, self.names), np.nan])[self.codes]  # code -1 takes the last

    def as_dates(self) -> np.ndarray | None:
        """Return the dates that the names spell; None if some name is not a date."""
        dates = parse_dates(self.names)
        return None if dates is None else np.append(dates, NO_DATE)[self.codes].astype(DATES)


RawColumn: TypeAlias = np.ndarray | Levels


def is_raw_column(column: RawColumn) -> bool:
    """Tell whether a model must encode a column: levels and dates become numbers in a matrix."""
    return isinstance(column, Levels) or is_dates(column)


class Frame:
    """Columns of the same length, each an array of numbers (NaN where missing) or dates (see `dates`), or
    `Levels`.

    ``names`` is None if the columns have no names. ``raw`` says that a model must encode the columns, by
    default if some column is levels or dates. A frame read from Python objects is raw even if all columns are
    numbers. ``booleans`` are the indices of columns of 0 and 1 that were booleans in the input.
    """

    ndim = 2

    def __init__(
        self,
        names: Sequence[str] | None,
        columns: Sequence[RawColumn],
        raw: bool | None = None,
        booleans: Iterable[int] = (),
    ):
        self.names = None if names is None else tuple(names)
        self.columns = tuple(columns)
        self.raw = any(map(is_raw_column, self.columns)) if raw is None else raw
        self.booleans = frozenset(booleans)
        self.shape = (len(self.columns[0]) if self.columns else 0, len(self.columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Frame:
        """Return some rows: a slice, a mask, or row numbers."""
        return Frame(self.names, [column[rows] for column in self.columns], self.raw, self.booleans)

    def compact(self) -> Frame:
        """Return the frame without names of levels that no row has."""
        columns = [each.compact() if isinstance(each, Levels) else each for each in self.columns]
        return Frame(self.names, columns, self.raw, self.booleans)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the matrix of a frame that holds only numbers: float32 if all columns are float32."""
        single = all(getattr(column, "dtype", None) == np.float32 for column in self.columns)
        matrix = np.empty(self.shape, dtype or (np.float32 if single else np.float64))
        for j, column in enumerate(self.columns):
            if is_raw_column(column):
                what = "dates" if is_dates(column) else "a category"
                raise ValueError(f"{column_label(self.names, j)} holds {what}, not numbers.")
            matrix[:, j] = column
        return matrix

    def with_categories(self, kinds: Sequence[str | None] | None) -> Frame:
        """Return the frame with levels instead of numbers in columns of the kind "category"."""
        if kinds is None or "category" not in kinds:
            return self
        for j, column in enumerate(self.columns):
            if kinds[j] == "category" and is_dates(column):
                label = column_label(self.names, j)
                raise ValueError(
                    f"{label} holds dates, and cannot be a category: leave it out of categorical_features, "
                    "or give its dates as text."
                )
        columns = [
            number_levels(column) if kind == "category" and isinstance(column, np.ndarray) else column
            for column, kind in zip(self.columns, kinds, strict=True)
        ]
        return Frame(self.names, columns, self.raw, self.booleans)

    def column(self, name: str) -> RawColumn:
        return self.columns[(self.names or ()).index(name)]

    def select(self, names: Iterable[str]) -> Frame:
        names = list(names)
        return Frame(names, [self.column(name) for name in names])


def concatenate(frames: Sequence[Frame]) -> Frame:
    """Return the rows of several frames of the same columns in one frame."""
    columns = [joined([frame.columns[j] for frame in frames]) for j in range(frames[0].shape[1])]
    booleans = frozenset[int]().union(*(frame.booleans for frame in frames))
    return Frame(frames[0].names, columns, any(frame.raw for frame in frames), booleans)


def joined(parts: Sequence[RawColumn]) -> RawColumn:
    """Concatenate the parts of one column; numbers among levels become levels named after them."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    known: dict[str, int] = {}
    codes = []
    levels = [number_levels(part) if isinstance(part, np.ndarray) else part for part in parts]
    for part in levels:
        numbers = np.array([*(known.setdefault(name, len(known)) for name in part.names), -1])
        codes.append(numbers[part.codes])
    return Levels(np.concatenate(codes), list(known), any(part.ordered for part in levels))


# ---- names


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python allows it between digits, but 2024_01 is a name


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, or a missing value of pandas, which need not be installed."""
    return type(value).__name__ in MISSING_TYPES or (isinstance(value, Real) and value != value)


MISSING_TYPES = {"NoneType", "NAType", "NaTType"}


def level_name(level: Any) -> str:
    """Return the same name for the same level, whether it comes as 3, 3.0 or "3"."""
    if isinstance(level, Decimal | Fraction):
        level = float(level)
    if isinstance(level, bool | np.bool_) or not isinstance(level, Real):
        return str(level)
    if isinstance(level, Integral) or float(level).is_integer():
        return str(int(level) if isinstance(level, Integral) else int(float(level)))
    return str(level)


def spelled(name: str) -> str:
    """Return the name of the level that a text stands for: "3" for "3", "03" and "3.0"."""
    if WHOLE.fullmatch(name):
        return str(int(name))  # as a float it might be another number
    return level_name(float(name)) if is_number(name) else name


def number_levels(numbers: np.ndarray) -> Levels:
    """Return numbers as levels that are named after them."""
    values, codes = np.unique(numbers, return_inverse=True)
    missing = np.isnan(values)  # unique puts these last
    return Levels(np.where(missing[codes], -1, codes), [level_name(value) for value in values[~missing]])


def as_text(levels: Levels) -> np.ndarray:
    """Return levels as an array of text, "" for missing ones.

    The elements are objects: in an array of fixed width, one long text would make all elements long."""
    return np.array([*levels.names, ""], dtype=object)[levels.codes]  # code -1 takes the last


def whole_numbers(numbers: np.ndarray) -> np.ndarray | None:
    """Return numbers as integers, booleans unchanged; None if some are not integers, or too large to tell."""
    if numbers.dtype.kind != "f":
        return numbers
    whole = (numbers == np.round(numbers)).all() and np.abs(numbers).max(initial=0) < 2**53
    return numbers.astype(np.int64) if whole else None


def column_label(names: Sequence[str] | None, j: int, what: str = "X") -> str:
    """Return the label of column j in messages: its name, or else its index, so that column 3 is X[:, 3]."""
    return f"column {j} of {what}" if names is None else f"column {names[j]!r}"


def repeated(names: Iterable[str]) -> str | None:
    """Return the first repeated name; None if all are different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def check_unique(names: Iterable[str], where: str) -> None:
    if (twice := repeated(names)) is not None:
        raise ValueError(f"{where}: there is more than one column named {twice!r}; give each its own name.")


def all_different(names: Iterable[str]) -> list[str]:
    """Return distinct names: the second "a" becomes "a (2)"."""
    names = list(names)
    taken, found = set(names), dict[str, None]()
    for name in names:
        different, number = name, 1
        while different in found or (number > 1 and different in taken):
            number += 1
            different = f"{name} ({number})"
        found[different] = None
    return list(found)
