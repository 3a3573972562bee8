"""A block of rows in memory (an item of an iterable or a partition of a Dask collection) as a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ..._model.block import canonical
from ..._model.rows import Rows
from ..dataframes import as_frame, as_known, read_frame
from ..dates import DATES, is_dates
from ..frame import Frame, Levels, RawColumn, is_raw_column, number_levels
from ..raw_columns import is_frame
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
from .source import Chunk

Kinds = Mapping[int, str]  # "category" or "date" by column index; others are numbers


def item_chunk(rows: Rows | Frame, y: Any, weight: Any, where: Where) -> Chunk:
    """Return rows of `item_rows` with their checked targets and weights."""
    target = None if y is None else as_target(y, where, labels(None, "y", single=np.ndim(y) == 1))
    weights = None if weight is None else as_weight(weight, where, labels(None, "weight", single=True))
    for what, values in (("y", target), ("weight", weights)):
        if values is not None:
            check_same_rows(rows.shape[0], len(values), what, where.name)
    return Chunk(rows, target, weights, where)


def item_rows(X: Any, kinds: Kinds, where: Where, dtype: np.dtype | None = None) -> Rows | Frame:
    """Return a Frame if some column is a category or holds dates, otherwise a matrix.

    A matrix has the type ``dtype``; by default float32 if all columns are float32, else float64."""
    if sparse.issparse(X):
        return _sparse_rows(X, where, dtype)
    if not is_frame(X := as_known(X)):
        X = _array(X, where)
    try:
        frame = as_frame(X)
        if is_frame(X) or isinstance(frame, Frame) or kinds:
            known = [kinds.get(j) for j in range(X.shape[1])]
            frame = frame if isinstance(frame, Frame) and not kinds else read_frame(X, known)
            return _of_frame(frame, kinds, where, dtype)
    except TypeError as error:
        raise ValueError(f"{where.name}: {error}") from error
    return dense_rows(X, dtype or float_type([X.dtype]), where, labels(None, "X"))


def kinds_of(rows: Rows | Frame) -> dict[int, str]:
    """Return the kinds of non-numeric columns in rows of `item_rows`."""
    columns = rows.columns if isinstance(rows, Frame) else ()
    raw = {j: column for j, column in enumerate(columns) if is_raw_column(column)}
    return {j: "date" if is_dates(column) else "category" for j, column in raw.items()}


def _of_frame(frame: Frame, kinds: Kinds, where: Where, dtype: np.dtype | None) -> Rows | Frame:
    if not frame.shape[1]:
        raise ValueError(f"{where.name}: X has no columns.")
    columns = [_of_kind(column, kinds.get(j)) for j, column in enumerate(frame.columns)]
    label = labels(frame.names, "X")
    if any(map(is_raw_column, columns)):
        for j, column in enumerate(columns):
            if isinstance(column, np.ndarray) and not is_dates(column):
                check_finite(column, where, labels(None, label(j), single=True), missing=True)
        return Frame(frame.names, columns)
    dtype = dtype or float_type(np.asarray(each).dtype for each in columns)
    return dense_rows(np.asarray(Frame(frame.names, columns), dtype), dtype, where, label)


def _of_kind(column: RawColumn, kind: str | None) -> RawColumn:
    """Return numbers of a category as levels, and levels that are all missing as numbers or dates."""
    if kind == "category" and not is_dates(column):
        return number_levels(column) if isinstance(column, np.ndarray) else column
    if isinstance(column, Levels) and not column.names:
        missing = np.full(len(column), np.nan)
        return missing.astype(DATES) if kind == "date" else missing
    return column


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


def _sparse_rows(X: Any, where: Where, dtype: np.dtype | None) -> Rows:
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"{where.name}: X must have 2 dimensions, and columns, got the shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where.name}: X must be numbers, got the type {X.dtype}.")
    try:
        rows = canonical(sparse.csr_array(X, dtype=dtype or float_type([X.dtype])))
    except ValueError as error:
        raise ValueError(f"{where.name}: {error}") from error
    check_finite(rows, where, labels(None, "X"))
    return rows
