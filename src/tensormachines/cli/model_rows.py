"""The rows of a file as a fitted model reads them: by the names and kinds of the columns of its fit."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._data.dataframes import level_name
from .._data.frame import Frame
from .._data.levels import Levels, RawColumn, is_number
from .._data.tables import (
    BOOLEANS,
    Asked,
    Cells,
    TableFile,
    is_svmlight,
    open_table,
    read_blocks,
    require_file,
    svmlight_blocks,
)
from ..persistence import ModelFileError, load
from ..persistence.container import MAGIC


@dataclass(frozen=True)
class Rows:
    """``y`` is None unless it was asked for; ``kept`` are columns as they are in the file."""

    X: Any
    y: Any = None
    kept: dict[str, Cells] = field(default_factory=dict)


def load_model(path: str, data: str | None = None) -> Any:
    """``data`` is the file that the command reads beside it: the two are easily given in the wrong order."""
    require_file(path)
    try:
        model = load(path)
    except ModelFileError:
        if data is not None and os.path.isfile(data) and _is_model(data):
            raise ValueError(f"The model comes first, and then the data: {data} {path}.") from None
        raise
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds {type(model).__name__}, which predicts nothing: use it in Python.")
    return model


def _is_model(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def targets_of(model: Any) -> list[str]:
    """The names of the targets of the fit, if the model knows them."""
    name = getattr(model, "target_name_", [])
    return [name] if isinstance(name, str) else list(name)


def rows_for(model: Any, path: str, options: argparse.Namespace) -> SparseRows | TableRows:
    if is_svmlight(path):
        return SparseRows(model, path, options.zero_based)
    return TableRows(
        model, open_table(path, options.delimiter, options.decimal), getattr(options, "target", None)
    )


class SparseRows:
    def __init__(self, model: Any, path: str, zero_based: bool):
        if hasattr(model, "feature_names_in_"):
            raise ValueError(
                f"The model was fitted to columns with names, and those of {path} have none: give CSV, Parquet or Arrow."
            )
        self.model, self.label, self.zero_based = model, path, zero_based

    def blocks(self, keep: Sequence[str] = (), with_target: bool = False) -> Iterator[Rows]:
        """Of ``keep`` there can be nothing: the columns have no names."""
        for X, y in svmlight_blocks(self.label, self.model.n_features_in_, self.zero_based):
            yield Rows(X, _labels_like(self.model, y) if with_target else None)

    def all(self) -> Rows:
        from scipy import sparse

        blocks = list(self.blocks(with_target=True))
        if not blocks:
            raise ValueError(f"{self.label} has no rows.")
        return Rows(
            sparse.vstack([block.X for block in blocks], format="csr"),
            np.concatenate([block.y for block in blocks]),
        )


class TableRows:
    def __init__(self, model: Any, table: TableFile, target: Sequence[str] | None):
        self.model, self.table, self.label = model, table, table.label
        self.targets = list(target or targets_of(model))
        self.names = self._names()
        places = [self._place(name) for name in self.names]
        columns = self.model._columns
        self.kinds = dict(
            zip(places, ["number"] * len(places) if columns is None else columns.kinds, strict=True)
        )
        self.levels = {
            place: frozenset(columns.columns[j].levels)
            for j, place in enumerate(places)
            if self.kinds[place] == "category"
        }
        classes = getattr(model, "classes_", np.empty(0))
        self.classes = frozenset(map(str, classes)) if classes.dtype.kind in "USO" else frozenset()

    def _names(self) -> list[str]:
        names = getattr(self.model, "feature_names_in_", None)
        if names is not None:
            return list(names)
        found = [name for name in self.table.names if name not in self.targets]
        if len(found) != self.model.n_features_in_:
            beside = " beside the target" if self.targets else ""
            wanted = f"the model was fitted to {self.model.n_features_in_} without names: give those alone, in their order"
            raise ValueError(f"{self.label} has {len(found)} columns{beside}, but {wanted}.")
        return found

    def _place(self, name: str) -> str:
        """What the table calls a column of the fit; pandas leaves white space around names where it is, which
        is none here.
        """
        if name in self.table.names:
            return name
        bare = name.strip()
        if bare in self.table.names and bare not in self.names:
            return bare
        raise ValueError(
            f"{self.label} has no column {name!r}, which the model was fitted to{Asked(self.table).instead(name)}"
        )

    def blocks(self, keep: Sequence[str] = (), with_target: bool = False) -> Iterator[Rows]:
        """With their targets, those rows only that have one."""
        kinds, known = self.kinds, self.levels
        if with_target:
            of_targets = self._target_kinds()
            kinds, known = kinds | of_targets, known | dict.fromkeys(of_targets, self.classes)
        for rows in read_blocks(self.table, kinds, keep, known):
            columns = [
                _as_known(rows.frame.column(place), self.levels.get(place, ())) for place in self.kinds
            ]
            X = Frame(self.names, columns)
            if not with_target:
                yield Rows(X, None, rows.kept)
                continue
            y, present = self._targets(rows.frame)
            if present.any():
                yield Rows(X if present.all() else X[present], y[present], rows.kept)

    def all(self) -> Rows:
        """All rows that have a target."""
        blocks = list(self.blocks(with_target=True))
        if not blocks:
            raise ValueError(f"{self.label} has no rows with a target.")
        return Rows(
            _concatenated([block.X for block in blocks]), np.concatenate([block.y for block in blocks])
        )

    def _target_kinds(self) -> dict[str, str]:
        if not self.targets:
            raise ValueError(
                "--target must name the column that was predicted: the model does not remember it."
            )
        n_targets = 1 if hasattr(self.model, "classes_") else self.model._machine.layout.n_outputs
        if len(self.targets) != n_targets:
            raise ValueError(
                f"--target: the model predicts {n_targets}, got {len(self.targets)}: {', '.join(self.targets)}."
            )
        asked = Asked(self.table)
        for name in self.targets:
            if name in self.kinds:
                raise ValueError(f"--target {name}: that is a column which the model predicts from.")
        return {asked("--target", name): "category" if self.classes else "number" for name in self.targets}

    def _targets(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        columns = [_as_known(frame.column(name), self.classes) for name in self.targets]
        if isinstance(columns[0], Levels):
            return np.array([*columns[0].names, ""])[columns[0].codes], columns[0].codes >= 0
        y = np.column_stack([np.asarray(column) for column in columns])
        present = ~np.isnan(y).any(axis=1)
        y = np.where(present[:, None], y, 0)
        return (_labels_like(self.model, y[:, 0]) if len(columns) == 1 else y), present


def _as_known(column: RawColumn, known: Collection[str]) -> RawColumn:
    """Levels that are numbers or booleans have one spelling in a model, 3 or True, and in a file perhaps
    another, 3.0 or TRUE.
    """
    if not isinstance(column, Levels):
        return column
    booleans = {BOOLEANS[name]: name for name in known if name in BOOLEANS}
    names = [
        name if name in known else booleans.get(BOOLEANS.get(name, ""), _plain(name)) for name in column.names
    ]
    return Levels(column.codes, names, column.ordered)


def _plain(name: str) -> str:
    return level_name(float(name)) if is_number(name) else name


def _labels_like(model: Any, y: np.ndarray) -> np.ndarray:
    """Numbers as the classes of the model are numbers."""
    classes = getattr(model, "classes_", None)
    if classes is None or classes.dtype.kind not in "biu":
        return y
    whole = y.astype(np.int64)
    return whole.astype(classes.dtype) if (whole == y).all() else y


def _concatenated(frames: Sequence[Frame]) -> Frame:
    return Frame(
        frames[0].names, [_joined([frame.columns[j] for frame in frames]) for j in range(frames[0].shape[1])]
    )


def _joined(parts: Sequence[RawColumn]) -> RawColumn:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate([np.asarray(part) for part in parts])
    known: dict[str, int] = {}
    codes = []
    for part in parts:
        assert isinstance(part, Levels)
        numbers = np.array([*(known.setdefault(name, len(known)) for name in part.names), -1])
        codes.append(numbers[part.codes])
    return Levels(np.concatenate(codes), list(known))


def first_rows(rows: SparseRows | TableRows, most: int) -> Any:
    """X of the blocks that hold the first ``most`` rows."""
    found: list[Any] = []
    for block in rows.blocks():
        found.append(block.X)
        if sum(X.shape[0] for X in found) >= most:
            break
    return _together(rows, found)


def some_rows(rows: SparseRows | TableRows, most: int) -> tuple[Any, int]:
    """X of ``most`` rows chosen at random, in their order, and of how many; only these are ever in memory."""
    rng = np.random.default_rng(0)
    found: list[Any] = []
    places, keys = np.empty(0, dtype=np.intp), np.empty(0)
    total = 0
    for block in rows.blocks():
        n_rows = block.X.shape[0]
        places, keys = (
            np.append(places, np.arange(total, total + n_rows)),
            np.append(keys, rng.random(n_rows)),
        )
        found.append(block.X)
        total += n_rows
        if len(keys) > 2 * most:
            X, places, keys = _with_smallest(_together(rows, found), places, keys, most)
            found = [X]
    X, places, keys = _with_smallest(_together(rows, found), places, keys, most)
    return X[np.argsort(places)], total


def _with_smallest(
    X: Any, places: np.ndarray, keys: np.ndarray, most: int
) -> tuple[Any, np.ndarray, np.ndarray]:
    chosen = np.argsort(keys)[:most]
    return X[chosen], places[chosen], keys[chosen]


def _together(rows: SparseRows | TableRows, blocks: list[Any]) -> Any:
    if not any(X.shape[0] for X in blocks):
        raise ValueError(f"{rows.label} has no rows.")
    if isinstance(rows, TableRows):
        return _concatenated(blocks)
    from scipy import sparse

    return sparse.vstack(blocks, format="csr")
