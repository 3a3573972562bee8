"""Delimited text, gzipped or not, with quotes over several lines.

Reading follows pandas, with these differences: names and cells are stripped, "?" is missing, infinity is
text."""

from __future__ import annotations

import csv as standard
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import chain, islice, repeat
from threading import Lock
from typing import Any, TextIO

import numpy as np

from ..frame import check_unique, is_number
from .cells import CellBlock, Spelling, TextCells
from .checks import Where, block_rows, check_dtype
from .column_kinds import ColumnKinds, forced_kinds
from .encodings import UTF8, check_encoding, detect_encoding, marked
from .notation import Notation
from .paths import Path, check_present, choose_columns, find_files, open_binary, readable, suffix
from .source import ColumnSource, Source

DELIMITERS = ",;\t|"
CELLS_AT_ONCE, FEWEST_LINES = 1 << 18, 64  # size of a block of text: cells, and minimum number of lines
CHARACTERS_AT_ONCE = 16 * 2**20  # if cells are long, a block ends after this many
LONGEST_CELL = 2**31 - 1  # characters, the maximum of the standard parser on every system
BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow"}  # how other files begin


def csv(
    path: Path | Sequence[Path],
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    number: Sequence[str] = (),
    category: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    rows: int | None = None,
    dtype: Any = np.float64,
) -> Source:
    """Read blocks from CSV files, gzipped or not, all with the same header line.

    A column holds numbers if all its cells in all files are numbers, or all are true or false. It holds dates
    if all cells are written like 2024-05-31 or 2024-05-31 13:45:00. Otherwise it is a category, or text in
    the target. Empty cells, "?", and what pandas treats as missing ("NA", "NaN", "null", ...) are missing
    values; X may have them, but target and weight may not. Blank lines are skipped. Columns that are not
    requested may hold anything. Numbers may have thousands separators, and all numbers of a column may have
    the same currency or per cent sign (7.5 % is 7.5), if the first rows leave no doubt about it. A model
    remembers this notation, and expects the same in files that it predicts.

    Before the first block of an iteration, all files are read once to learn the kinds of the columns, unless
    ``number`` and ``category`` name all columns, or the kinds are already known. A fit learns the kinds in
    its first pass, and repeats this pass if a column of numbers or dates turns out to hold text in a later
    block.

    Parameters
    ----------
    path : path, glob or list of paths
    target : str or list of str, optional
        Name of the column to use as y, or names of the columns of a two-dimensional y.
    weight : str, optional
        Name of the column of weights.
    columns : list of str, optional
        Columns of X, in this order; None for all columns that are neither target nor weight.
    number, category : list of str, optional
        Columns that must hold numbers, where any other cell is an error; and columns that are categories even
        if they look like numbers, such as 00501. A fit warns of columns of numbers with leading zeros, unless
        they are in one of the two lists.
    delimiter : str, optional
        One character; None for the most frequent one of , ; tab | in the header.
    decimal : "." or ","
        Decimal separator.
    encoding : str, optional
        Encoding of the text. None uses the byte order mark or UTF-8; if a file is not UTF-8, it uses
        Windows-1252 or Latin-1, with a warning.
    rows : int, optional
        Number of rows per block; None for about 32 MB of numbers, and at least 1024 rows.
    dtype : float32 or float64
        Type of the numbers of X.

    Returns
    -------
    Source
        The X of a block is a matrix if all columns are numbers, otherwise a frame. Its y is int64 if all its
        numbers are integers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "flats.csv")
    >>> path.write_text("size,district,rent\\n50,north,600\\n70,south,700\\n") > 0
    True
    >>> source = csv(path, target="rent")
    >>> [chunk.y.tolist() for chunk in source]
    [[600, 700]]
    """
    if delimiter is not None and (
        not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'
    ):
        raise ValueError(
            f"delimiter must be one character, other than a quote or the end of a line, got {delimiter!r}."
        )
    if decimal not in (".", ","):
        raise ValueError(f'decimal must be "." or ",", got {decimal!r}.')
    files = [CsvFile(name, delimiter, decimal, encoding) for name in find_files(path)]
    first = files[0]
    for file in files[1:]:
        if file.names != first.names:
            raise ValueError(f"{file.label}: the header is {file.names}, but {first.names} in {first.label}.")
        file.spell_as(first)
    chosen = choose_columns(first.label, first.names, target, weight, columns)
    forced = forced_kinds(number, category, weight)
    check_present(first.label, first.names, list(forced))
    # True and false are class names in a single target, but 1 and 0 in multilabel targets.
    labels = chosen.targets if len(chosen.targets) == 1 else ()
    kinds = ColumnKinds(chosen.all, forced, labels)
    return ColumnSource(
        "csv", files, chosen, kinds, block_rows(rows, len(chosen.features)), check_dtype(dtype)
    )


class CsvFile:
    """A file with a header line, or standard input ("-").

    Standard input and named pipes can be read only once. ``notations`` are the notations of numeric columns;
    None to decide them by the first rows.
    """

    def __init__(
        self,
        path: str,
        delimiter: str | None = None,
        decimal: str = ".",
        encoding: str | None = None,
        notations: Mapping[str, Notation] | None = None,
    ):
        self.label = "standard input" if path == "-" else path
        self.rereadable = path != "-" and os.path.isfile(path)
        self._path = path
        self._decimal = decimal
        self._encoding = None if encoding is None else check_encoding(encoding)
        text = self._open()
        try:
            with self._readable():
                first = next((line for line in text if line.strip()), "")
                is_tsv = suffix(path) == ".tsv" and "\t" in first
                self._delimiter = delimiter or ("\t" if is_tsv else _sniffed(first))
                self.names = self._named(self._header(first, text))
                self._spellings = {
                    name: Spelling((notations or {}).get(name), decided=notations is not None)
                    for name in self.names
                }
        finally:
            if self.rereadable:
                text.close()
        self._opened = None if self.rereadable else text

    @property
    def notations(self) -> dict[str, Notation]:
        """Return the notations of numeric columns that have one, as far as they have been read."""
        found = {name: spelling.notation for name, spelling in self._spellings.items()}
        return {name: notation for name, notation in found.items() if notation is not None}

    def spell_as(self, other: CsvFile) -> None:
        """Decide how numbers are written together with another file of the same rows."""
        self._spellings = other._spellings

    def in_notations(self, notations: Mapping[str, Notation]) -> CsvFile:
        found = copy(self)
        found._spellings = {name: Spelling(notations.get(name), decided=True) for name in self.names}
        return found

    def blocks(self, names: Sequence[str], rows: int | None = None) -> Iterator[CellBlock]:
        text, self._opened = self._opened or self._reopened(), None
        places = [self.names.index(name) for name in names]
        most = max(FEWEST_LINES, CELLS_AT_ONCE // len(self.names))
        before = 0
        with text, self._readable():
            while lines := _some_lines(text, most if rows is None else min(rows, most)):
                split = self._split(lines, places)
                columns = split or self._parsed(lines, text, places, before)
                n_rows = len(columns[0]) if columns else 0
                underscores = not split or any(map(str.__contains__, lines, repeat("_")))
                cells = [
                    TextCells(column, self._decimal, underscores, self._spellings[name])
                    for name, column in zip(names, columns, strict=True)
                ]
                if n_rows:
                    named = dict(zip(names, cells, strict=True))
                    yield CellBlock(named, Where(self.label, before + 1), n_rows)
                before += n_rows

    def _split(self, lines: list[str], places: list[int]) -> list[list[str]] | None:
        """Return the cells of some columns; None if there are quotes or anything else that is not plain.

        This takes half the time of the standard parser."""
        width = len(self.names)
        together = "".join(lines)
        if "\r" in together:
            together = together.replace("\r\n", "\n")
        plain = '"' not in together and "\r" not in together and width > 1
        if not plain or set(map(str.count, lines, repeat(self._delimiter))) != {width - 1}:
            return None
        cells = together.removesuffix("\n").replace("\n", self._delimiter).split(self._delimiter)
        return [cells[place::width] for place in places]

    def _parsed(self, lines: list[str], text: TextIO, places: list[int], before: int) -> list[list[str]]:
        """Do the same as `_split` by the rules of CSV: the last row may end in a later line; no more is
        read."""
        rows: list[list[str]] = []
        reader = standard.reader(chain(lines, text), delimiter=self._delimiter, strict=True)
        try:
            with _cells_of_any_length:
                for row in reader:
                    rows.append(row)
                    if reader.line_num >= len(lines):
                        break
        except standard.Error as error:
            where = Where(self.label, before + 1).row(len(self._regular(rows, before)))
            raise ValueError(
                f"{where}: not CSV that can be read, perhaps a quote is not closed: {error}."
            ) from error
        if set(map(len, rows)) != {len(self.names)}:
            rows = self._regular(rows, before)
        return [[row[place] for row in rows] for place in places]

    def _regular(self, rows: list[list[str]], before: int) -> list[list[str]]:
        """Leave out blank lines; refuse a row whose number of fields differs from the header."""
        width = len(self.names)
        rows = [row for row in rows if row and not (width > 1 and _is_blank(row))]
        for number, row in enumerate(rows):
            if len(row) != width:
                hint = (
                    "" if width > 1 else " Give the delimiter if the fields are separated by something else."
                )
                where = Where(self.label, before + 1).row(number)
                raise ValueError(f"{where}: {len(row)} fields, but the header has {width}.{hint}")
        return rows

    # ---- opening

    def _open(self) -> TextIO:
        if self.rereadable:
            with open(self._path, "rb") as file:
                start = file.read(6)
            for magic, kind in BINARY.items():
                if start.startswith(magic):
                    raise ValueError(
                        f"{self.label} is not text but looks like {kind}: its name should end with .{kind}."
                    )
        if self._encoding is None and self.rereadable:
            with readable(self.label):
                self._encoding = detect_encoding(self._path, self.label)
        binary = open_binary(self._path)
        if self._encoding is None:
            self._encoding = marked(binary.peek(4)) or UTF8
        return io.TextIOWrapper(binary, encoding=self._encoding, newline="")

    def _reopened(self) -> TextIO:
        text = self._open()
        try:
            with self._readable():
                if self._named(self._header("", text)) != self.names:
                    raise ValueError(f"{self.label}: the header line has changed since it was read first.")
        except ValueError:
            text.close()
            raise
        return text

    def _header(self, first: str, text: TextIO) -> list[str]:
        """Return the first row after blank lines; ``first`` is its first line, if it has been read."""
        rows = standard.reader(chain([first] if first else [], text), delimiter=self._delimiter, strict=True)
        try:
            with _cells_of_any_length:
                return next((row for row in rows if not _is_blank(row)), [])
        except standard.Error as error:
            raise ValueError(
                f"{self.label}: in the header, perhaps a quote is not closed: {error}."
            ) from error

    def _named(self, header: list[str]) -> list[str]:
        # Columns without a name get the names that pandas gives them.
        names = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(header)]
        if not names or not any(name.strip() for name in header):
            raise ValueError(f"{self.label} is empty: the first line must name the columns.")
        # 0, 1, 2 and so on are the names that pandas writes for columns without names.
        if all(map(is_number, names)) and names != [str(place) for place in range(len(names))]:
            raise ValueError(
                f"{self.label}: the first line must name the columns, but holds numbers only: "
                f"{', '.join(names[:10])}."
            )
        check_unique(names, self.label)
        return names

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            with readable(self.label):
                yield
        except UnicodeError as error:  # UTF-16 without its mark raises no decoding error
            raise ValueError(
                f"{self.label}{self._undecodable_line()} is not text in {self._encoding_in_words()}: pass "
                "its encoding (--encoding on the command line), or save it as UTF-8 "
                f"({getattr(error, 'reason', error)})."
            ) from error

    def _encoding_in_words(self) -> str:
        return "UTF-8" if self._encoding == UTF8 else str(self._encoding)

    def _undecodable_line(self) -> str:
        """Find the first line that is not UTF-8, because text is decoded ahead of the lines."""
        if not self.rereadable or self._encoding != UTF8:
            return ""
        with open_binary(self._path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return f", line {number} of the file (counting from 1),"
        return ""


class _CellsOfAnyLength:
    """Lifts the limit of the standard parser, 131,072 characters, which applies to the whole process.

    The first of the readers that overlap lifts it, and the last one restores it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._readers:
                self._before = standard.field_size_limit(LONGEST_CELL)
            self._readers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                standard.field_size_limit(self._before)


_cells_of_any_length = _CellsOfAnyLength()
if hasattr(os, "register_at_fork"):  # other threads, and their readers, do not live on in a forked process
    os.register_at_fork(after_in_child=_cells_of_any_length.__init__)  # type: ignore[misc]


def _some_lines(text: TextIO, most: int) -> list[str]:
    """Read up to ``most`` lines, fewer if they are long."""
    lines, size = [], 0
    for line in islice(text, most):
        lines.append(line)
        size += len(line)
        if size >= CHARACTERS_AT_ONCE:
            break
    return lines


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not any(map(str.strip, row))


def _sniffed(header: str) -> str:
    """Return the most frequent delimiter in the header, outside quotes."""
    bare = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=bare.count)
