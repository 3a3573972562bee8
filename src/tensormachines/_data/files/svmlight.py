"""LIBSVM (svmlight) text: each line has a number y and entries ``index:value``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress, islice, repeat
from typing import Any, Literal, NoReturn

import numpy as np
from scipy import sparse

from ..._model import native
from .checks import Where, as_target, check_dtype, check_finite, check_rows, labels
from .paths import Path, files_in_words, find_files, open_binary, readable
from .source import Chunk, Source

TEXT_BYTES = 16 * 2**20  # of text in a block; its numbers take about as much
MOST_COLUMNS = 2**63 - 1
Read = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # see `parse`
QUERY = re.compile(rb"^(\s*\S+\s+)qid:\S*")


def svmlight(
    path: Path | Sequence[Path],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    rows: int | None = None,
    dtype: Any = np.float64,
) -> Source:
    """Read blocks from LIBSVM text, gzipped or not: each line has a number y and entries ``index:value`` with
    increasing indices.

    Unless both ``n_features`` and ``zero_based`` are given, all files are read once before the first block to
    learn them.

    Blank lines, text after #, and a ``qid:`` entry are ignored, as in scikit-learn's `load_svmlight_file`.

    Parameters
    ----------
    path : path, glob or list of paths
    n_features : int, optional
        Number of columns of X; None for the largest index in the files.
    zero_based : bool or "auto"
        Whether the first column has the index 0; "auto" means True if any index in the files is 0.
    rows : int, optional
        Number of lines per block; None for about 16 MB of text.
    dtype : float32 or float64

    Returns
    -------
    Source
        X is a csr_array, and y float64 of shape (rows,).
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features!r}.")
    return _SvmlightSource(find_files(path), n_features, zero_based, check_rows(rows), check_dtype(dtype))


class _SvmlightSource(Source):
    def __init__(
        self,
        files: list[str],
        n_features: int | None,
        zero_based: bool | str,
        rows: int | None,
        dtype: np.dtype,
    ):
        self.n_columns = n_features
        self._files = files
        self._first_index = None if zero_based == "auto" else 0 if zero_based else 1
        self._rows = rows
        self._dtype = dtype

    def _description(self) -> str:
        return f"svmlight {files_in_words(self._files)}: {self.n_columns or 'as yet unknown'} columns"

    def _chunks(self) -> Iterator[Chunk]:
        if self.n_columns is None or self._first_index is None:
            self.n_columns, self._first_index = self._scanned()
        first = self._first_index
        for name in self._files:
            for where, lines in _lines(name, self._rows):
                y, indptr, indices, values = parse(lines, where, first, self.n_columns)
                values = values.astype(self._dtype, copy=False)
                X = _csr(values, indices - first, indptr, self.n_columns)
                check_finite(X, where, lambda j: f"index {j + first}")
                yield Chunk(X, as_target(y, where, labels(None, "y", single=True)), None, where)

    def _scanned(self) -> tuple[int, int]:
        """Find the number of columns and the first index from the first and last entry of each line."""
        least, most = 1, -1
        for name in self._files:
            for where, lines in _lines(name, self._rows):
                try:
                    ends = [index for line in lines for index in _end_indices(line)]
                except (ValueError, IndexError):  # parse names the row
                    ends = parse(lines, where, self._first_index, self.n_columns)[2].tolist()
                least, most = min([least, *ends]), max([most, *ends])
        first_index = self._first_index if self._first_index is not None else int(least > 0)
        n_features = self.n_columns if self.n_columns is not None else int(most) + 1 - first_index
        if n_features < 1:
            raise ValueError(
                f"{files_in_words(self._files)}: there are no entries index:value, and so no columns."
            )
        return n_features, first_index


def _csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int) -> sparse.csr_array:
    """Return rows with 32-bit indices if possible, because scikit-learn requires them."""
    index = sparse.get_index_dtype(maxval=max(n_columns, len(values)))
    indices, indptr = (each.astype(index, copy=False) for each in (indices, indptr))
    return sparse.csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _lines(name: str, rows: int | None) -> Iterator[tuple[Where, list[bytes]]]:
    """Read the lines that are rows, without comments, a block at a time."""
    first = 1
    with readable(name), open_binary(name) as file:
        while lines := file.readlines(TEXT_BYTES) if rows is None else list(islice(file, rows)):
            if any(map(bytes.__contains__, lines, repeat(b"#"))):
                lines = [line.partition(b"#")[0] for line in lines]
            lines = [line for line in lines if not line.isspace() and line]
            if lines:
                yield Where(name, first), lines
            first += len(lines)


def _end_indices(line: bytes) -> Iterator[int]:
    """Yield the first and the last index of a line."""
    last, separator, _ = line.rpartition(b":")
    entries = line.split(None, 3)[1:3]
    if entries and entries[0].startswith(b"qid:"):
        entries.pop(0)
    if separator and entries:
        yield int(entries[0].partition(b":")[0])
        yield int(last.rsplit(None, 1)[-1])


def parse(
    lines: list[bytes], where: Where, first_index: int | None = None, n_features: int | None = None
) -> Read:
    """Return y, and the row pointers, indices and values of the entries of rows; no row may be blank."""
    found = _read_compiled(lines)
    if found is None:
        found = _read_in_python(lines)
    if found is None:
        _blame(lines, where, first_index, n_features)
    y, indptr, indices, values = found
    growing = np.diff(indices, prepend=-1) > 0
    growing[indptr[:-1][np.diff(indptr) > 0]] = True
    lowest = first_index or 0
    highest = np.inf if n_features is None else n_features + (1 if first_index is None else first_index)
    if not growing.all() or indices.min(initial=lowest) < lowest or indices.max(initial=0) >= highest:
        _blame(lines, where, first_index, n_features)
    return y, indptr, indices, values


def _read_compiled(lines: list[bytes]) -> Read | None:
    """Return the numbers of rows; None without the extension, or if something is not written plainly."""
    if native.extension is None:
        return None
    text = b"\n".join(lines)  # lines with a comment have lost their end
    n_rows, n_entries = len(lines), text.count(b":")
    y, values = np.empty(n_rows), np.empty(n_entries)
    indptr, indices = np.empty(n_rows + 1, dtype=np.int64), np.empty(n_entries, dtype=np.int64)
    plain = native.extension.svmlight_rows(text, y=y, indptr=indptr, indices=indices, values=values)
    return (y, indptr, indices, values) if plain else None


def _read_in_python(lines: list[bytes]) -> Read | None:
    """Return the numbers of rows; None if there is an error.

    All tokens are converted together, which is several times as fast as line by line."""
    if any(map(bytes.__contains__, lines, repeat(b"qid:"))):
        lines = [QUERY.sub(rb"\1", line) for line in lines]
    if any(map(bytes.__contains__, lines, repeat(b"_"))):  # Python allows these between digits
        return None
    text = b"\n".join(lines)  # lines with a comment have lost their end
    words, tokens = text.split(), text.replace(b":", b" ").split()
    entries = np.fromiter(map(len, map(bytes.split, lines)), np.int64, len(lines)) - 1
    # Each word of a line except the first has one colon, with something on both sides.
    colons = np.ones(len(words), dtype=np.int64)
    colons[np.cumsum(1 + entries) - 1 - entries] = 0
    borders = np.concatenate([[0], np.cumsum(1 + 2 * entries)])
    found = np.fromiter(map(bytes.count, words, repeat(b":")), np.int64, len(words))
    if (found != colons).any() or len(tokens) != borders[-1]:
        return None
    is_y = np.zeros(len(tokens), dtype=bool)
    is_y[borders[:-1]] = True
    pairs = list(compress(tokens, (~is_y).tolist()))
    try:
        y = np.fromiter(map(float, compress(tokens, is_y.tolist())), np.float64, len(lines))
        indices = np.fromiter(map(int, pairs[::2]), np.int64, len(pairs) // 2)
        values = np.fromiter(map(float, pairs[1::2]), np.float64, len(pairs) // 2)
    except (ValueError, OverflowError):
        return None
    return y, np.concatenate([[0], np.cumsum(entries)]), indices, values


def _blame(lines: list[bytes], where: Where, first_index: int | None, n_features: int | None) -> NoReturn:
    """Raise an error that names the first wrong row."""
    for row, line in enumerate(lines):
        label, *entries = (token.decode("utf-8", "replace") for token in line.split())
        if entries and entries[0].startswith("qid:"):
            entries.pop(0)
        if not _is(float, label):
            raise ValueError(f"{where.row(row)}: y is {label!r}, where a number is needed.")
        if fault := _fault(entries, first_index, n_features):
            raise ValueError(f"{where.row(row)}: {fault}.")
    raise AssertionError(f"{where.rows(len(lines))}: not LIBSVM text")


def _fault(entries: list[str], first_index: int | None, n_features: int | None) -> str | None:
    before, first = -1, first_index or 0
    for entry in entries:
        index, _, value = entry.partition(":")
        if not (_is(int, index) and _is(float, value)):
            return f"{entry!r}, where an entry index:value of two numbers is needed"
        if int(index) < first:
            zero = "; if the first is 0, say so by zero_based (--zero-based)" if int(index) == 0 else ""
            return f"the index {index}, where the first is {first}{zero}"
        if int(index) > MOST_COLUMNS:
            return f"the index {index}, which is too large"
        if int(index) <= before:
            return f"the index {index} after {before}: they must grow"
        if n_features is not None and int(index) >= n_features + (1 if first_index is None else first):
            return f"the index {index}, beyond n_features={n_features}"
        before = int(index)
    return None


def _is(kind: type[int] | type[float], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return "_" not in text
