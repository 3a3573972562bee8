"""Rows in CSV text."""

from __future__ import annotations

import csv as standard
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .checks import Label, Where, as_target, as_weight, check_dtype, check_finite, check_rows, labels
from .paths import (
    Columns,
    Path,
    blank_line,
    choose_columns,
    files_in_words,
    find_files,
    is_blank,
    line_blocks,
)
from .source import Chunk, Source


def csv(
    path: Path | Sequence[Path],
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    rows: int | None = None,
    dtype: Any = np.float64,
) -> Source:
    """Blocks from CSV files in UTF-8, each with the same header line.

    The target is numbers if all its values in the first block are, and must then be numbers to the end; else
    it is text. Columns that are not asked for may hold anything. A field in double quotes may hold the
    delimiter, but not the end of a line. Blank lines are allowed at the end of a file only.

    Parameters
    ----------
    path : path, glob or list of paths
    target : str or list of str, optional
        The name of the column that is y, or the names of the columns of a y of two dimensions.
    weight : str, optional
        The name of the column of weights.
    columns : list of str, optional
        The columns of X, in this order; None for all that are neither target nor weight.
    delimiter : str
        One character.
    rows : int, optional
        Lines in a block; None for about 16 MB of text.
    dtype : float32 or float64
        The type of X.

    Returns
    -------
    Source
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(
            f"delimiter must be one character, other than a quote or the end of a line, got {delimiter!r}."
        )
    files = find_files(path)
    header = _same_header(files, delimiter)
    chosen = choose_columns(files[0], header, target, weight, columns)
    return _CsvSource(files, header, chosen, delimiter, check_rows(rows), check_dtype(dtype))


class _CsvSource(Source):
    def __init__(
        self,
        files: list[str],
        header: list[str],
        chosen: Columns,
        delimiter: str,
        rows: int | None,
        dtype: np.dtype,
    ):
        self.feature_names = chosen.features
        self.n_columns = len(chosen.features)
        self._files = files
        self._header = header
        self._position = {name: position for position, name in enumerate(header)}
        self._chosen = chosen
        self._delimiter = delimiter
        self._rows = rows
        self._dtype = dtype

    def _description(self) -> str:
        return f"csv {files_in_words(self._files)}: {self._chosen.in_words()}"

    def _chunks(self) -> Iterator[Chunk]:
        text = None
        for name in self._files:
            for lines_before, lines in self._lines(name):
                if text is None:
                    text = self._target_is_text(lines)
                yield self._chunk(lines, Where(name, lines_before), text)

    def _lines(self, name: str) -> Iterator[tuple[int, list[str]]]:
        """Lists of lines, each with the number of its first as a row."""
        with open(name, encoding="utf-8-sig") as file, _decodable(name):
            if _fields(file.readline(), self._delimiter) != self._header:
                raise ValueError(f"{name}: the header line has changed since the source was made.")
            yield from line_blocks(file, self._rows, before=1)

    def _target_is_text(self, lines: list[str]) -> bool:
        if not self._chosen.targets:
            return False
        try:
            self._table(lines, self._chosen.targets)
        except ValueError:
            return True
        return False

    def _chunk(self, lines: list[str], where: Where, text: bool) -> Chunk:
        chosen = self._chosen
        names = (
            chosen.features
            + ([] if text else chosen.targets)
            + ([] if chosen.weight is None else [chosen.weight])
        )
        try:
            table, targets = self._table(lines, names), self._text(lines, chosen.targets if text else [])
            if len(table) != len(lines):
                raise ValueError("lines without fields")
        except (ValueError, standard.Error) as error:
            self._blame(lines, where, names, error)
        check_finite(table, where, labels(names, "X"))
        X = self._typed(table[:, : len(chosen.features)], where, labels(names, "X"))
        if text:
            self._check_not_missing(targets, where)
        else:
            targets = table[:, len(chosen.features) : len(chosen.features) + len(chosen.targets)]
        y = (
            as_target(targets[:, 0] if chosen.single else targets, where, labels(chosen.targets, "y"))
            if chosen.targets
            else None
        )
        weight = (
            None
            if chosen.weight is None
            else as_weight(table[:, -1], where, labels([chosen.weight], "weight"))
        )
        return Chunk(X, y, weight, where.rows(len(lines)))

    def _typed(self, X: np.ndarray, where: Where, label: Label) -> np.ndarray:
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X, dtype=self._dtype)
        if self._dtype == np.float32:
            check_finite(rows, where, lambda j: f"{label(j)} in float32")
        return rows

    def _table(self, lines: list[str], names: list[str]) -> np.ndarray:
        """Numbers of shape (rows, names).

        Blank lines are left out, and rows may have more fields than the header.
        """
        positions = [self._position[name] for name in names]
        return np.loadtxt(
            lines,
            delimiter=self._delimiter,
            usecols=positions,
            quotechar='"',
            comments=None,
            ndmin=2,
            encoding="utf-8",
        )

    def _text(self, lines: list[str], names: list[str]) -> np.ndarray:
        """Text of shape (rows, names). An error if a line is not a row with as many fields as the header."""
        fields, positions = len(self._header), [self._position[name] for name in names]
        if not names and not any('"' in line for line in lines):
            regular = all(line.count(self._delimiter) == fields - 1 for line in lines)
            found: list[list[str]] = []
        else:
            rows = standard.reader(lines, delimiter=self._delimiter, strict=True)
            found = [[row[position] for position in positions] for row in rows if len(row) == fields]
            regular = len(found) == len(lines)
        if not regular:
            raise ValueError("lines with other numbers of fields than the header")
        return np.array(found, dtype=str)

    def _check_not_missing(self, targets: np.ndarray, where: Where) -> None:
        missing = np.argwhere(np.char.strip(targets) == "")
        if len(missing):
            row, column = missing[0]
            raise ValueError(
                f"{where.cell(row, f'column {self._chosen.targets[column]!r}')}: a missing value."
            )

    def _blame(self, lines: list[str], where: Where, names: list[str], cause: Exception) -> NoReturn:
        """Raise an error that names the first wrong row, and column where it is one."""
        positions = [(name, self._position[name]) for name in names]
        for row, line in enumerate(lines):
            if is_blank(line):
                raise ValueError(blank_line(where.name, where.first + row + 1))
            try:
                fields = _fields(line, self._delimiter)
            except standard.Error as error:
                raise ValueError(f"{where.row(row)}: {_quote_fault(error)}.") from cause
            if len(fields) != len(self._header):
                raise ValueError(
                    f"{where.row(row)}: {len(fields)} fields, but the header has {len(self._header)}."
                ) from cause
            for name, position in positions:
                if fault := self._fault(name, fields[position]):
                    raise ValueError(f"{where.cell(row, f'column {name!r}')}: {fault}.") from cause
        raise ValueError(f"{where.rows(len(lines))}: not CSV that can be read: {cause}.") from cause

    def _fault(self, name: str, field: str) -> str | None:
        if not field.strip():
            return "a missing value"
        if _is_number(field):
            return None
        numbers_before = ", as in the first block" if name in self._chosen.targets else ""
        return f"{field!r}, where a number is needed{numbers_before}"


@contextmanager
def _decodable(name: str) -> Iterator[None]:
    """An error of decoding as one that names the line, which must be looked for: text is decoded ahead of the
    lines.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        with open(name, "rb") as file:
            number = next(number for number, line in enumerate(file) if not _is_utf8(line))
        raise ValueError(
            f"{Where(name).row(number - 1) if number else f'{name}, header'}: not text in UTF-8."
        ) from error


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fields(line: str, delimiter: str) -> list[str]:
    return next(standard.reader([line], delimiter=delimiter, strict=True), [])


def _quote_fault(error: Exception) -> str:
    if "unexpected end of data" in str(error):
        return (
            "a quoted field that does not end in its line (the end of a line inside quotes is not supported)"
        )
    return f"not CSV: {error}"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # Python's digit groups, which NumPy does not read


def _same_header(files: list[str], delimiter: str) -> list[str]:
    first = _header(files[0], delimiter)
    for name in files[1:]:
        header = _header(name, delimiter)
        if header != first:
            raise ValueError(f"{name}: the header is {header}, but {first} in {files[0]}.")
    return first


def _header(name: str, delimiter: str) -> list[str]:
    with open(name, encoding="utf-8-sig") as file, _decodable(name):
        try:
            header = _fields(file.readline(), delimiter)
        except standard.Error as error:
            raise ValueError(f"{name}: in the header, {_quote_fault(error)}.") from error
    if not header:
        raise ValueError(f"{name} has no header: the first line must name the columns.")
    # 0, 1, 2 and so on are the names that pandas writes for columns without names.
    if all(_is_number(field) for field in header) and header != [str(i) for i in range(len(header))]:
        raise ValueError(
            f"{name}: the first line must name the columns, but holds numbers only: {header[:10]}."
        )
    return header
