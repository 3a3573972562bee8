"""A source of blocks, and the form that all its blocks share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..dataframes import read_frame
from ..dates import is_dates
from ..encoding import Columns
from ..frame import (
    Frame,
    Levels,
    RawColumn,
    as_text,
    column_label,
    concatenate,
    is_raw_column,
    whole_numbers,
)
from .cells import CellBlock, ColumnFile, HasNotations
from .checks import Where, as_target, as_weight, check_finite, labels
from .column_kinds import ColumnKinds, known_reader, read_column
from .form import Form
from .notation import Notation
from .paths import Chosen, files_in_words, find_fitted

IN_MEMORY = Where("rows in memory")
NONE = frozenset[str]()


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows from a source, with target and weight; read-only, because they may be the caller's own arrays.

    Attributes
    ----------
    X : ndarray in C order or csr_array, float32 or float64, of shape (rows, n_columns); or a Frame
        A frame if some column is a category or holds dates.
    y : ndarray of shape (rows,) or (rows, targets), or None
        Numbers or text.
    weight : ndarray of shape (rows,), float64, or None
        Finite and not negative.
    where : Where
        Where the rows come from, for messages; ``place`` says it in words.
    first : int
        The number of rows before these in a fit.
    booleans : frozenset of int
        Columns that are boolean in the origin of X, as far as known.
    """

    X: Any
    y: Any = None
    weight: np.ndarray | None = None
    where: Where = IN_MEMORY
    first: int = 0
    booleans: frozenset[int] = frozenset()

    @property
    def place(self) -> str:
        return self.where.rows(self.X.shape[0])

    def present(self) -> Chunk:
        """Return the chunk without its rows of weight 0."""
        if self.weight is None or self.weight.all():
            return self
        rows = np.flatnonzero(self.weight)
        kept = rows if self.where.kept is None else self.where.kept[rows]
        return replace(
            self,
            X=self.X[rows],
            y=None if self.y is None else self.y[rows],
            weight=self.weight[rows],
            where=replace(self.where, kept=kept),
        )


class ReadAgainError(Exception):
    """Raised by `Source.first_pass`: chunks already yielded read a category as numbers."""


class Source:
    """Blocks of rows that can be iterated over repeatedly; made by the functions of `tensormachines.blocks`.

    All blocks of an iteration have the same form: the same number of columns, all dense, all sparse or all
    frames, one float type, and targets and weights in all blocks or in none. A block has at least one row. It
    never has rows of two files, so that its place is one file and a range of rows.

    Attributes
    ----------
    feature_names : list of str, or None
        Names of the columns of X, if they have names; for `iterable` known with the first block.
    n_columns : int or None
        Number of columns of X; None if it is known only with the first block.
    target_name : str, list of str, or None
        Name of the column that is y, or names of several columns, if they have names.
    """

    feature_names: list[str] | None = None
    n_columns: int | None = None
    target_name: str | list[str] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        return self._formed(self._chunks())

    def first_pass(self) -> Iterator[Chunk]:
        """Iterate over the blocks, and learn the kinds of the columns along the way.

        Raise ReadAgainError if a column turns out to be a category after it was returned as numbers."""
        return iter(self)

    def encoded(
        self, columns: Columns | None, missing: bool, classes: frozenset[str] | None = None
    ) -> Iterator[Chunk]:
        """Iterate over matrices for a fitted model: of its ``columns``, or of numbers if None.

        ``missing`` says whether X may have missing values. ``classes`` are the class names if they are text,
        and empty if the model predicts numbers; without ``classes``, targets and weights need not be read."""
        for chunk in self:
            if columns is not None:
                yield replace(chunk, X=columns.encode(read_frame(chunk.X, columns.kinds)))
            else:
                require_numbers(chunk, self.feature_names, missing)
                yield chunk

    def for_model(self, names: Sequence[str]) -> Source:
        """Return the source for a model that was fitted to columns with these names.

        Columns of X are chosen by name if possible; otherwise other names are refused."""
        return self

    def notations(self) -> dict[str, str]:
        """Return the notations of numeric columns that are not plain, as far as they have been read."""
        return {}

    def in_notations(self, notations: Mapping[str, str]) -> Source:
        """Return the source with numbers read in these notations by column, and plain ones elsewhere."""
        return self

    def guessed(self) -> Collection[str]:
        """Return the columns whose kind neither the user nor the file declares."""
        return ()

    def padded(self) -> Mapping[str, str]:
        """Return a cell with leading zeros for each of these columns that has one and holds numbers."""
        return {}

    def __repr__(self) -> str:
        return f"<blocks.{self._description()}>"

    def _formed(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        form, rows = None, 0
        for chunk in chunks:
            if form is None:
                form = Form.of(chunk)
                self.n_columns = form.n_columns
            chunk = form.applied(chunk)
            if chunk.X.shape[0]:
                rows += chunk.X.shape[0]
                yield chunk
        if not rows:
            raise ValueError(f"{self!r}: there are no rows.")

    def _chunks(self) -> Iterator[Chunk]:
        """Read blocks from the beginning, each checked separately."""
        raise NotImplementedError

    def _description(self) -> str:
        raise NotImplementedError


class ColumnSource(Source):
    """Blocks of files that are read by columns; their ``kinds`` may be unknown until all have been read once.

    A block has ``rows`` rows, except for the last one of a file. The numbers of X have the type ``dtype``,
    and those of the target have the type ``target_type``, if given."""

    def __init__(
        self,
        function: str,
        files: Sequence[ColumnFile],
        chosen: Chosen,
        kinds: ColumnKinds,
        rows: int,
        dtype: np.dtype,
        target_type: np.dtype | None = None,
    ):
        self.feature_names = chosen.features
        self.n_columns = len(chosen.features)
        self.target_name = chosen.targets[0] if len(chosen.targets) == 1 else chosen.targets or None
        self.kinds = kinds
        self._function = function
        self._files = files
        self._chosen = chosen
        self._rows = rows
        self._dtype = dtype
        self._target_type = target_type

    def _description(self) -> str:
        files = files_in_words([file.label for file in self._files])
        return f"{self._function} {files}: {self._chosen.in_words()}"

    def notations(self) -> dict[str, str]:
        return {
            name: str(notation)
            for file in self._files
            if isinstance(file, HasNotations)
            for name, notation in file.notations.items()
            if name in self._chosen.all and self.kinds.columns[name].kind == "number"
        }

    def in_notations(self, notations: Mapping[str, str]) -> Source:
        known = {name: Notation.parse(text) for name, text in notations.items()}
        found = copy(self)
        found._files = [
            file.in_notations(known) if isinstance(file, HasNotations) else file for file in self._files
        ]
        return found

    def guessed(self) -> Collection[str]:
        return [name for name, kind in self.kinds.columns.items() if kind.guessed]

    def padded(self) -> Mapping[str, str]:
        kinds = [self.kinds.columns[name] for name in self.guessed()]
        return {kind.name: kind.padded for kind in kinds if kind.padded and kind.kind == "number"}

    def for_model(self, names: Sequence[str]) -> Source:
        found = copy(self)
        features = find_fitted(self._files[0].label, self._chosen.features, names)
        found._chosen = replace(self._chosen, features=features)
        found.feature_names, found.n_columns = features, len(features)
        return found

    def first_pass(self) -> Iterator[Chunk]:
        return iter(self) if self.kinds.settled else self._formed(self._chunks_while_learning())

    def encoded(
        self, columns: Columns | None, missing: bool, classes: frozenset[str] | None = None
    ) -> Iterator[Chunk]:
        names, known = self._chosen.features, known_reader(self._chosen.features, columns)
        beside = [] if classes is None else self._chosen.all[len(names) :]

        def read(block: CellBlock) -> Frame:
            kinds = {name: "category" for name in self._chosen.targets if classes}
            others = [read_column(block, name, kinds.get(name, "number"), classes or NONE) for name in beside]
            found = known(block)
            return Frame(None, [*found.columns, *others], booleans=found.booleans)

        for where, frame in self._frames([*names, *beside], read):
            X = Frame(names, frame.columns[: len(names)])
            y, weight = self._beside(frame.columns[len(names) :], where) if beside else (None, None)
            rows = self._matrix(X.columns, where) if columns is None else columns.encode(X)
            chunk = Chunk(rows, y, weight, where, booleans=frame.booleans)
            if columns is None:
                require_numbers(chunk, names, missing)
            yield chunk

    def _chunks(self) -> Iterator[Chunk]:
        if not self.kinds.settled:
            for _ in self._frames(self._chosen.all, self.kinds.read):
                pass
            self.kinds.settle()
        yield from self._chunks_while_learning()

    def _chunks_while_learning(self) -> Iterator[Chunk]:
        for where, frame in self._frames(self._chosen.all, self.kinds.read):
            if not self.kinds.changed:  # otherwise the rest is read only for its kinds
                yield self._chunk(frame, where)
        changed = self.kinds.changed
        self.kinds.settle()
        if changed:
            raise ReadAgainError

    def _frames(
        self, names: Sequence[str], read: Callable[[CellBlock], Frame]
    ) -> Iterator[tuple[Where, Frame]]:
        """Read the files in blocks of ``rows`` rows; the files' own blocks may be smaller."""
        for file in self._files:
            where, held, count = Where(file.label), list[Frame](), 0
            for block in file.blocks(names, self._rows):
                frame = read(block)
                if self.kinds.changed:  # what is left is read only for its kinds, and may not fit together
                    held, count = [], 0
                    continue
                while count + len(frame) >= self._rows:
                    taken = self._rows - count
                    yield where, concatenate([*held, frame[:taken]])
                    frame, held, count = frame[taken:], [], 0
                    where = Where(file.label, where.first + self._rows)
                if len(frame):
                    held.append(frame)
                    count += len(frame)
            if held:
                yield where, concatenate(held)

    def _chunk(self, frame: Frame, where: Where) -> Chunk:
        names, n_features = self._chosen.features, len(self._chosen.features)
        features = [self._typed(column, j, where) for j, column in enumerate(frame.columns[:n_features])]
        raw = any(map(is_raw_column, features))
        X = Frame(names, features) if raw else self._matrix(features, where)
        return Chunk(X, *self._beside(frame.columns[n_features:], where), where)

    def _beside(
        self, columns: Sequence[RawColumn], where: Where
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return targets and weights (None if there are none) from the columns that follow those of X."""
        names = self._chosen
        pairs = zip(names.targets, columns, strict=False)
        targets = [_without_missing(column, name, where) for name, column in pairs]
        y = self._target(targets, where) if targets else None
        if names.weight is None:
            return y, None
        weight = _without_missing(columns[-1], names.weight, where)
        return y, as_weight(weight, where, labels([names.weight], "weight"))

    def _typed(self, column: RawColumn, j: int, where: Where) -> RawColumn:
        """Return numbers of X in float32 if requested; refuse numbers that overflow."""
        if isinstance(column, Levels) or self._dtype == np.float64 or column.dtype != np.float64:
            return column
        with np.errstate(over="ignore"):
            typed = column.astype(self._dtype)
        name = column_label(self._chosen.features, j)
        check_finite(typed, where, lambda _: f"{name} in float32", missing=True)
        return typed

    def _matrix(self, columns: Sequence[RawColumn], where: Where) -> np.ndarray:
        matrix = np.empty((len(columns[0]), len(columns)), self._dtype)
        for j, column in enumerate(columns):
            matrix[:, j] = self._typed(column, j, where)
        return matrix

    def _target(self, columns: list[np.ndarray], where: Where) -> np.ndarray:
        names = self._chosen.targets
        texts = {column.dtype.kind == "O" for column in columns}
        if len(texts) > 1:
            raise ValueError(
                f"{where.name}: the targets {names} are numbers and text; they must all be the same."
            )
        y = columns[0] if self._chosen.single else np.column_stack(columns)
        if texts == {True}:
            return y
        if self._target_type is not None:
            return as_target(y.astype(self._target_type), where, labels(names, "y"))
        whole = whole_numbers(y)
        return as_target(y if whole is None else whole, where, labels(names, "y"))


def _without_missing(column: RawColumn, name: str, where: Where) -> np.ndarray:
    """Return a target or weight as an array of numbers or text; refuse missing values."""
    missing = column.codes < 0 if isinstance(column, Levels) else np.isnan(column)
    if missing.any():
        raise ValueError(f"{where.cell(int(np.argmax(missing)), f'column {name!r}')}: a missing value.")
    return as_text(column) if isinstance(column, Levels) else column


def require_numbers(chunk: Chunk, names: Sequence[str] | None, missing: bool, hint: str = "") -> None:
    """Refuse categories and dates, and also missing values unless ``missing``."""
    columns = chunk.X.columns if isinstance(chunk.X, Frame) else ()
    for j, column in enumerate(columns):
        if is_dates(column):
            where = f"{chunk.place}, {column_label(names, j)}"
            raise ValueError(f"{where}: dates, where numbers are needed.{hint}")
        if isinstance(column, Levels) and (column.codes >= 0).any():
            row = int(np.argmax(column.codes >= 0))
            where = chunk.where.cell(row, column_label(names, j))
            raise ValueError(f"{where}: {column.names[column.codes[row]]!r}, where a number is needed.{hint}")
    rows = np.column_stack([_numbers(column) for column in columns]) if columns else chunk.X
    if sparse.issparse(rows) or missing or not np.isnan(rows).any():
        return
    row, j = np.argwhere(np.isnan(rows))[0]
    where = chunk.where.cell(int(row), column_label(names, int(j)))
    raise ValueError(f"{where}: a missing value, where a number is needed.{hint}")


def _numbers(column: RawColumn) -> np.ndarray:
    return np.full(len(column), np.nan) if isinstance(column, Levels) else column
