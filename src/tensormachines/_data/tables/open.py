"""Which kind of table a file is: told by its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .blocks import TableFile
from .csv import CsvFile

ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
SVMLIGHT_SUFFIXES = (".svm", ".svmlight", ".libsvm")
PARQUET_SUFFIXES = (".parquet", ".pq")
PYARROW_MISSING = 'Parquet and Arrow need pyarrow: pip install "tensormachines[parquet]".'


def suffix(path: str | os.PathLike[str]) -> str:
    """In lower case, of the name without .gz."""
    name = os.fspath(path).lower()
    return Path(name.removesuffix(".gz")).suffix


def is_svmlight(path: str) -> bool:
    return suffix(path) in SVMLIGHT_SUFFIXES


def open_table(path: str, delimiter: str | None = None, decimal: str = ".") -> TableFile:
    """The table in a file; "-" is CSV from standard input."""
    if path != "-":
        require_file(path)
    if suffix(path) in (*PARQUET_SUFFIXES, *ARROW_SUFFIXES):
        from .arrow import ArrowFile

        return ArrowFile(path, is_parquet=suffix(path) in PARQUET_SUFFIXES)
    return CsvFile(path, delimiter, decimal)


def require_file(path: str) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no file {path}.")


def import_pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(PYARROW_MISSING) from error
    return pyarrow
