"""Training rows of a source of blocks, distributed over the parts of a scratch file.

Every source is read twice: for the summary, and to deal its rows. Afterwards each part is read from the
scratch file, in the form that the kernel reads, one part ahead of the computation."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import reduce
from operator import add
from threading import Lock
from typing import Any

import numpy as np

from .._model.basis import Basis
from .._model.block import (
    Block,
    BlockFunction,
    Blocks,
    BlocksInMemory,
    ChangedBlocks,
    Shares,
    SomeParts,
    add_up,
    appendable_arrays,
    canonical,
    rows_of_arrays,
)
from .._model.spline_basis import SplineBasis
from .column_counts import FrameCounts, LevelCounts
from .column_notes import ColumnWarning
from .encoding import Columns, columns_of
from .files.source import Chunk, ReadAgainError, Source
from .frame import Frame
from .read_ahead import ahead
from .summary import Summarise, Summary, summarised
from .training import Recipe

ALIGNMENT = 64  # bytes, of arrays in a buffer
BYTES_OF_GROUP = 1 << 27  # of parts that are in memory together
BYTES_DEALT, ROWS_OF_PIECE = 1 << 28, 1024  # of rows that are dealt together, and of a part among these


class RowsOnDisk:
    """The rows of a source of blocks, in its order; the first pass learns the ``columns`` of frames."""

    streams, distant = True, False

    def __init__(self, source: Source):
        self.source = source
        self.flat = True
        self.n_columns = 0
        self.n_rows = 0
        self.columns: Columns | None = None
        self.dtype: np.dtype | None = None
        self.scratch: Scratch | None = None

    @property
    def feature_names(self) -> list[str] | None:
        return self.source.feature_names

    def _chunks(self, source: Iterable[Chunk], present: bool) -> Generator[Chunk, None, None]:
        """Iterate over encoded chunks; those of a fit have only the rows that are ``present``."""
        first = 0
        with closing(ahead(source)) as chunks:
            for read in chunks:
                if read.y is None:
                    raise ValueError(
                        f"{read.place}: there is no y. Say where the source has it, for example by target=."
                    )
                self.flat, self.n_columns = read.y.ndim == 1, read.X.shape[1]
                X = read.X
                if self.columns is not None:
                    X = self.columns.encode(X, self.dtype)
                X = X if isinstance(X, Frame) else canonical(X)
                chunk = replace(read, X=X, y=read.y.reshape(len(read.y), -1), first=first)
                chunk = chunk.present() if present else chunk
                yield chunk
                first += len(chunk.y)

    def total(self, function: Summarise) -> Summary:
        """Summarise all chunks, and learn the columns of frames."""
        summary = self._sum(lambda chunk: summarised(function, self.feature_names, chunk), present=True)
        self.n_rows = summary.n_rows
        self.warn_of_mistakes(summary.counts)
        if summary.counts is None:
            return summary
        self.columns, self.dtype = columns_of(self.feature_names, summary.counts), summary.dtype
        return summary.encoded(self.columns)

    def sum(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of a function of all chunks."""
        return self._sum(function, present=False)

    def _sum(self, function: Callable[[Chunk], Any], present: bool) -> Any:
        """Return the sum of a function of all chunks.

        If a column turns out to be a category after some of it was read as numbers, everything is read
        again."""
        try:
            return self._sum_once(function, present)
        except ReadAgainError:
            return self._sum_once(function, present)

    def _sum_once(self, function: Callable[[Chunk], Any], present: bool) -> Any:
        with closing(self._chunks(self.source.first_pass(), present)) as chunks:
            return reduce(add, map(function, chunks))

    def warn_of_mistakes(self, counts: FrameCounts | None) -> None:
        """Warn of numeric columns that a single text has turned into categories, and of codes like 00501.

        ``counts`` are None if all columns hold numbers."""
        self._warn_of_padding()
        for name, column in zip(self.feature_names or (), counts.columns if counts else (), strict=False):
            if not isinstance(column, LevelCounts) or name not in self.source.guessed():
                continue
            if (level := column.among_numbers()) is not None:
                warnings.warn(
                    f"{self.source!r}: column {name!r} holds numbers except for {level!r}, so it is "
                    f"treated as a category. Correct or clear such cells, or pass category=[{name!r}].",
                    UserWarning,
                    stacklevel=2,
                )

    def _warn_of_padding(self) -> None:
        """Warn of columns of numbers that may be codes, because some have leading zeros."""
        for name, cell in self.source.padded().items():
            if name in (self.feature_names or ()):
                warnings.warn(
                    f"{self.source!r}: column {name!r} is treated as numbers, which have no leading zeros, "
                    f"but it has cells such as {cell!r}. If these are codes, pass category=[{name!r}], "
                    f"otherwise number=[{name!r}].",
                    ColumnWarning,
                    stacklevel=2,
                )

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        scratch = self.scratch = Scratch(recipe.basis)
        sample, n_rows = [], 0
        present = self._chunks(self.source, present=True)
        with closing(_joined(present, rows_dealt(recipe, self.n_columns))) as chunks:
            for chunk in chunks:
                blocks = recipe(chunk)
                sample.append(blocks.pop(recipe.n_parts))
                scratch.append(blocks)
                n_rows += len(chunk.y)
        if n_rows != self.n_rows:
            raise ValueError(
                f"{self.source!r}: it gave {self.n_rows} rows at first and {n_rows} rows when read again "
                "(without rows of weight 0)."
            )
        parts = np.arange(len(scratch.weights))
        training, held_out = parts[: recipe.n_parts], parts[recipe.n_parts :]
        return (
            BlocksOnDisk(scratch, training),
            BlocksInMemory(sample),
            BlocksOnDisk(scratch, held_out) if len(held_out) else None,
        )

    def close(self) -> None:
        if self.scratch is not None:
            self.scratch.close()


def rows_dealt(recipe: Recipe, n_columns: int) -> int:
    """Return how many rows should at least be dealt together. Packed rows of a part take less time and space
    if many are in one piece, and with many parts, each gets few rows of a chunk."""
    if not (recipe.packed and isinstance(recipe.basis, SplineBasis)):
        return 1
    return min(recipe.n_parts * ROWS_OF_PIECE, BYTES_DEALT // (8 * max(n_columns, 1)))


def _joined(chunks: Generator[Chunk, None, None], rows: int) -> Generator[Chunk, None, None]:
    """Iterate over chunks of at least ``rows`` rows, except for the last one."""
    held: list[Chunk] = []
    with closing(chunks):
        for chunk in chunks:
            held.append(chunk)
            if sum(len(each.y) for each in held) >= rows:
                yield _one_chunk(held)
                held = []
    if held:
        yield _one_chunk(held)


def _one_chunk(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return replace(
        chunks[0],
        X=np.concatenate([chunk.X for chunk in chunks]),
        y=np.concatenate([chunk.y for chunk in chunks]),
        weight=np.concatenate(weights) if weights else None,
    )


class Scratch:
    """A file without a name, which disappears with the process, however it ends.

    For each chunk and array, it holds the parts' rows of this chunk: ``borders`` are the positions where they
    begin and end, of shape (parts + 1,) for every array of every chunk."""

    def __init__(self, basis: Basis):
        self.file = tempfile.TemporaryFile(prefix="tensormachines-", buffering=0)  # noqa: SIM115 - open as long as this object
        self.moving = Lock()
        self.reader = ThreadPoolExecutor(1, thread_name_prefix="tensormachines-read")
        self.basis = basis
        self.end = 0
        self.borders: dict[str, list[np.ndarray]] = {}
        self.dtypes: dict[str, np.dtype] = {}
        self.targets = 1
        self.weights = np.zeros(0)  # of the parts

    def close(self) -> None:
        self.reader.shutdown(cancel_futures=True)
        self.file.close()

    def append(self, parts: list[Block]) -> None:
        """Write each part's rows of a chunk."""
        self.targets = parts[0].targets.shape[1]
        weights = np.array([block.total_weight for block in parts])
        self.weights = self.weights + weights if len(self.weights) else weights
        arrays = [appendable_arrays(block) for block in parts]
        for name, first in arrays[0].items():
            if self.dtypes.setdefault(name, first.dtype) != first.dtype:
                raise AssertionError(f"the type of {name} changed from {self.dtypes[name]} to {first.dtype}")
            sizes = [each[name].nbytes for each in arrays]
            self.borders.setdefault(name, []).append(self.end + np.cumsum([0, *sizes]))
            for each in arrays:
                self._write(each[name])

    def _write(self, array: np.ndarray) -> None:
        data = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
        self.end += len(data)
        try:
            while len(data):
                data = data[self.file.write(data) :]
        except OSError as error:
            message = (
                f"the rows are dealt into a scratch file in {tempfile.gettempdir()}, which failed after "
                f"{self.end / 1e9:.1f} GB: {error.strerror}. Point TMPDIR to a folder with room for all rows"
            )
            raise OSError(error.errno, message) from error

    def read(self, part: int, buffers: list[np.ndarray]) -> Block:
        """Return a part as a block; its arrays are valid until the part after the next is read.

        The two buffers take turns: new memory for every part would cost more time than reading it.
        """
        places = {
            name: [(int(b[part]), int(b[part + 1])) for b in borders]
            for name, borders in self.borders.items()
        }
        sizes = {name: sum(end - begin for begin, end in segments) for name, segments in places.items()}
        starts = np.cumsum([0, *(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values())])
        buffers.reverse()
        if len(buffers[0]) < starts[-1]:
            buffers[0] = np.empty(starts[-1], dtype=np.uint8)
        arrays = {}
        for (name, size), start in zip(sizes.items(), starts, strict=False):
            target = buffers[0][start : start + size]
            self._read(target.data, places[name])
            arrays[name] = target.view(self.dtypes[name])
        return Block(
            rows_of_arrays(arrays, self.basis),
            self.basis,
            arrays["y"].reshape(-1, self.targets),
            arrays.get("weight"),
        )

    def _read(self, target: memoryview, places: list[tuple[int, int]]) -> None:
        for begin, end in places:
            while begin < end:
                count = self._read_at(begin, target[: end - begin])
                if not count:
                    raise OSError("the scratch file is shorter than what was written to it")
                target, begin = target[count:], begin + count

    def _read_at(self, position: int, target: memoryview) -> int:
        """Read up to ``len(target)`` bytes from a position on; return how many were read."""
        if hasattr(os, "preadv"):
            return os.preadv(self.file.fileno(), [target], position)
        with self.moving:  # Windows reads where the file is, which all threads share
            self.file.seek(position)
            return int(self.file.readinto(target))


class BlocksOnDisk:
    """The parts of a scratch file; a part is one block when it is read."""

    shares: Shares | None = None

    def __init__(self, scratch: Scratch, parts: np.ndarray):
        self.scratch = scratch
        self.parts = parts
        self.weights = scratch.weights[parts]
        self.buffers = [np.empty(0, dtype=np.uint8)] * 2
        self.current: tuple[int, Block] | None = None
        self.upcoming: tuple[int, Future[Block]] | None = None

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        if part is None:
            self._settle()
            self.current = None
            with closing(ahead(map(self._read, range(len(self.parts))))) as blocks:
                return add_up(map(function, blocks))
        block = self._block(part)
        if likely_next not in (None, part) and self.upcoming is None:
            self.upcoming = likely_next, self.scratch.reader.submit(self._read, likely_next)
        return function(block)

    def groups(
        self, order: Sequence[int], most_bytes: int = BYTES_OF_GROUP
    ) -> Generator[BlocksInMemory, None, None]:
        of_part = max(1, self.scratch.end // len(self.scratch.weights))
        size = max(1, most_bytes // of_part)
        return ahead(self._fetch(order[start : start + size]) for start in range(0, len(order), size))

    def _fetch(self, parts: Sequence[int]) -> BlocksInMemory:
        """Return parts with their own memory."""
        empty = np.empty(0, dtype=np.uint8)
        return BlocksInMemory([self.scratch.read(int(self.parts[part]), [empty, empty]) for part in parts])

    def some(self, numbers: Sequence[int]) -> Blocks:
        return SomeParts(self, numbers)

    def changed(self, change: Callable[[Block], Block]) -> Blocks:
        return ChangedBlocks(self, change)

    def _block(self, part: int) -> Block:
        """Return a part from where it is: already in use, read ahead, or on disk."""
        if self.current is None or self.current[0] != part:
            upcoming = self._settle()
            self.current = (
                upcoming if upcoming is not None and upcoming[0] == part else (part, self._read(part))
            )
        return self.current[1]

    def _read(self, part: int) -> Block:
        return self.scratch.read(int(self.parts[part]), self.buffers)

    def _settle(self) -> tuple[int, Block] | None:
        """Wait for the part being read, so that nothing else is read into its buffer, and return it."""
        if self.upcoming is None:
            return None
        (part, future), self.upcoming = self.upcoming, None
        return part, future.result()
