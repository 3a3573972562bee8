"""A table of named columns that needs neither pandas nor polars: what the command line reads files into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .levels import Levels, RawColumn


class Frame:
    """Columns by name, each numbers (NaN where missing) or `Levels`, all of the same length.

    The models take it as they take a DataFrame.
    """

    ndim = 2

    def __init__(self, names: Sequence[str], columns: Sequence[RawColumn]):
        self.names = tuple(names)
        self.columns = tuple(columns)
        self._places = {name: place for place, name in enumerate(self.names)}
        self.shape = (_length(self.columns[0]) if self.columns else 0, len(self.columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Frame:
        """Some rows: a slice, a mask, or numbers of rows."""
        return Frame(self.names, [take_rows(column, rows) for column in self.columns])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The matrix of a frame of numbers alone."""
        matrix = np.empty(self.shape, dtype or np.float64)
        for j, column in enumerate(self.columns):
            if isinstance(column, Levels):
                raise ValueError(f'column "{self.names[j]}" holds a category, which is no number.')
            matrix[:, j] = column
        return matrix

    def column(self, name: str) -> RawColumn:
        return self.columns[self._places[name]]

    def select(self, names: Iterable[str]) -> Frame:
        names = list(names)
        return Frame(names, [self.column(name) for name in names])


def take_rows(column: RawColumn, rows: Any) -> RawColumn:
    return (
        column[rows]
        if isinstance(column, np.ndarray)
        else Levels(column.codes[rows], column.names, column.ordered)
    )


def _length(column: RawColumn) -> int:
    return len(column) if isinstance(column, np.ndarray) else len(column.codes)
