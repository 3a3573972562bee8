"""Blocks from a Python iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._model.block import canonical
from ..._model.rows import Rows
from ..dataframes import as_frame, column_names, is_frame, read_frame
from ..dates import is_dates
from ..encoding import Columns
from ..frame import Frame, Levels, RawColumn, check_unique, column_label, is_raw_column, number_levels
from .checks import (
    Where,
    as_target,
    as_weight,
    check_finite,
    check_same_rows,
    dense_rows,
    float_type,
    labels,
)
from .source import Chunk, ReadAgainError, Source


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]]) -> Source:
    """Blocks from anything that can be iterated over more than once.

    Parameters
    ----------
    items : iterable, or function without arguments that returns one
        Each item is a block: X, or a tuple (X, y) or (X, y, weight), where y and weight may be None, or a
        `Chunk`. X is an array, a sparse matrix or array, a DataFrame of pandas or polars, or a pyarrow table,
        of shape (rows, n_columns); all items have the same columns. Frames may have categories, dates and
        missing values. Blocks are float32 if the first is, else float64. An iterator is refused, since it can
        be iterated over only once.

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
    """``categories`` are the columns that hold text in some item, as far as is known; ``names`` are those of
    the columns that a model needs, None for any.
    """

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

    def encoded(self, columns: Columns | None, missing: bool) -> Iterator[Chunk]:
        kinds = () if columns is None else columns.kinds
        categories = [j for j, kind in enumerate(kinds) if kind == "category"]
        known = _IterableSource(self._items, categories, self._needed)
        return super(_IterableSource, known).encoded(columns, missing)

    def for_model(self, names: Sequence[str]) -> Source:
        return _IterableSource(self._items, names=names)

    def _chunks(self, learning: bool = False) -> Iterator[Chunk]:
        first_names: Sequence[str] | None = None
        changed = False
        items = self._items if isinstance(self._items, Iterable) else self._items()
        for number, item in enumerate(items, start=1):
            where = Where(f"item {number}")
            X, y, weight = _parts(item, where)
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
            before = self._categories.copy()
            rows = self._rows(X, where)
            new_categories = self._categories - before
            changed = changed or (number > 1 and bool(new_categories))
            if changed and not learning:
                new = column_label(names, min(new_categories))
                raise ValueError(
                    f"{where.name}: {new} holds text, but numbers before: give it as text in all items."
                )
            if not changed:
                yield _chunk(rows, y, weight, where)
        if changed:
            raise ReadAgainError

    def _check_names(self, where: Where) -> None:
        if None not in (self._needed, self.feature_names) and self.feature_names != list(self._needed or ()):
            raise ValueError(
                f"{where.name}: the columns should be named as in the fit, {self._needed}, in that order; "
                f"got {self.feature_names}."
            )

    def _rows(self, X: Any, where: Where) -> Rows | Frame:
        if sparse.issparse(X):
            return _sparse_rows(X, where)
        if not is_frame(X):
            X = _array(X, where)
        try:
            frame = as_frame(X)
            if is_frame(X) or isinstance(frame, Frame) or self._categories:
                kinds = ["category" if j in self._categories else None for j in range(X.shape[1])]
                frame = frame if isinstance(frame, Frame) and not self._categories else read_frame(X, kinds)
                return self._of_frame(frame, where)
        except TypeError as error:
            raise ValueError(f"{where.name}: {error}") from error
        return dense_rows(X, float_type([X.dtype]), where, labels(None, "X"))

    def _of_frame(self, frame: Frame, where: Where) -> Rows | Frame:
        """Return the frame where some column is a category or holds dates, otherwise its matrix."""
        if not frame.shape[1]:
            raise ValueError(f"{where.name}: X has no columns.")
        columns = [self._typed(column, j) for j, column in enumerate(frame.columns)]
        self._categories |= {j for j, column in enumerate(columns) if isinstance(column, Levels)}
        if any(map(is_raw_column, columns)):
            return Frame(frame.names, columns)
        rows = np.asarray(Frame(frame.names, columns), float_type(np.asarray(each).dtype for each in columns))
        check_finite(rows, where, labels(frame.names, "X"), missing=True)
        return rows

    def _typed(self, column: RawColumn, j: int) -> RawColumn:
        """Return numbers of a known category as levels, and levels of missing values alone as numbers."""
        if j in self._categories and not is_dates(column):
            return number_levels(column) if isinstance(column, np.ndarray) else column
        if isinstance(column, Levels) and not column.names:
            return np.full(len(column), np.nan)
        return column


def _parts(item: Any, where: Where) -> tuple[Any, Any, Any]:
    if isinstance(item, Chunk):
        return item.X, item.y, item.weight
    if not isinstance(item, tuple):
        return item, None, None
    if len(item) not in (1, 2, 3):
        raise ValueError(f"{where.name}: a block is X, (X, y) or (X, y, weight), got a tuple of {len(item)}.")
    X, y, weight = (*item, None, None)[:3]
    return X, y, weight


def _chunk(rows: Rows | Frame, y: Any, weight: Any, where: Where) -> Chunk:
    target = None if y is None else as_target(y, where, labels(None, "y", single=np.ndim(y) == 1))
    weights = None if weight is None else as_weight(weight, where, labels(None, "weight", single=True))
    for what, values in (("y", target), ("weight", weights)):
        if values is not None:
            check_same_rows(rows.shape[0], len(values), what, where.name)
    return Chunk(rows, target, weights, where)


def _names(X: Any, where: Where) -> tuple[str, ...] | None:
    names = column_names(X)
    if is_frame(X):
        check_unique(map(str, names or X.columns), where.name)
    return names


def _array(X: Any, where: Where) -> np.ndarray:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{where.name}: X is not an array: {error}") from error
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(
            f"{where.name}: X must have 2 dimensions, and columns, got {type(X).__name__} of shape "
            f"{array.shape}."
        )
    if array.dtype.kind not in "biufOUSTmM":
        raise ValueError(f"{where.name}: X must be numbers or text, got the type {array.dtype}.")
    return array


def _sparse_rows(X: Any, where: Where) -> Rows:
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"{where.name}: X must have 2 dimensions, and columns, got the shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where.name}: X must be numbers, got the type {X.dtype}.")
    try:
        rows = canonical(sparse.csr_array(X, dtype=float_type([X.dtype])))
    except ValueError as error:
        raise ValueError(f"{where.name}: {error}") from error
    check_finite(rows, where, labels(None, "X"))
    return rows
