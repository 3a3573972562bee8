"""One column of a block of a file, and the ways to read it: as numbers, dates or levels.

If possible, text is examined once per distinct cell. Work for every cell is done by `map` over functions
written in C, so that a million rows take seconds."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..dates import parse_dates
from ..frame import Levels
from .checks import Where
from .notation import Notation, decide

# What pandas treats as missing, and "?".
# fmt: off
MISSING = frozenset((
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "?",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "NAN", "Nan", "+nan", "+NaN", "-NAN",
))
# fmt: on
PADDED = re.compile(r"\n[ \t]*(0[0-9]+)[ \t]*(?=\n)")  # every cell is between line breaks
BOOLEANS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
NUMBERS = dict.fromkeys(MISSING, "nan")
NUMBERS_AND_BOOLEANS = {**NUMBERS, **BOOLEANS}


class WrongCellError(ValueError):
    """A cell of a block that is not a number or date as required, and its row in the block."""

    def __init__(self, row: int, found: str, needed: str = "number"):
        super().__init__(f"{found}, where a {needed} is needed")
        self.row = row


class Cells(Protocol):
    """A column of a block; see `TextCells`.

    ``declared`` is "number", "boolean", "date" or "category" if the file itself says so, else None.
    ``ordered`` says that the order of the levels means something.
    """

    declared: str | None
    ordered: bool

    def numbers(self, booleans: bool = True) -> np.ndarray: ...

    def dates(self) -> np.ndarray: ...

    def levels(self, known: Container[str] = ()) -> Levels: ...

    def as_they_are(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class CellBlock:
    """Rows of a file: the cells of the requested columns, by name, and their location."""

    cells: Mapping[str, Cells]
    where: Where
    n_rows: int


class ColumnFile(Protocol):
    """A file with named columns.

    ``label`` is the name of the file in messages; ``rereadable`` tells whether `blocks` can be called more
    than once. ``rows`` is the number of rows of a block, None for a number that suits the format.
    """

    label: str
    names: list[str]
    rereadable: bool

    def blocks(self, names: Sequence[str], rows: int | None = None) -> Iterator[CellBlock]: ...


@runtime_checkable
class HasNotations(ColumnFile, Protocol):
    """A text file, in which numbers may be written in notations other than Python's."""

    @property
    def notations(self) -> dict[str, Notation]: ...

    def in_notations(self, notations: Mapping[str, Notation]) -> ColumnFile:
        """Return the file with numbers read in these notations by column, and plain ones elsewhere."""


class _Codes(dict[str, int]):
    """Number every requested text, in order of appearance."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code


def first_padded(texts: Sequence[str], values: np.ndarray) -> str | None:
    """Return the first of these numbers that is whole and has leading zeros, such as 00501."""
    if (values % 1 > 0).any():  # not codes
        return None
    found = PADDED.search("\n".join(["", *texts, ""]))
    return None if found is None else found[1]


@dataclass
class Spelling:
    """How the numbers of a column of a text file are written; None means as in Python.

    The first block that holds a number decides it (``decided``)."""

    notation: Notation | None = None
    decided: bool = False


class TextCells:
    """Cells of a text file, which does not declare their kinds."""

    declared: str | None = None
    ordered = False

    def __init__(
        self,
        texts: Sequence[str],
        decimal: str = ".",
        underscores: bool = True,
        spelling: Spelling | None = None,
    ):
        self.texts = texts
        self.decimal = decimal
        self.underscores = underscores  # False if the caller knows that no cell has any, which saves a search
        self.spelling = Spelling(decided=True) if spelling is None else spelling

    def numbers(self, booleans: bool = True) -> np.ndarray:
        """Return float64, NaN where missing; ``booleans`` are 1 and 0."""
        if self.spelling.notation is not None:
            return self._in_notation(self.spelling.notation)
        try:
            values = self._plain_numbers(NUMBERS_AND_BOOLEANS if booleans else NUMBERS)
        except WrongCellError:
            if self.spelling.decided:
                raise
            notation = decide((text for text in self.texts if text.strip() not in MISSING), self.decimal)
            if notation is None:
                raise
            values = self._in_notation(notation)
            self.spelling.notation = notation
        self.spelling.decided = self.spelling.decided or not np.isnan(values).all()
        return values

    def _in_notation(self, notation: Notation) -> np.ndarray:
        values = np.full(len(self.texts), np.nan)
        for row, text in enumerate(self.texts):
            if text.strip() in MISSING:
                continue
            plain = notation.plain(text, self.decimal)
            if plain is None:
                raise WrongCellError(row, f"{text!r}, in a column with {notation.in_words()}")
            values[row] = float(plain)
        return values

    def _plain_numbers(self, spelled: dict[str, str]) -> np.ndarray:
        texts, count = self._with_points(), len(self.texts)
        try:
            values = np.fromiter(map(float, texts), np.float64, count)
        except ValueError:
            try:
                values = np.fromiter(map(float, map(spelled.get, texts, texts)), np.float64, count)
            except ValueError:
                values = self._with_white_space(texts, spelled)
        if np.isinf(values).any():
            raise self._not_a_number(int(np.argmax(np.isinf(values))))
        # Python allows underscores between digits: 2024_01 is no number here.
        if self.underscores and "_" in "".join(self.texts):
            raise self._not_a_number(next(row for row, text in enumerate(self.texts) if "_" in text))
        return values

    def _with_points(self) -> Sequence[str]:
        if self.decimal == ".":
            return self.texts
        # A point then has no meaning: 1.234,5 is neither 1.234 nor 12345.
        for row, text in enumerate(self.texts):
            if "." in text and text.strip() not in MISSING:
                raise self._not_a_number(row)
        return [text.replace(self.decimal, ".") for text in self.texts]

    def _with_white_space(self, texts: Sequence[str], spelled: dict[str, str]) -> np.ndarray:
        values = np.empty(len(texts))
        for row, text in enumerate(texts):
            bare = text.strip()
            try:
                values[row] = float(spelled.get(bare, bare))
            except ValueError:
                raise self._not_a_number(row) from None
        return values

    def _not_a_number(self, row: int) -> WrongCellError:
        return WrongCellError(row, repr(self.texts[row]))

    def dates(self) -> np.ndarray:
        """Return dates, NaT where missing."""
        levels = self.levels()
        dates = levels.as_dates()
        if dates is None:
            wrong = next(code for code, name in enumerate(levels.names) if parse_dates([name]) is None)
            raise WrongCellError(int(np.argmax(levels.codes == wrong)), repr(levels.names[wrong]), "date")
        return dates

    def levels(self, known: Container[str] = ()) -> Levels:
        """Return levels named after the cells, without surrounding white space.

        Names that are ``known`` are kept unchanged: " x", "?" and "NA" may be levels.
        """
        codes = _Codes()
        numbers = np.fromiter(map(codes.__getitem__, self.texts), np.intp, len(self.texts))
        names = [text if text in known else text.strip() for text in codes]
        present = np.array([name in known or name not in MISSING for name in names], dtype=bool)
        places = np.where(present, np.cumsum(present) - 1, -1)
        names = [name for name, there in zip(names, present, strict=True) if there]
        return Levels(places[numbers] if len(places) else numbers, names)

    def as_they_are(self) -> Sequence[Any]:
        return self.texts
