"""The columns of pandas, polars, pyarrow and arrays: every dtype becomes numbers, dates or levels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .frame import MISSING_TYPES, Frame, Levels, RawColumn, column_label, level_name
from .temporal import CLASSES, of_numpy, of_objects, of_pandas, of_polars

NUMERIC = "fiub"  # kinds of dtypes; booleans are the numbers 0 and 1
FEW_ROWS = 1000  # up to this number of rows, plain Python is faster than pandas or polars
# scikit-learn's checks expect these words in an error that refuses an object.
HINT = (
    "Each argument must be a missing value, a string or a real number; "
    "or all of them are dates, or durations, or times."
)
HINTS = {
    "period": (
        'Give its periods as dates, df["when"].dt.to_timestamp(), or as categories, df["when"].astype(str).'
    ),
    "bytes": 'Decode them to text: numpy.char.decode(X, "utf-8"), or df["name"].str.decode("utf-8").',
}


def is_a(library: str, X: Any, name: str = "DataFrame") -> bool:
    """Tell whether X belongs to a class of a library, without importing the library."""
    module = sys.modules.get(library)  # if there is a frame, its library has been imported
    return module is not None and isinstance(X, getattr(module, name, ()))


def is_frame(X: Any) -> bool:
    """Tell whether X is a Frame, a pandas or polars DataFrame, or a pyarrow table."""
    return isinstance(X, Frame) or is_a("pandas", X) or is_a("polars", X) or is_a("pyarrow", X, "Table")


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns; None if they have none. As in scikit-learn, names are text."""
    if isinstance(X, Frame):
        return X.names
    names = [] if not is_frame(X) else X.column_names if is_a("pyarrow", X, "Table") else list(X.columns)
    text = {isinstance(name, str) for name in names}
    if len(text) > 1:
        raise TypeError(f"The names of the columns of X must all be text, or none of them, got {names}.")
    return tuple(names) if text == {True} else None


def read_columns(X: Any, kinds: Sequence[str | None] | None = None) -> Iterator[RawColumn]:
    """Yield the columns of a frame or array; ``kinds`` are those of a fit, see `dataframes.read_frame`."""
    names = column_names(X)
    read: Callable[[Any, str, str | None], RawColumn]
    series: Iterable[Any]
    if is_a("pandas", X):  # items() takes a fifth of the time of iloc, which matters for single rows
        read, series = _pandas_column, (each for _, each in X.items())
    elif is_a("polars", X):
        read, series = _polars_column, X.iter_columns()
    elif is_a("pyarrow", X, "Table"):
        read, series = _arrow_column, X.itercolumns()
    else:
        read, series = _array_column, X.T
    for j, (column, kind) in enumerate(zip(series, kinds or [None] * X.shape[1], strict=True)):
        yield read(column, column_label(names, j), kind)


def _arrow_column(column: Any, label: str, kind: str | None) -> RawColumn:
    from .files.arrow import ArrowCells, refused
    from .files.cells import WrongCellError

    if refused(column.type):
        raise _refusal(label, str(column.type))
    cells = ArrowCells(label, column.unify_dictionaries().combine_chunks())
    try:
        if cells.declared == "date":
            return cells.dates()
        return cells.levels() if "category" in (kind, cells.declared) else cells.numbers()
    except WrongCellError as error:
        raise ValueError(
            f"{label} has {error}, in row {error.row} (counting from 0): make it finite, or missing."
        ) from None


def _pandas_column(series: Any, label: str, kind: str | None) -> RawColumn:
    dtype = series.dtype
    if dtype.kind in NUMERIC and not (dtype.kind == "b" and kind == "category"):
        if isinstance(dtype, np.dtype):
            return series.to_numpy()
        if dtype.kind not in "iu" or kind != "category":
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        # Integers of many digits, as of accounts, stay what they are.
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
    if dtype.name.startswith(("datetime64", "timedelta64")):
        return of_pandas(series)
    return object_column(series.to_numpy(dtype=object), label, kind)


def _polars_column(series: Any, label: str, kind: str | None) -> RawColumn:
    import polars

    dtype = series.dtype
    if dtype.is_decimal():
        return series.cast(polars.Float64).to_numpy()
    if dtype.is_integer() and kind == "category" and series.null_count():
        return object_column(np.array(series.to_list(), dtype=object), label, kind)  # not as floats
    if dtype.is_numeric():
        return series.to_numpy()
    if dtype == polars.Boolean and kind != "category":
        return series.cast(polars.UInt8).to_numpy()
    if dtype == polars.Null:
        return Levels(np.full(len(series), -1), [])
    if dtype in (polars.Object, polars.Boolean):
        return object_column(series.to_numpy().astype(object), label, kind)
    if dtype.is_temporal():
        return of_polars(series)
    if dtype not in (polars.String, polars.Categorical, polars.Enum):
        raise _refusal(label, str(dtype))
    ordered = dtype == polars.Enum
    if not ordered:
        strings = series.cast(polars.String)
        if len(strings) < FEW_ROWS:
            return object_column(strings.to_numpy(), label, kind)
        series = strings.cast(polars.Enum(strings.drop_nulls().unique()))
    codes = series.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return Levels(codes, series.dtype.categories.to_list(), ordered)


def _array_column(values: np.ndarray, label: str, kind: str | None) -> RawColumn:
    if values.dtype.kind in NUMERIC:
        return values
    if values.dtype.kind in "mM":
        return of_numpy(values)
    return object_column(values.astype(object, copy=False), label, kind)


def object_column(values: np.ndarray, label: str, kind: str | None) -> RawColumn:
    """Return numbers or dates if all entries are numbers or dates, otherwise levels by name; no levels if all
    entries are missing.

    Durations become seconds, and times of the day hours. A known category always becomes levels, and in a
    known numeric column with text, levels of numbers are named by their numbers.
    """
    types = set(map(type, values))
    missing = {type_ for type_ in types if type_.__name__ in MISSING_TYPES}
    for what, classes in CLASSES.items():
        if types > missing and all(issubclass(type_, classes) for type_ in types - missing):
            return of_objects(what, (None if type(value) in missing else value for value in values))
    text = {type_ for type_ in types if issubclass(type_, str)}
    real = {type_ for type_ in types - missing if issubclass(type_, Real | Decimal | np.bool_)}
    numbers = real - {np.timedelta64}  # NumPy treats these as integers
    for strange in sorted(types - missing - text - numbers, key=str):
        raise _refusal(label, strange.__name__)
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


def as_objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


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


def _refusal(label: str, dtype: str) -> TypeError:
    hint = HINTS.get(dtype.lower().partition("[")[0], HINT)
    return TypeError(f"{label} is of type {dtype}, which is neither number nor category. {hint}")
