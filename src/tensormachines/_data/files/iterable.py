"""Blocks from a Python iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..._model.rows import Rows
from ..._model.block import canonical
from .checks import (
    Where,
    as_numbers,
    as_target,
    as_weight,
    check_finite,
    check_same_rows,
    check_unique,
    dense_rows,
    float_type,
    labels,
)
from .source import Chunk, Source


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]]) -> Source:
    """Blocks from anything that can be iterated over more than once.

    Parameters
    ----------
    items : iterable, or function without arguments that returns one
        Each item is a block: X, or a tuple (X, y) or (X, y, weight), where y and weight may be None, or a
        `Chunk`. X is an array, a sparse matrix or array, or a pandas or polars frame, of shape (rows,
        n_columns); all items have the same columns. Blocks are float32 if the first is, else float64. An
        iterator is refused, since it can be iterated over only once.

    Returns
    -------
    Source
    """
    if isinstance(items, Iterable):
        if iter(items) is items:
            raise ValueError(
                f"items is an iterator ({type(items).__name__}), which can be read only once; give a list, an object whose class has "
                "__iter__, or a function without arguments that returns a new iterator each time."
            )
    elif not callable(items):
        raise ValueError(
            f"items must be an iterable or a function that returns one, got {type(items).__name__}."
        )
    return _IterableSource(items)


class _IterableSource(Source):
    def __init__(self, items: Iterable[Any] | Callable[[], Iterable[Any]]):
        self._items = items

    def _description(self) -> str:
        return f"iterable {getattr(self._items, '__qualname__', type(self._items).__name__)}"

    def _chunks(self) -> Iterator[Chunk]:
        first_names: list[str] | None = None
        for number, item in enumerate(
            self._items if isinstance(self._items, Iterable) else self._items(), start=1
        ):
            where = Where(f"item {number}")
            X, y, weight = _parts(item, where)
            names = _names(X, where)
            if number == 1:
                self.feature_names = first_names = names
            if names != first_names:
                raise ValueError(f"{where.name}: the columns of X are {names}, but {first_names} in item 1.")
            yield _chunk(X, y, weight, names, where)


def _parts(item: Any, where: Where) -> tuple[Any, Any, Any]:
    if isinstance(item, Chunk):
        return item.X, item.y, item.weight
    if not isinstance(item, tuple):
        return item, None, None
    if len(item) not in (1, 2, 3):
        raise ValueError(f"{where.name}: a block is X, (X, y) or (X, y, weight), got a tuple of {len(item)}.")
    X, y, weight = (*item, None, None)[:3]
    return X, y, weight


def _chunk(X: Any, y: Any, weight: Any, names: list[str] | None, where: Where) -> Chunk:
    rows = _rows(X, names, where)
    target = None if y is None else as_target(y, where, labels(None, "y", single=np.ndim(y) == 1))
    weights = None if weight is None else as_weight(weight, where, labels(None, "weight", single=True))
    for what, values in (("y", target), ("weight", weights)):
        if values is not None:
            check_same_rows(rows.shape[0], len(values), what, where.name)
    return Chunk(rows, target, weights, where.rows(rows.shape[0]))


def _is_frame(X: Any) -> bool:
    return hasattr(X, "__array__") and hasattr(X, "columns") and hasattr(X, "dtypes")


def _names(X: Any, where: Where) -> list[str] | None:
    """The names of a frame's columns, if they are text, as scikit-learn has it."""
    if not _is_frame(X):
        return None
    names = list(X.columns)
    check_unique([str(name) for name in names], where.name)
    return names if names and all(isinstance(name, str) for name in names) else None


def _rows(X: Any, names: list[str] | None, where: Where) -> Rows:
    if sparse.issparse(X):
        return _sparse_rows(X, where)
    if _is_frame(X):
        return _frame_rows(X, where)
    label = labels(names, "X")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{where.name}: X is not an array: {error}") from error
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(
            f"{where.name}: X must have 2 dimensions, and columns, got {type(X).__name__} of shape {array.shape}."
        )
    array = as_numbers(array, where, label)
    return dense_rows(array, float_type([array.dtype]), where, label)


def _frame_rows(X: Any, where: Where) -> np.ndarray:
    names = list(X.columns)
    label = labels([str(name) for name in names], "X")
    columns = [as_numbers(np.asarray(X[name]), where, labels([str(name)], "X")) for name in names]
    if not columns:
        raise ValueError(f"{where.name}: X has no columns.")
    rows = np.empty((len(columns[0]), len(columns)), dtype=float_type(column.dtype for column in columns))
    for j, column in enumerate(columns):
        rows[:, j] = column
    check_finite(rows, where, label)
    return rows


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
