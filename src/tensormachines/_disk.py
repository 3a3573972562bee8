"""Tables on disk: the rows of a source, dealt into the parts of a scratch file.

A source is read twice, whatever it is: for the summary, and to deal its rows. From then on each part is read from the scratch file, in
the form that the kernel wants, one part ahead of the computation.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from ._blocks import Block, BlockFunction, Blocks, BlocksInMemory, add_up
from ._moments import Rows
from ._table import Chunk, Recipe, as_chunk
from .basis import Basis
from .blocks import Source, ahead

ALIGNMENT = 64  # bytes, of arrays in a buffer


class TableOnDisk:
    """The rows of a source of blocks, in its order."""

    streams = True

    def __init__(self, source: Source):
        self.source = source
        self.flat = True
        self.n_columns = 0
        self.scratch: Scratch | None = None

    @property
    def feature_names(self) -> list[str] | None:
        return self.source.feature_names

    def _chunks(self) -> Iterator[Chunk]:
        first = 0
        for read in ahead(self.source):
            if read.y is None:
                raise ValueError(f"{read.place}: there is no y. Say where the source has it, for example by target=.")
            self.flat, self.n_columns = read.y.ndim == 1, read.X.shape[1]
            yield as_chunk(first, read.X, read.y, read.weight)
            first += len(read.y)

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        chunks = self._chunks()
        total = function(next(chunks))
        for chunk in chunks:
            total = total + function(chunk)
        return total

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        scratch = self.scratch = Scratch(recipe.basis)
        parts = [Part() for _ in range(recipe.n_parts)]
        held_out = Part()
        sample = []
        for chunk in self._chunks():
            blocks = recipe(chunk)
            for part, block in zip([*parts, None, held_out], blocks, strict=False):
                if part is not None:
                    scratch.append(part, block)
            sample.append(blocks[recipe.n_parts])
        validated = [held_out] if held_out.segments else []
        return BlocksOnDisk(scratch, parts), BlocksInMemory(sample), BlocksOnDisk(scratch, validated) if validated else None

    def close(self) -> None:
        if self.scratch is not None:
            self.scratch.close()


class Part:
    """Where the rows of one part are in the scratch file: for each block that was appended, offset and length of each of its arrays."""

    def __init__(self) -> None:
        self.segments: list[dict[str, tuple[int, int]]] = []
        self.weight = 0.0


class Scratch:
    """A file without a name, which is gone with the process whatever ends it."""

    def __init__(self, basis: Basis):
        self.file = tempfile.TemporaryFile(prefix="tensormachines-", buffering=0)  # noqa: SIM115 - open as long as this object
        self.reader = ThreadPoolExecutor(1, thread_name_prefix="tensormachines-read")
        self.basis = basis
        self.end = 0
        self.dtypes: dict[str, np.dtype] = {}
        self.sparse = False
        self.targets = 1

    def close(self) -> None:
        self.reader.shutdown(cancel_futures=True)
        self.file.close()

    def append(self, part: Part, block: Block) -> None:
        self.sparse = sparse.issparse(block.X)
        self.targets = block.targets.shape[1]
        part.weight += block.total_weight
        segment = {}
        for name, array in _arrays(block).items():
            self.dtypes[name] = array.dtype
            self._write(np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b""))
            segment[name] = (self.end, array.size)
            self.end += array.nbytes
        part.segments.append(segment)

    def _write(self, data: memoryview) -> None:
        try:
            while len(data):
                data = data[self.file.write(data) :]
        except OSError as error:
            message = (
                f"the rows are dealt into a scratch file in {tempfile.gettempdir()}, which failed after {self.end / 1e9:.1f} GB: "
                f"{error.strerror}. Point TMPDIR to a folder with room for all rows"
            )
            raise OSError(error.errno, message) from error

    def read(self, part: Part, buffers: list[np.ndarray]) -> Block:
        """The part as a block, whose arrays are good until the part after the next is read into these two buffers.

        They take turns: new memory for every part would cost more time than reading it.
        """
        sizes = {name: sum(segment[name][1] for segment in part.segments) * dtype.itemsize for name, dtype in self.dtypes.items()}
        starts = np.cumsum([0, *(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values())])
        buffers.reverse()
        if len(buffers[0]) < starts[-1]:
            buffers[0] = np.empty(starts[-1], dtype=np.uint8)
        buffer = buffers[0]
        arrays = {}
        for (name, size), start in zip(sizes.items(), starts, strict=False):
            self._read(buffer[start : start + size], [segment[name] for segment in part.segments], self.dtypes[name].itemsize)
            arrays[name] = buffer[start : start + size].view(self.dtypes[name])
        return Block(self._rows(arrays), self.basis, arrays["y"].reshape(-1, self.targets), arrays.get("weight"))

    def _read(self, target: np.ndarray, places: list[tuple[int, int]], itemsize: int) -> None:
        rest = target.data
        for offset, size in places:
            missing = size * itemsize
            while missing:
                count = os.preadv(self.file.fileno(), [rest[:missing]], offset)
                if not count:
                    raise OSError("the scratch file is shorter than what was written to it")
                rest, offset, missing = rest[count:], offset + count, missing - count

    def _rows(self, arrays: dict[str, np.ndarray]) -> Rows:
        if not self.sparse:
            return arrays["X"].reshape(-1, self.basis.n_columns)
        indptr = np.concatenate([[0], np.cumsum(arrays["lengths"])]).astype(arrays["indices"].dtype)
        return sparse.csr_array((arrays["data"], arrays["indices"], indptr), shape=(len(arrays["lengths"]), self.basis.n_columns))


def _arrays(block: Block) -> dict[str, np.ndarray]:
    X = block.X
    rows = {"data": X.data, "indices": X.indices, "lengths": np.diff(X.indptr)} if sparse.issparse(X) else {"X": X}
    return {**rows, "y": block.targets, **({} if block.weight is None else {"weight": block.weight})}


class BlocksOnDisk:
    """The parts of a scratch file; a part is one block when it is read."""

    def __init__(self, scratch: Scratch, parts: list[Part]):
        self.scratch = scratch
        self.parts = parts
        self.weights = np.array([part.weight for part in parts])
        self.buffers = [np.empty(0, dtype=np.uint8)] * 2
        self.current: tuple[int, Block] | None = None
        self.upcoming: tuple[int, Future[Block]] | None = None

    def total(self, function: BlockFunction, part: int | None = None, likely_next: int | None = None) -> tuple[Any, ...]:
        if part is None:
            self._settle()
            self.current = None
            return add_up(map(function, ahead(map(self._read, range(len(self.parts))))))
        block = self._block(part)
        if likely_next not in (None, part) and self.upcoming is None:
            self.upcoming = likely_next, self.scratch.reader.submit(self._read, likely_next)
        return function(block)

    def _block(self, part: int) -> Block:
        """From where it is: in use already, read ahead, or on disk."""
        if self.current is None or self.current[0] != part:
            upcoming = self._settle()
            self.current = upcoming if upcoming is not None and upcoming[0] == part else (part, self._read(part))
        return self.current[1]

    def _read(self, part: int) -> Block:
        return self.scratch.read(self.parts[part], self.buffers)

    def _settle(self) -> tuple[int, Block] | None:
        """Wait for what is being read, so that nothing else is read into its buffer, and give it."""
        if self.upcoming is None:
            return None
        (part, future), self.upcoming = self.upcoming, None
        return part, future.result()
