"""Files of NumPy arrays (.npy), memory maps and arrays in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..masked import refuse_masked
from .checks import (
    Label,
    Where,
    as_target,
    as_weight,
    block_rows,
    check_same_rows,
    dense_rows,
    float_type,
    labels,
)
from .damage import DAMAGED_ARRAY
from .paths import Path, files_in_words, find_files
from .source import Chunk, Source

Array: TypeAlias = Path | Sequence[Path] | np.ndarray


def npy(X: Array, y: Array | None = None, weight: Array | None = None, *, rows: int | None = None) -> Source:
    """Read blocks from .npy files.

    Each argument is a file, a glob, or a list of files to concatenate (files of y need not be divided like
    files of X); or an array in memory; or a memory map, which is read from its file. A map that does not
    write to its file (mode "c") is read as an array in memory, because its values may differ from the file.

    Files are read by seeking and reading, not through mapped pages, so that memory holds at most one block.
    An array in Fortran order is read a column at a time, which is slower.

    Parameters
    ----------
    X : path, list of paths, memmap or ndarray, of shape (rows, n_columns)
        Numbers or booleans. Blocks are float32 if all of X is float32, else float64.
    y : likewise, of shape (rows,) or (rows, targets), optional
        Numbers, booleans or text.
    weight : likewise, of shape (rows,), optional
    rows : int, optional
        Number of rows per block; None for about 32 MB, and at least 1024 rows.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> [chunk.X.shape for chunk in npy(np.zeros((3, 2)), np.ones(3))]
    [(3, 2)]
    """
    return _NpySource(_pieces(X, "X"), _pieces(y, "y"), _pieces(weight, "weight"), rows)


@dataclass(frozen=True)
class _Stored:
    """An array in a file."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from ``start`` to ``stop``."""
        row = int(np.prod(self.shape[1:], dtype=np.int64))
        with open(self.name, "rb") as file:
            if not (self.fortran and len(self.shape) == 2):
                return self._values(file, start * row, (stop - start) * row).reshape(
                    stop - start, *self.shape[1:]
                )
            rows = np.empty((stop - start, row), dtype=self.dtype)
            for column in range(row):
                rows[:, column] = self._values(file, column * self.shape[0] + start, stop - start)
            return rows

    def _values(self, file: Any, first: int, count: int) -> np.ndarray:
        file.seek(self.offset + first * self.dtype.itemsize)
        values = np.fromfile(file, dtype=self.dtype, count=count)
        if len(values) < count:
            raise ValueError(f"{self.name} is truncated: it ends before an array of shape {self.shape} does.")
        return values


@dataclass(frozen=True, eq=False)
class _Held:
    """An array in memory."""

    name: str
    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]


_Piece: TypeAlias = _Stored | _Held


class _NpySource(Source):
    def __init__(self, X: list[_Piece], y: list[_Piece], weight: list[_Piece], rows: int | None):
        self._X, self._y, self._weight = X, y, weight
        _check(X, "X", (2,), "(rows, columns)", "biuf")
        _check(y, "y", (1, 2), "(rows,) or (rows, columns)", "biufUSO")
        _check(weight, "weight", (1,), "(rows,)", "biuf")
        total = _length(X)
        for what, pieces in (("y", y), ("weight", weight)):
            if pieces:
                check_same_rows(total, _length(pieces), what, _in_words(pieces))
        self.n_columns = X[0].shape[1]
        self._dtype = float_type(piece.dtype for piece in X)
        self._rows = block_rows(rows, X[0].shape[1])

    def _description(self) -> str:
        others = "".join(
            f", {what} {_in_words(pieces)}"
            for what, pieces in (("y", self._y), ("weight", self._weight))
            if pieces
        )
        return f"npy {_in_words(self._X)}: {_length(self._X)} rows, {self.n_columns} columns{others}"

    def _chunks(self) -> Iterator[Chunk]:
        before = 0
        for piece in self._X:
            for start in range(0, piece.shape[0], self._rows):
                stop = min(start + self._rows, piece.shape[0])
                yield self._chunk(piece, start, stop, before)
            before += piece.shape[0]

    def _chunk(self, piece: _Piece, start: int, stop: int, before: int) -> Chunk:
        where = Where(piece.name, start + 1)
        X = dense_rows(piece.read(start, stop), self._dtype, where, labels(None, "X"))
        y = [
            as_target(values, at, _label("y", values))
            for at, values in _across(self._y, before + start, before + stop)
        ]
        weight = [
            as_weight(values, at, _label("weight", values))
            for at, values in _across(self._weight, before + start, before + stop)
        ]
        return Chunk(X, _joined(y), _joined(weight), where)


def _label(what: str, values: np.ndarray) -> Label:
    return labels(None, what, single=values.ndim == 1)


def _across(pieces: list[_Piece], start: int, stop: int) -> Iterator[tuple[Where, np.ndarray]]:
    """Yield the rows from ``start`` to ``stop`` of the concatenated pieces, a part for each piece."""
    before = 0
    for piece in pieces:
        first, last = max(start - before, 0), min(stop - before, piece.shape[0])
        if first < last:
            yield Where(piece.name, first + 1), piece.read(first, last)
        before += piece.shape[0]


def _joined(parts: list[np.ndarray]) -> np.ndarray | None:
    return None if not parts else parts[0] if len(parts) == 1 else np.concatenate(parts)


def _pieces(array: Array | None, what: str) -> list[_Piece]:
    if array is None:
        return []
    if isinstance(array, np.ndarray):
        refuse_masked(array, what)
        return [_mapped(array, what)]
    return [_header(name) for name in find_files(array)]


def _header(name: str) -> _Stored:
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with open(name, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            if version not in readers:
                raise ValueError(f"its version {version} is not known, or only used for structured arrays")
            shape, fortran, dtype = readers[version](file)
            if min(shape, default=0) < 0:
                raise ValueError(f"its shape is {shape}")
        except DAMAGED_ARRAY as error:
            raise ValueError(f"{name} cannot be read as a .npy file: {error}.") from error
        offset = file.tell()
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects, which are not read: save it with a type of numbers or text."
        )
    needed, size = offset + math.prod(shape) * dtype.itemsize, os.path.getsize(name)
    if size < needed:
        raise ValueError(
            f"{name} is truncated: an array of shape {shape} and type {dtype} needs {needed} bytes, the file "
            f"has {size}."
        )
    return _Stored(name, offset, shape, dtype, fortran)


def _mapped(array: np.ndarray, what: str) -> _Piece:
    """Return a memory map as a part of its file, and any other array unchanged."""
    root = _root(array)
    if root is None or root.filename is None or root.mode == "c":
        return _Held(f"the array {what}", array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError(
            f"{what} is a non-contiguous part of a memory map; give whole rows, or the file's name."
        )
    if root.mode != "r":
        root.flush()
    offset = root.offset + array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return _Stored(os.fspath(root.filename), offset, array.shape, array.dtype, not array.flags.c_contiguous)


def _root(array: np.ndarray) -> np.memmap | None:
    """Return the map of the whole file of which a map is a view, because only that map knows its offset; None
    for an array in memory.
    """
    while isinstance(array.base, np.memmap):
        array = array.base
    return array if isinstance(array, np.memmap) else None


def _check(pieces: list[_Piece], what: str, dimensions: tuple[int, ...], shape: str, kinds: str) -> None:
    for piece in pieces:
        if len(piece.shape) not in dimensions or 0 in piece.shape[1:]:
            raise ValueError(f"{piece.name}: {what} must have the shape {shape}, got {piece.shape}.")
        if piece.dtype.kind not in kinds:
            raise ValueError(
                f"{piece.name}: {what} must be numbers{' or text' if 'U' in kinds else ''}, got the type "
                f"{piece.dtype}."
            )
        first = pieces[0]
        if piece.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"{piece.name}: the shape is {piece.shape}, which does not follow on {first.shape} in "
                f"{first.name}."
            )
        if piece.dtype.kind != first.dtype.kind and {piece.dtype.kind, first.dtype.kind} & {"U", "S"}:
            raise ValueError(
                f"{piece.name}: {what} has the type {piece.dtype}, but {first.dtype} in {first.name}."
            )


def _length(pieces: list[_Piece]) -> int:
    return sum(piece.shape[0] for piece in pieces)


def _in_words(pieces: list[_Piece]) -> str:
    return files_in_words([piece.name for piece in pieces])
