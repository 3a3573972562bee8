"""A sample of rows that are read once, a chunk at a time, of which nobody knows how many will come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .row_assignment import priorities, smallest


@dataclass(frozen=True)
class RowSample:
    """At most ``most`` rows at random of the ``n_rows`` that were seen, in their order.

    ``parts`` are what is kept of them: arrays and sparse matrices of as many rows, or None. ``numbers`` count
    all rows from 0 on. Each row has a random number, its key, that depends on the seed and its number alone,
    and the rows with the smallest keys are kept: so samples of chunks can be added, in the order of their
    rows, and the sample depends on the rows alone, wherever they are and however they are cut."""

    parts: tuple[Any, ...]
    numbers: np.ndarray
    keys: np.ndarray
    n_rows: int
    most: int

    @classmethod
    def of(cls, parts: Sequence[Any], first: int, most: int, seed: int = 0) -> RowSample:
        """Draw from rows before which there are ``first`` others."""
        n_rows = next(part.shape[0] for part in parts if part is not None)
        keys = priorities(first, n_rows, seed)
        return cls(tuple(parts), np.arange(first, first + n_rows), keys, n_rows, most)._chosen()

    def __add__(self, other: RowSample) -> RowSample:
        pairs = zip(self.parts, other.parts, strict=True)
        return RowSample(
            tuple(_joined(one, two) for one, two in pairs),
            np.append(self.numbers, other.numbers),
            np.append(self.keys, other.keys),
            self.n_rows + other.n_rows,
            self.most,
        )._chosen()

    def _chosen(self) -> RowSample:
        if len(self.keys) <= self.most:
            return self
        rows = smallest(self.keys, self.most)
        parts = tuple(None if part is None else part[rows] for part in self.parts)
        return RowSample(parts, self.numbers[rows], self.keys[rows], self.n_rows, self.most)


def _joined(one: Any, two: Any) -> Any:
    if one is None or two is None:
        return None
    return sparse.vstack([one, two], format="csr") if sparse.issparse(one) else np.concatenate([one, two])
