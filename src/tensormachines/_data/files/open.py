"""The reader of a file with named columns, chosen by the name of the file."""

from __future__ import annotations

from .arrow import open_arrow, open_parquet
from .cells import ColumnFile
from .csv import CsvFile
from .paths import ARROW_SUFFIXES, PARQUET_SUFFIXES, require_file, suffix


def open_columns(path: str, delimiter: str | None = None, decimal: str = ".") -> ColumnFile:
    """Open a CSV, Parquet or Arrow file; "-" is CSV from standard input."""
    if path != "-":
        require_file(path)
    if suffix(path) in PARQUET_SUFFIXES:
        return open_parquet(path)
    if suffix(path) in ARROW_SUFFIXES:
        return open_arrow(path)
    return CsvFile(path, delimiter, decimal)
