"""Blocks on the workers of a Dask cluster, and sums over them: one task a partition, and a tree of sums."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import dask
import numpy as np
from dask.sizeof import sizeof

from .._model.block import Block, BlockFunction, Blocks, add_up

SUMMED_AT_ONCE = 8


class Pieces:
    """Lists of blocks, one for each partition, kept on the workers for as long as this object lives.

    ``tasks`` make them. ``all_kept`` are the pieces of a fit, which forgets them all at its end."""

    def __init__(self, tasks: list[Any], all_kept: WeakSet[Pieces]):
        self.lists = list(dask.persist(*tasks))
        self.all_kept = all_kept
        self._changed: tuple[Any, Pieces | None] = None, None
        all_kept.add(self)

    def measures(self) -> np.ndarray:
        """Return the rows and the weight of each block, (pieces, blocks, 2)."""
        measure = dask.delayed(_rows_and_weights, pure=False)
        return np.array(dask.compute(*[measure(blocks) for blocks in self.lists]))

    def changed(self, change: Callable[[Block], Block]) -> Pieces:
        """Return the pieces with each block changed, once: all that ask for the same change share it.

        The rows themselves are not copied. Of pieces that nobody refers to any more, only the recipe is
        kept, by which the scheduler makes them again where a worker dies."""
        known, pieces = self._changed
        if pieces is None or known is not change:
            task, shared = dask.delayed(changed_partition, pure=False), shared_node(change)
            pieces = Pieces([task(shared, blocks) for blocks in self.lists], self.all_kept)
            self._changed = change, pieces
        return pieces

    def forget(self) -> None:
        if "distributed" in sys.modules:
            for future in sys.modules["distributed"].futures_of(self.lists):
                future.release()
        self.lists.clear()


class BlocksOnDask:
    """The blocks with these ``numbers`` in each of the pieces; ``measures`` are those of all blocks."""

    def __init__(self, pieces: Pieces, numbers: Sequence[int], measures: np.ndarray):
        self.pieces = pieces
        self.measures = measures
        self.numbers = list(numbers)
        self.filled = measures[:, self.numbers, 0] > 0
        self.weights = measures[:, self.numbers, 1].sum(axis=0)

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        shared = shared_node(function)
        evaluate = dask.delayed(_evaluate, pure=False)
        parts = slice(None) if part is None else slice(part, part + 1)
        results = [
            evaluate(
                shared,
                blocks,
                [number for number, some in zip(self.numbers[parts], filled[parts], strict=True) if some],
            )
            for blocks, filled in zip(self.pieces.lists, self.filled, strict=True)
            if filled[parts].any()
        ]
        return tuple(map(_writeable, sum_of(results, add_up).compute(optimize_graph=False)))

    def some(self, numbers: Sequence[int]) -> Blocks:
        return BlocksOnDask(self.pieces, [self.numbers[number] for number in numbers], self.measures)

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        return BlocksOnDask(self.pieces.changed(change), self.numbers, self.measures)


def shared_node(function: Any) -> Any:
    """Return a node of its own in the graph, which goes to each worker once, not with each task."""
    return dask.delayed(function, pure=False, traverse=False)


def sum_of(parts: list[Any], sum_up: Callable[[list[Any]], Any]) -> Any:
    """Return a tree of sums. Its shape depends on the number of parts alone, so that rounding does not depend
    on who computes what.
    """
    summed = dask.delayed(sum_up, pure=False)
    while len(parts) > 1:
        parts = [
            summed(parts[start : start + SUMMED_AT_ONCE]) for start in range(0, len(parts), SUMMED_AT_ONCE)
        ]
    return parts[0]


def _writeable(result: Any) -> Any:
    """Copy read-only arrays received from another process."""
    return result.copy() if isinstance(result, np.ndarray) and not result.flags.writeable else result


# ---- on the workers


def changed_partition(change: Callable[[Block], Block], blocks: list[Block]) -> list[Block]:
    return [change(block) if block.n_rows else block for block in blocks]


def _rows_and_weights(blocks: list[Block]) -> list[tuple[float, float]]:
    return [(float(block.n_rows), block.total_weight) for block in blocks]


def _evaluate(function: BlockFunction, blocks: list[Block], numbers: list[int]) -> tuple[Any, ...]:
    return add_up(function(blocks[number]) for number in numbers)


@sizeof.register(Block)
def _size_of_block(block: Block) -> int:
    """Return the size of a block, which Dask would take for a few bytes that cost nothing to send around."""
    return sum(array.nbytes for array in block.arrays.values())
