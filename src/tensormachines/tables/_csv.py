"""Tables in delimited text."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from .._levels import is_number
from ._blocks import Block
from ._cells import TextCells

DELIMITERS = ",;\t|"
ROWS = 4000  # of a block: with more, the cells of a block do not stay in the processor's cache
GZIP, PARQUET, ARROW = b"\x1f\x8b", b"PAR1", b"ARROW1"


class CsvFile:
    """A file with a header line, or standard input; gzipped or not."""

    def __init__(self, path: str, delimiter: str | None = None, rows: int = ROWS):
        self.label = "standard input" if path == "-" else path
        self.rereadable = path != "-"
        self._path = path
        self._rows = rows
        self._opened: tuple[TextIO, Any] | None = None
        with self._readable():
            text = self._open()
            first = text.readline()
            self._delimiter = delimiter or ("\t" if Path(path.removesuffix(".gz")).suffix == ".tsv" else _sniffed(first))
            reader = csv.reader(chain([first] if first else [], text), delimiter=self._delimiter, strict=True)
            header = next(reader, [])
        self.names = self._named(header)
        self._opened = text, reader  # for the first pass: standard input has no second

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        text, reader = self._opened or self._reopened()
        self._opened = None
        width, places = len(self.names), [self.names.index(name) for name in names]
        before = 0
        with text, self._readable():
            while rows := list(islice(reader, self._rows)):
                if set(map(len, rows)) != {width}:
                    rows = self._regular(rows, before)
                columns = list(zip(*rows, strict=True)) or [()] * width
                yield Block({name: TextCells(columns[place]) for name, place in zip(names, places, strict=True)}, before, len(rows))
                before += len(rows)

    def _reopened(self) -> tuple[TextIO, Any]:
        text = self._open()
        reader = csv.reader(text, delimiter=self._delimiter, strict=True)
        next(reader)
        return text, reader

    def _open(self) -> TextIO:
        raw = sys.stdin.buffer if self._path == "-" else open(self._path, "rb")  # noqa: SIM115 - closed with the text around it
        start = raw.peek(6)[:6] if hasattr(raw, "peek") else b""
        for magic, suffix in ((PARQUET, ".parquet"), (ARROW, ".arrow")):
            if start.startswith(magic):
                raise ValueError(f"{self.label} is no text but looks like {suffix[1:]}: give it a name that ends with {suffix}.")
        unpacked = gzip.GzipFile(fileobj=raw) if start.startswith(GZIP) else raw
        return io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="")

    def _named(self, header: list[str]) -> list[str]:
        names = [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]
        if not names or not any(name.strip() for name in header):
            raise ValueError(f"{self.label} is empty: the first line must name the columns.")
        if all(is_number(name) for name in names):
            raise ValueError(f"{self.label}: the first line must name the columns, but holds numbers only: {', '.join(names[:10])}.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{self.label}: two columns are named {twice[0]!r}; give each its own name.")
        return names

    def _regular(self, rows: list[list[str]], before: int) -> list[list[str]]:
        """Without blank lines; an error if a row has another number of fields than the header."""
        width = len(self.names)
        rows = [row for row in rows if row]
        for number, row in enumerate(rows, start=before + 1):
            if len(row) != width:
                hint = "" if width > 1 else " Give --delimiter if the fields are separated by something else."
                raise ValueError(f"{self.label}, row {number}: {len(row)} fields, but the header has {width}.{hint}")
        return rows

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.label} is not text in UTF-8; if it is a table, save it as UTF-8 ({error.reason}).") from error
        except csv.Error as error:
            raise ValueError(f"{self.label} is not CSV that can be read, perhaps a quote is not closed: {error}.") from error
        except EOFError as error:
            raise ValueError(f"{self.label} is cut off: it is compressed, and its end is missing.") from error
        except gzip.BadGzipFile as error:
            raise ValueError(f"{self.label} is damaged: {error}.") from error


def _sniffed(header: str) -> str:
    """The delimiter that the header has most of, outside of quotes."""
    bare = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=bare.count)
