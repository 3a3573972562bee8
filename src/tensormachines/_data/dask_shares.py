"""Shares of the rows on a Dask cluster: each worker takes minibatch steps along its own share.

A share is a range of the pieces of `dask_blocks`, joined to minibatches. Its rows depend only on the number
of workers, not on which worker holds what: if a worker dies, another one gets the same share."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import pairwise
from typing import Any

import dask
import numpy as np

from .._model.block import Block, BlockList, BlocksInMemory, add_up, in_one_basis, join
from .dask_connection import scheduler_needed

FEWEST_STEPS = 24  # of an epoch: more shares would leave fewer steps than a fit needs
SUMMED_AT_ONCE = 8
TRIES = 4  # of a sum, if workers die

OfShare = Callable[[BlocksInMemory, int], tuple[Any, ...]]


class SharesOnDask:
    """Pieces of blocks in shares of similar size, at most one per worker; see `Shares`.

    ``lists`` are the pieces: futures of the ``client``, or delayed values if there is no cluster. ``numbers``
    are the indices of the blocks that each contributes, and ``rows`` (pieces,) counts their rows; an epoch
    should have ``n_minibatches`` steps if there is one share."""

    def __init__(
        self, client: Any, lists: list[Any], numbers: list[list[int]], rows: np.ndarray, n_minibatches: int
    ):
        self.client = client
        workers = [("", 0)] if self.client is None else sorted(self.client.nthreads().items())
        borders = _borders(rows, min(len(workers), max(1, n_minibatches // FEWEST_STEPS)))
        self.n_shares = len(borders) - 1
        self.workers = workers[: self.n_shares]
        self.n_minibatches = min(
            max(1, round(n_minibatches / self.n_shares)),
            *(sum(map(len, numbers[begin:end])) for begin, end in pairwise(borders)),
        )
        self.shares = [
            self._submit(place, made_share, numbers[begin:end], self.n_minibatches, *lists[begin:end])
            for place, (begin, end) in enumerate(pairwise(borders))
        ]

    def _submit(self, place: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a call on the worker of a share, or the result if there is no cluster."""
        if self.client is None:
            return function(*dask.compute(*arguments))
        address = self.workers[place][0]
        return self.client.submit(function, *arguments, workers=address, allow_other_workers=True, pure=False)

    def total(self, function: OfShare) -> tuple[Any, ...]:
        if self.client is None:
            return of_share(function, 0, self.shares[0])
        from distributed.comm import CommClosedError

        for _ in range(TRIES - 1):
            # What is sent to a worker, and not computed there, is lost with it.
            with suppress(CancelledError, CommClosedError), scheduler_needed():
                return self._total_on_cluster(function)
        with scheduler_needed():
            return self._total_on_cluster(function)

    def _total_on_cluster(self, function: OfShare) -> tuple[Any, ...]:
        """Return the sum over all shares, added up on the workers."""
        # To one worker, from which others fetch it: a broadcast never ends if a worker dies meanwhile.
        sent = self.client.scatter(function, hash=False)
        tasks = [
            self._submit(place, of_share, sent, self.workers[place][1], share)
            for place, share in enumerate(self.shares)
        ]
        made = [sent, *tasks]
        try:
            while len(tasks) > 1:
                starts = range(0, len(tasks), SUMMED_AT_ONCE)
                tasks = [
                    self._submit(start, add_up, tasks[start : start + SUMMED_AT_ONCE]) for start in starts
                ]
                made += tasks
            return tasks[0].result()
        finally:
            for future in made:  # a traceback might refer to them
                future.release()

    def forget(self) -> None:
        if self.client is not None:
            for share in self.shares:
                share.release()
        self.shares.clear()


def _borders(rows: np.ndarray, n_shares: int) -> list[int]:
    """Return the borders of ranges of pieces with about as many rows each, none of them empty."""
    middles = np.cumsum(rows) - rows / 2
    of_pieces = (middles / rows.sum() * n_shares).astype(int)
    return [*np.flatnonzero(np.diff(of_pieces, prepend=-1)).tolist(), len(rows)]


# ---- on the workers


def made_share(numbers: list[list[int]], n_minibatches: int, *pieces: BlockList) -> BlockList:
    """Join blocks of pieces to minibatches with about as many rows each."""
    blocks = [piece[number] for some, piece in zip(numbers, pieces, strict=True) for number in some]
    random = np.random.default_rng(0).permutation(len(blocks))
    minibatches: list[list[Block]] = [[] for _ in range(n_minibatches)]
    smallest = [(0, number) for number in range(n_minibatches)]
    for index in sorted(random.tolist(), key=lambda index: -blocks[index].n_rows):
        n_rows, number = smallest[0]
        heapq.heapreplace(smallest, (n_rows + blocks[index].n_rows, number))
        minibatches[number].append(blocks[index])
    return BlockList(in_one_basis([each[0] if len(each) == 1 else join(each) for each in minibatches]))


def of_share(function: OfShare, threads: int, share: BlockList) -> tuple[Any, ...]:
    return function(BlocksInMemory(share), threads)
