"""Blocks from a Python iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..dataframes import as_known, boolean_columns
from ..encoding import Columns
from ..frame import check_unique, column_label
from ..raw_columns import column_names, is_frame
from .checks import Where
from .items import item_chunk, item_rows, kinds_of
from .source import Chunk, ReadAgainError, Source

NO_COLUMNS = frozenset[int]()


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]]) -> Source:
    """Read blocks from anything that can be iterated over more than once.

    Parameters
    ----------
    items : iterable, or function without arguments that returns one
        Each item is a block: X, or a tuple (X, y) or (X, y, weight), where y and weight may be None, or a
        `Chunk`. X is an array, a sparse matrix or array, a pandas, polars or narwhals DataFrame, or a pyarrow
        table or record batch, of shape (rows, n_columns); all items have the same columns. Frames may have
        categories, dates and missing values. Blocks are float32 if the first one is, else float64. An
        iterator is refused, because it can be iterated over only once.

    Returns
    -------
    Source
    """
    if isinstance(items, Iterable):
        if iter(items) is items:
            raise ValueError(
                f"items is an iterator ({type(items).__name__}), which can be read only once; give a list, "
                "an object whose class has __iter__, or a function without arguments that returns a new "
                "iterator each time."
            )
    elif not callable(items):
        raise ValueError(
            f"items must be an iterable or a function that returns one, got {type(items).__name__}."
        )
    return _IterableSource(items)


class _IterableSource(Source):
    """``categories`` are the columns known to hold text in some item; ``names`` are the names of the columns
    that a model needs, None for any. Chunks ``tell_booleans`` if a fitted model reads them.
    """

    tell_booleans = False

    def __init__(
        self,
        items: Iterable[Any] | Callable[[], Iterable[Any]],
        categories: Iterable[int] = (),
        names: Sequence[str] | None = None,
    ):
        self._items = items
        self._categories = set(categories)
        self._needed = names

    def _description(self) -> str:
        return f"iterable {getattr(self._items, '__qualname__', type(self._items).__name__)}"

    def first_pass(self) -> Iterator[Chunk]:
        return self._formed(self._chunks(learning=True))

    def encoded(
        self, columns: Columns | None, missing: bool, classes: frozenset[str] | None = None
    ) -> Iterator[Chunk]:
        kinds = () if columns is None else columns.kinds
        categories = [j for j, kind in enumerate(kinds) if kind == "category"]
        known = _IterableSource(self._items, categories, self._needed)
        known.tell_booleans = True
        return super(_IterableSource, known).encoded(columns, missing, classes)

    def for_model(self, names: Sequence[str]) -> Source:
        return _IterableSource(self._items, names=names)

    def _chunks(self, learning: bool = False) -> Iterator[Chunk]:
        first_names: Sequence[str] | None = None
        changed = False
        items = self._items if isinstance(self._items, Iterable) else self._items()
        for number, item in enumerate(items, start=1):
            where = Where(f"item {number}")
            X, y, weight = _parts(item, where)
            X = as_known(X)
            names = _names(X, where)
            if number == 1:
                first_names = names
                self.feature_names = None if names is None else list(names)
                self._check_names(where)
            if names != first_names:
                raise ValueError(
                    f"{where.name}: the columns of X are {names and list(names)}, "
                    f"but {first_names and list(first_names)} in item 1."
                )
            rows = item_rows(X, dict.fromkeys(self._categories, "category"), where)
            new_categories = {
                j for j, kind in kinds_of(rows).items() if kind == "category"
            } - self._categories
            self._categories |= new_categories
            changed = changed or (number > 1 and bool(new_categories))
            if changed and not learning:
                new = column_label(names, min(new_categories))
                raise ValueError(
                    f"{where.name}: {new} holds text, but numbers before: give it as text in all items."
                )
            if not changed:
                booleans = frozenset(boolean_columns(X)) if self.tell_booleans else NO_COLUMNS
                yield replace(item_chunk(rows, y, weight, where), booleans=booleans)
        if changed:
            raise ReadAgainError

    def _check_names(self, where: Where) -> None:
        if None not in (self._needed, self.feature_names) and self.feature_names != list(self._needed or ()):
            raise ValueError(
                f"{where.name}: the columns should be named as in the fit, {self._needed}, in that order; "
                f"got {self.feature_names}."
            )


def _parts(item: Any, where: Where) -> tuple[Any, Any, Any]:
    if isinstance(item, Chunk):
        return item.X, item.y, item.weight
    if not isinstance(item, tuple):
        return item, None, None
    if len(item) not in (1, 2, 3):
        raise ValueError(f"{where.name}: a block is X, (X, y) or (X, y, weight), got a tuple of {len(item)}.")
    X, y, weight = (*item, None, None)[:3]
    return X, y, weight


def _names(X: Any, where: Where) -> tuple[str, ...] | None:
    names = column_names(X)
    if is_frame(X):
        check_unique(map(str, names or X.columns), where.name)
    return names
