"""Rows in LIBSVM (svmlight) text."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, Literal, NoReturn

import numpy as np
from scipy import sparse

from .checks import Where, as_target, check_dtype, check_finite, check_rows, labels
from .paths import Path, blank_line, files_in_words, find_files, line_blocks
from .source import Chunk, Source


def svmlight(
    path: Path | list[Path],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    rows: int | None = None,
    dtype: Any = np.float64,
) -> Source:
    """Blocks from LIBSVM text: in each line a number y and entries ``index:value``, the indices growing.

    Unless both ``n_features`` and ``zero_based`` are given, all files are read once more, before the first
    block, to learn them.

    A line with only a comment (#) is not a row; what stands behind # in a row, and a ``qid:`` entry, are not
    read, as scikit-learn's `load_svmlight_file` does. Blank lines are allowed at the end of a file only.

    Parameters
    ----------
    path : path, glob or list of paths
    n_features : int, optional
        The number of columns of X; None for the largest index in the files.
    zero_based : bool or "auto"
        Whether the first column has the index 0; "auto" if any index in the files is 0.
    rows : int, optional
        Lines in a block; None for about 16 MB of text.
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
        for name in self._files:
            rows_before = 0
            for lines_before, lines in _lines(name, self._rows):
                chunk = self._chunk(lines, Where(name, rows_before + 1), lines_before)
                rows_before += chunk.X.shape[0]
                yield chunk

    def _chunk(self, lines: list[bytes], where: Where, lines_before: int) -> Chunk:
        from sklearn.datasets import load_svmlight_file

        first_index = self._first_index
        text = BytesIO(b"".join(lines))
        try:
            X, y = load_svmlight_file(
                text, n_features=self.n_columns, dtype=self._dtype, zero_based=not first_index
            )
        except (ValueError, OverflowError) as error:
            _blame(lines, where, self.n_columns, first_index, error)
        if len(y) != len(lines):
            _check_not_rows(lines, where.name, lines_before)
        rows = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        check_finite(rows, where, lambda j: f"index {j + (first_index or 0)}")
        return Chunk(rows, as_target(y, where, labels(None, "y", single=True)), None, where.rows(len(y)))

    def _scanned(self) -> tuple[int, int]:
        """The number of columns and the index of the first, from the first and the last entry of each line."""
        least, most = 1, -1
        for name in self._files:
            rows_before = 0
            for _, lines in _lines(name, self._rows):
                try:
                    ends = [index for line in lines for index in _end_indices(line)]
                except ValueError as error:
                    _blame(lines, Where(name, rows_before + 1), self.n_columns, self._first_index, error)
                least, most = min([least, *ends]), max([most, *ends])
                rows_before += sum(1 for line in lines if _content(line))
        first_index = self._first_index if self._first_index is not None else int(least > 0)
        n_features = self.n_columns if self.n_columns is not None else most + 1 - first_index
        if n_features < 1:
            raise ValueError(
                f"{files_in_words(self._files)}: there are no entries index:value, and so no columns."
            )
        return n_features, first_index


def _lines(name: str, rows: int | None) -> Iterator[tuple[int, list[bytes]]]:
    with open(name, "rb") as file:
        found = False
        for before, lines in line_blocks(file, rows, before=0):
            found = True
            yield before, lines
    if not found:
        raise ValueError(f"{name} is empty.")


def _content(line: bytes) -> bytes:
    return line.partition(b"#")[0].strip()


def _end_indices(line: bytes) -> Iterator[int]:
    content = _content(line)
    last, separator, _ = content.rpartition(b":")
    if not separator:
        return
    entries = content.split(None, 3)[1:3]
    first = entries[1] if entries[0].startswith(b"qid:") and len(entries) > 1 else entries[0]
    if not first.startswith(b"qid:"):
        yield int(first.partition(b":")[0])
        yield int(last.rsplit(None, 1)[-1])


def _check_not_rows(lines: list[bytes], name: str, lines_before: int) -> None:
    """Lines that are not rows must be comments."""
    for number, line in enumerate(lines, start=lines_before + 1):
        if not line.strip():
            raise ValueError(blank_line(name, number))


def _blame(
    lines: list[bytes], where: Where, n_features: int | None, first_index: int | None, cause: Exception
) -> NoReturn:
    """Raise an error that names the first wrong row."""
    contents = [content for line in lines if (content := _content(line))]
    for row, content in enumerate(contents):
        label, *entries = (token.decode("utf-8", "replace") for token in content.split())
        if not _is(float, label):
            raise ValueError(f"{where.row(row)}: y is {label!r}, where a number is needed.") from cause
        fault = _fault(
            entries[1:] if entries and entries[0].startswith("qid:") else entries, n_features, first_index
        )
        if fault:
            raise ValueError(f"{where.row(row)}: {fault}.") from cause
    raise ValueError(f"{where.rows(len(contents))}: not LIBSVM text: {cause}.") from cause


def _fault(entries: list[str], n_features: int | None, first_index: int | None) -> str | None:
    before = -1
    for entry in entries:
        index, _, value = entry.partition(":")
        if not (_is(int, index) and _is(float, value)):
            return f"{entry!r}, where an entry index:value of two numbers is needed"
        if int(index) < (first_index or 0):
            return f"the index {index}, where the first is {first_index or 0}"
        if int(index) <= before:
            return f"the index {index} after {before}: they must grow"
        if n_features is not None and int(index) >= n_features + (first_index or 0):
            return f"the index {index}, beyond n_features={n_features}"
        before = int(index)
    return None


def _is(kind: type[int] | type[float], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
