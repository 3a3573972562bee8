"""Columns encoded as sparse rows of shares: hat functions of knots, and indicators of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from . import native
from .packed_shares import MOST_STATES, PIECE, STEPS, Entries, PackedShares
from .rows import Rows

ENTRIES_AT_ONCE = 1 << 22  # held in addition to the result


class StateColumn(Protocol):
    """The states of a column: the ``knots`` of a number, in order, or the codes 0, 1, ... of the levels of a
    category; and "missing", if an entry was ``missing`` in the fit.

    A number between two knots has a share in both, larger in the nearer one; beyond the outermost knot, it
    counts as that knot. If no entry was missing in the fit, a missing entry has no share in any state. Shares
    of the ``reference`` state (-1 if there is none) are left out: most entries of a column are often equal,
    and then cost nothing."""

    @property
    def knots(self) -> np.ndarray: ...
    @property
    def category(self) -> bool: ...
    @property
    def missing(self) -> bool: ...
    @property
    def reference(self) -> int: ...


@dataclass(frozen=True)
class LevelStretch:
    """Some consecutive levels of a category: see `StateColumn`."""

    knots: np.ndarray
    missing: bool
    reference: int
    category: bool = True


class States:
    """The states of all columns, one after the other, and a final state in which every row is.

    Attributes
    ----------
    first : ndarray of shape (columns + 1,)
        Index of the first state of each column, and of the state after the last.
    count : int
        Number of all states.
    """

    def __init__(self, columns: Sequence[StateColumn]):
        facts = np.array(
            [(len(c.knots), c.category, c.missing, c.reference) for c in columns], dtype=np.int64
        )
        sizes, category, missing, reference = facts.reshape(-1, 4).T
        self.columns = columns
        self.first = np.append(0, np.cumsum(sizes + missing))
        self.count = require_countable(int(self.first[-1]) + 1)
        knots = np.zeros(self.count - 1)
        for start, column in zip(self.first.tolist(), columns, strict=False):
            knots[start : start + len(column.knots)] = column.knots
        kinds = reference.copy(), category.astype(np.uint8), missing.astype(np.uint8)
        self.native_columns = knots, self.first, *kinds  # as the extension reads them

    def shares(self, X: Rows, dtype: np.dtype) -> sparse.csr_array:
        """Return the shares of all states, (rows, count), in ``dtype``; sparse rows are made dense first."""
        at_once = max(1, ENTRIES_AT_ONCE // (2 * X.shape[1] + 1))
        starts = range(0, max(X.shape[0], 1), at_once)
        pieces = [self._piece(X[start : start + at_once], dtype) for start in starts]
        return pieces[0] if len(pieces) == 1 else sparse.csr_array(sparse.vstack(pieces, format="csr"))

    @cached_property
    def packed(self) -> States:
        """Return the same states in columns that can be packed: a category with too many levels becomes
        several stretches."""
        return States([piece for _, _, piece in self._stretches]) if self._stretches else self

    @cached_property
    def _stretches(self) -> list[tuple[int, int, StateColumn]]:
        """Return the columns that replace these, each with the original column and the level where it begins;
        none if all of these can be packed.

        Levels outside a stretch are none of its states, and only the last stretch of a column knows that an
        entry is missing."""
        if int(np.diff(self.first).max(initial=0)) <= MOST_STATES:
            return []
        found: list[tuple[int, int, StateColumn]] = []
        for j, column in enumerate(self.columns):
            n_levels, size = len(column.knots), MOST_STATES - 1
            if not column.category or n_levels <= size:
                found.append((j, 0, column))
                continue
            for start in range(0, n_levels, size):
                stop = min(start + size, n_levels)
                reference = column.reference - start
                last, within = stop == n_levels, 0 <= reference < stop - start
                missing = column.missing and last
                is_missing = missing and column.reference == n_levels
                kept = reference if within or is_missing else -1
                found.append((j, start, LevelStretch(np.arange(stop - start), missing, kept)))
        return found

    def packed_shares(self, X: np.ndarray) -> PackedShares:
        """Return the packed shares."""
        if self._stretches:
            rows = np.empty((len(X), len(self._stretches)), dtype=X.dtype)
            for k, (j, start, _) in enumerate(self._stretches):
                rows[:, k] = X[:, j] - X.dtype.type(start)
            return self.packed.packed_shares(rows)
        if not native.compiled():
            return PackedShares.pack(self._entries(X), len(X), self.first)
        n_columns, n_pieces = len(self.columns), max(1, -(-len(X) // PIECE))
        most_runs = n_pieces * int(np.minimum(np.diff(self.first), min(PIECE, len(X))).sum())
        entries = np.empty(len(X) * n_columns, dtype=np.uint32)
        runs = np.empty(most_runs, dtype=np.uint32)
        n_entries, n_runs = (np.zeros((n_pieces, n_columns), dtype=np.int32) for _ in range(2))
        used = native.extension.pack_shares(X, *self.native_columns, PIECE, entries, runs, n_entries, n_runs)
        n_rows = np.diff(np.append(np.arange(n_pieces) * PIECE, len(X)))
        if used[0] < len(entries):
            entries = entries[: used[0]].copy()
        return PackedShares(entries, runs[: used[1]].copy(), n_entries, n_runs, n_rows, self.first)

    def _entries(self, X: np.ndarray) -> Entries:
        """Return the entries of all rows, without those whose only state is the reference."""
        each = []
        for j, column in enumerate(self.columns):
            knots, values = column.knots, X[:, j].astype(np.float64)
            state, share = np.full(len(X), -1), np.zeros(len(X), dtype=np.int64)
            present = np.flatnonzero(~np.isnan(values))
            if column.missing:
                state[np.isnan(values)] = len(knots)
            if column.category:
                present = present[(values[present] >= 0) & (values[present] < len(knots))]
                state[present] = values[present].astype(np.int64)
            elif len(knots) == 1:
                state[present] = 0
            elif len(knots):
                below, above = hats(values[present], knots)
                steps = np.rint(above * STEPS).astype(np.int64)
                state[present], share[present] = below + (steps == STEPS), steps % STEPS
            kept = np.flatnonzero((state >= 0) & ((state != column.reference) | (share > 0)))
            each.append(Entries(kept, np.full(len(kept), j), state[kept], share[kept]))
        none = Entries(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        return Entries(*(np.concatenate(field) for field in zip(none, *each, strict=True)))

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
    """Return the lower of the two knots around each x, and the share of the upper one."""
    x = np.clip(x, knots[0], knots[-1])  # the quotient below overflows far outside of knots close together
    below = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 2)
    low, high = 0.5 * knots[below], 0.5 * knots[below + 1]  # halves: a difference of large numbers overflows
    return below, (0.5 * x - low) / (high - low)


def require_countable(n_states: int) -> int:
    """Return the number of states; refuse more than 32 bits can count."""
    if n_states > np.iinfo(np.int32).max:
        raise ValueError(
            f"The columns have {n_states:,} knots and levels in all, more than {np.iinfo(np.int32).max:,}. "
            'Use basis="standard", fewer columns, or columns with fewer levels.'
        )
    return n_states
