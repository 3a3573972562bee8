"""Small regression trees, grown best first on binned columns: where do the targets differ most?"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

MOST_BINS = 255  # of a column
LEAST_WEIGHT = 10.0  # on each side of a split, in rows


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows with each column cut into bins; ``codes`` (rows, columns) number the bins of all columns together.

    ``first`` (columns + 1) has the first bin of each column. The last bin of a column is for missing
    entries."""

    codes: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Bins:
        each, sizes = [], []
        for column in X.T:
            present = ~np.isnan(column)
            edges = np.unique(column[present])
            if len(edges) > MOST_BINS:
                places = np.linspace(0, present.sum() - 1, MOST_BINS).astype(np.int64)
                edges = np.unique(np.sort(column[present])[places])
            each.append(np.where(present, np.searchsorted(edges, column), len(edges)))
            sizes.append(len(edges) + 1)
        first = np.append(0, np.cumsum(sizes))
        return cls(np.column_stack(each) + first[:-1], first)

    @cached_property
    def columns(self) -> np.ndarray:
        """Return the column of each bin."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def sums(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the sums over some rows of ``numbers`` (all rows, k) in each bin, (bins, k)."""
        codes = self.codes[rows]
        entries = np.ones(codes.size), codes.ravel(), np.arange(len(rows) + 1) * codes.shape[1]
        return sparse.csr_array(entries, shape=(len(rows), self.first[-1])).T @ numbers[rows]


class Split(NamedTuple):
    """The rows of a node, and the column by which they were split."""

    rows: np.ndarray
    column: int


@dataclass(frozen=True, eq=False)
class Node:
    """Rows of a tree, the sums of weight and targets in each bin, the last bin below the best split, and the
    sum of squares that the split explains."""

    rows: np.ndarray
    sums: np.ndarray
    split: int = 0
    gain: float = 0.0


class Tree:
    """A regression tree of ``targets`` (rows, outputs)."""

    def __init__(self, bins: Bins, weight: np.ndarray, targets: np.ndarray, n_leaves: int):
        self.bins = bins
        self.targets = targets
        self.numbers = weight[:, None] * np.column_stack([np.ones(len(weight)), targets])
        self.splits: list[Split] = []
        everything = np.arange(len(weight))
        self.leaves = [self._node(everything, bins.sums(everything, self.numbers))]
        self._grow(n_leaves)

    def left(self, rate: float) -> np.ndarray:
        """Return the targets minus ``rate`` times the mean of their leaf."""
        left = self.targets.copy()
        for leaf in self.leaves:
            sums = self.numbers[leaf.rows].sum(axis=0)
            left[leaf.rows] -= rate * sums[1:] / sums[0]
        return left

    def _grow(self, n_leaves: int) -> None:
        """Split the leaf with the largest gain until there are enough leaves."""
        heap = [(-self.leaves[0].gain, 0)]
        while len(self.leaves) < n_leaves:
            gain, number = heapq.heappop(heap)
            if gain == 0:
                break
            column = int(self.bins.columns[self.leaves[number].split])
            self.splits.append(Split(self.leaves[number].rows, column))
            self.leaves[number], upper = self._halves(self.leaves[number], column)
            heapq.heappush(heap, (-self.leaves[number].gain, number))
            heapq.heappush(heap, (-upper.gain, len(self.leaves)))
            self.leaves.append(upper)

    def _halves(self, node: Node, column: int) -> tuple[Node, Node]:
        below = self.bins.codes[node.rows, column] <= node.split
        lower, upper = node.rows[below], node.rows[~below]
        smaller = self.bins.sums(min(lower, upper, key=len), self.numbers)
        sums = (smaller, node.sums - smaller) if len(lower) <= len(upper) else (node.sums - smaller, smaller)
        return self._node(lower, sums[0]), self._node(upper, sums[1])

    def _node(self, rows: np.ndarray, sums: np.ndarray) -> Node:
        """Return the node with its best split; its gain is 0 if there is no split."""
        total = self.numbers[rows].sum(axis=0)
        cumulative = np.cumsum(sums, axis=0)
        before = np.vstack([np.zeros(len(total)), cumulative[self.bins.first[1:-1] - 1]])
        lower = cumulative - before[self.bins.columns]
        upper = total - lower
        possible = np.flatnonzero(np.minimum(lower[:, 0], upper[:, 0]) >= LEAST_WEIGHT)
        if not len(possible):
            return Node(rows, sums)
        explained = sum(
            np.sum(side[possible, 1:] ** 2, axis=1) / side[possible, 0] for side in (lower, upper)
        )
        best = int(np.argmax(explained))
        gain = float(explained[best] - np.sum(total[1:] ** 2) / total[0])
        return Node(rows, sums, int(possible[best]), max(0.0, gain))
