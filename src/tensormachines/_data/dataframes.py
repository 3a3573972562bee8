"""Columns as the user has them: every dtype of pandas, polars and object arrays read as one of two things,
numbers or levels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _get_feature_names

from .frame import Frame
from .levels import Levels, RawColumn

NUMERIC = "fiub"  # kinds of dtypes; booleans are the numbers 0 and 1
MISSING = {"NoneType", "NAType", "NaTType"}  # the last two are those of pandas, which need not be installed
FEW_ROWS = 1000  # of which Python makes levels before pandas or polars have begun

TEMPORAL = {"date": (date, np.datetime64), "duration": (timedelta, np.timedelta64), "time": (time,)}
HINTS = {
    "date": 'Give what matters of its dates as numbers: df["when"].dt.year, .dt.dayofweek ... (polars: .dt.year(), .dt.weekday()).',
    "duration": 'Give its durations as numbers: df["lasted"].dt.total_seconds().',
    "time": "Give its times as numbers, such as the hour.",
    "other": "Every argument must be a missing value, a string or a real number.",
}


def as_table(X: Any) -> Any:
    """X as a frame, sparse matrix or array.

    In lists numbers and booleans stay such, of which NumPy would make strings beside strings, and numbers
    beside numbers."""
    if isinstance(X, np.ndarray) or sparse.issparse(X) or is_frame(X):
        return X
    array = np.asarray(X)
    if not isinstance(X, list | tuple):
        return array
    rows = (row for row in X if isinstance(row, list | tuple))
    changed = array.dtype.kind in "US" or (
        array.dtype.kind in "iuf" and any(isinstance(entry, bool) for row in rows for entry in row)
    )
    return np.array(X, dtype=object) if changed else array


def is_frame(X: Any) -> bool:
    """Whether X is a DataFrame of pandas or polars, or a Frame."""
    return isinstance(X, Frame) or _is_frame_of("pandas", X) or _is_frame_of("polars", X)


def is_raw(X: Any) -> bool:
    """Whether X is a table that has to be read column by column, because NumPy does not see numbers in it."""
    if isinstance(X, Frame):
        return any(isinstance(column, Levels) for column in X.columns)
    if _is_frame_of("pandas", X):
        dtypes = list(X.dtypes)
        all_sparse = all(str(dtype).startswith("Sparse") for dtype in dtypes)
        return not all_sparse and not all(
            isinstance(dtype, np.dtype) and dtype.kind in NUMERIC for dtype in dtypes
        )
    if _is_frame_of("polars", X):
        return not all(dtype.is_integer() or dtype.is_float() for dtype in X.dtypes)
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUST"


def raw_columns(
    X: Any, names: tuple[str, ...] | None, kinds: Sequence[str] | None = None
) -> Iterator[RawColumn]:
    """The columns of a frame or array, one after another; messages call them by ``names``.

    Where a fit has told their ``kinds``, "number" or "category", every entry is read as such, whatever else
    is in its column this time."""
    for j in range(X.shape[1]):
        label, kind = column_label(names, j), None if kinds is None else kinds[j]
        if isinstance(X, Frame):
            yield X.columns[j]
        elif _is_frame_of("pandas", X):
            yield _pandas_column(X.iloc[:, j], label, kind)
        elif _is_frame_of("polars", X):
            yield _polars_column(X.to_series(j), label, kind)
        else:
            yield _array_column(X[:, j], label, kind)


def column_names(X: Any) -> tuple[str, ...] | None:
    if isinstance(X, Frame):
        return X.names
    names = _get_feature_names(X)
    return None if names is None else tuple(names)


def target_name(y: Any) -> str | list[str] | None:
    """The name of a series of pandas or polars, or those of the columns of a frame of several; None where
    there is none.
    """
    if is_frame(y):
        names = column_names(y)
        return None if names is None else names[0] if len(names) == 1 else list(names)
    is_series = any(
        isinstance(y, getattr(sys.modules.get(library), "Series", ())) for library in ("pandas", "polars")
    )
    return y.name if is_series and isinstance(y.name, str) and y.name else None


def column_label(names: tuple[str, ...] | None, j: int) -> str:
    """What messages call column j."""
    return f"column {j}" if names is None else f'column "{names[j]}"'


def all_different(names: Iterable[str]) -> list[str]:
    """Names by which things can be told apart: the second "a" becomes "a (2)"."""
    names = list(names)
    taken, found = set(names), dict[str, None]()
    for name in names:
        different, number = name, 1
        while different in found or (number > 1 and different in taken):
            number += 1
            different = f"{name} ({number})"
        found[different] = None
    return list(found)


def number_levels(numbers: np.ndarray) -> Levels:
    """Numbers as the names of levels."""
    values, codes = np.unique(numbers, return_inverse=True)
    missing = np.isnan(values)  # which unique puts last
    return Levels(np.where(missing[codes], -1, codes), [level_name(value) for value in values[~missing]])


def why_not_numbers(X: Any, missing_allowed: bool = False) -> str | None:
    """What is in a frame or object array that a model of numbers alone cannot take; None if there is nothing,
    or X is neither.
    """
    if not (is_frame(X) or is_raw(X)):
        return None
    names = column_names(X)
    for j, column in enumerate(raw_columns(X, names)):
        if isinstance(column, Levels):
            return f"{column_label(names, j)} holds {'strings' if column.names else 'nothing but missing values'}"
        if column.dtype.kind == "f" and not missing_allowed and np.isnan(column).any():
            return f"{column_label(names, j)} has missing values"
    return None


def _is_frame_of(library: str, X: Any) -> bool:
    module = sys.modules.get(library)  # who has a frame has imported its library
    return module is not None and isinstance(X, getattr(module, "DataFrame", ()))


# ---- one column


def _pandas_column(series: Any, label: str, kind: str | None) -> RawColumn:
    dtype = series.dtype
    if dtype.kind in NUMERIC and not (dtype.kind == "b" and kind == "category"):
        return (
            series.to_numpy()
            if isinstance(dtype, np.dtype)
            else series.to_numpy(dtype=np.float64, na_value=np.nan)
        )
    if dtype.name == "category":
        levels = series.array
        return Levels(
            levels.codes.astype(np.intp),
            [level_name(level) for level in levels.categories],
            bool(levels.ordered),
        )
    if dtype.type is str and len(series) >= FEW_ROWS:
        codes, strings = series.factorize()
        return Levels(codes, list(strings))
    if dtype.kind in "mM":
        raise _refusal(label, str(dtype), "date" if dtype.kind == "M" else "duration")
    return _object_column(series.to_numpy(dtype=object), label, kind)


def _polars_column(series: Any, label: str, kind: str | None) -> RawColumn:
    import polars

    dtype = series.dtype
    if dtype.is_decimal():
        return series.cast(polars.Float64).to_numpy()
    if dtype.is_numeric():
        return series.to_numpy()
    if dtype == polars.Boolean and kind != "category":
        return series.cast(polars.UInt8).to_numpy()
    if dtype == polars.Null:
        return Levels(np.full(len(series), -1), [])
    if dtype in (polars.Object, polars.Boolean):
        return _object_column(series.to_numpy().astype(object), label, kind)
    if dtype not in (polars.String, polars.Categorical, polars.Enum):
        temporal = {
            polars.Date: "date",
            polars.Datetime: "date",
            polars.Duration: "duration",
            polars.Time: "time",
        }
        raise _refusal(label, str(dtype), temporal.get(dtype.base_type(), "other"))
    ordered = dtype == polars.Enum
    if not ordered:
        strings = series.cast(polars.String)
        if len(strings) < FEW_ROWS:
            return _object_column(strings.to_numpy(), label, kind)
        series = strings.cast(polars.Enum(strings.drop_nulls().unique()))
    codes = series.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return Levels(codes, series.dtype.categories.to_list(), ordered)


def _array_column(values: np.ndarray, label: str, kind: str | None) -> RawColumn:
    if values.dtype.kind in NUMERIC:
        return values
    if values.dtype.kind == "S":
        values = values.astype(str)
    column = _object_column(values.astype(object, copy=False), label, kind)
    if values.dtype.kind == "O" or isinstance(column, np.ndarray) or kind == "category":
        return column
    numbers = column.as_numbers()  # an array of strings has its numbers as strings, too
    return column if numbers is None else numbers


def _object_column(values: np.ndarray, label: str, kind: str | None) -> RawColumn:
    """Numbers if all that is there are numbers, otherwise levels by their names; no levels if nothing is
    there.

    A category known as such is levels in any case, and a number known as such has numbers for names.
    """
    types = set(map(type, values))
    missing = {kind for kind in types if kind.__name__ in MISSING}
    text = {kind for kind in types if issubclass(kind, str)}
    numbers = {kind for kind in types - missing if issubclass(kind, Real | Decimal | np.bool_)}
    for strange in sorted(types - missing - text - numbers, key=str):
        raise _refusal(
            label,
            strange.__name__,
            next((what for what, kinds in TEMPORAL.items() if issubclass(strange, kinds)), "other"),
        )
    if text and kind == "number":
        return _factorize([float(value) if type(value) in numbers else value for value in values], missing)
    if numbers and not text and kind != "category":
        column = np.array([np.nan if type(value) in missing else value for value in values], dtype=np.float64)
        return Levels(np.full(len(column), -1), []) if np.isnan(column).all() else column
    if numbers - {float}:  # by name from the start: as keys, 1 and True are the same
        return _factorize(
            [None if type(value) in missing or value != value else level_name(value) for value in values],
            {type(None)},
        )
    return _factorize(values, missing)


def _factorize(values: Any, missing: set[type]) -> Levels:
    distinct: dict[Any, int] = {}
    codes = np.fromiter(
        (distinct.setdefault(value, len(distinct)) for value in values), dtype=np.intp, count=len(values)
    )
    number = np.full(len(distinct), -1)
    names: list[str] = []
    for value, code in distinct.items():
        if type(value) not in missing and value == value:
            number[code] = len(names)
            names.append(level_name(value))
    return Levels(number[codes] if len(values) else codes, names)


def level_name(level: Any) -> str:
    """The same for the same level, whether it comes as 3, 3.0 or "3"."""
    if isinstance(level, Decimal | Fraction):
        level = float(level)
    if isinstance(level, bool | np.bool_) or not isinstance(level, Real):
        return str(level)
    if isinstance(level, Integral):
        return str(int(level))
    if float(level).is_integer():
        return str(int(float(level)))
    return str(level)


def _refusal(label: str, dtype: str, what: str) -> TypeError:
    return TypeError(f"X: {label} is of type {dtype}, which is neither number nor category. {HINTS[what]}")
