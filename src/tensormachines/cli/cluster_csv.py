"""CSV on a cluster: Dask reads cells as text, which become numbers, dates or levels by the rules for files.

Dask itself would decide by the first rows of each column, and spell booleans and levels in its own way."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._data.dates import DATES
from .._data.files.cells import CellBlock, TextCells
from .._data.files.checks import Where
from .._data.files.column_kinds import ColumnKind, ColumnKinds, known_reader, read_column
from .._data.files.paths import suffix
from .._data.frame import Frame, Levels, as_text, check_unique

SUFFIXES = (".csv", ".tsv")


def read_text(options: argparse.Namespace, path: str) -> Any:
    """Return a Dask dataframe of the unchanged cells."""
    import dask.dataframe as dd

    frame = dd.read_csv(
        path,
        dtype=str,
        keep_default_na=False,
        skipinitialspace=True,
        sep=options.delimiter or ("\t" if suffix(path) == ".tsv" else ","),
        encoding=options.encoding or "utf-8",
        blocksize=None if path.lower().endswith(".gz") else "default",
    )
    names = {name: name.strip() for name in frame.columns}
    check_unique(list(names.values()), path)
    return frame.rename(columns=names)


class TextColumns:
    """Columns of a table of text; ``label`` and ``decimal`` belong to its files."""

    def __init__(self, label: str, frame: Any, names: Sequence[str], decimal: str):
        self.names = list(dict.fromkeys(names))
        self.parts = frame[self.names].to_delayed()
        self.block_of = partial(_block, label, decimal)

    def kinds(self, forced: Mapping[str, str], labels: Collection[str]) -> dict[str, str]:
        """Return the kinds of the columns, from one pass over all cells unless ``forced`` gives them; in
        ``labels``, true, false and dates are text."""
        import dask

        unknown = [name for name in self.names if name not in forced]
        if not unknown:
            return dict(forced)
        look = dask.delayed(partial(_kinds_of_part, self.block_of, unknown, labels), pure=False)
        found = dask.compute(*[look(part, number) for number, part in enumerate(self.parts)])
        return {**forced, **{name: _together({each[name] for each in found}) for name in unknown}}

    def as_kinds(self, kinds: Mapping[str, str], labels: Collection[str]) -> Any:
        """Return a Dask dataframe of columns of these kinds."""
        kinds = {name: kinds[name] for name in self.names}
        return self._converted(kinds, partial(_read_kinds, kinds, labels))

    def as_fitted(self, model: Any, places: list[str], targets: list[str]) -> Any:
        """Return a Dask dataframe of the columns as a model reads them, and of its targets."""
        kinds = ["number"] * len(places) if model._columns is None else model._columns.kinds
        classes = model._names_of_classes()
        of_target = "category" if classes else "number"
        every = dict(zip(places, kinds, strict=True)) | dict.fromkeys(targets, of_target)
        read = partial(_read_fitted, model._columns, places, targets, of_target, classes)
        return self._converted(every, read)

    def _converted(self, kinds: Mapping[str, str], read: Callable[[CellBlock], Frame]) -> Any:
        import dask
        import dask.dataframe as dd
        import pandas as pd

        types = {"number": "float64", "date": DATES, "category": "string"}
        meta = pd.DataFrame({name: pd.Series(dtype=types[kind]) for name, kind in kinds.items()})
        convert = dask.delayed(partial(_convert, self.block_of, read, types, kinds), pure=False)
        parts = [convert(part, number) for number, part in enumerate(self.parts)]
        return dd.from_delayed(parts, meta=meta, verify_meta=False)


def _together(seen: set[str | None]) -> str:
    """Return the kind of a column, given the kinds of its partitions (None for an empty one)."""
    seen = seen - {None}
    if len(seen) > 1:
        return "category"
    found = next(iter(seen), "number") or "number"
    return "number" if found == "boolean" else found


# ---- on the workers


def _block(label: str, decimal: str, part: Any, number: int) -> CellBlock:
    texts = {name: part[name].fillna("").tolist() for name in part.columns}
    cells = {name: TextCells(each, decimal) for name, each in texts.items()}
    return CellBlock(cells, Where(f"{label}, partition {number}"), len(part))


def _kinds_of_part(
    block_of: Callable[[Any, int], CellBlock],
    names: Sequence[str],
    labels: Collection[str],
    part: Any,
    number: int,
) -> dict[str, str | None]:
    block, found = block_of(part[list(names)], number), {}
    for name in names:
        column = ColumnKind(name, None, name in labels)
        column.read(block)
        found[name] = "category" if column.kind == "category" else column.seen
    return found


def _read_kinds(kinds: Mapping[str, str], labels: Collection[str], block: CellBlock) -> Frame:
    return ColumnKinds(list(kinds), kinds, labels).read(block)


def _read_fitted(
    columns: Any,
    places: list[str],
    targets: list[str],
    of_target: str,
    classes: frozenset[str],
    block: CellBlock,
) -> Frame:
    found = known_reader(places, columns)(block).columns
    return Frame(
        [*places, *targets], [*found, *(read_column(block, name, of_target, classes) for name in targets)]
    )


def _convert(
    block_of: Callable[[Any, int], CellBlock],
    read: Callable[[CellBlock], Frame],
    types: Mapping[str, Any],
    kinds: Mapping[str, str],
    part: Any,
    number: int,
) -> Any:
    import pandas as pd

    columns = read(block_of(part, number)).columns
    series = {
        name: pd.Series(_as_array(column), index=part.index, dtype=types[kinds[name]])
        for name, column in zip(kinds, columns, strict=True)
    }
    return pd.DataFrame(series, index=part.index)


def _as_array(column: Any) -> np.ndarray:
    if not isinstance(column, Levels):
        return np.asarray(column)
    texts = as_text(column)
    texts[column.codes < 0] = None
    return texts
