"""How the entries of a table become the numbers of a described model: one by one, whatever library the table
comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from .._data.dataframes import level_name
from .description_form import Column


def is_missing(entry: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


def columns_of(rows: Any, n_columns: int) -> Iterator[Sequence[Any]]:
    """The entries of each column of an array, list of rows, sparse matrix, or frame of pandas or polars."""
    if hasattr(rows, "iloc"):
        found = [list(rows.iloc[:, j]) for j in range(rows.shape[1])]
    elif hasattr(rows, "to_series"):
        found = [rows.to_series(j).to_list() for j in range(rows.shape[1])]
    else:
        array = rows.toarray() if sparse.issparse(rows) else np.array(rows, dtype=object)
        if array.ndim != 2:
            raise ValueError(
                f"rows must be a table of {n_columns} columns, got an array of {array.ndim} axes."
            )
        found = [array[:, j].tolist() for j in range(array.shape[1])]
    if len(found) != n_columns:
        raise ValueError(f"rows must have {n_columns} columns as in the fit, got {len(found)}.")
    return iter(found)


def encode(columns: Sequence[Column], entries: Iterator[Sequence[Any]]) -> np.ndarray:
    """Numbers (rows, n_columns)."""
    return np.array(
        [
            [_number(column, entry) for entry in of_column]
            for column, of_column in zip(columns, entries, strict=True)
        ]
    ).T


def _number(column: Column, entry: Any) -> float:
    if is_missing(entry):
        return np.nan
    if column.levels is None:
        if not isinstance(entry, Real | Decimal | np.bool_ | str):
            raise TypeError(f"column {column.name!r} must hold numbers, got {type(entry).__name__}.")
        return float(entry)
    name = level_name(entry)
    if name in column.levels:
        return float(column.levels.index(name))
    return float(len(column.levels)) if column.rare else np.nan
