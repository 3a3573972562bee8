"""Finding files, reading their lines, choosing among their columns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, AnyStr, TypeAlias

from .checks import check_unique, repeated

Path: TypeAlias = str | os.PathLike[str]

TEXT_BYTES = 16 * 2**20  # of text in a block; as numbers they take about as much


def find_files(path: Path | Sequence[Path]) -> list[str]:
    """The files of a path, a glob (sorted) or a list of paths; all exist."""
    if isinstance(path, str | os.PathLike):
        name = os.fspath(path)
        found = (
            sorted(glob.glob(name, recursive=True))
            if glob.has_magic(name) and not os.path.exists(name)
            else [name]
        )
        if not found:
            raise FileNotFoundError(f"No file matches {name!r}.")
    else:
        found = [os.fspath(each) for each in path]
        if not found:
            raise ValueError("The list of files is empty.")
    for name in found:
        _check_file(name)
    return found


def _check_file(name: str) -> None:
    if not os.path.exists(name):
        remote = " For remote files give blocks.arrow a pyarrow.dataset.Dataset." if "://" in name else ""
        raise FileNotFoundError(f"There is no file {name!r}.{remote}")
    if os.path.isdir(name):
        raise ValueError(
            f"{name!r} is a folder: name its files, or a glob such as {os.path.join(name, '*')!r}."
        )


def files_below(folder: str) -> list[str]:
    """All files in a folder and its folders, sorted, but for names that begin with '.' or '_', as Spark and
    Arrow mark what is not data.
    """
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each[0] not in "._"]
        found += [os.path.join(parent, each) for each in names if each[0] not in "._"]
    if not found:
        raise FileNotFoundError(f"There are no files in the folder {folder!r}.")
    return sorted(found)


def files_in_words(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def line_blocks(file: IO[AnyStr], rows: int | None, *, before: int) -> Iterator[tuple[int, list[AnyStr]]]:
    """Lists of lines, with how many lines there are in the file before each list; ``before`` counts those
    already read.

    Blank lines at the end of the file belong to no list. A blank line at the end of a list, with others after
    it, is an error."""
    blank = None
    while lines := file.readlines(TEXT_BYTES) if rows is None else list(islice(file, rows)):
        count = len(lines)
        while lines and is_blank(lines[-1]):
            lines.pop()
        if lines and blank is not None:
            raise ValueError(blank_line(file.name, blank))
        if len(lines) < count and blank is None:
            blank = before + len(lines) + 1
        if lines:
            yield before, lines
        before += count


def is_blank(line: str | bytes) -> bool:
    """Nothing but the end of a line: spaces and tabs may be a row of missing values."""
    return line in ("\n", "") if isinstance(line, str) else line in (b"\n", b"\r\n", b"")


def blank_line(name: str, line: int) -> str:
    return f"{name}, line {line} of the file (counting from 1) is blank; blank lines are allowed at the end only."


@dataclass(frozen=True)
class Columns:
    """Names of columns, by what they are for; ``single`` if the target was one name, so that y has one
    dimension.
    """

    features: list[str]
    targets: list[str]
    weight: str | None
    single: bool

    @property
    def all(self) -> list[str]:
        return self.features + self.targets + ([] if self.weight is None else [self.weight])

    def in_words(self) -> str:
        words = f"{len(self.features)} columns"
        if self.targets:
            words += f", target {self.targets[0] if self.single else self.targets!r}"
        return words if self.weight is None else f"{words}, weight {self.weight!r}"


def choose_columns(
    where: str,
    names: Sequence[str],
    target: str | Sequence[str] | None,
    weight: str | None,
    columns: Sequence[str] | None,
) -> Columns:
    """What each column of a file is for.

    All others than target and weight are features, if none are named.
    """
    check_unique(names, where)
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the text {columns!r}.")
    single = isinstance(target, str)
    targets = [] if target is None else [target] if isinstance(target, str) else list(target)
    others = {*targets, weight}
    features = [name for name in names if name not in others] if columns is None else list(columns)
    chosen = Columns(features, targets, weight, single)
    check_present(where, names, chosen)
    if (twice := repeated(chosen.all)) is not None:
        raise ValueError(
            f"The column {twice!r} is asked for more than once among columns, target and weight."
        )
    if not features:
        raise ValueError(f"{where}: there are no columns for X.")
    return chosen


def check_present(where: str, names: Sequence[str], chosen: Columns) -> None:
    present = set(names)
    missing = [name for name in chosen.all if name not in present]
    if missing:
        raise ValueError(f"{where}: there is no column {missing[0]!r}; the columns are {_in_words(names)}.")


def _in_words(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:50])
    return shown if len(names) <= 50 else f"{shown} and {len(names) - 50} more"
