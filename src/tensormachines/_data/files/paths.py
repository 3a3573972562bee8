"""Files that a name stands for: their kinds, how to open them, and which columns to read."""

from __future__ import annotations

import glob
import gzip
import importlib
import io
import os
import pathlib
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

from ..frame import check_unique, repeated
from ..plain_text import plain

Path: TypeAlias = str | os.PathLike[str]

ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
SVMLIGHT_SUFFIXES = (".svm", ".svmlight", ".libsvm")
PARQUET_SUFFIXES = (".parquet", ".pq")
GZIP = b"\x1f\x8b"
BUFFER_BYTES = 2**18
MOST_NAMES = 50  # in a message


# ---- which files, and of what kind


def find_files(path: Path | Sequence[Path]) -> list[str]:
    """Return the files of a path, a glob (sorted) or a list of paths; all exist."""
    if isinstance(path, str | os.PathLike):
        name = os.fspath(path)
        is_glob = glob.has_magic(name) and not os.path.exists(name)
        found = sorted(glob.glob(name, recursive=True)) if is_glob else [name]
        if not found:
            raise FileNotFoundError(f"No file matches {name!r}.")
    else:
        found = [os.fspath(each) for each in path]
        if not found:
            raise ValueError("The list of files is empty.")
    for name in found:
        require_file(name)
    return found


def require_file(name: str) -> None:
    """Refuse a path without a file."""
    if not os.path.exists(name):
        remote = " For remote files give blocks.arrow a pyarrow.dataset.Dataset." if "://" in name else ""
        raise FileNotFoundError(f"There is no file {name}.{remote}")
    if os.path.isdir(name):
        raise ValueError(
            f"{name} is a folder: name its files, or a glob such as {os.path.join(name, '*')!r}."
        )


def files_below(folder: str) -> list[str]:
    """Return all files in a folder and its folders, sorted.

    Names that begin with '.' or '_' are left out: Spark and Arrow use them for files that are not data."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each[0] not in "._"]
        found += [os.path.join(parent, each) for each in names if each[0] not in "._"]
    if not found:
        raise FileNotFoundError(f"There are no files in the folder {folder!r}.")
    return sorted(found)


def files_in_words(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def suffix(path: Path) -> str:
    """Return the suffix, in lower case, of the name without .gz."""
    return pathlib.Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def is_svmlight(path: Path) -> bool:
    return suffix(path) in SVMLIGHT_SUFFIXES


# ---- opening them

DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error, EOFError)


def open_binary(path: str) -> Any:
    """Open a file, named pipe or standard input ("-") that may be gzipped."""
    if path == "-" and sys.stdin is None:
        raise ValueError("Standard input is closed: name a file.")
    raw: Any = io.BufferedReader(sys.stdin.buffer if path == "-" else io.FileIO(path), BUFFER_BYTES)
    if not raw.peek(2).startswith(GZIP):
        return raw
    unpacked = gzip.GzipFile(fileobj=raw)
    unpacked.myfileobj = raw  # closed with it
    return unpacked


@contextmanager
def readable(label: str, *broken: type[Exception]) -> Iterator[None]:
    """Turn the errors of a damaged file, and those of its format, into a ValueError that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        # A data set of several files is not named like the one that is not there.
        same = str(error.filename) == label or label in str(error)
        named = f"There is no file {label}." if same else f"{label}: {error}"
        raise FileNotFoundError(named) from error
    except DAMAGED + broken as error:
        what = " ".join(str(error).split())
        raise ValueError(
            f"{label} cannot be read; it may be truncated, damaged or of another format: {what}"
        ) from error


def import_pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError('Parquet and Arrow need pyarrow: pip install "tensormachines[parquet]".') from error


# ---- columns


@dataclass(frozen=True)
class Chosen:
    """Names of columns, by their use; ``single`` if the target was one name, so that y is flat.

    ``known`` are the columns of an "exposure" and an "offset"."""

    features: list[str]
    targets: list[str]
    weight: str | None
    single: bool
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[str]:
        weight = [] if self.weight is None else [self.weight]
        return [*self.features, *self.targets, *self.known.values(), *weight]

    def in_words(self) -> str:
        words = f"{len(self.features)} columns"
        if self.targets:
            words += f", target {self.targets[0]!r}" if self.single else f", target {self.targets!r}"
        return words if self.weight is None else f"{words}, weight {self.weight!r}"


def choose_columns(
    where: str,
    names: Sequence[str],
    target: str | Sequence[str] | None,
    weight: str | None,
    columns: Sequence[str] | None,
) -> Chosen:
    """Determine the use of each column of a file: unless ``columns`` are given, all columns that are neither
    target nor weight are features.
    """
    check_unique(names, where)
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the text {columns!r}.")
    targets = [] if target is None else [target] if isinstance(target, str) else list(target)
    others = {*targets, weight}
    features = [name for name in names if name not in others] if columns is None else list(columns)
    chosen = Chosen(features, targets, weight, isinstance(target, str))
    check_present(where, names, chosen.all)
    if (twice := repeated(chosen.all)) is not None:
        raise ValueError(
            f"The column {twice!r} is asked for more than once among columns, target and weight."
        )
    if not features:
        raise ValueError(f"{where}: there are no columns for X.")
    return chosen


def check_present(where: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    present = set(names)
    for name in wanted:
        if name not in present:
            raise ValueError(f"{where} has no column {name!r}{instead(name, names)}")


def find_fitted(
    where: str, names: Sequence[str], fitted: Sequence[str], delimiter: str = "delimiter"
) -> list[str]:
    """Return the names in a file of the columns that a model was ``fitted`` to, or refuse the file.

    Names in text files are stripped, unlike in pandas."""
    present, known = set(names), set(fitted)
    found = []
    for name in fitted:
        bare = name.strip()
        if name not in present and (bare not in present or bare in known):
            others = instead(name, names, delimiter)
            raise ValueError(f"{where} has no column {name!r}, which the model was fitted to{others}")
        found.append(name if name in present else bare)
    return found


def instead(name: str, names: Sequence[str], delimiter: str = "delimiter") -> str:
    """Return the end of an error about a missing column: the nearest name, and all names."""
    by_lower_case = {each.lower(): each for each in names}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    nearest = f"; did you mean {by_lower_case[close[0]]!r}?" if close else "."
    if len(names) == 1:
        return f"{nearest} Its only column is {names[0]!r}: if that is several, give their {delimiter}."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{nearest} Its columns are {', '.join(map(plain, names[:MOST_NAMES]))}{more}."
