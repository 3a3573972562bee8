"""The reader of files with named columns, chosen by the name of each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .arrow import open_arrow, open_parquet
from .cells import CellBlock, ColumnFile
from .csv import CsvFile
from .notation import Notation
from .paths import ARROW_SUFFIXES, PARQUET_SUFFIXES, find_files, suffix


def open_columns(
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    notations: Mapping[str, Notation] | None = None,
) -> ColumnFile:
    """Open a CSV, Parquet or Arrow file, or all files that match a glob; "-" is CSV from standard input.

    ``notations`` are the known notations of numbers in CSV; None to decide them by the first rows."""

    def opened(name: str) -> ColumnFile:
        if suffix(name) in PARQUET_SUFFIXES:
            return open_parquet(name)
        if suffix(name) in ARROW_SUFFIXES:
            return open_arrow(name)
        return CsvFile(name, delimiter, decimal, encoding, notations)

    files = [opened(name) for name in (["-"] if path == "-" else find_files(path))]
    return files[0] if len(files) == 1 else SeveralFiles(path, files)


def each_file(file: ColumnFile) -> list[ColumnFile]:
    """Return the files that ``file`` stands for: itself, or several."""
    return file.files if isinstance(file, SeveralFiles) else [file]


class SeveralFiles:
    """The rows of several files with the same columns, one file after the other; ``label`` is their glob."""

    def __init__(self, label: str, files: list[ColumnFile]):
        first = files[0]
        for file in files:
            if set(file.names) != set(first.names):
                raise ValueError(
                    f"{file.label}: its columns are {', '.join(file.names)}, but those of {first.label} are "
                    f"{', '.join(first.names)}."
                )
            if isinstance(file, CsvFile) and isinstance(first, CsvFile):
                file.spell_as(first)
        self.label, self.files, self.names = label, files, first.names
        self.rereadable = all(file.rereadable for file in files)

    @property
    def notations(self) -> dict[str, Notation]:
        """Return the notations of numbers, by column, in the first file that has any."""
        found: dict[str, Notation] = {}
        for file in reversed(self.files):
            found |= getattr(file, "notations", {})
        return found

    def blocks(self, names: Sequence[str], rows: int | None = None) -> Iterator[CellBlock]:
        for file in self.files:
            yield from file.blocks(names, rows)
