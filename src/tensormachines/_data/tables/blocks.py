"""A table in a file: the names of its columns, and its rows, a block at a time."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np

from ..levels import Levels
from .cells import Codes

ROWS = 20_000  # of a block
MOST_NAMES = 30  # in a message


class Cells(Protocol):
    """A column of a block; see `TextCells`. ``declared`` is "number", "boolean" or "category" where the file
    says so.

    ``ordered`` says that its levels come in an order, as they do in a file that says so.
    """

    declared: str | None
    ordered: bool

    def __len__(self) -> int: ...

    def numbers(self, booleans: bool = True) -> np.ndarray: ...

    def codes(self, known: Codes) -> np.ndarray: ...

    def levels(self, known: Container[str] = ()) -> Levels: ...

    def as_they_are(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Block:
    """Rows of a table: the cells of the columns that were asked for, by name.

    ``before`` rows came before it.
    """

    cells: dict[str, Cells]
    before: int
    n_rows: int


class TableFile(Protocol):
    """``label`` is what messages call the file; ``rereadable`` whether `blocks` can be called twice."""

    label: str
    names: list[str]
    rereadable: bool

    def blocks(self, names: Sequence[str]) -> Iterator[Block]: ...


@dataclass(frozen=True)
class Asked:
    """Columns that options ask for, found in a table or refused."""

    table: TableFile

    def __call__(self, option: str, name: str) -> str:
        if name in self.table.names:
            return name
        raise ValueError(f"{option}: {self.table.label} has no column {name!r}{self.instead(name)}")

    def instead(self, name: str) -> str:
        """The nearest name, and all names."""
        by_lower_case = {each.lower(): each for each in self.table.names}
        close = get_close_matches(name.lower(), by_lower_case, n=1)
        nearest = f"; did you mean {by_lower_case[close[0]]!r}?" if close else "."
        if len(self.table.names) == 1:
            return f"{nearest} Its only column is {self.table.names[0]!r}: if that is several, give their --delimiter."
        return f"{nearest} Its columns are {in_words(self.table.names)}."


def in_words(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
