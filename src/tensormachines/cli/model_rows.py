"""The rows of a file as a fitted model reads them: by the names and kinds of the columns of its fit."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .._data.files.cells import CellBlock, Cells, ColumnFile
from .._data.files.column_kinds import known_reader, read_column
from .._data.files.iterable import iterable
from .._data.files.notation import Notation
from .._data.files.open import open_columns
from .._data.files.paths import find_fitted, is_svmlight, require_file
from .._data.files.source import Source
from .._data.files.svmlight import svmlight
from .._data.frame import Frame, Levels, as_text, concatenate, number_levels, whole_numbers
from .._data.row_assignment import priorities, smallest
from ..estimators.regression_losses import unknown_part
from ..persistence import ModelFileError, load
from ..persistence.container import MAGIC
from .known_part import asked_for, columns_of_model, read_known, read_weight
from .known_rows import KnownRows
from .named_columns import Named, require_column

SPARSE_ROWS = 20_000  # of a block
Only: TypeAlias = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Rows:
    """A block of rows: ``y`` and ``weight`` are None unless requested; ``kept`` are unchanged columns of the
    file, and ``known`` are exposures and offsets."""

    X: Any
    y: Any = None
    kept: Mapping[str, Cells] = field(default_factory=dict)
    known: Mapping[str, np.ndarray] = field(default_factory=dict)
    weight: np.ndarray | None = None


def load_model(path: str, data: str | None = None) -> Any:
    """Load the model of a command; ``data`` is its other file, which users may give first by mistake."""
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
    """Return the names of the targets of the fit, if the model knows them."""
    name = getattr(model, "target_name_", [])
    return [name] if isinstance(name, str) else list(name)


def has_labels(model: Any) -> bool:
    """Tell whether a model predicts multilabel targets."""
    return bool(model._target_link == "sigmoid")


def required_targets(model: Any, asked: Sequence[str] | None) -> list[str]:
    """Return the columns to compare with predictions: the requested ones, or those of the fit."""
    targets = list(asked or targets_of(model))
    if not targets:
        raise ValueError("--target must name the column that was predicted: the model does not remember it.")
    n_targets = model._description().n_targets
    if len(targets) != n_targets:
        raise ValueError(
            f"--target: the model predicts {n_targets}, got {len(targets)}: {', '.join(targets)}."
        )
    return targets


def compared_columns(file: Named, targets: Sequence[str], places: Sequence[str]) -> list[str]:
    """Return the targets; the file must have them, and the model must not predict from them."""
    for name in targets:
        if name in places:
            raise ValueError(f"--target {name}: that is a column which the model predicts from.")
    return [require_column(file, "--target", name) for name in targets]


def names_of_numbers(model: Any, targets: list[str]) -> list[str]:
    """Return the names of numeric outputs or labels: quantile levels, the targets of the fit, or numbers."""
    if hasattr(model, "quantiles_"):
        return list(map(str, model.quantiles_))
    n_outputs = model._machine.layout.n_outputs
    return targets if len(targets) == n_outputs else list(map(str, range(n_outputs)))


def rows_for(
    model: Any, path: str, options: argparse.Namespace, only: Only | None = None
) -> SparseRows | TableRows:
    """Return the rows of a file; with ``only``, those for which it is true, see `TableRows`."""
    weight = getattr(options, "weight", None)
    if is_svmlight(path):
        beside = [kind for kind in ("target", "weight") if getattr(options, kind, None) is not None]
        for kind in (*asked_for(options), *beside):
            raise ValueError(f"--{kind} names a column, and columns of svmlight files have no names.")
        return SparseRows(model, path, options.zero_based, only)
    # Only by the notations of the fit: in another file, 1,234 or 5 % may mean something else.
    notations = {name: Notation.parse(text) for name, text in getattr(model, "_notations", {}).items()}
    file = open_columns(path, options.delimiter, options.decimal, options.encoding, notations)
    known = columns_of_model(model, file, options) if hasattr(options, "exposure") else {}
    return TableRows(model, file, getattr(options, "target", None), known, weight, only)


def source_of(rows: SparseRows | TableRows, known: KnownRows | None = None) -> Source:
    """Return a source of the rows that have a target; ``known`` counts those that were in the fit.

    Targets and weights are for an exposure of 1 and an offset of 0."""

    def items() -> Iterator[tuple[Any, Any, Any]]:
        block = None
        for block in rows.blocks(with_target=True):
            if known is not None:
                known.add(block)
            yield block.X, *targets_and_weights(rows.model, block)
        if block is None:
            raise ValueError(f"{rows.label} has no rows with a target.")

    return iterable(items)


def targets_and_weights(model: Any, block: Rows) -> tuple[Any, Any]:
    """Return the targets of a block for an exposure of 1 and an offset of 0, and weights to match."""
    if not block.known:
        return block.y, block.weight
    parts = block.known.get("exposure"), block.known.get("offset")
    return unknown_part(model._loss(), block.X, block.y, block.weight, *parts)


class SparseRows:
    """The rows of svmlight files; see `TableRows`."""

    def __init__(self, model: Any, path: str, zero_based: bool, only: Only | None):
        if hasattr(model, "feature_names_in_"):
            raise ValueError(
                f"The model was fitted to columns with names, and those of {path} have none: give CSV, "
                "Parquet or Arrow."
            )
        self.model, self.label, self.only = model, path, only
        self.source = svmlight(path, n_features=model.n_features_in_, zero_based=zero_based, rows=SPARSE_ROWS)

    def blocks(self, keep: Sequence[str] = (), with_target: bool = False) -> Iterator[Rows]:
        """Yield the rows; there is nothing to ``keep``, because the columns have no names."""
        first = 0
        for chunk in self.source:
            X, y, n_rows = chunk.X, chunk.y, chunk.X.shape[0]
            if self.only is not None:
                kept = self.only(first, n_rows)
                X, y = X[kept], y[kept]
            first += n_rows
            if X.shape[0]:
                yield Rows(X, _labels_like(self.model, y) if with_target else None)


class TableRows:
    """The rows of a file with named columns; with ``only``, those for which it is true.

    ``known`` are the columns of exposures and offsets, and ``weight`` is the column of weights; both are read
    with the targets. ``only`` is called with the number of rows before a block and the number of its rows."""

    def __init__(
        self,
        model: Any,
        file: ColumnFile,
        target: Sequence[str] | None,
        known: Mapping[str, str] | None = None,
        weight: str | None = None,
        only: Only | None = None,
    ):
        self.model, self.file, self.label, self.only = model, file, file.label, only
        self.known = known or {}
        self.weight = None if weight is None else require_column(file, "--weight", weight)
        self.targets = list(target or targets_of(model))
        self.names = self._names()
        self.places = find_fitted(file.label, file.names, self.names, "--delimiter")
        self.classes = model._names_of_classes()

    def _names(self) -> list[str]:
        names = getattr(self.model, "feature_names_in_", None)
        if names is not None:
            return list(names)
        found = [name for name in self.file.names if name not in self._beside()]
        if len(found) != self.model.n_features_in_:
            others = " next to the target" if self.targets else ""
            raise ValueError(
                f"{self.label} has {len(found)} columns{others}, but the model was fitted to "
                f"{self.model.n_features_in_} without names: give those alone, in their order."
            )
        return found

    def _beside(self) -> list[str]:
        """Return the columns that the model does not predict from."""
        return [*self.targets, *self.known.values(), *([] if self.weight is None else [self.weight])]

    def blocks(self, keep: Sequence[str] = (), with_target: bool = False) -> Iterator[Rows]:
        """Yield the rows; with their targets, only those that have one."""
        if with_target:
            compared_columns(self.file, required_targets(self.model, self.targets), self.places)
        read, first = known_reader(self.places, self.model._columns), 0
        beside = self._beside() if with_target else self.known.values()
        names = dict.fromkeys([*self.places, *beside, *keep])
        for block in self.file.blocks(list(names)):
            found = read(block)
            X = Frame(self.names, found.columns, booleans=found.booleans)
            kept = {name: block.cells[name] for name in keep}
            if not with_target:
                yield Rows(X, None, kept, read_known(block, self.known))
                continue
            y, present = self._targets(block)
            if self.only is not None:
                present &= self.only(first, block.n_rows)
            first += block.n_rows
            if present.any():
                known = read_known(block, self.known, present)
                weight = read_weight(block, self.weight, present)
                yield Rows(X if present.all() else X[present], y[present], kept, known, weight)

    def _targets(self, block: CellBlock) -> tuple[np.ndarray, np.ndarray]:
        kind = "category" if self.classes else "number"
        columns = [read_column(block, name, kind, self.classes) for name in self.targets]
        if isinstance(columns[0], Levels):
            return as_text(columns[0]), columns[0].codes >= 0
        y = np.column_stack([np.asarray(column) for column in columns])
        present = ~np.isnan(y).any(axis=1)
        y = np.where(present[:, None], y, 0)
        return (_labels_like(self.model, y[:, 0]) if len(columns) == 1 else y), present


def _labels_like(model: Any, y: np.ndarray) -> np.ndarray:
    """Return labels in the type of the classes of the model: integers, or names of other labels."""
    classes = getattr(model, "classes_", None)
    if classes is not None and classes.dtype.kind in "USO" and y.dtype.kind == "f":
        return as_text(number_levels(y))
    whole = whole_numbers(y) if classes is not None and classes.dtype.kind in "biu" else None
    return y if classes is None or whole is None else whole.astype(classes.dtype)


def first_rows(rows: SparseRows | TableRows, most: int) -> Any:
    """Return X of the blocks that hold the first ``most`` rows."""
    found: list[Any] = []
    for block in rows.blocks():
        found.append(block.X)
        if sum(X.shape[0] for X in found) >= most:
            break
    return _together(rows, found)


def some_rows(rows: SparseRows | TableRows, most: int) -> tuple[Any, int]:
    """Return X of ``most`` random rows, in order, and the number of all rows.

    Only these rows are ever in memory."""
    found: list[Any] = []
    keys = np.empty(0)
    total = 0
    for block in rows.blocks():
        keys = np.append(keys, priorities(total, block.X.shape[0], seed=0))
        found.append(block.X)
        total += block.X.shape[0]
        if len(keys) > 2 * most:
            chosen = smallest(keys, most)
            some = _together(rows, found)[chosen]
            found, keys = [some.compact() if isinstance(some, Frame) else some], keys[chosen]
    return _together(rows, found)[smallest(keys, most)], total


def _together(rows: SparseRows | TableRows, blocks: list[Any]) -> Any:
    if not any(X.shape[0] for X in blocks):
        raise ValueError(f"{rows.label} has no rows.")
    return concatenate(blocks) if isinstance(rows, TableRows) else sparse.vstack(blocks, format="csr")
