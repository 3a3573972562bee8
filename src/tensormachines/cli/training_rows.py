"""What a model is fitted to: the rows of a file, their target and weights."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.dataframes import number_levels
from .._data.frame import Frame, take_rows
from .._data.levels import Levels, RawColumn
from .._data.tables import (
    LIKE_NUMBERS,
    Asked,
    Description,
    TableFile,
    is_svmlight,
    open_table,
    read_svmlight,
    read_table,
)
from .options import CLASSIFICATION, REGRESSION

MOST_SHOWN = 50  # columns
MOST_CLASSES = 20  # that as many rows may have


@dataclass(frozen=True)
class Training:
    """``X`` is a Frame or a sparse matrix; ``target`` is None where the file has no names."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    target: str | list[str] | None
    task: str

    @property
    def targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else list(self.target or [])

    def __getitem__(self, rows: np.ndarray) -> Training:
        weight = None if self.weight is None else self.weight[rows]
        return Training(self.X[rows], self.y[rows], weight, self.target, self.task)


def read_training(options: argparse.Namespace) -> Training:
    """All rows that have a target; what was read is shown on standard error."""
    if is_svmlight(options.data):
        return _read_sparse(options)
    table = open_table(options.data, options.delimiter, options.decimal)
    asked = Asked(table)
    if not options.target:
        raise ValueError(
            f"--target must name the column to predict. The columns of {table.label} are {', '.join(table.names)}."
        )
    targets = [asked("--target", name) for name in options.target]
    if len(set(targets)) < len(targets):
        raise ValueError(f"--target names a column twice: {', '.join(targets)}.")
    features, forced = _chosen_columns(options, asked, targets)
    others = targets if options.weight is None else [*targets, asked("--weight", options.weight)]
    frame, descriptions = read_table(table, [*features, *others], forced, labels=targets)
    if len(frame) == 0:
        raise ValueError(f"{table.label} has a header, but no rows.")
    show_columns(table, len(frame), descriptions[: len(features)], sys.stderr)
    for each in descriptions[len(features) :]:
        if each.note.startswith(LIKE_NUMBERS):  # a target of which classes would be made, unasked
            print(f"note: {each.name} {each.note}", file=sys.stderr)
    y, task, present = _targets(frame, targets, options.task, table)
    weight = None if options.weight is None else _weights(frame, options.weight, table, present)
    training = Training(frame.select(features), y, weight, targets[0] if len(targets) == 1 else targets, task)
    if not present.all():
        print(f"left out: {np.count_nonzero(~present):,} rows without a target", file=sys.stderr)
        training = training[present]
    _show_target(training, sys.stderr)
    return training


def _chosen_columns(
    options: argparse.Namespace, asked: Asked, targets: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """The columns of X, and the kinds that options give them."""
    left_out = {*targets, *(asked("--ignore", name) for name in options.ignore), options.weight}
    features = [asked("--columns", name) for name in options.columns or asked.table.names]
    features = [name for name in dict.fromkeys(features) if name not in left_out]
    if not features:
        raise ValueError(
            f"{asked.table.label} has no column left to predict from, beside target and what is ignored."
        )
    forced = {asked("--category", name): "category" for name in options.category}
    for name in options.number:
        if forced.setdefault(asked("--number", name), "number") == "category":
            raise ValueError(f"--number and --category both name {name!r}.")
    return features, forced | ({} if options.weight is None else {options.weight: "number"})


def _targets(
    frame: Frame, names: list[str], task: str | None, table: TableFile
) -> tuple[np.ndarray, str, np.ndarray]:
    """The target of every row, the task, and which rows have one; the others hold anything."""
    columns = [frame.column(name) for name in names]
    present = np.all([_present(column) for column in columns], axis=0)
    if not present.any():
        raise ValueError(f"{table.label}: the target {' '.join(names)} is missing in all rows.")
    texts = [name for name, column in zip(names, columns, strict=True) if isinstance(column, Levels)]
    if len(names) > 1 and (texts or task == CLASSIFICATION):
        raise ValueError(
            f"--target: several targets must all be numbers{f', and {texts[0]!r} is not' if texts else ''}."
        )
    if texts and task == REGRESSION:
        raise ValueError(f"--task regression needs numbers, and the target {texts[0]!r} holds text.")
    if len(names) > 1:
        return np.column_stack([np.asarray(column) for column in columns]), REGRESSION, present
    of_present = take_rows(columns[0], present)
    n_values = len(np.unique(of_present.codes if isinstance(of_present, Levels) else of_present))
    task = task or (CLASSIFICATION if texts or n_values <= 2 else REGRESSION)
    if task == CLASSIFICATION and n_values > max(MOST_CLASSES, present.sum() / 2):
        many = f"has {n_values:,} different values in {present.sum():,} rows: no classes"
        hint = (
            f"If it holds numbers, --number {names[0]!r} says which cell is none."
            if texts
            else "Leave out --task classification."
        )
        raise ValueError(f"{table.label}: the target {names[0]!r} {many}. {hint}")
    if n_values < 2:
        raise ValueError(
            f"{table.label}: the target {names[0]!r} has the same value in all rows: there is nothing to learn."
        )
    return (_labels(columns[0]) if task == CLASSIFICATION else np.asarray(columns[0])), task, present


def _present(column: RawColumn) -> np.ndarray:
    return ~np.isnan(column) if isinstance(column, np.ndarray) else column.codes >= 0


def _labels(column: RawColumn) -> np.ndarray:
    """Text, or whole numbers."""
    if isinstance(column, np.ndarray):
        whole = np.where(np.isnan(column), 0, column)
        if (whole == np.round(whole)).all() and np.abs(whole).max() < 2**53:
            return whole.astype(np.int64)
        column = number_levels(column)
    return np.array([*column.names, ""])[column.codes]


def _weights(frame: Frame, name: str, table: TableFile, present: np.ndarray) -> np.ndarray:
    """Of all rows; those that are not ``present`` are left out, and may hold anything."""
    weight = np.asarray(frame.column(name))
    wrong = ~(weight >= 0) & present
    if wrong.any():
        raise ValueError(
            f"{table.label}, row {int(np.argmax(wrong)) + 1}: a weight must be a number from 0 on, got {weight[wrong][0]:g}."
        )
    return weight


def _read_sparse(options: argparse.Namespace) -> Training:
    given = [
        name
        for name in ("target", "weight", "columns", "ignore", "category", "number")
        if getattr(options, name)
    ]
    if given:
        raise ValueError(f"--{given[0]} names a column, and columns of svmlight files have no names.")
    X, y = read_svmlight(options.data, None, options.zero_based)
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"{options.data}, row {row + 1}: the target, its first number, must be finite, got {y[row]:g}. Leave the row out."
        )
    task = options.task or (CLASSIFICATION if len(np.unique(y)) <= 2 else REGRESSION)
    print(
        f"{options.data}: {X.shape[0]:,} rows, {X.shape[1]:,} columns, {X.nnz:,} entries that are not 0",
        file=sys.stderr,
    )
    training = Training(X, _labels(y) if task == CLASSIFICATION else y, None, None, task)
    _show_target(training, sys.stderr)
    return training


# ---- what is shown


def show_columns(table: TableFile, n_rows: int, descriptions: Sequence[Description], file: Any) -> None:
    print(f"{table.label}: {n_rows:,} row{'' if n_rows == 1 else 's'}", file=file)
    width = max(len("column"), *(len(each.name) for each in descriptions[:MOST_SHOWN]))
    print(f"  {'column':<{width}}  {'kind':<8}  missing  holds", file=file)
    for each in descriptions[:MOST_SHOWN]:
        share = f"{100 * each.missing:.1f} %" if each.missing else "-"
        print(f"  {each.name:<{width}}  {each.kind:<8}  {share:>7}  {each.holds}", file=file)
    if len(descriptions) > MOST_SHOWN:
        kinds = Counter(each.kind for each in descriptions[MOST_SHOWN:])
        print(
            f"  and {', '.join(f'{count:,} more of kind {kind}' for kind, count in kinds.items())}", file=file
        )
    for each in [each for each in descriptions if each.note][:MOST_SHOWN]:
        print(f"note: {each.name} {each.note}", file=file)


def _show_target(training: Training, file: Any) -> None:
    y = training.y
    name = ", ".join(training.targets) or "the first number of a line"
    if training.task == REGRESSION:
        what = f"{y.min():.5g} to {y.max():.5g}"
    else:
        classes, counts = np.unique(y, return_counts=True)
        common = np.argsort(-counts, kind="stable")[:5]
        shares = ", ".join(f"{classes[k]} {100 * counts[k] / len(y):.0f} %" for k in common)
        what = f"{len(classes):,} classes: {shares}{', ...' if len(classes) > len(common) else ''}"
    print(f"target: {name}, {training.task}, {what}", file=file)
