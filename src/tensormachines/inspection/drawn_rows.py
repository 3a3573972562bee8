"""Rows to inspect, wherever they are: all rows in memory, or a random sample from one pass over others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._data.dataframes import boolean_columns as booleans_of
from .._data.files.source import Chunk, Source
from .._data.open import is_in_memory
from .._data.row_sample import RowSample
from ..estimators.sum_over_rows import fitted_alone, sum_over_rows
from .forms import boolean_columns, check_rows, fitted_machine, matrix_columns

MOST_ROWS = 20_000  # of a source or a Dask collection


@dataclass(frozen=True)
class DrawnRows:
    """A sample of rows: X in float64, y, weights, the boolean columns, and sums over all rows."""

    sample: RowSample
    booleans: frozenset[int]
    sums: Any = None

    def __add__(self, other: DrawnRows) -> DrawnRows:
        sums = None if self.sums is None else self.sums + other.sums
        return DrawnRows(self.sample + other.sample, self.booleans | other.booleans, sums)


@dataclass(frozen=True)
class Draw:
    """Draw rows of a chunk, and sum a function over all its rows."""

    most: int = MOST_ROWS
    seed: int = 0
    summed: Callable[[Chunk], Any] | None = None

    def __call__(self, chunk: Chunk) -> DrawnRows:
        rows = chunk.X.astype(np.float64, copy=False)
        sample = RowSample.of((rows, chunk.y, chunk.weight), chunk.first, self.most, self.seed)
        return DrawnRows(sample, chunk.booleans, None if self.summed is None else self.summed(chunk))


def draw_rows(
    model: Any, X: Any, y: Any, draw: Draw, targets: bool = True, sample_weight: Any = None
) -> DrawnRows:
    """Draw rows of a source or a Dask collection, with their ``targets`` if there are any."""
    fitted_machine(model)
    found = sum_over_rows(fitted_alone(model), X, y, sample_weight, draw, targets)
    booleans = found.booleans if isinstance(X, Source) else booleans_of(getattr(X, "_meta", None))
    return replace(found, booleans=frozenset(matrix_columns(model, booleans)))


def rows_to_inspect(model: Any, X: Any) -> tuple[Any, set[int]]:
    """Return rows as a matrix in float64, with categories as codes, and the boolean columns.

    A source of blocks or a Dask collection is sampled: at most 20,000 random rows, always the same ones."""
    if is_in_memory(X):
        return check_rows(model, X), boolean_columns(model, X)
    drawn = draw_rows(model, X, None, Draw(), targets=False)
    return drawn.sample.parts[0], set(drawn.booleans)
