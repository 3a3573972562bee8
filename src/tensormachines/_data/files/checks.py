"""Checks of blocks of rows, with errors that say where something is wrong."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ..._model.rows import Rows
from ..frame import column_label, is_missing
from ..masked import refuse_masked

Label: TypeAlias = Callable[[int], str]  # from the index of a column to its name in messages

BLOCK_BYTES = 32 * 2**20
LEAST_ROWS = 1024


@dataclass(frozen=True)
class Where:
    """Where rows come from: a file or its equivalent, and the number of the first row.

    ``kept`` are the positions of the rows of a block that were kept, None for all.
    """

    name: str
    first: int = 1
    kept: np.ndarray | None = None

    def row(self, index: int) -> str:
        return f"{self.name}, data row {self._number(index)} (counting from 1)"

    def rows(self, count: int) -> str:
        between = f"rows {self._number(0)} to {self._number(count - 1)}" if count else "no rows"
        return f"{self.name}, {between}"

    def _number(self, index: int) -> int:
        return self.first + (index if self.kept is None else int(self.kept[index]))

    def cell(self, index: int, column: str) -> str:
        return f"{self.row(index)}, {column}"


def labels(names: Sequence[str] | None, what: str, *, single: bool = False) -> Label:
    """Return the name of each column in messages; ``single`` is for an array that has no columns."""
    return lambda j: what if single and names is None else column_label(names, j, what)


def block_rows(rows: int | None, n_columns: int) -> int:
    """Return the number of rows of a block: as given, or about 32 MB in float64."""
    return check_rows(rows) or max(LEAST_ROWS, BLOCK_BYTES // (8 * n_columns))


def check_rows(rows: int | None) -> int | None:
    if rows is None:
        return None
    try:
        count = operator.index(rows)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"rows must be a whole number of at least 1, or None, got {rows!r}.")
    return count


def check_dtype(dtype: Any) -> np.dtype:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    return np.dtype(dtype)


def float_type(dtypes: Iterable[Any]) -> np.dtype:
    """Return float32 if all types are float32, else float64."""
    return np.dtype(
        np.float32 if all(np.dtype(dtype).newbyteorder("=") == np.float32 for dtype in dtypes) else np.float64
    )


def check_finite(values: Rows, where: Where, label: Label, missing: bool = False) -> None:
    """Refuse infinity, and NaN unless it means ``missing``, in an array or in the entries of a CSR array."""
    entries = values.data if sparse.issparse(values) else values
    if entries.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(entries.sum()):
            return
    bad = np.flatnonzero(np.isinf(entries) if missing else ~np.isfinite(entries))
    if bad.size:
        row, column = _position(values, int(bad[0]))
        found = "NaN" if np.isnan(entries.flat[bad[0]]) else "infinity"
        raise ValueError(f"{where.cell(row, label(column))}: {found}, where a finite number is needed.")


def _position(values: Rows, entry: int) -> tuple[int, int]:
    if sparse.issparse(values):
        return int(np.searchsorted(values.indptr, entry, side="right")) - 1, int(values.indices[entry])
    return divmod(entry, values.shape[1]) if values.ndim == 2 else (entry, 0)


def as_numbers(values: np.ndarray, where: Where, label: Label) -> np.ndarray:
    """Return an array of objects as numbers, and an array of numbers unchanged; refuse anything else."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind not in "OUS":
        raise ValueError(
            f"{where.rows(len(values))}, {label(0)}: numbers are needed, got the type {values.dtype}."
        )
    for entry, value in enumerate(values.flat):
        if not isinstance(value, numbers.Real | np.bool_) or is_missing(value):
            row, column = _position(values, entry)
            found = "a missing value" if is_missing(value) else f"{value!r}"
            raise ValueError(f"{where.cell(row, label(column))}: {found}, where a number is needed.")
    return values.astype(np.float64)


def dense_rows(X: np.ndarray, dtype: np.dtype, where: Where, label: Label) -> np.ndarray:
    """Return X in C order and in a type that the kernels read; refuse infinity."""
    rows = np.ascontiguousarray(X, dtype=dtype)
    check_finite(rows, where, label, missing=True)
    return rows


def as_target(y: Any, where: Where, label: Label) -> np.ndarray:
    """Return targets as an array of finite numbers or of text, which may be objects."""
    refuse_masked(y, f"{where.name}: y")
    target = np.asarray(y)
    if target.ndim not in (1, 2):
        raise ValueError(f"{where.name}: y must have 1 or 2 dimensions, got the shape {target.shape}.")
    if target.dtype.kind == "O":
        if all(isinstance(value, str) for value in target.flat):
            return np.ascontiguousarray(target)
        target = _from_objects(target, where, label)
    if target.dtype.kind not in "biufUS":
        raise ValueError(f"{where.name}: y must be numbers or text, got the type {target.dtype}.")
    target = np.ascontiguousarray(target, dtype=target.dtype.newbyteorder("="))
    check_finite(target, where, label)
    return target


def _from_objects(target: np.ndarray, where: Where, label: Label) -> np.ndarray:
    if any(isinstance(value, str) for value in target.flat):
        for entry, value in enumerate(target.flat):
            if not isinstance(value, str):
                row, column = _position(target, entry)
                found = "a missing value" if is_missing(value) else f"{value!r}"
                raise ValueError(
                    f"{where.cell(row, label(column))}: {found}, where text is needed, as in other rows."
                )
    if all(isinstance(value, numbers.Integral | np.bool_) for value in target.flat):
        return np.array(target.tolist())
    return as_numbers(target, where, label)


def as_weight(weight: Any, where: Where, label: Label) -> np.ndarray:
    """Return weights as float64; refuse weights that are negative or not finite."""
    values = np.asarray(weight)
    if values.ndim != 1:
        raise ValueError(f"{where.name}: weight must have 1 dimension, got the shape {values.shape}.")
    values = np.ascontiguousarray(as_numbers(values, where, label), dtype=np.float64)
    check_finite(values, where, label)
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise ValueError(f"{where.cell(row, label(0))}: a negative weight, {values[row]:g}.")
    return values


def check_same_rows(count: int, other: int, what: str, where: str) -> None:
    if count != other:
        raise ValueError(f"{where}: X has {count} rows, but {what} has {other}.")
