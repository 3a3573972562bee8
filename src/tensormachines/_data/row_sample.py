"""A sample of rows that are read once, a chunk at a time, without knowing their number in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .frame import Frame, concatenate
from .row_assignment import priorities, smallest

ROWS_OF_CLASS = 5  # minimum kept of each class, however rare: one for each fold of a search


@dataclass(frozen=True)
class RowSample:
    """At most ``most`` random rows of the ``n_rows`` that were seen, in order.

    ``parts`` hold the data of these rows: arrays, sparse matrices and frames with as many rows, or None.
    ``numbers`` are the row numbers, counted from 0. Each row has a random key that depends only on the seed
    and its number, and the rows with the smallest keys are kept. So samples of chunks can be added, in the
    order of their rows, and the sample depends only on the rows, not on their location or division into
    chunks. If the second part holds ``classes``, (rows, 1), some rows of each class are always kept."""

    parts: tuple[Any, ...]
    numbers: np.ndarray
    keys: np.ndarray
    n_rows: int
    most: int
    classes: bool = False

    @classmethod
    def of(
        cls,
        parts: Sequence[Any],
        first: int,
        most: int,
        seed: int = 0,
        *,
        last: np.ndarray | None = None,
        classes: bool = False,
    ) -> RowSample:
        """Draw from rows that come after ``first`` other rows; rows marked in ``last`` come last."""
        n_rows = next(part.shape[0] for part in parts if part is not None)
        keys = priorities(first, n_rows, seed)  # from 0 to 1
        keys = keys if last is None else keys + last
        numbers = np.arange(first, first + n_rows)
        return cls(tuple(parts), numbers, keys, n_rows, most, classes)._chosen()

    @property
    def complete(self) -> bool:
        """Tell whether these are all rows."""
        return len(self.keys) == self.n_rows

    def __add__(self, other: RowSample) -> RowSample:
        pairs = zip(self.parts, other.parts, strict=True)
        return replace(
            self,
            parts=tuple(_joined(one, two) for one, two in pairs),
            numbers=np.append(self.numbers, other.numbers),
            keys=np.append(self.keys, other.keys),
            n_rows=self.n_rows + other.n_rows,
        )._chosen()

    def _chosen(self) -> RowSample:
        if len(self.keys) <= self.most:
            return self
        rows = smallest(self.keys, self.most)
        if self.classes:
            rows = np.union1d(rows, _first_of_classes(self.parts[1][:, 0], self.keys))
        parts = tuple(None if part is None else _some(part, rows) for part in self.parts)
        return replace(self, parts=parts, numbers=self.numbers[rows], keys=self.keys[rows])


def _first_of_classes(labels: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the rows with the smallest keys of each class."""
    codes = np.unique(labels, return_inverse=True)[1]
    order = np.lexsort([keys, codes])
    first = np.searchsorted(codes[order], codes[order])  # of its class, for each row in this order
    return order[np.arange(len(order)) - first < ROWS_OF_CLASS]


def _some(part: Any, rows: np.ndarray) -> Any:
    chosen = part[rows]
    return chosen.compact() if isinstance(chosen, Frame) else chosen


def _joined(one: Any, two: Any) -> Any:
    if one is None or two is None:
        return None
    if isinstance(one, Frame):
        return concatenate([one, two])
    return sparse.vstack([one, two], format="csr") if sparse.issparse(one) else np.concatenate([one, two])
