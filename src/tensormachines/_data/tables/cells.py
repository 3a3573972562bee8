"""One column of a block as it stands in a file, and how it is read: as numbers, or as levels.

Text is looked at once for each different cell where that will do; what has to be done for every cell is done
by `map` over functions written in C, so that a million rows take seconds."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from ..levels import Levels

# What pandas takes for missing, and "?".
MISSING = frozenset(
    (
        *(
            "",
            "#N/A",
            "#N/A N/A",
            "#NA",
            "-1.#IND",
            "-1.#QNAN",
            "-NaN",
            "-nan",
            "1.#IND",
            "1.#QNAN",
            "<NA>",
            "?",
        ),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
BOOLEANS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
NUMBERS = dict.fromkeys(MISSING, "nan")
NUMBERS_AND_BOOLEANS = {**NUMBERS, **BOOLEANS}


class NotANumberError(ValueError):
    """A cell that is no number, in a row of the block."""

    def __init__(self, row: int, text: str):
        super().__init__(f"{text!r} is no number")
        self.row = row
        self.text = text


class Codes(dict[str, int]):
    """Numbers every text that it is asked for, in the order in which they come."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code

    def levels(self, codes: np.ndarray, known: Container[str] = ()) -> Levels:
        """The levels of cells that were numbered: without the white space around them, and -1 where they are
        missing.

        Those that are ``known`` are taken as they are: " x", "?" and "NA" may be levels.
        """
        names = [text if text in known else text.strip() for text in self]
        present = np.array([name in known or name not in MISSING for name in names], dtype=bool)
        numbers = np.append(
            np.where(present, np.cumsum(present) - 1, -1), -1
        )  # the last is for -1, which has no text
        return Levels(numbers[codes], [name for name, there in zip(names, present, strict=True) if there])


class TextCells:
    """Cells of a text file. What kind they are is not declared, but seen."""

    declared: str | None = None
    ordered = False

    def __init__(self, texts: Sequence[str], decimal: str = "."):
        self.texts = texts
        self.decimal = decimal

    def __len__(self) -> int:
        return len(self.texts)

    def numbers(self, booleans: bool = True) -> np.ndarray:
        """As float64, NaN where missing; ``booleans`` are 1 and 0."""
        spelled = NUMBERS_AND_BOOLEANS if booleans else NUMBERS
        texts, count = self._with_points(), len(self.texts)
        try:
            values = np.fromiter(map(float, texts), np.float64, count)
        except ValueError:
            try:
                values = np.fromiter(map(float, map(spelled.get, texts, texts)), np.float64, count)
            except ValueError:
                values = self._with_white_space(texts, spelled)
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise NotANumberError(row, self.texts[row])
        if "_" in "".join(self.texts):  # which Python allows between digits: 2024_01 is no number here
            row = next(row for row, text in enumerate(self.texts) if "_" in text)
            raise NotANumberError(row, self.texts[row])
        return values

    def _with_points(self) -> Sequence[str]:
        if self.decimal == ".":
            return self.texts
        # A point is none then: 1.234,5 has to fail, and not to be 1.234 or 12345.
        return [text.replace(".", "no point").replace(self.decimal, ".") for text in self.texts]

    def _with_white_space(self, texts: Sequence[str], spelled: dict[str, str]) -> np.ndarray:
        values = np.empty(len(texts))
        for row, text in enumerate(texts):
            bare = text.strip()
            try:
                values[row] = float(spelled.get(bare, bare))
            except ValueError:
                raise NotANumberError(row, self.texts[row]) from None
        return values

    def codes(self, known: Codes) -> np.ndarray:
        return np.fromiter(map(known.__getitem__, self.texts), np.intp, len(self.texts))

    def levels(self, known: Container[str] = ()) -> Levels:
        codes = Codes()
        return codes.levels(self.codes(codes), known)

    def as_they_are(self) -> Sequence[Any]:
        return self.texts
