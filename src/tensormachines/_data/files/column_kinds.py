"""The kinds of the columns of a file, inferred from their cells: numbers, booleans, dates or categories."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from ..encoding import Column, Columns
from ..frame import Frame, Levels, RawColumn, is_number, spelled
from .cells import BOOLEANS, CellBlock, Cells, WrongCellError, first_padded


class ColumnKind:
    """The kind of one column, as far as it has been read: numbers until a cell is not a number, then dates if
    there was no number, and then text.

    ``fixed``: the user or the file has declared the kind, and any other cell is an error. ``changed``:
    earlier blocks were read as another kind. In a column of ``labels``, true, false and dates are text.
    ``padded``: a number with leading zeros, such as 00501, if there is one; then the column may hold codes.
    """

    def __init__(self, name: str, kind: str | None, labels: bool):
        self.name = name
        self.kind = kind or "number"
        self.wished = self.fixed = kind is not None
        self.guessed = kind is None  # neither given by the user nor declared by the file
        self.labels = labels
        self.seen: str | None = None  # "number", "boolean" or "date", once a cell was not missing
        self.begun = self.changed = False
        self.padded: str | None = None

    def read(self, block: CellBlock) -> RawColumn:
        cells = block.cells[self.name]
        if cells.declared is not None and not self.fixed:
            of_labels = "category" if self.labels and cells.declared == "date" else cells.declared
            self.kind = "number" if of_labels == "boolean" else of_labels
            self.seen, self.fixed, self.guessed = of_labels, True, False
        while self.kind != "category":
            try:
                values = self._dates(cells) if self.kind == "date" else self._numbers(cells)
            except WrongCellError as error:
                if self.fixed:
                    raise wrong_cell(block, self.name, error) from None
                may_be_dates = self.kind == "number" and self.seen is None and not self.labels
                self.kind, self.changed = "date" if may_be_dates else "category", self.begun
            else:
                self.begun = True
                return values
        return cells.levels()

    def _dates(self, cells: Cells) -> np.ndarray:
        dates, self.seen = cells.dates(), "date"
        return dates

    def _numbers(self, cells: Cells) -> np.ndarray:
        """Return numbers, or booleans as 1 and 0; a column with both is neither."""
        if self.fixed:
            return cells.numbers(booleans=not self.labels)
        try:
            values, seen = cells.numbers(booleans=False), "number"
        except WrongCellError as error:
            values, seen = cells.numbers(booleans=not self.labels), "boolean"
            texts = zip(cells.as_they_are(), values.tolist(), strict=True)
            if not all(text.strip() in BOOLEANS for text, value in texts if value == value):
                raise error
        if np.isnan(values).all():
            return values
        if self.seen not in (None, seen):
            raise WrongCellError(0, repr(cells.as_they_are()[0]))
        self.seen = seen
        if self.padded is None and seen == "number":
            self.padded = first_padded(cells.as_they_are(), values)
        return values


class ColumnKinds:
    """The kinds of the columns of one or more files that are read a block at a time.

    ``forced`` holds "number", "date" or "category" for columns of known kind. In the columns ``labels`` of
    text files, true, false and dates are text. ``settled``: all cells have been seen, or need not be."""

    def __init__(self, names: Sequence[str], forced: Mapping[str, str], labels: Container[str] = ()):
        self.columns = {name: ColumnKind(name, forced.get(name), name in labels) for name in names}
        self.settled = all(column.fixed for column in self.columns.values())

    def read(self, block: CellBlock) -> Frame:
        return Frame(list(self.columns), [column.read(block) for column in self.columns.values()])

    @property
    def changed(self) -> list[str]:
        """Return the columns whose earlier blocks were read as the wrong kind and must be read again."""
        return [name for name, column in self.columns.items() if column.changed]

    def settle(self) -> None:
        """Fix the current kinds, because all cells have been seen."""
        self.settled = True
        for column in self.columns.values():
            column.fixed, column.changed = True, False


def forced_kinds(
    numbers: Sequence[str], categories: Sequence[str], weight: str | None, words: str = "number and category"
) -> dict[str, str]:
    """Return the kinds that users give; ``words`` are the names of the two lists in messages."""
    for names in (numbers, categories):
        if isinstance(names, str):
            raise ValueError(f"{words} must be lists of names, got the text {names!r}.")
    if weight in categories:
        raise ValueError(f"{words}: {weight!r} is the weight, which cannot be a category.")
    forced = dict.fromkeys(categories, "category")
    for name in numbers:
        if forced.setdefault(name, "number") == "category":
            raise ValueError(f"{words} both name {name!r}.")
    return forced | ({} if weight is None else {weight: "number"})


def wrong_cell(block: CellBlock, name: str, error: WrongCellError) -> ValueError:
    where = block.where.cell(error.row, f"column {name!r}")
    return ValueError(f"{where}: {error}. Correct it, or leave it empty if it is missing.")


# ---- columns of a fitted model


def known_reader(names: Sequence[str], columns: Columns | None) -> Callable[[CellBlock], Frame]:
    """Return a function that reads the columns of a fitted model by their kinds in the fit; numbers if None.

    ``names`` are the names of these columns in the file."""
    fitted = [Column()] * len(names) if columns is None else columns.columns
    known = [(name, each, frozenset(each.levels or ())) for name, each in zip(names, fitted, strict=True)]

    def read(block: CellBlock) -> Frame:
        found = [_read_fitted(block, *each) for each in known]
        booleans = [j for j, name in enumerate(names) if _are_booleans(block.cells[name], found[j])]
        return Frame(names, found, booleans=booleans)

    return read


def _are_booleans(cells: Cells, column: RawColumn) -> bool:
    """Tell whether the numbers of a column are booleans in the file, by the first non-missing cell."""
    if isinstance(column, Levels) or cells.declared is not None:
        return cells.declared == "boolean"
    present = ~np.isnan(column)
    return bool(present.any()) and cells.as_they_are()[int(present.argmax())].strip() in BOOLEANS


def _read_fitted(block: CellBlock, name: str, column: Column, known: frozenset[str]) -> RawColumn:
    raw = read_column(block, name, column.kind, known)
    # As in a data frame, but there the whole column is seen; here its beginning must suffice.
    if isinstance(raw, Levels) and block.where.first == 1 and all(map(is_number, raw.names)):
        column.refuse_numbers(raw, f"{block.where.rows(block.n_rows)}, column {name!r}")
    return raw


def read_column(block: CellBlock, name: str, kind: str, known: frozenset[str] = frozenset()) -> RawColumn:
    """Read a column as "number", "date" or "category"; ``known`` levels may look like missing values."""
    cells = block.cells[name]
    if kind == "category":
        return _as_known(cells.levels(known), known)
    try:
        return cells.dates() if kind == "date" else cells.numbers()
    except WrongCellError as error:
        raise wrong_cell(block, name, error) from None


def _as_known(levels: Levels, known: frozenset[str]) -> Levels:
    """Spell levels as the model does: it has one spelling for numbers and booleans, 3 or True; a file may
    have another, 3.0 or TRUE.
    """
    booleans = {BOOLEANS[name]: name for name in known if name in BOOLEANS}
    names = [
        name if name in known else booleans.get(BOOLEANS.get(name, ""), spelled(name))
        for name in levels.names
    ]
    return Levels(levels.codes, names, levels.ordered)
