"""Tables in delimited text."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, TextIO

from ..levels import is_number
from .blocks import Block
from .cells import TextCells
from .gzip import GZIP, whole_gzip

DELIMITERS = ",;\t|"
ROWS = 4000  # of a block: with more, the cells of a block do not stay in the processor's cache
PARQUET, ARROW = b"PAR1", b"ARROW1"


class CsvFile:
    """A file with a header line, or standard input; gzipped or not. A named pipe has no second beginning
    either.
    """

    def __init__(self, path: str, delimiter: str | None = None, decimal: str = ".", rows: int = ROWS):
        self.label = "standard input" if path == "-" else path
        self.rereadable = path != "-" and os.path.isfile(path)
        self._path = path
        self._rows = rows
        self._decimal = decimal
        text = self._open()
        try:
            with self._readable():
                first = next((line for line in text if line.strip()), "")
                is_tsv = Path(path.lower().removesuffix(".gz")).suffix == ".tsv" and "\t" in first
                self._delimiter = delimiter or ("\t" if is_tsv else _sniffed(first))
                self.names = self._named(self._header(first, text))
        finally:
            if self.rereadable:
                text.close()
        self._opened = None if self.rereadable else text

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        text, self._opened = self._opened or self._reopened(), None
        all_places = {name: place for place, name in enumerate(self.names)}
        places = [all_places[name] for name in names]
        before = 0
        with text, self._readable():
            while lines := list(islice(text, self._rows)):
                columns = self._split(lines, places) or self._parsed(
                    chain(lines, text), len(lines), places, before
                )
                n_rows = len(columns[0]) if columns else 0
                yield Block(
                    {
                        name: TextCells(column, self._decimal)
                        for name, column in zip(names, columns, strict=True)
                    },
                    before,
                    n_rows,
                )
                before += n_rows

    def _reopened(self) -> TextIO:
        text = self._open()
        self._header("", text)
        return text

    def _header(self, first: str, text: TextIO) -> list[str]:
        """The first row after blank lines; ``first`` is its first line, where it has been read already."""
        rows = csv.reader(chain([first] if first else [], text), delimiter=self._delimiter, strict=True)
        return next((row for row in rows if not _is_blank(row)), [])

    def _split(self, lines: list[str], places: list[int]) -> list[list[str]] | None:
        """The cells of some columns, in half of the time; None where there are quotes or anything else that
        is not plain.
        """
        width = len(self.names)
        together = "".join(lines)
        if "\r" in together:
            together = together.replace("\r\n", "\n")
        plain = '"' not in together and "\r" not in together and width > 1
        if not plain or set(map(str.count, lines, repeat(self._delimiter))) != {width - 1}:
            return None
        cells = together.removesuffix("\n").replace("\n", self._delimiter).split(self._delimiter)
        return [cells[place::width] for place in places]

    def _parsed(self, lines: Iterator[str], n_lines: int, places: list[int], before: int) -> list[list[str]]:
        """The same by the rules of CSV: a row may end in a later line, of which the reader takes no more than
        it needs.
        """
        rows = list(islice(csv.reader(lines, delimiter=self._delimiter, strict=True), n_lines))
        if set(map(len, rows)) != {len(self.names)}:
            rows = self._regular(rows, before)
        return [[row[place] for row in rows] for place in places]

    def _open(self) -> TextIO:
        if not self.rereadable:
            return self._open_stream()
        with open(self._path, "rb") as file:
            start = file.read(6)
        for magic, suffix in ((PARQUET, ".parquet"), (ARROW, ".arrow")):
            if start.startswith(magic):
                raise ValueError(
                    f"{self.label} is no text but looks like {suffix[1:]}: give it a name that ends with {suffix}."
                )
        return _as_text(gzip.open(self._path) if start.startswith(GZIP) else open(self._path, "rb"))

    def _open_stream(self) -> TextIO:
        if self._path == "-" and sys.stdin is None:
            raise ValueError("Standard input is closed: name a file.")
        raw: Any = io.BufferedReader(sys.stdin.buffer if self._path == "-" else io.FileIO(self._path))
        if not raw.peek(2).startswith(GZIP):
            return _as_text(raw)
        unpacked = gzip.GzipFile(fileobj=raw)
        unpacked.myfileobj = raw  # closed with it
        return _as_text(unpacked)

    def _named(self, header: list[str]) -> list[str]:
        names = [
            name.strip() or f"Unnamed: {place}" for place, name in enumerate(header)
        ]  # as pandas calls them
        if not names or not any(name.strip() for name in header):
            raise ValueError(f"{self.label} is empty: the first line must name the columns.")
        if all(is_number(name) for name in names) and names != [
            str(place) for place in range(len(names))
        ]:  # those are names to pandas
            raise ValueError(
                f"{self.label}: the first line must name the columns, but holds numbers only: {', '.join(names[:10])}."
            )
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"{self.label}: two columns are named {twice[0]!r}; give each its own name.")
        return names

    def _regular(self, rows: list[list[str]], before: int) -> list[list[str]]:
        """Without blank lines; an error if a row has another number of fields than the header."""
        width = len(self.names)
        rows = [row for row in rows if row and not (width > 1 and _is_blank(row))]
        for number, row in enumerate(rows, start=before + 1):
            if len(row) != width:
                hint = "" if width > 1 else " Give --delimiter if the fields are separated by something else."
                raise ValueError(
                    f"{self.label}, row {number}: {len(row)} fields, but the header has {width}.{hint}"
                )
        return rows

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            with whole_gzip(self.label):
                yield
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.label} is not text in UTF-8; if it is a table, save it as UTF-8 ({error.reason})."
            ) from error
        except csv.Error as error:
            raise ValueError(
                f"{self.label} is not CSV that can be read, perhaps a quote is not closed: {error}."
            ) from error


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not any(map(str.strip, row))


def _as_text(data: Any) -> TextIO:
    return io.TextIOWrapper(data, encoding="utf-8-sig", newline="")


def _sniffed(header: str) -> str:
    """The delimiter that the header has most of, outside of quotes."""
    bare = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=bare.count)
