"""A block: rows of X with their basis, targets and weights, in the form that the kernels read; and sums over
blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from .basis import AnyBasis
from .moments import Rows


class Block:
    """Rows that are together in memory.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (rows, basis.row_width), float32 or float64
        What the basis keeps of rows that are as `canonical` makes them.
    basis : AnyBasis
    y : ndarray of shape (rows, targets), optional
        See `_model.losses.Loss`.
    weight : ndarray of shape (rows,), optional
        None means 1 for each row.
    """

    def __init__(
        self, X: Rows, basis: AnyBasis, y: np.ndarray | None = None, weight: np.ndarray | None = None
    ):
        self.X = X
        self.basis = basis
        self.y = None if y is None else np.ascontiguousarray(y, dtype=X.dtype)
        self.weight = None if weight is None else np.ascontiguousarray(weight, dtype=X.dtype)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def targets(self) -> np.ndarray:
        assert self.y is not None, "this block has no targets"
        return self.y

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    @cached_property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))

    def rows(self, selected: slice | np.ndarray) -> Block:
        return Block(
            self.X[selected],
            self.basis,
            None if self.y is None else self.y[selected],
            None if self.weight is None else self.weight[selected],
        )


BlockFunction: TypeAlias = Callable[[Block], tuple[Any, ...]]  # its results can be added up


class Blocks(Protocol):
    """Blocks in ``len(weights)`` parts, wherever they are. Whatever a fit wants to know of them is a sum."""

    weights: np.ndarray  # of the parts

    def total(
        self,
        function: Callable[[Block], tuple[Any, ...]],
        part: int | None = None,
        likely_next: int | None = None,
    ) -> tuple[Any, ...]:
        """The sum over all blocks, or over those of one part, of the arrays that ``function`` gives.

        ``likely_next`` is a guess at the part that will be asked for next, which may be fetched meanwhile.
        """


class BlocksInMemory:
    """One block a part."""

    def __init__(self, blocks: Sequence[Block]):
        self.blocks = blocks
        self.weights = np.array([block.total_weight for block in blocks])

    def total(
        self,
        function: Callable[[Block], tuple[Any, ...]],
        part: int | None = None,
        likely_next: int | None = None,
    ) -> tuple[Any, ...]:
        return add_up(map(function, self.blocks if part is None else [self.blocks[part]]))


def add_up(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of tuples, item by item."""
    iterator = iter(results)
    total = next(iterator)
    for result in iterator:
        total = tuple(ours + theirs for ours, theirs in zip(total, result, strict=True))
    return total


def canonical(X: Rows) -> Rows:
    """X in a form that the kernels can read: strides of whole elements; or CSR with each entry once. A copy
    only where it must be.
    """
    if not sparse.issparse(X):
        return X if all(stride % X.itemsize == 0 for stride in X.strides) else np.ascontiguousarray(X)
    _check_csr(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indptr.dtype != X.indices.dtype:
        X = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    return X


def _check_csr(X: Rows) -> None:
    """The compiled kernel trusts its indices: one bad index would read foreign memory."""
    if X.indices.size and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError("X is a corrupt CSR matrix: it has column indices outside its shape.")
    if (
        len(X.indptr) != X.shape[0] + 1
        or X.indptr[0] != 0
        or X.indptr[-1] > len(X.data)
        or (np.diff(X.indptr) < 0).any()
    ):
        raise ValueError("X is a corrupt CSR matrix: its indptr does not fit its shape and data.")
