"""Blocks of a table as frames of given columns: a block is never read differently from another."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..frame import Frame
from ..levels import RawColumn
from .blocks import Block, Cells, TableFile
from .cells import NotANumberError


class Rows(NamedTuple):
    """The rows of a block: the columns as they were asked for, and those to keep as they are in the file."""

    frame: Frame
    kept: dict[str, Cells]


def read_blocks(
    table: TableFile,
    kinds: Mapping[str, str],
    keep: Sequence[str] = (),
    known: Mapping[str, Container[str]] | None = None,
) -> Iterator[Rows]:
    """``kinds`` has "number" or "category" for each column of the frames, ``keep`` the columns that go along
    as they are.

    ``known`` are the levels of some columns that are known already, which may look like missing values.
    """
    names = list(dict.fromkeys([*kinds, *keep]))
    for block in table.blocks(names):
        frame = Frame(
            list(kinds),
            [
                read_column(table, block, name, kind, (known or {}).get(name, ()))
                for name, kind in kinds.items()
            ],
        )
        yield Rows(frame, {name: block.cells[name] for name in keep})


def read_column(
    table: TableFile, block: Block, name: str, kind: str, known: Container[str] = ()
) -> RawColumn:
    cells = block.cells[name]
    if kind == "category":
        return cells.levels(known)
    try:
        return cells.numbers()
    except NotANumberError as error:
        raise not_a_number(table, block, name, error) from None


def not_a_number(table: TableFile, block: Block, name: str, error: NotANumberError) -> ValueError:
    row = block.before + error.row + 1
    return ValueError(
        f"{table.label}, row {row}: column {name!r} must hold numbers, got {error.text!r}. Correct it, or leave it empty if it is missing."
    )
