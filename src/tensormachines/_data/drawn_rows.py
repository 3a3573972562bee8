"""A random sample of rows that are not in memory, drawn in one pass: a search tries its candidates on it.

It depends on a seed and the numbers of the rows alone: files and clusters give the same rows, in their order,
however they are cut into chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .column_counts import count_columns
from .disk import RowsOnDisk
from .files.source import Chunk
from .frame import Frame, concatenate
from .row_assignment import priorities, smallest
from .training import RowsElsewhere

MOST_ENTRIES = 20_000_000  # of dense rows: 160 MB in float64, and a search makes a few copies
FEWEST_ROWS = 2000  # of rows with very many columns: on fewer, candidates can hardly be told apart
ROWS_OF_CLASS = 5  # that are kept of each class, however rare: one for each fold


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Some of ``n_rows`` rows, with targets and weights; ``priority`` is what they were drawn by."""

    X: Any  # a matrix or a Frame
    y: np.ndarray
    weight: np.ndarray | None
    priority: np.ndarray
    n_rows: int
    draw: Draw

    def __add__(self, other: DrawnRows) -> DrawnRows:
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([self.weight, other.weight])
        y, priority = (np.concatenate(pair) for pair in ((self.y, other.y), (self.priority, other.priority)))
        n_rows = self.n_rows + other.n_rows
        return self.draw.some_of(
            DrawnRows(_together(self.X, other.X), y, weight, priority, n_rows, self.draw)
        )

    @property
    def complete(self) -> bool:
        """Tell whether these are all rows."""
        return len(self.y) == self.n_rows

    def named(self, names: list[str] | None) -> Any:
        """Return X with the names of its columns, if they have any."""
        if names is None or isinstance(self.X, Frame) or sparse.issparse(self.X):
            return self.X
        return Frame(names, list(self.X.T))


@dataclass(frozen=True)
class Draw:
    """Draw at most ``most_rows`` rows of a chunk, and of rows drawn already; of dense ones with many columns
    fewer. Rows of weight 0 come last. If y holds ``classes``, some rows of each are kept."""

    most_rows: int
    seed: int
    classes: bool

    def __call__(self, chunk: Chunk) -> DrawnRows:
        n_rows = len(chunk.y)
        priority = priorities(chunk.first, n_rows, self.seed)
        if chunk.weight is not None:
            priority = priority + (chunk.weight == 0)
        return self.some_of(DrawnRows(chunk.X, chunk.y, chunk.weight, priority, n_rows, self))

    def some_of(self, rows: DrawnRows) -> DrawnRows:
        most = self._most(rows.X)
        if len(rows.y) <= most:
            return rows
        kept = smallest(rows.priority, most)
        if self.classes:
            kept = np.union1d(kept, _first_of_classes(rows.y[:, 0], rows.priority))
        X, weight = rows.X[kept], rows.weight
        return replace(
            rows,
            X=X.compact() if isinstance(X, Frame) else X,
            y=rows.y[kept],
            weight=None if weight is None else weight[kept],
            priority=rows.priority[kept],
        )

    def _most(self, X: Any) -> int:
        if sparse.issparse(X):
            return self.most_rows
        return min(self.most_rows, max(FEWEST_ROWS, MOST_ENTRIES // X.shape[1]))


def draw_rows(training: RowsElsewhere, draw: Draw) -> DrawnRows:
    """Return a sample of rows on disk or on Dask, or all of them if they are few."""
    drawn: DrawnRows = training.sum(draw)
    if drawn.complete and isinstance(training, RowsOnDisk) and isinstance(drawn.X, Frame):
        training.warn_of_mistakes(count_columns(drawn.X))  # as the fit to all rows does otherwise
    return drawn


def _first_of_classes(labels: np.ndarray, priority: np.ndarray) -> np.ndarray:
    """Return the rows with the smallest priorities of each class."""
    numbers = np.unique(labels, return_inverse=True)[1]
    order = np.lexsort([priority, numbers])
    first = np.searchsorted(numbers[order], numbers[order])  # of its class, for each row in this order
    return order[np.arange(len(order)) - first < ROWS_OF_CLASS]


def _together(one: Any, other: Any) -> Any:
    if isinstance(one, Frame):
        return concatenate([one, other])
    return sparse.vstack([one, other], format="csr") if sparse.issparse(one) else np.concatenate([one, other])
