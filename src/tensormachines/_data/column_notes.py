"""Columns that a model may misinterpret: row identifiers, codes, columns with only rare levels, and text that
looks like dates or numbers.

The rules prefer silence: counts, years and ratings are integers too, but are meant as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .column_counts import among_numbers, is_finite_number
from .encoding import Column
from .files.cells import MISSING
from .frame import WHOLE, spelled, whole_numbers

ROWS_TO_JUDGE = 20
ROWS_TO_JUDGE_NUMBERS = 50
MOSTLY_DIFFERENT = 0.9  # from this share of distinct texts on, they look like row identifiers
DENSE = 3  # row numbers, possibly of a sample, span at most this many times the rows
FIRST_ROWS = 1000  # they show that most columns are neither row numbers nor codes
FEWEST_CODES = 3  # with two codes, a number tells as much as a category
FEWEST_TEXTS = 20  # fewer different dates or numbers may be groups
LENGTH_OF_CODES = 4  # from this number of digits on, whole numbers of the same length may be codes

DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}( .*)?"
)
LEADING_ZERO = re.compile(r"[+-]?0[0-9].*")

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
CODE_WORDS = {"code", "codes", "id", "ids", "type", "zip", "zipcode", "postcode", "category"}

ROW_NUMBERS = "a different whole number in every row (leave it out if it only names the rows)"
ROW_NAMES = "a different text in nearly every row (leave it out if it only names the rows)"
CODES = 'whole numbers that look like codes, taken as numbers (if larger is not more, .astype("category"))'
ALL_RARE = (
    "no level with enough rows to learn from (leave it out, or replace its levels by groups or numbers)"
)
DATES = "text that looks like dates, taken as a category (pd.to_datetime(...) makes it dates)"
LIKE_NUMBERS = 'taken as a category (pd.to_numeric(..., errors="coerce") makes it numbers)'
MOST_NAMED = 10  # columns in a line of a message


class ColumnWarning(UserWarning):
    """The model may misinterpret some columns: row identifiers, codes, rare levels, dates or numbers as text.

    To silence it: ``warnings.filterwarnings("ignore", category=tensormachines.ColumnWarning)``.
    """


def number_note(name: str | None, values: np.ndarray) -> str | None:
    """Return ROW_NUMBERS or CODES if a numeric column looks like these; None otherwise."""
    if len(values) < ROWS_TO_JUDGE_NUMBERS or values.dtype.kind not in "iuf":
        return None
    named_code = name is not None and is_code_name(name)
    first = values[:FIRST_ROWS]
    if not named_code and (_whole(first) is None or len(np.unique(first)) < len(first)):
        return None
    whole = _whole(values[~np.isnan(values)] if named_code and values.dtype.kind == "f" else values)
    if whole is None or not len(whole):
        return None
    distinct = np.unique(whole)
    if len(distinct) == len(values):
        dense = int(distinct[-1]) - int(distinct[0]) < DENSE * len(values)
        return ROW_NUMBERS if dense or named_code else None
    return CODES if named_code and len(distinct) >= FEWEST_CODES else None


def _whole(values: np.ndarray) -> np.ndarray | None:
    return None if values.dtype.kind == "f" and not np.isfinite(values).all() else whole_numbers(values)


def is_code_name(name: str) -> bool:
    """Tell whether the name of a column ends in a word such as "id" or "code"."""
    words = WORD.findall(name)
    return bool(words) and words[-1].lower() in CODE_WORDS


def category_note(column: Column, n_rows: int | None) -> str | None:
    """Return ROW_NAMES or ALL_RARE if a fitted category looks like these; None otherwise.

    ``n_rows`` is None if only the levels are known."""
    if column.levels is None:
        return None
    if n_rows is not None and _mostly_different(column.levels, n_rows):
        return ROW_NAMES
    return ALL_RARE if column.pooled and not column.levels else None


def _mostly_different(levels: Sequence[str], n_rows: int) -> bool:
    return n_rows >= ROWS_TO_JUDGE and len(levels) >= MOSTLY_DIFFERENT * n_rows


def look_like_dates(levels: Sequence[str]) -> bool:
    """Tell whether some levels of a category, at most the first 20, are all written like dates."""
    return len(levels) > 0 and all(DATE.fullmatch(level) for level in levels[:ROWS_TO_JUDGE])


def text_note(name: str | None, levels: Sequence[str], n_rows: int) -> str | None:
    """Return a note on text that looks like dates or numbers; None otherwise.

    ``levels`` are the different texts of a column in ``n_rows`` rows. At least 20 of them must look like
    dates or numbers, because fewer may be groups. Numbers are not noticed if they may be codes: if the column
    is named like a code, or a number begins with a 0 as in "007". Whole numbers are noticed only if nearly
    all rows differ, or if there is a text for missing values such as "?"; and not if all have the same length
    of four digits or more, like zip codes."""
    if len(levels) < FEWEST_TEXTS:
        return None
    if look_like_dates(levels):
        return DATES
    other = among_numbers(levels)
    numbers = [level for level in levels if is_finite_number(level)]
    if len(numbers) < (len(levels) if other is None else FEWEST_TEXTS):
        return None
    if (name is not None and is_code_name(name)) or any(map(LEADING_ZERO.fullmatch, numbers)):
        return None
    if all(WHOLE.fullmatch(spelled(number)) for number in numbers):
        shortest, *_, longest = sorted(map(len, numbers))
        if shortest == longest >= LENGTH_OF_CODES:
            return None
        if not (_mostly_different(levels, n_rows) or (other is not None and other.strip() in MISSING)):
            return None
    exception = "" if other is None else f", except for {other!r}"
    return f"text that looks like numbers{exception}, {LIKE_NUMBERS}"


def in_words(notes: Sequence[tuple[str, str]]) -> str:
    """Return a message that lists columns, given as pairs of a note and a label."""
    lines = ["Some columns may not mean what the model takes them for:"]
    for what in dict.fromkeys(what for what, _ in notes):
        labels = [label for of, label in notes if of == what]
        more = f", and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
        lines.append(f"- {', '.join(labels[:MOST_NAMED])}{more}: {what}")
    silence = 'warnings.filterwarnings("ignore", category=tensormachines.ColumnWarning)'
    return "\n".join([*lines, f"If they are right as they are, silence this by {silence}."])
