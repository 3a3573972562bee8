"""Columns encoded as sparse rows of shares: hat functions of knots, and indicators of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import sparse

from . import native
from .rows import Rows

ENTRIES_AT_ONCE = 1 << 22  # for which there is room in addition to the result


class StateColumn(Protocol):
    """The states of a column: the ``knots`` of a number, in order, or of a category the numbers 0, 1, ... of
    its levels; and "missing", if an entry was ``missing`` in the fit.

    A number between two knots has a share in both, the nearer the larger; beyond the outermost knots it
    counts as the outermost one. A missing entry where none was missing in the fit has no share in anything.
    Shares of the ``reference`` state, -1 where there is none, are left out: most entries of a column are
    often equal, and cost nothing then."""

    @property
    def knots(self) -> np.ndarray: ...
    @property
    def category(self) -> bool: ...
    @property
    def missing(self) -> bool: ...
    @property
    def reference(self) -> int: ...


class States:
    """The states of all columns, one after the other, and one more at the end that every row is in.

    Attributes
    ----------
    first : ndarray of shape (columns + 1,)
        The number of the first state of each column, and of the state after the last.
    count : int
        The number of all states.
    """

    def __init__(self, columns: Sequence[StateColumn]):
        facts = np.array(
            [(len(c.knots), c.category, c.missing, c.reference) for c in columns], dtype=np.int64
        )
        sizes, category, missing, reference = facts.reshape(-1, 4).T
        self.columns = columns
        self.first = np.append(0, np.cumsum(sizes + missing))
        self.count = int(self.first[-1]) + 1
        knots = np.zeros(self.count - 1)
        for start, column in zip(self.first.tolist(), columns, strict=False):
            knots[start : start + len(column.knots)] = column.knots
        kinds = reference.copy(), category.astype(np.uint8), missing.astype(np.uint8)
        self.native_columns = knots, self.first, *kinds  # as the extension reads them

    def shares(self, X: Rows, dtype: np.dtype) -> sparse.csr_array:
        """Return the shares of all states, (rows, count), of type ``dtype``; sparse rows are filled first."""
        at_once = max(1, ENTRIES_AT_ONCE // (2 * X.shape[1] + 1))
        starts = range(0, max(X.shape[0], 1), at_once)
        pieces = [self._piece(X[start : start + at_once], dtype) for start in starts]
        return pieces[0] if len(pieces) == 1 else sparse.csr_array(sparse.vstack(pieces, format="csr"))

    def _piece(self, rows: Rows, dtype: np.dtype) -> sparse.csr_array:
        X = rows.toarray() if sparse.issparse(rows) else rows
        if not native.compiled():
            return self._piece_in_numpy(X, dtype)
        room = len(X) * (2 * X.shape[1] + 1)
        indptr = np.empty(len(X) + 1, dtype=np.int64)
        states, shares = np.empty(room, dtype=np.int32), np.empty(room, dtype=dtype)
        entries = native.extension.spline_shares(X, *self.native_columns, indptr, states, shares)
        return sparse.csr_array(
            (shares[:entries].copy(), states[:entries].copy(), indptr.astype(np.int32)),
            shape=(len(X), self.count),
        )

    def _piece_in_numpy(self, X: np.ndarray, dtype: np.dtype) -> sparse.csr_array:
        rows, states, shares = [np.arange(len(X))], [np.full(len(X), self.count - 1)], [np.ones(len(X))]

        def add(chosen: np.ndarray, state: np.ndarray, share: np.ndarray) -> None:
            kept = (state != column.reference) & (share > 0)
            rows.append(chosen[kept])
            states.append(self.first[j] + state[kept])
            shares.append(share[kept])

        for j, column in enumerate(self.columns):
            knots, values = column.knots, X[:, j].astype(np.float64)
            absent = np.flatnonzero(np.isnan(values))
            present = np.flatnonzero(~np.isnan(values))
            if column.missing:
                add(absent, np.full(len(absent), len(knots)), np.ones(len(absent)))
            if column.category:
                present = present[(values[present] >= 0) & (values[present] < len(knots))]
                add(present, values[present].astype(np.int64), np.ones(len(present)))
            elif len(knots) == 1:
                add(present, np.zeros(len(present), dtype=np.int64), np.ones(len(present)))
            elif len(knots):
                below, above = hats(values[present], knots)
                above = above.astype(dtype).astype(np.float64)
                add(present, below, 1 - above)
                add(present, below + 1, above)
        entries = np.concatenate(shares).astype(dtype), (np.concatenate(rows), np.concatenate(states))
        return sparse.csr_array(sparse.coo_array(entries, shape=(len(X), self.count)))


def hats(x: np.ndarray, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower one of the two knots around each x, and the share of the upper one."""
    below = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    low, high = 0.5 * knots[below], 0.5 * knots[below + 1]  # halves: a difference of large numbers overflows
    return below, np.clip((0.5 * x - low) / (high - low), 0, 1)
