"""Blocks on the workers of a Dask cluster, and sums over them.

A sum is one task for each thread of the workers, which processes partitions that its worker holds. The
results are added in a tree whose shape depends only on the number of partitions, so that rounding does not
depend on which worker holds what. Without a cluster, there is a task for each partition."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Generator, Sequence
from functools import cached_property, partial
from typing import Any
from weakref import WeakSet

import dask
import numpy as np
from dask.sizeof import sizeof

from .._model.block import Block, BlockFunction, BlockList, Blocks, BlocksInMemory, add_up
from .dask_connection import scheduler_needed
from .dask_shares import SUMMED_AT_ONCE, SharesOnDask

Place = tuple[int, int]  # in a tree: the level, counted from the leaves, and the index there


class Pieces:
    """Lists of blocks, one per partition, kept on the workers for the lifetime of this object.

    ``tasks`` compute the lists. ``all_kept`` are the pieces of a fit, which forgets them all at its end."""

    def __init__(self, tasks: list[Any], all_kept: WeakSet[Pieces | SharesOnDask]):
        self.lists = list(dask.persist(*tasks))
        self.all_kept = all_kept
        self._changed: tuple[Any, Pieces | None] = None, None
        all_kept.add(self)

    def measures(self) -> np.ndarray:
        """Return the rows and the weight of each block, (pieces, blocks, 2)."""
        measure = dask.delayed(_rows_and_weights, pure=False)
        return np.array(dask.compute(*[measure(blocks) for blocks in self.lists]))

    def changed(self, change: Callable[[Block], Block]) -> Pieces:
        """Return the pieces with each block changed, once: all requests for the same change share the result.

        The rows themselves are not copied. For pieces without references, only the recipe is kept, from which
        the scheduler recreates them if a worker dies."""
        known, pieces = self._changed
        if pieces is None or known is not change:
            task, shared = dask.delayed(changed_partition, pure=False), shared_node(change)
            pieces = Pieces([task(shared, blocks) for blocks in self.lists], self.all_kept)
            self._changed = change, pieces
        return pieces

    def futures(self) -> list[Any]:
        """Return the futures of the lists on a cluster, in order; empty if there is no cluster."""
        if "distributed" not in sys.modules:
            return []
        by_key = {future.key: future for future in sys.modules["distributed"].futures_of(self.lists)}
        return [by_key[each.key] for each in self.lists] if by_key else []

    def forget(self) -> None:
        for future in self.futures():
            future.release()
        self.lists.clear()


class BlocksOnDask:
    """The blocks with the indices ``numbers`` in each piece; ``measures`` are those of all blocks."""

    def __init__(self, pieces: Pieces, numbers: Sequence[int], measures: np.ndarray):
        self.pieces = pieces
        self.measures = measures
        self.numbers = list(numbers)
        self.filled = measures[:, self.numbers, 0] > 0
        self.weights = measures[:, self.numbers, 1].sum(axis=0)

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        if part is None and "shares" in vars(self):  # in minibatches, which are fewer and larger blocks
            return tuple(map(_writeable, self.shares.total(partial(_total_of_share, function=function))))
        parts = slice(None) if part is None else slice(part, part + 1)
        numbers = {
            piece: [number for number, some in zip(self.numbers[parts], filled[parts], strict=True) if some]
            for piece, filled in enumerate(self.filled)
            if filled[parts].any()
        }
        futures = self.pieces.futures()
        if futures:
            with scheduler_needed():
                return tuple(map(_writeable, _total_on_cluster(function, futures, numbers)))
        shared, task = shared_node(function), dask.delayed(_evaluate, pure=False)
        results = [task(shared, self.pieces.lists[piece], some) for piece, some in numbers.items()]
        return sum_of(results, add_up).compute(optimize_graph=False)

    @cached_property
    def shares(self) -> SharesOnDask:
        rows = self.measures[:, self.numbers, 0]
        n_minibatches = round(rows.sum() / max(rows[:, 0].sum(), 1.0))  # the first part is a minibatch
        numbers = [np.array(self.numbers)[filled].tolist() for filled in self.filled]
        futures = self.pieces.futures()
        client, lists = (futures[0].client, futures) if futures else (None, self.pieces.lists)
        with scheduler_needed():
            shares = SharesOnDask(client, lists, numbers, rows.sum(axis=1), n_minibatches)
        self.pieces.all_kept.add(shares)
        return shares

    def groups(self, order: Sequence[int]) -> Generator[BlocksInMemory, None, None]:
        raise AssertionError("the blocks are on other machines")

    def some(self, numbers: Sequence[int]) -> Blocks:
        return BlocksOnDask(self.pieces, [self.numbers[number] for number in numbers], self.measures)

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        return BlocksOnDask(self.pieces.changed(change), self.numbers, self.measures)


def _total_on_cluster(
    function: BlockFunction, futures: list[Any], numbers: dict[int, list[int]]
) -> tuple[Any, ...]:
    """Return the sum of a function of the blocks with the indices ``numbers`` in each piece."""
    client, places = futures[0].client, {piece: place for place, piece in enumerate(numbers)}
    tasks = [
        client.submit(
            evaluate_pieces,
            function,
            [(places[piece], numbers[piece]) for piece in pieces],
            len(places),
            *(futures[piece] for piece in pieces),
            workers=worker,
            allow_other_workers=worker is not None,  # if it dies; without one, all are allowed
            pure=False,
        )
        for worker, pieces in _shares_of_threads(client, {piece: futures[piece] for piece in numbers})
    ]
    try:
        found = client.gather(tasks)
    finally:
        for task in tasks:  # a traceback might refer to them
            task.release()
    (total,) = add_neighbours(dict(ChainMap(*found)), len(places)).values()
    return total


def _shares_of_threads(client: Any, futures: dict[int, Any]) -> list[tuple[str | None, list[int]]]:
    """Return, for each thread of the workers, its worker and a share of the pieces that the worker holds."""
    sys.modules["distributed"].wait(list(futures.values()))  # also for the pieces of a dead worker
    holders, threads = client.who_has(list(futures.values())), client.nthreads()
    by_worker: dict[str | None, list[int]] = {}
    for piece, future in futures.items():
        known = [worker for worker in holders.get(future.key, ()) if worker in threads]
        by_worker.setdefault(known[0] if known else None, []).append(piece)
    lost = [(None, [piece]) for piece in by_worker.pop(None, [])]
    shares = [
        (worker, share.tolist())
        for worker, pieces in by_worker.items()
        if worker is not None
        for share in np.array_split(pieces, min(len(pieces), threads[worker]))
    ]
    return [*shares, *lost]


def add_neighbours(sums: dict[Place, Any], n_leaves: int) -> dict[Place, Any]:
    """Sum complete groups of SUMMED_AT_ONCE neighbours in a tree of ``n_leaves``, level by level."""
    level, size = 0, n_leaves
    while size > 1:
        parents = -(-size // SUMMED_AT_ONCE)
        for parent in range(parents):
            first = SUMMED_AT_ONCE * parent
            children = [(level, child) for child in range(first, min(first + SUMMED_AT_ONCE, size))]
            if all(child in sums for child in children):
                sums[level + 1, parent] = add_up([sums.pop(child) for child in children])
        level, size = level + 1, parents
    return sums


def shared_node(function: Any) -> Any:
    """Return a separate node of the graph, which is sent once to each worker, not with each task."""
    return dask.delayed(function, pure=False, traverse=False)


def sum_of(parts: list[Any], sum_up: Callable[[list[Any]], Any]) -> Any:
    """Return tasks that sum other tasks, in the tree of `add_neighbours`."""
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


def changed_partition(change: Callable[[Block], Block], blocks: BlockList) -> BlockList:
    return BlockList(change(block) if block.n_rows else block for block in blocks)


def _rows_and_weights(blocks: BlockList) -> list[tuple[float, float]]:
    return [(float(block.n_rows), block.total_weight) for block in blocks]


def evaluate_pieces(
    function: BlockFunction, chosen: list[tuple[int, list[int]]], n_leaves: int, *pieces: BlockList
) -> dict[Place, tuple[Any, ...]]:
    """Return the sums over the chosen blocks of the pieces, each given with its place among the leaves of a
    tree, combined as far as possible."""
    sums: dict[Place, Any] = {
        (0, place): _evaluate(function, blocks, numbers)
        for (place, numbers), blocks in zip(chosen, pieces, strict=True)
    }
    return add_neighbours(sums, n_leaves)


def _total_of_share(share: BlocksInMemory, threads: int, function: BlockFunction) -> tuple[Any, ...]:
    return share.total(function)


def _evaluate(function: BlockFunction, blocks: BlockList, numbers: list[int]) -> tuple[Any, ...]:
    return add_up(function(blocks[number]) for number in numbers)


@sizeof.register(Block)
def _size_of_block(block: Block) -> int:
    """Return the size of a block; otherwise Dask would assume a few bytes that cost nothing to send."""
    return sum(array.nbytes for array in block.arrays.values())
