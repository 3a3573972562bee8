"""A whole table in memory, with the kind of each column seen from its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..frame import Frame
from ..levels import Levels, RawColumn, is_number
from .blocks import Block, Cells, TableFile
from .cells import BOOLEANS, Codes, NotANumberError
from .reading import not_a_number

DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}( .*)?"
)
COMMAS = re.compile(r"-?\d+(,\d+)*(\.\d+)?")
THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})*(\.\d+)?")
LIKE_NUMBERS = "looks like numbers"  # how notes on such levels begin
FEWEST_NUMBERS = 5  # different ones, from which on a text among them looks like a mistake
MOSTLY_DIFFERENT = 0.9  # share of different texts from which on they look like names of rows
ROWS_TO_JUDGE = 20


@dataclass(frozen=True)
class Description:
    """What a column was read as: a line of what the user is shown."""

    name: str
    kind: str
    missing: float
    holds: str
    note: str


class _Column:
    """What has been read of one column; its kind is "number" until a cell is none."""

    def __init__(self, name: str, kind: str | None, booleans: bool):
        self.name = name
        self.kind = kind or "number"
        self.wished = self.forced = kind is not None
        self.booleans = booleans
        self.seen: str | None = None  # "number" or "boolean", from the first cell on that is not missing
        self.as_declared = False  # whether the file says what kind it is, and its texts are taken as they are
        self.ordered = False
        self.again = False  # whether it has to be read once more, from the first block
        self.begin()

    def begin(self) -> None:
        self.again = False
        self.blocks: list[np.ndarray] = []
        self.known = Codes()

    def read(self, table: TableFile, block: Block) -> None:
        cells = block.cells[self.name]
        self.as_declared, self.ordered = cells.declared is not None, cells.ordered
        if not self.forced and cells.declared is not None:
            is_boolean = cells.declared == "boolean"
            self.kind, self.forced = (
                ("number" if self.booleans else "category") if is_boolean else cells.declared,
                True,
            )
            self.seen = cells.declared
        if self.kind == "number" and not self.again:
            try:
                self.blocks.append(self._numbers(cells))
            except NotANumberError as error:
                if self.forced:
                    raise not_a_number(table, block, self.name, error) from None
                self.kind, self.again = "category", bool(self.blocks)
        if self.kind == "category" and not self.again:
            self.blocks.append(cells.codes(self.known))

    def _numbers(self, cells: Cells) -> np.ndarray:
        """Numbers, or booleans as 1 and 0; the two beside each other are neither."""
        if self.forced:
            return cells.numbers(self.booleans)
        try:
            values, seen = cells.numbers(booleans=False), "number"
        except NotANumberError as error:
            values, seen = cells.numbers(self.booleans), "boolean"
            if not _spell_booleans(values, cells.as_they_are()):
                raise error
        if np.isnan(values).all():
            return values
        if self.seen not in (None, seen):
            raise NotANumberError(0, str(cells.as_they_are()[0]))
        self.seen = seen
        return values

    def result(self) -> RawColumn:
        together = np.concatenate(self.blocks) if self.blocks else np.empty(0)
        if self.kind == "category":
            levels = self.known.levels(together, known=self.known if self.as_declared else ())
            return replace(levels, ordered=self.ordered)
        if len(together) and np.isnan(together).all() and not self.forced:
            return Levels(np.full(len(together), -1), [])
        return together


def _spell_booleans(values: np.ndarray, texts: Sequence[str]) -> bool:
    return all(
        text.strip() in BOOLEANS for text, value in zip(texts, values.tolist(), strict=True) if value == value
    )


def read_table(
    table: TableFile,
    names: Sequence[str],
    forced: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
) -> tuple[Frame, list[Description]]:
    """All rows of these columns. ``forced`` says of some what kind they are; in ``labels`` true and false are
    texts, and no numbers.

    Numbers of earlier blocks are no texts any more: where a column turns out not to hold numbers, it is read
    again from the beginning."""
    columns = [_Column(name, (forced or {}).get(name), name not in labels) for name in names]
    to_read = columns
    while to_read:
        for block in table.blocks([column.name for column in to_read]):
            for column in to_read:
                column.read(table, block)
        to_read = [column for column in to_read if column.again]
        if to_read and not table.rereadable:
            name = to_read[0].name
            raise ValueError(
                f"{table.label}: column {name!r} holds numbers and later text. Say --category {_quoted(name)}, or give a file."
            )
        for column in to_read:
            column.begin()
    frame = Frame(names, [column.result() for column in columns])
    return frame, [_describe(column, values) for column, values in zip(columns, frame.columns, strict=True)]


def _describe(column: _Column, values: RawColumn) -> Description:
    if isinstance(values, Levels):
        missing = float(np.mean(values.codes < 0)) if len(values.codes) else 0.0
        note = "" if column.wished else _level_note(column.name, values)
        return Description(column.name, "category", missing, _levels_in_words(values), note)
    present = values[~np.isnan(values)]
    missing = 1 - len(present) / max(1, len(values))
    if column.seen == "boolean" and len(present):
        return Description(column.name, "boolean", missing, f"{100 * present.mean():.0f} % true", "")
    span = f"{_short(present.min())} to {_short(present.max())}" if len(present) else "nothing"
    return Description(column.name, "number", missing, span, _number_note(column.name, values))


def _levels_in_words(values: Levels) -> str:
    count = len(set(values.names))
    some = ", ".join(" ".join(name.split()) for name in values.names[:3]) + (", ..." if count > 3 else "")
    return (
        f"{count:,} level{'' if count == 1 else 's'}: {some if len(some) <= 40 else some[:37] + '...'}"
        if count
        else "nothing"
    )


def _level_note(name: str, values: Levels) -> str:
    present = int((values.codes >= 0).sum())
    some = values.names[:ROWS_TO_JUDGE]
    if any("," in level for level in some) and all(COMMAS.fullmatch(level) for level in some):
        return LIKE_NUMBERS + _comma_advice(some)
    if values.names and all(DATE.fullmatch(level) for level in some):
        return f"looks like dates: --ignore {_quoted(name)}, or give year, month ... as columns of their own"
    others = [
        level for level in dict.fromkeys(values.names) if not (is_number(level) and np.isfinite(float(level)))
    ]
    numbers = len(set(values.names)) - len(others)
    if others and numbers >= max(FEWEST_NUMBERS, 2 * len(others)):
        return f"{LIKE_NUMBERS}, but for {others[0]!r}: correct or empty such cells; --number {_quoted(name)} says in which row"
    if present >= ROWS_TO_JUDGE and len(set(values.names)) >= MOSTLY_DIFFERENT * present:
        return f"nearly all different: if it only names the rows, --ignore {_quoted(name)}"
    return ""


def _comma_advice(levels: Sequence[str]) -> str:
    """1,234 may be either: read with the wrong one it would be a thousand times too small, or too large."""
    if not all(THOUSANDS.fullmatch(level) for level in levels):
        return " with decimal commas: --decimal ,"
    decimal = (
        ""
        if any(level.count(",") > 1 or "." in level for level in levels)
        else "; if they are decimal commas, --decimal ,"
    )
    return f" with commas between thousands: write them without{decimal}"


def _number_note(name: str, values: np.ndarray) -> str:
    if len(values) >= ROWS_TO_JUDGE and (np.diff(values) == 1).all():
        return f"looks like row numbers: if so, --ignore {_quoted(name)}"
    return ""


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


def _short(number: float) -> str:
    return f"{number:.0f}" if float(number).is_integer() and abs(number) < 1e9 else f"{number:.4g}"
