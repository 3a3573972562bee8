"""Rows of shares in about five bytes per entry, in the order in which the compiled kernel reads them.

Rows are cut into pieces. In a piece, the entries of a column are sorted by state, so that the kernel keeps
the factors of a state in registers while it processes the rows in this state. Shares are rounded to 1 /
65535."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

PIECE = 1024  # rows
STEPS = 65535  # of a share
MOST_STATES = 65536  # of a column
PAIR = 1 << 15


class Entries(NamedTuple):
    """Entries of rows in columns: a ``state`` of the column, and the ``share`` of the next, in 65535ths."""

    row: np.ndarray
    column: np.ndarray
    state: np.ndarray
    share: np.ndarray


@dataclass(frozen=True, eq=False)
class PackedShares:
    """Rows of shares, equal to `States.shares` except for rounding.

    Parameters
    ----------
    entries : uint32 ndarray
        Piece by piece and column by column: the row of the piece times 65536, plus the share of the state
        after that of the run, in 65535ths.
    runs : uint32 ndarray
        Runs of consecutive entries in one state, as the sum of: the state times 65536; ``PAIR`` if one of the
        entries has a share of the next state; and the number of entries minus 1.
    n_entries, n_runs : int32 ndarray of shape (pieces, columns)
    n_rows : int64 ndarray of shape (pieces,)
    first : int64 ndarray of shape (columns + 1,)
        The first state of each column, and the state after all columns, in which every row is.
    """

    entries: np.ndarray
    runs: np.ndarray
    n_entries: np.ndarray
    n_runs: np.ndarray
    n_rows: np.ndarray
    first: np.ndarray

    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.n_rows.sum()), int(self.first[-1]) + 1

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays, by name, to which arrays of further rows can be appended."""
        names = "entries", "runs", "n_entries", "n_runs", "n_rows"
        return {name: getattr(self, name) for name in names}

    @classmethod
    def pack(cls, found: Entries, n_rows: int, first: np.ndarray) -> PackedShares:
        """Return the rows with these entries, which may come in any order."""
        n_pieces, n_columns = max(1, -(-n_rows // PIECE)), len(first) - 1
        order = np.lexsort((found.row, found.state, found.column, found.row // PIECE))
        row, column, state, share = (field[order] for field in found)
        piece = row // PIECE
        starts = np.flatnonzero(
            (np.diff(piece, prepend=-1) != 0)
            | (np.diff(column, prepend=-1) != 0)
            | (np.diff(state, prepend=-1) != 0)
        )
        lengths = np.diff(starts, append=len(row))
        has_pair = np.add.reduceat(share, starts) > 0 if len(starts) else np.zeros(0, dtype=bool)
        shape = n_pieces, n_columns

        def count(which: np.ndarray | slice) -> np.ndarray:
            places = piece[which] * n_columns + column[which]
            return np.bincount(places, minlength=n_pieces * n_columns).reshape(shape).astype(np.int32)

        return cls(
            entries=((row % PIECE) << 16 | share).astype(np.uint32),
            runs=(state[starts] << 16 | has_pair * PAIR | (lengths - 1)).astype(np.uint32),
            n_entries=count(slice(None)),
            n_runs=count(starts),
            n_rows=np.diff(np.append(np.arange(n_pieces) * PIECE, n_rows)),
            first=first,
        )

    def unpack(self) -> Entries:
        runs, entries = self.runs.astype(np.int64), self.entries.astype(np.int64)
        n_pieces, n_columns = self.n_entries.shape
        before = np.cumsum(self.n_rows) - self.n_rows
        each = self.n_entries.ravel()
        return Entries(
            row=np.repeat(np.repeat(before, n_columns), each) + (entries >> 16),
            column=np.repeat(np.tile(np.arange(n_columns), n_pieces), each),
            state=np.repeat(runs >> 16, (runs & (PAIR - 1)) + 1),
            share=entries & 0xFFFF,
        )

    def tocsr(self) -> sparse.csr_array:
        """Return all shares as a matrix."""
        row, column, state, share = self.unpack()
        above = (share / STEPS).astype(np.float32)
        place, pair = self.first[column] + state, share > 0
        every = np.arange(self.shape[0])
        shares = np.concatenate([1 - above, above[pair], np.ones(len(every), dtype=np.float32)])
        rows = np.concatenate([row, row[pair], every])
        states = np.concatenate([place, place[pair] + 1, np.full(len(every), self.first[-1])])
        return sparse.csr_array(sparse.coo_array((shares, (rows, states)), shape=self.shape))

    def __getitem__(self, selected: slice | np.ndarray) -> PackedShares:
        found = self.unpack()
        n_rows = self.shape[0]
        chosen = np.arange(n_rows)[selected]
        by_row = np.argsort(found.row, kind="stable")
        counts = np.bincount(found.row, minlength=n_rows)
        starts, lengths = (np.cumsum(counts) - counts)[chosen], counts[chosen]
        row = np.repeat(np.arange(len(chosen)), lengths)
        within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        kept = by_row[np.repeat(starts, lengths) + within]
        entries = Entries(row, found.column[kept], found.state[kept], found.share[kept])
        return PackedShares.pack(entries, len(chosen), self.first)

    @property
    def starts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where rows, entries and runs of each piece (or piece and column) begin, and where the last
        ones end."""
        counts = self.n_rows, self.n_entries.ravel(), self.n_runs.ravel()
        rows, entries, runs = (np.append(0, np.cumsum(each, dtype=np.int64)) for each in counts)
        return rows, entries, runs
