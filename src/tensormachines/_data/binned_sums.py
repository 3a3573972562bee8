"""Sums over rows by bins of a number, in bounded memory: a histogram that needs no range in advance.

Floats have the same order as their bits, read as integers. A bin contains all floats that share all bits
except the last ``level`` ones. If there are too many bins, the level rises, which joins neighbours. So up to
`MOST` distinct numbers have their own bin, and more numbers are divided as finely as their spread allows. The
result depends neither on the order of the rows nor on how they are divided into chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST = 1 << 16  # bins
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class BinnedSums:
    """``sums`` (bins, quantities) over the rows of each bin, in the order of the numbers."""

    level: int
    keys: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, quantities: np.ndarray) -> BinnedSums:
        """Sum quantities (rows, quantities) by finite numbers (rows,)."""
        bits = (numbers.astype(np.float64) + 0.0).view(np.int64)  # -0 becomes 0
        return cls(0, np.where(bits < 0, bits ^ _MAGNITUDE, bits), quantities)._joined()

    def __add__(self, other: BinnedSums) -> BinnedSums:
        level = max(self.level, other.level)
        keys = [each.keys >> (level - each.level) for each in (self, other)]
        return BinnedSums(level, np.concatenate(keys), np.vstack([self.sums, other.sums]))._joined()

    def _joined(self) -> BinnedSums:
        level, keys = self.level, self.keys
        found, places = np.unique(keys, return_inverse=True)
        while len(found) > MOST:
            level, found = level + 1, found >> 1
            found = found[np.append(True, np.diff(found) != 0)]
        if level > self.level:
            found, places = np.unique(keys >> (level - self.level), return_inverse=True)
        sums = [np.bincount(places, each, minlength=len(found)) for each in self.sums.T]
        return BinnedSums(level, found, np.column_stack(sums))
