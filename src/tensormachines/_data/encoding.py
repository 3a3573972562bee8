"""The columns of a raw table as a matrix of floats: numbers as they are, categories by the numbers of their
levels, NaN where missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .dataframes import column_label, column_names, is_raw, number_levels, raw_columns
from .levels import Levels, RawColumn, is_number

FEWEST_ROWS = 5  # that a level needs to be one of its own, or
FEWEST_SHARE = 0.02  # of all rows, if that is less
MOST_LEVELS = 10_000  # with the one that stands for the rare ones


@dataclass(frozen=True)
class Column:
    """One fitted column: a number where ``levels`` is None, otherwise a category.

    A category is encoded as the position of its level in ``levels``, or as ``len(levels)`` if it is rare:
    where there were such levels in the fit they are ``pooled``, and levels never seen go with them. Where
    there were none, a level never seen is missing, NaN.

    Booleans are the numbers 0 and 1: then one coefficient tells what True changes, and the model is the same
    as for a column of 0 and 1."""

    levels: tuple[str, ...] | None = None
    pooled: bool = False

    @property
    def kind(self) -> str:
        return "number" if self.levels is None else "category"

    @property
    def n_codes(self) -> int:
        """Codes of a category are less than that; 0 for a number."""
        return 0 if self.levels is None else len(self.levels) + self.pooled

    @property
    def level_names(self) -> list[str] | None:
        """By code; None for a number."""
        return None if self.levels is None else [*self.levels, *["rare levels"] * self.pooled]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {level: code for code, level in enumerate(self.levels or ())}

    def encode(self, column: RawColumn, label: str) -> np.ndarray:
        if self.levels is None:
            return _numbers(column, label)
        if isinstance(column, np.ndarray):
            column = self._levels(column, label)
        unknown = len(self.levels) if self.pooled else np.nan
        return np.array([*(self._codes.get(name, unknown) for name in column.names), np.nan])[
            column.codes
        ]  # -1, missing, is the last

    def _levels(self, numbers: np.ndarray, label: str) -> Levels:
        """Levels that come in a column of numbers, which is an error where no level of the fit was one.

        One number alone, as a table of a single row has it, may be a level that was not seen before, or too
        rarely."""
        levels = number_levels(numbers)
        unknown = (
            len(levels.names) > 1
            and not self.pooled
            and not any(name in self._codes for name in levels.names)
        )
        if unknown and self.levels and not any(map(is_number, self.levels)):
            raise ValueError(
                f"X: {label} held strings such as {self.levels[0]!r} in the fit, now it holds numbers."
            )
        return levels


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in order, with their ``names`` if they have any."""

    names: tuple[str, ...] | None
    columns: tuple[Column, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """For each column "number" or "category"."""
        return tuple(column.kind for column in self.columns)

    def encode(self, X: Any, dtype: np.dtype | type | None = None) -> np.ndarray:
        """The matrix (rows, columns) of a table with these columns.

        Unless ``dtype`` says which, it is in float64, or in float32 if all numbers are.
        """
        if sparse.issparse(X) or len(X.shape) != 2:
            raise ValueError(
                f"X must be a table of {len(self.columns)} columns as in the fit, got {type(X).__name__} of shape {X.shape}."
            )
        if X.shape[1] != len(self.columns):
            raise ValueError(f"X has {X.shape[1]} columns, in the fit there were {len(self.columns)}.")
        pairs = enumerate(zip(self.columns, raw_columns(X, self.names, self.kinds), strict=True))
        encoded = [column.encode(raw, column_label(self.names, j)) for j, (column, raw) in pairs]
        if dtype is None:
            dtypes = [
                values.dtype
                for column, values in zip(self.columns, encoded, strict=True)
                if column.levels is None
            ]
            dtype = np.float32 if dtypes and np.result_type(*dtypes) == np.float32 else np.float64
        matrix = np.empty((X.shape[0], len(encoded)), dtype)
        for j, values in enumerate(encoded):
            matrix[:, j] = values
        return matrix

    def name(self, column: int) -> str:
        """As scikit-learn calls columns without names: x0, x1, ..."""
        return f"x{column}" if self.names is None else self.names[column]

    def describe(self, column: int, code: float) -> str:
        """What it means that ``column`` has the value ``code`` in the encoded matrix."""
        levels = self.columns[column].levels
        if np.isnan(code):
            return f"{self.name(column)} missing"
        if levels is None:
            return f"{self.name(column)} = {code:g}"
        if int(code) == len(levels):
            return f"{self.name(column)}: rare levels"
        return f"{self.name(column)} = {levels[int(code)]}"


def learn_columns(
    X: Any, sample_weight: np.ndarray | None = None, kinds: Sequence[str] | None = None
) -> Columns | None:
    """The columns of a table; None if there is nothing to encode, because all of it is numbers to NumPy, or X
    is sparse.

    Rows of weight 0 teach nothing, and a row of weight 2 counts twice. (One of weight 0.1 counts once: it is
    not certain that weights are numbers of rows.) ``kinds`` are those of the columns where more is known of
    them than these rows."""
    if not is_raw(X):
        return None
    if sample_weight is None:
        sample_weight = np.ones(X.shape[0])
    counts = np.maximum(sample_weight, sample_weight > 0)
    names = column_names(X)
    raw = raw_columns(X, names, kinds)
    return Columns(
        names,
        tuple(
            Column() if isinstance(column, np.ndarray) else _learn_category(column, counts) for column in raw
        ),
    )


def _learn_category(column: Levels, counts: np.ndarray) -> Column:
    """Levels that are common enough to stand for themselves, in their order."""
    present = column.codes >= 0
    totals: dict[str, float] = {}
    for name, total in zip(
        column.names,
        np.bincount(column.codes[present], counts[present], len(column.names)).tolist(),
        strict=True,
    ):
        totals[name] = totals.get(name, 0.0) + total
    seen = [name for name, total in totals.items() if total > 0]
    fewest = min(FEWEST_ROWS, FEWEST_SHARE * counts.sum())
    kept = {name for name in seen if totals[name] >= fewest}
    if len(kept) + (len(kept) < len(seen)) > MOST_LEVELS:
        kept = set(sorted(kept, key=lambda name: (-totals[name], name))[: MOST_LEVELS - 1])
    order = seen if column.ordered else _in_order(seen)
    return Column(tuple(name for name in order if name in kept), pooled=len(kept) < len(seen))


def _in_order(names: list[str]) -> list[str]:
    """By value if all are numbers, otherwise by the alphabet."""
    numbers = Levels(np.arange(len(names)), names).as_numbers()
    if numbers is None or not np.isfinite(numbers).all():
        return sorted(names)
    return [name for _, name in sorted(zip(numbers.tolist(), names, strict=True))]


def _numbers(column: RawColumn, label: str) -> np.ndarray:
    numbers = column if isinstance(column, np.ndarray) else column.as_numbers()
    if numbers is None:
        assert isinstance(column, Levels)
        example = next(name for name in column.names if not is_number(name))
        raise ValueError(f"X: {label} held numbers in the fit, now it holds strings such as {example!r}.")
    return numbers
