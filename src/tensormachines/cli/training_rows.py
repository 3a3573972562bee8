"""The training data of a model: the rows of a file, their target and weights.

A file is read into memory as a whole, or, if it is large, a block at a time: once to learn the kinds of its
columns, and then by the fit."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from shlex import quote
from typing import Any

import numpy as np
from scipy import sparse

from .._data.column_counts import FrameCounts, count_columns
from .._data.files.cells import CellBlock, ColumnFile
from .._data.files.checks import Where, block_rows
from .._data.files.column_kinds import ColumnKind, ColumnKinds, forced_kinds
from .._data.files.notation import Notation
from .._data.files.open import each_file, open_columns
from .._data.files.paths import Chosen, find_files, is_svmlight
from .._data.files.source import Chunk, ColumnSource, Source
from .._data.files.svmlight import svmlight
from .._data.frame import Frame, Levels, RawColumn, as_text, concatenate, number_levels, whole_numbers
from .._data.open import is_on_dask
from .._data.plain_text import plain
from .._data.row_assignment import held_out
from .._data.row_sketch import RowSketch, target_columns
from .._model.losses import Loss
from ..estimators.regression_losses import unknown_part
from .column_notes import LIKE_NUMBERS, describe, show_columns
from .known_part import ALLOWED_WEIGHT, asked_for, columns_of_fit, known_of_fit
from .named_columns import Named, require_column, require_columns
from .options import CLASSIFICATION
from .svmlight_rows import SvmlightRows, nothing_left
from .targets import MOST_VALUES, TargetFacts, decide_task, show_target, target_facts

LARGE = 200 * 2**20  # bytes of a file that is read a block at a time


@dataclass(frozen=True)
class Training:
    """Training rows. ``X`` is a Frame, a sparse matrix, a Dask dataframe, or a source of blocks, which
    provides y and weight.

    ``target`` is None if the file has no names. ``known`` holds the exposure and the offset, unless the rows
    are streamed; ``known_columns`` are their names."""

    X: Any
    y: Any
    weight: Any
    target: str | list[str] | None
    task: str
    n_rows: int
    file: Any = None
    places: np.ndarray | None = None  # of the rows in the file, counted from 0; None if they are streamed
    known_columns: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else list(self.target or [])

    @property
    def streams(self) -> bool:
        return isinstance(self.X, Source)

    @property
    def names(self) -> Sequence[str] | None:
        if is_on_dask(self.X):
            return list(self.X.columns)
        return self.X.feature_names if isinstance(self.X, Source) else getattr(self.X, "names", None)

    def __getitem__(self, rows: np.ndarray) -> Training:
        weight = None if self.weight is None else self.weight[rows]
        y = self.y[rows]
        places = None if self.places is None else self.places[rows]
        known = {kind: numbers[rows] for kind, numbers in self.known.items()}
        return replace(self, X=self.X[rows], y=y, weight=weight, n_rows=len(y), places=places, known=known)

    def sketch(self) -> RowSketch | None:
        """Return what the model remembers of the rows after the fit; None for rows without names."""
        if isinstance(self.X, FileRows | SvmlightRows):
            return self.X.sketch
        if not isinstance(self.X, Frame):
            return None
        return RowSketch.of(self.X, [*target_columns(self.y), *self.known.values()])


def read_training(options: argparse.Namespace, stream: bool | None = False) -> Training:
    """Read all rows that have a target, and show on standard error what was read.

    ``stream`` says whether to read a file a block at a time; None means to do so if it is large."""
    if is_svmlight(options.data):
        return _read_sparse(options, _is_large(options.data) if stream is None else stream)
    file = open_columns(options.data, options.delimiter, options.decimal, options.encoding)
    chosen, forced = chosen_columns(options, file)
    kinds = ColumnKinds(chosen.all, forced, chosen.targets if chosen.single else ())
    if stream is None:
        stream = file.rereadable and _is_large(options.data)
    if stream and not file.rereadable:
        raise ValueError(f"--stream: {file.label} can be read once only; give a file.")
    return (_stream if stream else _read_whole)(file, chosen, kinds, options)


def chosen_columns(options: argparse.Namespace, file: Named) -> tuple[Chosen, dict[str, str]]:
    """Return the columns that options request, and the kinds that options give to some of them."""
    asked = partial(require_column, file)
    if not options.target:
        raise ValueError(
            f"--target must name the column to predict. The columns of {file.label} are "
            f"{', '.join(map(plain, file.names))}."
        )
    targets = [asked("--target", name) for name in options.target]
    if len(set(targets)) < len(targets):
        raise ValueError(f"--target names a column twice: {', '.join(targets)}.")
    features = _features(options, file, targets)
    weight = None if options.weight is None else asked("--weight", options.weight)
    if weight in targets:
        raise ValueError(f"--weight {weight}: that is the target.")
    numbers, categories = (
        require_columns(file, option, names)
        for option, names in (("--number", options.number), ("--category", options.category))
    )
    taken = dict.fromkeys(targets, "the target") | ({} if weight is None else {weight: "the weight"})
    known = columns_of_fit(options, file, taken, categories)
    chosen = Chosen(features, targets, weight, len(targets) == 1, known)
    forced = forced_kinds([*numbers, *known.values()], categories, weight, "--number and --category")
    return chosen, {name: kind for name, kind in forced.items() if name in chosen.all}


def _is_large(path: str) -> bool:
    return sum(map(os.path.getsize, find_files(path))) >= LARGE


def _features(options: argparse.Namespace, file: Named, targets: Sequence[str]) -> list[str]:
    left_out = {*targets, *require_columns(file, "--ignore", options.ignore), options.weight}
    left_out |= set(asked_for(options).values())
    features = require_columns(file, "--columns", options.columns or file.names)
    features = [name for name in dict.fromkeys(features) if name not in left_out]
    if not features:
        raise ValueError(
            f"{file.label} has no column left to predict from, next to the target and what is ignored."
        )
    return features


# ---- files in memory


def _read_whole(
    file: ColumnFile, chosen: Chosen, kinds: ColumnKinds, options: argparse.Namespace
) -> Training:
    frame = read_whole_file(file, kinds)
    _show(file, chosen, kinds, count_columns(frame))
    columns, present = _targets(frame, chosen, kinds)
    facts = [target_facts(column) for column in columns]
    task = decide_task(file.label, chosen.targets, facts, options.task)
    y = [_labels(column) if task == CLASSIFICATION else np.asarray(column) for column in columns]
    X = Frame(chosen.features, frame.columns[: len(chosen.features)])
    weight = None if chosen.weight is None else _weights(np.asarray(frame.columns[-1]), present, file)
    known = known_of_fit(frame, chosen, Where(file.label), present)
    show_target(chosen.targets, task, facts, len(frame), options)
    return Training(
        X if present.all() else X[present],
        y[0] if chosen.single else np.column_stack(y),
        weight,
        chosen.targets[0] if chosen.single else chosen.targets,
        task,
        facts[0].n_rows,
        file,
        np.flatnonzero(present),
        chosen.known,
        known,
    )


def read_whole_file(file: ColumnFile, kinds: ColumnKinds, rows: int | None = None) -> Frame:
    """Read all rows of a file, ``rows`` of them at a time.

    Numbers of earlier blocks have lost their text, so if a column turns out to hold text, everything is read
    again."""
    names = list(kinds.columns)
    frames: list[Frame] = []
    while True:
        for block in file.blocks(names, rows):
            frames.append(kinds.read(block))
            if kinds.changed:  # the rest is read only for its kinds
                frames.clear()
        if not kinds.changed:
            break
        if not file.rereadable:
            name = kinds.changed[0]
            raise ValueError(
                f"{file.label}: column {name!r} holds numbers or dates, and later something else. "
                f"Say --category {quote(name)}, or give a file."
            )
        kinds.settle()
    if not frames:
        raise ValueError(f"{file.label} has a header, but no rows.")
    return concatenate(frames)


def _labels(column: RawColumn) -> np.ndarray:
    """Return classes as text, or unchanged if they are integers or booleans."""
    if isinstance(column, Levels):
        return as_text(column)
    whole = whole_numbers(column)
    return as_text(number_levels(column)) if whole is None else whole


def _weights(weight: np.ndarray, present: np.ndarray, file: ColumnFile) -> np.ndarray:
    """Return the weights of the rows that are ``present``; other rows may have any weight."""
    wrong = ~(weight >= 0) & present
    if wrong.any():
        row = Where(file.label).row(int(np.argmax(wrong)))
        raise ValueError(f"{row}: {ALLOWED_WEIGHT}, got {weight[wrong][0]:g}.")
    return weight[present]


def _targets(frame: Frame, chosen: Chosen, kinds: ColumnKinds) -> tuple[list[RawColumn], np.ndarray]:
    """Return the targets of the rows that have all of them, and which rows these are."""
    n_features = len(chosen.features)
    columns = frame.columns[n_features : n_features + len(chosen.targets)]
    present = _present(columns)
    pairs = zip(chosen.targets, (column[present] for column in columns), strict=True)
    return [_as_declared(column, kinds.columns[name]) for name, column in pairs], present


def _as_declared(column: RawColumn, kind: ColumnKind) -> RawColumn:
    """Return booleans as such, of which the file may have made numbers next to missing values."""
    is_boolean = isinstance(column, np.ndarray) and kind.seen == "boolean"
    return np.asarray(column, dtype=bool) if is_boolean else column


def _present(columns: Sequence[RawColumn]) -> np.ndarray:
    """Tell which rows have all of their targets."""
    return np.all(
        [each.codes >= 0 if isinstance(each, Levels) else ~np.isnan(each) for each in columns], axis=0
    )


# ---- large files


def rows_with_targets(block: CellBlock, training: Training) -> np.ndarray:
    """Tell which rows of a block have all targets, which are read as in the fit."""
    kinds = training.X.kinds.columns
    return _present([kinds[name].read(block) for name in training.targets])


class FileRows(ColumnSource):
    """The rows of a file that have a target, without the held-out share, if any.

    ``classes`` says whether the targets are classes, and ``whole`` whether these are whole numbers or
    booleans; other numbers are classes by their names. ``given`` is the number of rows of the latest pass,
    ``held`` that of the rows held out of it, and ``seen`` that of all rows. ``loss`` is needed if there is an
    exposure or an offset, which is removed from the targets.
    """

    holdout: tuple[float, int] | None = None  # the share, and a seed
    classes = whole = False
    given = held = seen = 0
    sketch: RowSketch | None = None
    loss: Loss | None = None

    def guessed(self) -> Collection[str]:
        return ()  # the user has been shown what the columns hold

    def _chunks_while_learning(self) -> Iterator[Chunk]:
        self.given = self.held = self.seen = 0
        self.sketch = None
        yield from super()._chunks_while_learning()
        if self.holdout is not None and 0 in (self.given, self.held):
            raise nothing_left(self.holdout[0], self.given + self.held)

    def _chunk(self, frame: Frame, where: Where) -> Chunk:
        n_features = len(self._chosen.features)
        keep = _present(frame.columns[n_features : n_features + len(self._chosen.targets)])
        if self.holdout is not None:
            held = held_out(self.seen, len(frame), *self.holdout)
            self.held += int((keep & held).sum())
            keep &= ~held
        self.seen += len(frame)
        chunk = super()._chunk(frame[keep], replace(where, kept=np.flatnonzero(keep)))
        self.given += int(keep.sum())
        if self.classes and not self.whole and chunk.y.dtype.kind != "O":
            chunk = replace(chunk, y=as_text(number_levels(chunk.y)))
        known = known_of_fit(frame[keep], self._chosen, chunk.where)
        found = RowSketch.of(
            Frame(None, frame[keep].columns[:n_features]), [*target_columns(chunk.y), *known.values()]
        )
        self.sketch = found if self.sketch is None else self.sketch + found
        if self.loss is None:
            return chunk
        parts = known.get("exposure"), known.get("offset")
        y, weight = unknown_part(self.loss, chunk.X, chunk.y, chunk.weight, *parts)
        return replace(chunk, y=y, weight=weight)


def _stream(file: ColumnFile, chosen: Chosen, kinds: ColumnKinds, options: argparse.Namespace) -> Training:
    """Look through a file for the kinds of its columns and for its targets, and leave the rows to the fit."""
    counts, facts = _looked_through(file, chosen, kinds)
    if kinds.changed:  # of a column that holds text, earlier rows were taken for numbers
        kinds.settle()
        counts, facts = _looked_through(file, chosen, kinds)
    kinds.settle()
    if counts is None:
        raise ValueError(f"{file.label} has a header, but no rows.")
    _show(file, chosen, kinds, counts)
    task = decide_task(file.label, chosen.targets, facts, options.task)
    rows = block_rows(None, len(chosen.features))
    classes = task == CLASSIFICATION and chosen.single
    is_boolean = classes and kinds.columns[chosen.targets[0]].seen == "boolean"
    target_type = np.dtype(bool) if is_boolean else None
    X = FileRows("fit", each_file(file), chosen, kinds, rows, np.dtype(np.float64), target_type)
    X.classes, X.whole = task == CLASSIFICATION, facts[0].whole
    show_target(chosen.targets, task, facts, counts.columns[0].n_rows, options)
    target = chosen.targets[0] if chosen.single else chosen.targets
    return Training(X, None, None, target, task, facts[0].n_rows, file, known_columns=chosen.known)


def _looked_through(
    file: ColumnFile, chosen: Chosen, kinds: ColumnKinds
) -> tuple[FrameCounts | None, list[TargetFacts]]:
    counts: FrameCounts | None = None
    facts: list[TargetFacts] = []
    for block in file.blocks(chosen.all):
        frame = kinds.read(block)
        if kinds.changed:
            continue
        found = count_columns(frame)
        counts = found if counts is None else counts + found
        of_block = [target_facts(column, MOST_VALUES) for column in _targets(frame, chosen, kinds)[0]]
        facts = [one + other for one, other in zip(facts, of_block, strict=True)] if facts else of_block
    return counts, facts


# ---- svmlight


def _read_sparse(options: argparse.Namespace, stream: bool) -> Training:
    given = [
        name
        for name in ("target", "weight", "exposure", "offset", "columns", "ignore", "category", "number")
        if getattr(options, name)
    ]
    if given:
        raise ValueError(f"--{given[0]} names a column, and columns of svmlight files have no names.")
    source = svmlight(options.data, zero_based=options.zero_based)
    facts, entries, chunks = None, 0, []
    for chunk in source:
        found = target_facts(chunk.y, MOST_VALUES)
        facts, entries = found if facts is None else facts + found, entries + chunk.X.nnz
        if not stream:
            chunks.append(chunk)
    assert facts is not None  # a source without rows is refused
    task = decide_task(options.data, ["y"], [facts], options.task)
    print(
        f"{options.data}: {facts.n_rows:,} rows, {source.n_columns:,} columns, {entries:,} entries that are "
        "not 0",
        file=sys.stderr,
    )
    show_target((), task, [facts], facts.n_rows, options)
    if stream:
        rows = SvmlightRows(source, task == CLASSIFICATION, facts.whole)
        return Training(rows, None, None, None, task, facts.n_rows)
    X = sparse.csr_matrix(sparse.vstack([chunk.X for chunk in chunks], format="csr"))
    y = np.concatenate([chunk.y for chunk in chunks])
    return Training(X, _labels(y) if task == CLASSIFICATION else y, None, None, task, len(y))


# ---- what is shown


def notations_of(file: ColumnFile | None) -> dict[str, Notation]:
    """Return how columns of numbers are written in a text file, where that is not plain."""
    return getattr(file, "notations", {})


def _show(file: ColumnFile, chosen: Chosen, kinds: ColumnKinds, counts: FrameCounts) -> None:
    descriptions = describe(kinds, counts)
    n_features = len(chosen.features)
    show_columns(file.label, counts.columns[0].n_rows, descriptions[:n_features], sys.stderr)
    for each in descriptions[n_features:]:
        if each.note.startswith(LIKE_NUMBERS):  # a target of which classes would be made, unasked
            print(plain(f"note: {each.name} {each.note}"), file=sys.stderr)
    for name, notation in notations_of(file).items():
        if name in kinds.columns and kinds.columns[name].kind == "number":
            words = notation.in_words()
            print(
                f"note: {plain(name)} holds numbers with {words}, and the model will expect them",
                file=sys.stderr,
            )
