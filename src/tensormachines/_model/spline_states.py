"""Tables as sparse rows of shares, with one column for each state that the columns of the table can be in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from . import native
from .moments import Rows

ENTRIES_AT_ONCE = 1 << 22  # that there is room for beside the result


@dataclass(frozen=True)
class States:
    """The states of each column: the ``knots`` of a number, in order; the numbers 0, 1, ... of the levels of
    a category; and "missing".

    A number between two knots has a share in both, the nearer the larger (they are hat functions of it);
    beyond the outermost knots it is as good as these. A missing entry where no entry was ``missing`` in the
    fit has no share in anything. Shares of the ``reference`` state of a column, -1 where it has none, are
    left out: most entries of a column are often equal, and cost nothing then."""

    knots: tuple[np.ndarray, ...]
    category: np.ndarray
    missing: np.ndarray
    reference: np.ndarray

    @cached_property
    def first(self) -> np.ndarray:
        """The number of the first state of each column, and of the state after the last."""
        counts = [
            len(knots) + missing for knots, missing in zip(self.knots, self.missing.tolist(), strict=True)
        ]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def count(self) -> int:
        """Of all columns, with the one that every row has: it is the last."""
        return int(self.first[-1]) + 1

    @cached_property
    def _flat_knots(self) -> np.ndarray:
        pairs = zip(self.knots, self.missing.tolist(), strict=True)
        return np.concatenate(
            [np.empty(0), *(np.append(knots, np.zeros(int(missing))) for knots, missing in pairs)]
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("knots", "category", "missing", "reference")}

    def shares(self, X: Rows) -> sparse.csr_array:
        """(rows, count), in the type of X. Sparse rows are read as dense ones are, piece by piece."""
        at_once = max(1, ENTRIES_AT_ONCE // (2 * X.shape[1] + 1))
        pieces = [self._piece(X[start : start + at_once]) for start in range(0, max(X.shape[0], 1), at_once)]
        return pieces[0] if len(pieces) == 1 else sparse.csr_array(sparse.vstack(pieces, format="csr"))

    def _piece(self, rows: Rows) -> sparse.csr_array:
        X = rows.toarray() if sparse.issparse(rows) else rows
        if not native.compiled():
            return self._piece_in_numpy(X)
        room = len(X) * (2 * X.shape[1] + 1)
        indptr = np.empty(len(X) + 1, dtype=np.int64)
        states, shares = np.empty(room, dtype=np.int32), np.empty(room, dtype=X.dtype)
        flags = self.category.view(np.uint8), self.missing.view(np.uint8)
        entries = native.extension.hats(
            X, self._flat_knots, self.first, self.reference, *flags, indptr, states, shares
        )
        return sparse.csr_array(
            (shares[:entries].copy(), states[:entries].copy(), indptr.astype(np.int32)),
            shape=(len(X), self.count),
        )

    def _piece_in_numpy(self, X: np.ndarray) -> sparse.csr_array:
        rows, states, shares = [np.arange(len(X))], [np.full(len(X), self.count - 1)], [np.ones(len(X))]

        def add(chosen: np.ndarray, state: np.ndarray, share: np.ndarray) -> None:
            kept = (state != self.reference[j]) & (share > 0)
            rows.append(chosen[kept])
            states.append(self.first[j] + state[kept])
            shares.append(share[kept])

        for j, knots in enumerate(self.knots):
            column = X[:, j].astype(np.float64)
            absent = np.flatnonzero(np.isnan(column))
            present = np.flatnonzero(~np.isnan(column))
            if self.missing[j]:
                add(absent, np.full(len(absent), len(knots)), np.ones(len(absent)))
            if self.category[j]:
                present = present[(column[present] >= 0) & (column[present] < len(knots))]
                add(present, column[present].astype(np.int64), np.ones(len(present)))
            elif len(knots) == 1:
                add(present, np.zeros(len(present), dtype=np.int64), np.ones(len(present)))
            elif len(knots):
                below = np.clip(np.searchsorted(knots, column[present], side="right") - 1, 0, len(knots) - 2)
                above = share_above(column[present], knots, below).astype(X.dtype).astype(np.float64)
                add(present, below, 1 - above)
                add(present, below + 1, above)
        entries = np.concatenate(shares).astype(X.dtype), (np.concatenate(rows), np.concatenate(states))
        return sparse.csr_array(sparse.coo_array(entries, shape=(len(X), self.count)))


def share_above(x: np.ndarray, knots: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The share of the upper one of the two knots around each x.

    (Halves: the difference of two large numbers would overflow.)
    """
    return np.clip((0.5 * x - 0.5 * knots[below]) / (0.5 * knots[below + 1] - 0.5 * knots[below]), 0, 1)
