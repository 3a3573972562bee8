"""Which columns are noticed: names of rows, codes and rare levels; and which are not."""

import numpy as np
import pytest

from tensormachines._data.column_notes import (
    ALL_RARE,
    CODES,
    DATES,
    LIKE_NUMBERS,
    ROW_NAMES,
    ROW_NUMBERS,
    category_note,
    in_words,
    is_code_name,
    number_note,
    text_note,
)
from tensormachines._data.encoding import Column

random = np.random.default_rng(0)
ROWS = 200


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Unnamed: 0", np.arange(ROWS), ROW_NUMBERS),
        (None, np.arange(ROWS, dtype=float), ROW_NUMBERS),
        ("row", random.permutation(2 * ROWS)[:ROWS], ROW_NUMBERS),  # of a sample
        ("customer_id", random.choice(10**9, ROWS, replace=False), ROW_NUMBERS),
        ("population", random.choice(10**9, ROWS, replace=False), None),
        ("epoch", 1_700_000_000 + 3600 * np.arange(ROWS), None),
        ("price", random.lognormal(3, 1, ROWS), None),
        ("rooms", random.integers(1, 9, ROWS), None),
        ("year", random.integers(1990, 2027, ROWS), None),
        ("zip", random.choice([10115, 20095, 80331], ROWS), CODES),
        ("storeId", random.integers(0, 40, ROWS), CODES),
        ("store_id", np.append(random.integers(0, 40, ROWS), np.nan), CODES),
        ("humid", random.integers(0, 40, ROWS), None),
        ("type", random.integers(0, 2, ROWS), None),  # of two codes a number tells as much
        ("code", random.standard_normal(ROWS), None),
        ("code", np.full(ROWS, np.nan), None),
        ("code", np.full(ROWS, np.inf), None),
        ("id", np.arange(30), None),  # too few rows to tell
        ("is_type", random.random(ROWS) < 0.5, None),
    ],
)
def test_numbers(name, values, expected):
    assert number_note(name, values) == expected


def test_names_of_codes():
    assert all(
        map(is_code_name, ["id", "ID", "user_id", "userID", "UserId", "zip code", "area-code", "type"])
    )
    assert not any(map(is_code_name, ["", "humid", "decode", "identity", "id count", "typed", "42"]))


def test_categories():
    names = tuple(f"name {k}" for k in range(40))
    assert category_note(Column(names), 40) == ROW_NAMES
    assert category_note(Column(names), 400) is None
    assert category_note(Column(names[:19]), 19) is None  # too few rows to tell
    assert category_note(Column((), pooled=True), 400) == ALL_RARE
    assert category_note(Column((), pooled=True), None) == ALL_RARE
    assert category_note(Column(("a",), pooled=True), 400) is None
    assert category_note(Column(()), 400) is None  # nothing but missing values
    assert category_note(Column(), 400) is None


NUMBERS = f"text that looks like numbers, {LIKE_NUMBERS}"


def but_for(other):
    return f"text that looks like numbers, except for {other!r}, {LIKE_NUMBERS}"


WHOLE = [str(k) for k in range(8, 208)]
FRACTIONS = [f"{k / 8}" for k in range(200)]
DAYS = [str(np.datetime64("2024-01-01") + np.timedelta64(int(k), "D")) for k in range(200)]


@pytest.mark.parametrize(
    ("name", "levels", "n_rows", "expected"),
    [
        ("x", FRACTIONS, 200, NUMBERS),
        (None, FRACTIONS, 100_000, NUMBERS),
        ("x", [*FRACTIONS, "?"], 200, but_for("?")),
        ("x", ["a lot", *FRACTIONS], 200, but_for("a lot")),
        ("x", [*FRACTIONS[:30], *"abcdefghijklmnopq"], 200, None),  # too many others
        ("x", FRACTIONS[:19], 200, None),  # few numbers may be groups
        ("x", [*FRACTIONS[:19], "?"], 200, None),
        ("diagnosis code", FRACTIONS, 200, None),
        ("x", [f"0{text}" for text in FRACTIONS], 200, None),
        ("x", WHOLE, 200, NUMBERS),
        ("x", WHOLE, 5000, None),  # of which a category can be made
        ("x", [*WHOLE, "?"], 5000, but_for("?")),
        ("x", [*WHOLE, "nan"], 5000, but_for("nan")),
        ("x", [f"{text}.0" for text in WHOLE], 5000, None),
        ("x", [*WHOLE, "online"], 5000, None),
        ("customer_id", WHOLE, 200, None),
        ("x", [f"{k}" for k in range(10000, 10200)], 200, None),  # zip codes
        ("x", [f"{k:05}" for k in range(9900, 10100)], 200, None),
        ("x", [*(f"{k}" for k in range(20, 80)), "?"], 5000, but_for("?")),  # years of age
        ("x", [*(f"{k}" for k in range(10000, 10200)), "?"], 200, None),
        ("x", ["1", "2", "3"], 200, None),
        ("x", [], 200, None),
        ("x", [f"name {k}" for k in range(200)], 200, None),
        ("x", DAYS, 200, DATES),
        ("x", DAYS, 100_000, DATES),
        ("x", [f"{day} 13:45:00" for day in DAYS], 200, DATES),
        ("x", [f"{k}.{m}.2024" for k in range(1, 29) for m in range(1, 13)], 500, DATES),
        ("x", DAYS[:12], 200, None),  # few dates may be groups
    ],
)
def test_text_that_looks_like_numbers_or_dates(name, levels, n_rows, expected):
    assert text_note(name, levels, n_rows) == expected


def test_a_message_names_a_few_columns_of_each_kind():
    labels = [f"column '{k}'" for k in range(13)]
    lines = in_words([*((CODES, label) for label in labels), (ALL_RARE, "column 'z'")]).splitlines()
    assert lines[1].startswith("- column '0', column '1', ")
    assert "column '9', and 3 more: whole numbers" in lines[1]
    assert lines[2].startswith("- column 'z': no level")
    assert "ColumnWarning" in lines[-1]
