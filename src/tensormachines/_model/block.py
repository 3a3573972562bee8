"""Blocks: rows with basis, targets and weights, in the form that the kernels read; and sums over blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from . import native
from .basis import Basis
from .packed_shares import PackedShares
from .rows import Rows
from .spline_basis import SplineBasis


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are together in memory. They never change: the compiled kernel checks and binds them once.

    Parameters
    ----------
    X : ndarray, CSR matrix or PackedShares of shape (rows, basis.row_width), float32 or float64
        ``basis.rows`` of rows in the form of `canonical`.
    basis : Basis
    y : ndarray of shape (rows, targets), optional
        See `_model.losses.Loss`.
    weight : ndarray of shape (rows,), optional
        None means 1 for each row.
    offset : ndarray of shape (rows, n_outputs), optional
        Added to the outputs of a model before the losses are computed.
    """

    X: Rows
    basis: Basis
    y: np.ndarray | None = None
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("y", "weight", "offset"):
            array = getattr(self, name)
            if array is None:
                continue
            with np.errstate(over="ignore"):  # of rows to validate on, which may lie far from the others
                ready = np.require(array, self.X.dtype, ["C", "ALIGNED", "ENSUREARRAY"])
            object.__setattr__(self, name, ready)

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

    @property
    def row_weights(self) -> np.ndarray:
        """Return the weight of each row in float64: 1 if no weights are given."""
        return np.ones(self.n_rows) if self.weight is None else self.weight.astype(np.float64)

    @cached_property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))

    @cached_property
    def absolute_sums(self) -> np.ndarray:
        """Return the sums of the absolute values of the rows in their basis, (rows,)."""
        return self.basis.lift(self.X).absolute_sums(np.ones(self.basis.width))

    @cached_property
    def native_block(self) -> Any:
        """Return this block in the form of the compiled kernel: checked once, evaluated many times."""
        X, basis = self.X, self.basis
        if isinstance(X, PackedShares):
            return native.extension.packed_block(
                entries=X.entries,
                runs=X.runs,
                first=X.first,
                starts=X.starts,
                tables=basis.native_tables,
                y=self.y,
                weight=self.weight,
                offset=self.offset,
            )
        dense = isinstance(X, np.ndarray)
        return native.extension.block(
            x=X if dense else X.data,
            indptr=None if dense else X.indptr,
            indices=None if dense else X.indices,
            columns=X.shape[1],
            shift=basis.shift,
            scale=basis.scale,
            clip=basis.clip,
            constant=basis.constant,
            unit_rows=basis.unit_rows,
            zero_row=None if dense else basis.zero_row,
            tables=basis.native_tables,
            y=self.y,
            weight=self.weight,
            offset=self.offset,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the bound block, which cannot leave the process."""
        return Block, (self.X, self.basis, self.y, self.weight, self.offset)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything that this block stores of the rows, by name."""
        X = self.X
        rows = {"X": X}
        if isinstance(X, PackedShares):
            rows = X.arrays
        elif sparse.issparse(X):
            rows = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        others = {"y": self.y, "weight": self.weight, "offset": self.offset}
        return rows | {name: array for name, array in others.items() if array is not None}

    def rows(self, selected: slice | np.ndarray) -> Block:
        return Block(
            self.X[selected],
            self.basis,
            None if self.y is None else self.y[selected],
            None if self.weight is None else self.weight[selected],
            None if self.offset is None else self.offset[selected],
        )


class BlockList(list[Block]):
    """Blocks that travel together to another process.

    Dask would send the blocks of a plain list one by one, each with a copy of the basis."""

    def __add__(self, other: list[Block]) -> BlockList:  # type: ignore[override]  # list's takes lists of anything
        return BlockList([*self, *other])


BlockFunction: TypeAlias = Callable[[Block], tuple[Any, ...]]  # its results can be added up


class Shares(Protocol):
    """Rows on several machines: each has a share of the rows, cut into the same number of minibatches."""

    n_shares: int
    n_minibatches: int  # of each share

    def total(self, function: Callable[[BlocksInMemory, int], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sums of the results of a function of a share and the number of threads of its machine,
        or 0 if it is this one."""


class Blocks(Protocol):
    """Blocks in ``len(weights)`` parts, wherever they are. A fit needs only sums over them and minibatch
    steps along them, here or on the machines that hold ``shares``."""

    weights: np.ndarray  # of the parts

    @property
    def shares(self) -> Shares | None:
        """Return the shares of several machines; None if the rows are on this machine."""

    def groups(self, order: Sequence[int]) -> Generator[BlocksInMemory, None, None]:
        """Iterate over parts on this machine in this order, as many at a time as memory should hold; fetch
        the next ones meanwhile."""

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        """Return the sums of the results of ``function`` over all blocks, or over the blocks of one part.

        ``likely_next`` is a guess at the part that will be requested next, which may be fetched meanwhile.
        """

    def some(self, numbers: Sequence[int]) -> Blocks:
        """Return the parts with these indices, without copying."""

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        """Return blocks with ``change`` applied: at once, or for blocks on disk whenever they are read."""


class BlocksInMemory:
    """Blocks in memory, one per part."""

    shares: Shares | None = None

    def __init__(self, blocks: Sequence[Block]):
        self.blocks = blocks
        self.weights = np.array([block.total_weight for block in blocks])

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        return add_up(map(function, self.blocks)) if part is None else function(self.blocks[part])

    def groups(self, order: Sequence[int]) -> Generator[BlocksInMemory, None, None]:
        yield self.some(order)

    def some(self, numbers: Sequence[int]) -> BlocksInMemory:
        return BlocksInMemory([self.blocks[number] for number in numbers])

    def changed(self, change: Callable[[Block], Block]) -> BlocksInMemory:
        return BlocksInMemory([change(block) for block in self.blocks])


class SomeParts:
    """Some parts of blocks that are on disk."""

    def __init__(self, blocks: Blocks, numbers: Sequence[int]):
        self.blocks = blocks
        self.numbers = numbers
        self.weights = blocks.weights[list(numbers)]

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        if part is None:
            return add_up(self.blocks.total(function, number) for number in self.numbers)
        following = None if likely_next is None else self.numbers[likely_next]
        return self.blocks.total(function, self.numbers[part], following)

    @property
    def shares(self) -> Shares | None:
        return self.blocks.shares

    def groups(self, order: Sequence[int]) -> Generator[BlocksInMemory, None, None]:
        return self.blocks.groups([self.numbers[number] for number in order])

    def some(self, numbers: Sequence[int]) -> Blocks:
        return SomeParts(self.blocks, [self.numbers[number] for number in numbers])

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        return ChangedBlocks(self, change)


@dataclass(frozen=True)
class Changed:
    """A function of a block that changes the block first."""

    function: BlockFunction
    change: Callable[[Block], Block]

    def __call__(self, block: Block) -> tuple[Any, ...]:
        return self.function(self.change(block))


class ChangedBlocks:
    """Blocks that are changed whenever they are read."""

    def __init__(self, blocks: Blocks, change: Callable[[Block], Block]):
        self.blocks = blocks
        self.change = change
        self.weights = blocks.weights

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        return self.blocks.total(Changed(function, self.change), part, likely_next)

    @property
    def shares(self) -> Shares | None:
        return self.blocks.shares

    def groups(self, order: Sequence[int]) -> Generator[BlocksInMemory, None, None]:
        with closing(self.blocks.groups(order)) as groups:
            for group in groups:
                yield group.changed(self.change)

    def some(self, numbers: Sequence[int]) -> Blocks:
        return ChangedBlocks(self.blocks.some(numbers), self.change)

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        return ChangedBlocks(self, change)


def in_basis(block: Block, basis: Basis) -> Block:
    """Return the same rows in another basis that has the same states."""
    return replace(block, basis=basis)


def in_one_basis(blocks: Sequence[Block]) -> list[Block]:
    """Return blocks with equal bases in the same basis object, which the compiled kernel takes steps along.

    Blocks that come from other machines each have their own copy of the basis."""
    return [in_basis(block, blocks[0].basis) for block in blocks]


def fetch_parts(blocks: Blocks, numbers: Sequence[int]) -> BlocksInMemory:
    """Return the parts with these indices in memory; bring them there if necessary."""
    if isinstance(blocks, BlocksInMemory):
        return blocks.some(numbers)
    return BlocksInMemory(in_one_basis([join(blocks.total(_listed, number)[0]) for number in numbers]))


def _listed(block: Block) -> tuple[BlockList]:
    return (BlockList([block]),)


def join(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks in the same basis to one block with its own memory."""
    arrays = [appendable_arrays(block) for block in blocks]
    joined = {name: np.concatenate([each[name] for each in arrays]) for name in arrays[0]}
    X = rows_of_arrays(joined, blocks[0].basis)
    return Block(X, blocks[0].basis, joined.get("y"), joined.get("weight"), joined.get("offset"))


def appendable_arrays(block: Block) -> dict[str, np.ndarray]:
    """Return the arrays of a block in a form to which arrays of further rows can be appended."""
    arrays = block.arrays
    if "indptr" in arrays:
        # SciPy may have chosen another type for these rows.
        arrays["indices"] = arrays["indices"].astype(index_type(block.X.shape[1]), copy=False)
        arrays["lengths"] = np.diff(arrays.pop("indptr")).astype(np.int64)
    return arrays


def rows_of_arrays(arrays: dict[str, np.ndarray], basis: Basis) -> Rows:
    """Return the rows of a block with these arrays, which may be flat."""
    if "X" in arrays:
        return arrays["X"].reshape(-1, basis.row_width)
    if "runs" in arrays:
        assert isinstance(basis, SplineBasis), "only splines have packed shares"
        first = basis.states.packed.first
        n_entries, n_runs = (arrays[name].reshape(-1, len(first) - 1) for name in ("n_entries", "n_runs"))
        return PackedShares(arrays["entries"], arrays["runs"], n_entries, n_runs, arrays["n_rows"], first)
    indptr, shape = np.append(0, np.cumsum(arrays["lengths"])), (len(arrays["lengths"]), basis.row_width)
    index = index_type(basis.row_width, int(indptr[-1]))
    indices, indptr = (each.astype(index, copy=False) for each in (arrays["indices"], indptr))
    return sparse.csr_array((arrays["data"], indices, indptr), shape=shape)


def index_type(n_columns: int, n_entries: int = 0) -> type[np.int32] | type[np.int64]:
    """Return the index type for a CSR matrix with so many columns and entries."""
    return np.int32 if max(n_columns, n_entries) <= np.iinfo(np.int32).max else np.int64


def add_up(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the sums of tuples, item by item."""
    iterator = iter(results)
    total = next(iterator)
    for result in iterator:
        total = tuple(ours + theirs for ours, theirs in zip(total, result, strict=True))
    return total


def canonical(X: Rows) -> Rows:
    """Return X in the form that kernels read: strides of whole elements, or CSR without duplicates.

    Numbers are at addresses that are multiples of their size. X is copied only if necessary."""
    if not sparse.issparse(X):
        return X if X.flags.aligned and not np.mod(X.strides, X.itemsize).any() else X.copy()
    _check_csr(X)
    arrays = X.data, X.indices, X.indptr
    if not all(array.flags.aligned and array.flags.c_contiguous for array in arrays):
        X = sparse.csr_array(tuple(map(np.array, arrays)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indptr.dtype != X.indices.dtype:
        X = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    return X


def _check_csr(X: Rows) -> None:
    """Refuse bad indices: the compiled kernel trusts them, and would read foreign memory."""
    if X.indices.size and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError("X is a corrupt CSR matrix: it has column indices outside its shape.")
    borders = X.indptr
    if (
        len(borders) != X.shape[0] + 1
        or borders[0] != 0
        or borders[-1] > min(len(X.data), len(X.indices))
        or (np.diff(borders) < 0).any()
    ):
        raise ValueError("X is a corrupt CSR matrix: its indptr does not fit its shape and data.")
