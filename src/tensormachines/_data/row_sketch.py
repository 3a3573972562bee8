"""A sketch of the rows that a model was fitted to, in two kilobytes: their smallest hashes.

Among other rows, those with a hash up to the largest of these are a sample that depends only on their
content, and for each of them it is known whether it was in the fit (Broder, "On the resemblance and
containment of documents", 1997)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .dates import days, is_dates
from .frame import Frame, Levels, RawColumn, spelled

SIZE = 256
TRUTH_VALUES = {"true": "1", "false": "0"}  # spelled True or TRUE elsewhere
_MIX = np.uint64(0x9E3779B97F4A7C15)  # constant of splitmix64, like the other two


@dataclass(frozen=True)
class RowSketch:
    """The smallest hashes of rows, sorted; all hashes if there are fewer than `SIZE`."""

    hashes: np.ndarray

    @classmethod
    def of(cls, X: Frame, y: Sequence[RawColumn]) -> RowSketch:
        return cls(np.unique(row_hashes(X, y))[:SIZE])

    def __add__(self, other: RowSketch) -> RowSketch:
        return RowSketch(np.unique(np.concatenate([self.hashes, other.hashes]))[:SIZE])


@dataclass(frozen=True)
class Overlap:
    """The number of rows that could be compared with a fit's rows, and how many of these were in it."""

    compared: int = 0
    known: int = 0

    @classmethod
    def of(cls, hashes: np.ndarray, X: Frame, y: Sequence[RawColumn]) -> Overlap:
        """Compare rows with the ``hashes`` of a sketch."""
        found = row_hashes(X, y)
        if len(hashes) == SIZE:
            found = found[found <= hashes[-1]]
        return cls(len(found), int(np.isin(found, hashes).sum()))

    def __add__(self, other: Overlap) -> Overlap:
        return Overlap(self.compared + other.compared, self.known + other.known)

    @property
    def share(self) -> float:
        return self.known / self.compared if self.compared else 0.0


def target_columns(y: np.ndarray) -> list[np.ndarray]:
    """Return the columns of a target of one or two dimensions."""
    return list(y.T) if y.ndim > 1 else [y]


def row_hashes(X: Frame, y: Sequence[RawColumn]) -> np.ndarray:
    """Return a number for each row, (rows,), that depends only on its cells and targets."""
    total = np.zeros(len(X), dtype=np.uint64)
    for column in (*X.columns, *y):
        total = _mixed(total + _MIX + _cell_hashes(column))
    return total


def _cell_hashes(column: RawColumn) -> np.ndarray:
    if isinstance(column, Levels):
        names = [_text_hash(_plain(name)) for name in column.names]
        return np.array([*names, 0], dtype=np.uint64)[column.codes]  # code -1, missing, takes the last
    if column.dtype.kind in "OUS":
        values, places = np.unique(column.astype(str), return_inverse=True)
        return np.array([_text_hash(_plain(value)) for value in values.tolist()], dtype=np.uint64)[places]
    if is_dates(column):
        column = days(column)
    numbers = np.asarray(column, dtype=np.float64) + 0.0  # -0 becomes 0
    return np.where(np.isnan(numbers), np.uint64(0), _mixed(numbers.view(np.uint64)))


def _plain(name: str) -> str:
    """Return one spelling of numbers and truth values, which files and models write differently."""
    return TRUTH_VALUES.get(name.lower(), spelled(name))


def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return splitmix64 of each number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
