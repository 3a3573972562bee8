"""Write CSV, Parquet or Arrow a block at a time; a file appears when it is complete, or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from .._data.atomic_file import complete_or_not
from .._data.files.paths import ARROW_SUFFIXES, PARQUET_SUFFIXES, import_pyarrow, suffix

Write: TypeAlias = Callable[[dict[str, Any]], None]

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


def require_output(path: str, option: str = "-o") -> None:
    """Refuse a file name whose suffix belongs to no format that can be written."""
    known = (*TEXT_SUFFIXES, *PARQUET_SUFFIXES, *ARROW_SUFFIXES)
    if suffix(path) not in known:
        raise ValueError(
            f"{option} must name a file that ends with .csv, .csv.gz, .tsv, .parquet or .arrow, got {path}."
        )
    if suffix(path) not in TEXT_SUFFIXES:
        if path.lower().endswith(".gz"):
            raise ValueError(f"{option} {path}: only text can be gzipped; leave out .gz.")
        import_pyarrow()


def write_text(path: str, text: str) -> None:
    with complete_or_not(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


@contextmanager
def open_output(path: str | None, names: Sequence[str]) -> Iterator[Write]:
    """Yield a function that writes a block, a dict of columns; without a path, CSV to standard output."""
    if path is None:
        if sys.stdout is None:
            raise ValueError("Standard output is closed: give a file with -o.")
        yield _csv_writer(sys.stdout, names, ",")
        sys.stdout.flush()
        return
    with complete_or_not(path) as unfinished:
        if suffix(path) not in TEXT_SUFFIXES:
            with _arrow_writer(unfinished, suffix(path) in PARQUET_SUFFIXES, names) as write:
                yield write
            return
        with _open_text(unfinished, path.lower().endswith(".gz")) as file:
            yield _csv_writer(file, names, "\t" if suffix(path) == ".tsv" else ",")


@contextmanager
def _open_text(path: Path, gzipped: bool) -> Iterator[TextIO]:
    """Open a file to write to. Gzipped, equal text has equal bytes: neither a name nor a time is stored."""
    if not gzipped:
        with open(path, "w", encoding="utf-8", newline="") as file:
            yield file
        return
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
    ):
        yield text


def _csv_writer(file: TextIO, names: Sequence[str], delimiter: str) -> Write:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)

    def write(table: dict[str, Any]) -> None:
        columns = [
            column.to_pylist() if hasattr(column, "to_pylist") else column for column in table.values()
        ]
        writer.writerows(zip(*columns, strict=True))

    return write


@contextmanager
def _arrow_writer(path: Path, is_parquet: bool, names: Sequence[str]) -> Iterator[Write]:
    pyarrow = import_pyarrow()
    opened: list[Any] = []
    schema: list[Any] = []  # of the first block; later blocks are cast to it

    def write(table: dict[str, Any]) -> None:
        batch = pyarrow.table({name: _arrow_column(pyarrow, column) for name, column in table.items()})
        if not opened:
            schema.append(batch.schema)
            opened.append(_opened(pyarrow, path, is_parquet, batch.schema))
        opened[0].write_table(batch.cast(schema[0]))

    try:
        yield write
        if not opened:
            empty = pyarrow.schema([(name, pyarrow.float64()) for name in names])
            opened.append(_opened(pyarrow, path, is_parquet, empty))
    finally:
        for writer in opened:
            writer.close()


def _arrow_column(pyarrow: Any, column: Any) -> Any:
    if not hasattr(column, "type"):
        return pyarrow.array(column)
    # Dictionaries differ from block to block.
    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _opened(pyarrow: Any, path: Path, is_parquet: bool, schema: Any) -> Any:
    if is_parquet:
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(path, schema)
    return pyarrow.ipc.new_file(str(path), schema)
