"""Facts about the target of a fit: numbers or classes, how many, and how frequent."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.frame import Levels, RawColumn, level_name, whole_numbers
from .._data.plain_text import plain, shortened
from .numbers import shown
from .options import CLASSIFICATION, REGRESSION

MOST_CLASSES = 20  # always allowed; more need two rows per class on average
MANY_CLASSES = 100  # from here on, users are told what they cost
ROWS_OF_A_CLASS = 5  # with fewer rows per value, integers do not look like classes
LONGEST_CLASS = 30  # characters of its name in a line with others
MOST_VALUES = 10_000  # distinct target values counted in a streamed fit


@dataclass(frozen=True)
class TargetFacts:
    """Facts about a target in the rows that have one.

    ``totals`` has the number of rows of each value, unless there are too many values; ``n_values`` is then a
    lower bound. ``whole`` says that all values are integers or booleans."""

    n_rows: int
    text: bool
    n_values: int
    totals: dict[Any, int] | None
    whole: bool
    least: float = np.nan
    most: float = np.nan

    def __add__(self, other: TargetFacts) -> TargetFacts:
        totals = None
        if self.totals is not None and other.totals is not None:
            totals = Counter(self.totals)
            totals.update(other.totals)
        n_values = max(self.n_values, other.n_values) if totals is None else len(totals)
        return TargetFacts(
            self.n_rows + other.n_rows,
            self.text or other.text,
            n_values,
            totals if n_values <= MOST_VALUES else None,
            self.whole and other.whole,
            float(np.fmin(self.least, other.least)),
            float(np.fmax(self.most, other.most)),
        )


def target_facts(column: RawColumn, most: float = np.inf) -> TargetFacts:
    """Count the values of a target that is not missing in any row, unless there are more than ``most``."""
    if isinstance(column, Levels):
        column = column.compact()
        counts = np.bincount(column.codes, minlength=len(column.names)).tolist()
        found = Counter[Any]()
        for name, count in zip(column.names, counts, strict=True):
            found[name] += count
        return TargetFacts(len(column), True, len(found), found if len(found) <= most else None, False)
    values, counts = np.unique(column, return_counts=True)
    whole = whole_numbers(values) is not None
    totals = None if len(values) > most else Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    ends = (float(values[0]), float(values[-1])) if len(values) else (np.nan, np.nan)
    return TargetFacts(len(column), False, len(values), totals, whole, *ends)


def decide_task(label: str, names: Sequence[str], facts: Sequence[TargetFacts], task: str | None) -> str:
    """Decide whether to predict numbers or classes; refuse targets from which neither can be learned."""
    n_rows = facts[0].n_rows
    if not n_rows:
        raise ValueError(f"{label}: the target {' '.join(names)} is missing in all rows.")
    texts = [name for name, each in zip(names, facts, strict=True) if each.text]
    if len(names) > 1 and texts:
        raise ValueError(f"--target: several targets must all be numbers, and {texts[0]!r} is not.")
    if texts and task == REGRESSION:
        raise ValueError(f"--task regression needs numbers, and the target {texts[0]!r} holds text.")
    if len(names) > 1 and task == CLASSIFICATION:
        for name, each in zip(names, facts, strict=True):
            if not _is_label(each):
                raise ValueError(
                    "--task classification: several targets are labels of a row, which are 0 and 1, or true "
                    f"and false, and {name!r} holds others: fit a model for each target."
                )
        return CLASSIFICATION
    if len(names) > 1:
        return REGRESSION
    n_values = facts[0].n_values
    task = task or (CLASSIFICATION if texts or n_values <= 2 else REGRESSION)
    if task == CLASSIFICATION and (facts[0].totals is None or n_values > max(MOST_CLASSES, n_rows / 2)):
        count = f"{n_values:,}" if facts[0].totals is not None else f"more than {MOST_VALUES:,}"
        hint = (
            f"If it holds numbers, --number {names[0]!r} says which cell is not one."
            if texts
            else "Leave out --task classification."
        )
        raise ValueError(
            f"{label}: the target {names[0]!r} has {count} different values in {n_rows:,} rows, "
            f"too many to be classes. {hint}"
        )
    if n_values < 2:
        raise ValueError(
            f"{label}: the target {names[0]!r} has the same value in all rows, so there is nothing to learn."
        )
    return task


def show_target(
    names: Sequence[str],
    task: str,
    facts: Sequence[TargetFacts],
    n_rows: int,
    options: argparse.Namespace,
) -> None:
    """Show what will be predicted, and say how to predict classes unless options give the task."""
    asked = options.task is not None or options.loss is not None  # a loss implies regression
    if n_rows > facts[0].n_rows:
        print(f"left out: {n_rows - facts[0].n_rows:,} rows without a target", file=sys.stderr)
    if task == REGRESSION:
        least, most = min(each.least for each in facts), max(each.most for each in facts)
        what = f"{shown(least)} to {shown(most)}"
    elif len(facts) > 1:
        what = f"labels of {', '.join(_share_of_rows(each) for each in facts)} of the rows"
    else:
        totals = facts[0].totals or {}
        common = sorted(totals, key=lambda label: (-totals[label], label))[:5]
        classes = [shortened(plain(level_name(each)), LONGEST_CLASS) for each in common]
        shares = ", ".join(
            f"{name} {100 * totals[each] / facts[0].n_rows:.0f} %"
            for name, each in zip(classes, common, strict=True)
        )
        what = f"{len(totals):,} classes: {shares}{', ...' if len(totals) > len(common) else ''}"
    name = plain(", ".join(names)) or "the first number of a line"
    print(f"target: {name}, {task}, {what}", file=sys.stderr)
    if task == CLASSIFICATION and len(facts) == 1 and facts[0].n_values >= MANY_CLASSES:
        advice = "" if facts[0].text else "; if larger is more, leave out --task classification"
        print(
            f"note: {name} has {facts[0].n_values:,} classes, so the model is large and the fit slow{advice}",
            file=sys.stderr,
        )
    if task == REGRESSION and not asked and len(facts) == 1 and facts[0].whole and _are_few(facts[0]):
        print(
            f"note: {name} has {facts[0].n_values} different whole numbers, and is predicted as a number: "
            "if these are classes, --task classification",
            file=sys.stderr,
        )
    if task == REGRESSION and not asked and len(facts) > 1 and all(map(_is_label, facts)):
        print(
            "note: these targets are 0 and 1, and are predicted as numbers: if these are labels of a row, "
            "--task classification",
            file=sys.stderr,
        )


def _is_label(facts: TargetFacts) -> bool:
    """Tell whether all values are 0 and 1."""
    return facts.totals is not None and set(facts.totals) <= {0, 1}


def _share_of_rows(facts: TargetFacts) -> str:
    return f"{100 * (facts.totals or {}).get(1, 0) / facts.n_rows:.0f} %"


def _are_few(facts: TargetFacts) -> bool:
    """Tell whether there are few enough values to be classes."""
    return facts.n_values <= min(MOST_CLASSES, facts.n_rows / ROWS_OF_A_CLASS)
