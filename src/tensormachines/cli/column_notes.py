"""How the columns of a file were read, for the user to check: kinds, missing values, ranges, levels."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from shlex import quote
from typing import Any

import numpy as np

from .._data.column_counts import (
    FEWEST_NUMBERS,
    ColumnCounts,
    DateCounts,
    FrameCounts,
    LevelCounts,
    NumberCounts,
)
from .._data.column_notes import (
    MOSTLY_DIFFERENT,
    ROWS_TO_JUDGE,
    ColumnWarning,
    category_note,
    is_code_name,
    look_like_dates,
)
from .._data.dates import parse_dates
from .._data.encoding import Column, columns_of
from .._data.files.column_kinds import ColumnKind, ColumnKinds
from .._data.frame import is_number
from .._data.plain_text import plain, shortened
from .numbers import shown

MOST_SHOWN = 50  # columns
LONGEST_LEVELS = 40  # characters of all of them together
COMMAS = re.compile(r"-?\d+(,\d+)*(\.\d+)?")
THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})*(\.\d+)?")
LIKE_NUMBERS = "looks like numbers"  # how notes on such levels begin
YEARS = (1000, 2999)


@dataclass(frozen=True)
class Description:
    """How a column was read: one line of the output for the user."""

    name: str
    kind: str
    missing: float
    holds: str
    note: str


def describe(kinds: ColumnKinds, counts: FrameCounts) -> list[Description]:
    learnt = columns_of(None, counts).columns
    each = zip(kinds.columns.values(), counts.columns, learnt, strict=True)
    return [_describe(kind, column, fitted) for kind, column, fitted in each]


def show_columns(label: str, n_rows: int, descriptions: Sequence[Description], file: Any) -> None:
    print(f"{label}: {n_rows:,} row{'' if n_rows == 1 else 's'}", file=file)
    names = [shortened(plain(each.name)) for each in descriptions[:MOST_SHOWN]]
    width = max(map(len, ["column", *names]))
    print(f"  {'column':<{width}}  {'kind':<8}  missing  holds", file=file)
    for name, each in zip(names, descriptions, strict=False):
        share = f"{100 * each.missing:.1f} %" if each.missing else "-"
        print(f"  {name:<{width}}  {each.kind:<8}  {share:>7}  {each.holds}", file=file)
    if len(descriptions) > MOST_SHOWN:
        kinds = Counter(each.kind for each in descriptions[MOST_SHOWN:])
        more = ", ".join(f"{count:,} more of kind {kind}" for kind, count in kinds.items())
        print(f"  and {more}", file=file)
    if note := header_note([each.name for each in descriptions]):
        print(f"note: {note}", file=file)
    for each in [each for each in descriptions if each.note][:MOST_SHOWN]:
        print(plain(f"note: {each.name} {each.note}"), file=file)
    warnings.filterwarnings("ignore", category=ColumnWarning)  # the fit would say the same again


def header_note(names: Sequence[str]) -> str:
    """Return a note if most names are numbers, as those of a file without a header; but not for years."""
    numbers = [float(name) for name in names if is_number(name)]
    rising = all(one < other for one, other in pairwise(numbers)) and len(numbers) > 2
    if len(numbers) <= len(names) / 2 or (rising and all(number.is_integer() for number in numbers)):
        return ""
    first = next(name for name in names if is_number(name))
    return (
        f"most columns have numbers as names, such as {first}: the first line of a file must name its columns"
    )


def _describe(kind: ColumnKind, column: ColumnCounts, fitted: Column) -> Description:
    missing = column.n_missing / max(1, column.n_rows)
    if isinstance(column, LevelCounts):
        note = "" if kind.wished else _level_note(kind.name, column, fitted)
        return Description(kind.name, "category", missing, _levels_in_words(column), note)
    present = column.n_rows - column.n_missing
    if isinstance(column, DateCounts):
        span = _dates_in_words(column.days.least, column.days.most) if present else "nothing"
        return Description(kind.name, "date", missing, span, "")
    if kind.seen == "boolean" and present:
        return Description(kind.name, "boolean", missing, f"{100 * column.total / present:.0f} % true", "")
    span = _range_in_words(column.least, column.most) if present else "nothing"
    note = "" if kind.wished else _number_note(kind, column)
    return Description(kind.name, "number", missing, span, note)


def _dates_in_words(least: float, most: float) -> str:
    """Return the first and the last day, given in days since 1970."""
    first, last = (np.datetime64(math.floor(days), "D") for days in (least, most))
    return f"{first} to {last}"


def _range_in_words(least: float, most: float) -> str:
    """Return two numbers; numbers that may be years have no commas."""
    if YEARS[0] <= least <= most <= YEARS[1] and float(least).is_integer() and float(most).is_integer():
        return f"{least:.0f} to {most:.0f}"
    return f"{shown(least)} to {shown(most)}"


def _levels_in_words(column: LevelCounts) -> str:
    count = len(column.totals)
    if not count:
        return "nothing"
    names = [plain(" ".join(name.split())) for name in [*column.totals][:3]]
    some = ", ".join(names) + (", ..." if count > 3 else "")
    more = "more than " if column.forgotten else ""
    return f"{more}{count:,} level{'' if count == 1 else 's'}: {shortened(some, LONGEST_LEVELS)}"


def _level_note(name: str, column: LevelCounts, fitted: Column) -> str:
    names = [*column.totals]
    some = names[:ROWS_TO_JUDGE]
    if any("," in level for level in some) and all(COMMAS.fullmatch(level) for level in some):
        return LIKE_NUMBERS + _comma_advice(some)
    if look_like_dates(names):
        return _date_advice(names)
    if (other := column.among_numbers()) is not None:
        return (
            f"{LIKE_NUMBERS}, except for {other!r}: correct or clear such cells; "
            f"--number {quote(name)} says in which row"
        )
    present = column.n_rows - column.n_missing
    if present >= ROWS_TO_JUDGE and (column.forgotten or len(names) >= MOSTLY_DIFFERENT * present):
        return f"nearly all different: if it only names the rows, --ignore {quote(name)}"
    if category_note(fitted, None) is not None:
        return (
            f"has no level with enough rows to learn from: --ignore {quote(name)}, or put groups in its place"
        )
    return ""


def _date_advice(levels: Sequence[str]) -> str:
    """Say how to write dates, or, if nearly all of these levels are read as dates, which one is not."""
    wrong = [level for level in levels if parse_dates([level]) is None]
    if wrong and len(levels) - len(wrong) >= max(FEWEST_NUMBERS, 2 * len(wrong)):
        return f"looks like dates, except for {wrong[0]!r}: correct or clear such cells"
    return "looks like dates: write all of them as 2024-05-31 or 2024-05-31 13:45:00, or leave cells empty"


def _comma_advice(levels: Sequence[str]) -> str:
    """Say how to read numbers with commas: 1,234 is ambiguous, and a wrong reading is off by a thousand."""
    if not all(THOUSANDS.fullmatch(level) for level in levels):
        return " with decimal commas: --decimal ,"
    decimal = (
        ""
        if any(level.count(",") > 1 or "." in level for level in levels)
        else "; if they are decimal commas, --decimal ,"
    )
    return f" with commas between thousands: write them without{decimal}"


def _number_note(kind: ColumnKind, column: NumberCounts) -> str:
    name = kind.name
    if column.n_rows >= ROWS_TO_JUDGE and column.consecutive:
        return f"looks like row numbers: if so, --ignore {quote(name)}"
    if kind.padded is not None:
        return f"has leading zeros, as in {kind.padded}: if these are codes, --category {quote(name)}"
    if (
        column.n_rows >= ROWS_TO_JUDGE
        and column.whole
        and column.most - column.least > 1
        and is_code_name(name)
    ):
        return f"looks like codes: if larger is not more, --category {quote(name)}"
    return ""
