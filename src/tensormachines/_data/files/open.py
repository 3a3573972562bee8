"""The reader of a file with named columns, chosen by the name of the file."""

from __future__ import annotations

from collections.abc import Mapping

from .arrow import open_arrow, open_parquet
from .cells import ColumnFile
from .csv import CsvFile
from .notation import Notation
from .paths import ARROW_SUFFIXES, PARQUET_SUFFIXES, require_file, suffix


def open_columns(
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    notations: Mapping[str, Notation] | None = None,
) -> ColumnFile:
    """Open a CSV, Parquet or Arrow file; "-" is CSV from standard input.

    ``notations`` of numbers are those that CSV is known to have; None to decide them by its first rows."""
    if path != "-":
        require_file(path)
    if suffix(path) in PARQUET_SUFFIXES:
        return open_parquet(path)
    if suffix(path) in ARROW_SUFFIXES:
        return open_arrow(path)
    return CsvFile(path, delimiter, decimal, encoding, notations)
