"""X as users give it: frames, arrays, lists and dicts are checked, and become a Frame if they are raw."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from scipy import sparse

from .dates import is_dates
from .frame import MISSING_TYPES, Frame, Levels, check_unique, column_label
from .masked import without_mask
from .raw_columns import NUMERIC, as_objects, column_names, is_a, is_frame, object_column, read_columns
from .temporal import what_holds


def as_frame(X: Any) -> Any:
    """Return X as a Frame if its columns must be read one by one, because NumPy sees no numbers in X.

    Numeric arrays, numeric DataFrames and sparse matrices are returned unchanged, lists of numbers as an
    array. Rows of a Frame can be selected, so that code that needs several subsets of X reads each column
    only once."""
    X = without_lists(X)
    if isinstance(X, Frame) or not is_raw(X):
        return X
    frame = read_frame(X)
    return Frame(frame.names, frame.columns, frame.raw, boolean_columns(X))


def read_frame(X: Any, kinds: Sequence[str | None] | None = None) -> Frame:
    """Read every column of a frame or array once.

    If a fit has determined the ``kinds`` of the columns, "number", "category" or "date", every entry is read
    as this kind, whatever else its column now contains."""
    X = without_lists(X)
    if isinstance(X, Frame):
        return X
    if sparse.issparse(X) or len(X.shape) != 2:
        raise ValueError(
            f"X must be a frame with columns as in the fit, got {type(X).__name__} of shape {X.shape}."
        )
    if kinds is not None and len(kinds) != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, in the fit there were {len(kinds)}.")
    return Frame(column_names(X), list(read_columns(X, kinds)), raw=True)


def is_raw(X: Any) -> bool:
    """Tell whether X must be read column by column, because NumPy sees no numbers in X."""
    if isinstance(X, Frame):
        return X.raw
    if is_a("pandas", X):
        dtypes = list(X.dtypes)
        all_sparse = all(str(dtype).startswith("Sparse") for dtype in dtypes)
        return not all_sparse and not all(
            isinstance(dtype, np.dtype) and dtype.kind in NUMERIC for dtype in dtypes
        )
    if is_a("polars", X):
        return not all(dtype.is_integer() or dtype.is_float() for dtype in X.dtypes)
    if is_a("pyarrow", X, "Table"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUSTmM"


def refuse_empty(X: Any) -> None:
    """Refuse X without rows or without columns."""
    missing = [what for what, size in zip(("rows", "columns"), X.shape, strict=False) if not size]
    if missing:
        # scikit-learn's checks expect these words.
        found = "0 sample(s)" if "rows" in missing else "0 feature(s)"
        raise ValueError(
            f"X has no {' and no '.join(missing)}: {found} (shape={tuple(X.shape)}) while a minimum of 1 is "
            "required. Check how they were selected."
        )


def refuse_infinite(X: Any, names: Sequence[str] | None, missing_allowed: bool) -> None:
    """Refuse a frame or dense array of columns with these names that has an infinite number."""
    X = as_frame(X)
    for j in range(X.shape[1] if len(X.shape) == 2 else 0):
        if (numbers := numbers_of(X, j)) is None:
            continue
        rows = np.flatnonzero(np.isinf(numbers))
        if len(rows):
            several = "" if len(rows) == 1 else f"{len(rows):,} rows, first in "
            raise ValueError(
                f"{column_label(names, j)} has infinity in {several}row {rows[0]} (counting from 0): "
                f"make such numbers finite{', or missing (NaN)' if missing_allowed else ''}."
            )


def why_not_numbers(X: Any, missing_allowed: bool = False) -> str | None:
    """Return what is not a number in a frame or object array; None if everything is."""
    X = without_lists(X)
    if not (is_frame(X) or is_raw(X)):
        return None
    for j, what in temporal_columns(X).items():
        return f"{column_label(column_names(X), j)} holds {what}s"
    for j, column in enumerate(X.columns if isinstance(X, Frame) else read_columns(X)):
        label = column_label(column_names(X), j)
        if isinstance(column, Levels):
            return f"{label} holds {'strings' if column.names else 'nothing but missing values'}"
        if column.dtype.kind == "f" and not missing_allowed and np.isnan(column).any():
            return f"{label} has missing values"
    return None


def temporal_columns(X: Any) -> dict[int, str]:
    """Return the columns of a frame or array whose type says that they hold dates, durations or times.

    scikit-learn would treat some of them as numbers of nanoseconds."""
    kinds: list[Any] = []
    if isinstance(X, Frame):
        kinds = ["M" if is_dates(column) else None for column in X.columns]
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        kinds = [X.dtype.kind] * X.shape[1]
    elif is_a("pandas", X):
        kinds = [getattr(dtype, "kind", None) for dtype in X.dtypes]
    elif is_a("polars", X):
        kinds = [type(dtype).__name__ for dtype in X.dtypes]
    elif is_a("pyarrow", X, "Table"):
        kinds = [str(field.type).partition("[")[0] for field in X.schema]
    return {j: what for j, kind in enumerate(kinds) if (what := what_holds(kind)) is not None}


def numbers_of(X: Any, j: int) -> np.ndarray | None:
    """Return the numbers of column j of a frame or dense array; None if it is not numeric or X is sparse."""
    if isinstance(X, Frame):
        column = X.columns[j]
        return None if isinstance(column, Levels) or is_dates(column) else column
    if isinstance(X, np.ndarray):
        return X[:, j] if X.dtype.kind in NUMERIC else None
    if is_a("pandas", X):
        series = X.iloc[:, j]
        if series.dtype.kind not in NUMERIC:
            return None
        plain = isinstance(series.dtype, np.dtype)
        return series.to_numpy() if plain else series.to_numpy(dtype=np.float64, na_value=np.nan)
    if is_a("polars", X):
        series = X.to_series(j)
        return series.to_numpy() if series.dtype.is_integer() or series.dtype.is_float() else None
    return None


def declares_category(X: Any, j: int) -> bool:
    """Tell whether the type of column j of a frame says that it is a category, not just text."""
    if is_a("pandas", X):
        return str(X.dtypes.iloc[j]) == "category"
    if is_a("polars", X):
        return type(X.dtypes[j]).__name__ in ("Categorical", "Enum")
    return is_a("pyarrow", X, "Table") and str(X.schema.types[j]).startswith("dictionary")


def text_of(X: Any, j: int) -> list[str]:
    """Return the different texts in column j of a frame or array; none if it holds something else."""
    if isinstance(X, Frame):
        column = X.columns[j]
    elif is_a("pandas", X):
        column = next(read_columns(X.iloc[:, [j]]))
    else:
        column = next(read_columns(X.select([j]) if is_a("pyarrow", X, "Table") else X[:, [j]]))
    return column.names if isinstance(column, Levels) else []


def boolean_columns(X: Any) -> set[int]:
    """Return the indices of the boolean columns of a frame or array, by their type or as Python objects; they
    may have missing values.
    """
    X = without_lists(X)
    if isinstance(X, Frame):
        of_type = {j for j, each in enumerate(X.columns) if getattr(each, "dtype", None) == np.bool_}
        return of_type | X.booleans
    if is_a("pandas", X):
        columns = (each for _, each in X.items())
        return {j for j, each in enumerate(columns) if each.dtype.kind == "b" or _are_booleans(each)}
    if is_a("polars", X):
        return {j for j, dtype in enumerate(X.dtypes) if str(dtype) == "Boolean"}
    if is_a("pyarrow", X, "Table"):
        return {j for j, field in enumerate(X.schema) if str(field.type) == "bool"}
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return set()
    return {j for j, each in enumerate(X.T) if each.dtype.kind == "b" or _are_booleans(each)}


def _are_booleans(values: Any) -> bool:
    """Tell whether a column of Python objects holds only booleans and missing values."""
    if values.dtype.kind != "O":
        return False
    values = np.asarray(values)
    types = {each for each in set(map(type, values)) if each.__name__ not in MISSING_TYPES}
    if not types & {bool, np.bool_} or types - {bool, np.bool_, float}:
        return False
    return float not in types or all(value != value for value in values if type(value) is float)


def as_known(X: Any) -> Any:
    """Return X in a form that the rest of the package reads: a record batch as a pyarrow table, the frame
    that narwhals wraps, missing values instead of masked entries; anything else unchanged.
    """
    if isinstance(X, np.ma.MaskedArray):
        return without_mask(X)
    if is_a("pyarrow", X, "RecordBatch"):
        return sys.modules["pyarrow"].Table.from_batches([X])
    return X.to_native() if is_a("narwhals", X) else X


def without_lists(X: Any) -> Any:
    """Return lists of rows as an array, or as a Frame if the rows are dicts; anything else unchanged.

    Mixed types stay objects: NumPy would convert numbers and booleans next to strings to strings, and
    booleans next to numbers to numbers."""
    X = as_known(X)
    if isinstance(X, np.ndarray) or sparse.issparse(X) or is_frame(X):
        _refuse_repeated_names(X)
        return X
    _refuse_no_rows(X)
    if str(getattr(X, "dtype", "")).startswith("period["):  # a series or an index of pandas
        raise ValueError(
            f"X is a {type(X).__name__} of type {X.dtype}, and periods are not numbers. Give what matters of "
            'them as columns of a frame, such as {"year": X.year, "month": X.month} (of a series: X.dt.year).'
        )
    if isinstance(X, list | tuple) and X and all(isinstance(row, dict) for row in X):
        return _from_dicts(X)
    array = np.asarray(X)
    if not isinstance(X, list | tuple):
        return array
    rows = (row for row in X if isinstance(row, list | tuple))
    changed = array.dtype.kind in "US" or (
        array.dtype.kind in "iuf" and any(isinstance(entry, bool) for row in rows for entry in row)
    )
    return np.array(X, dtype=object) if changed else array


def _refuse_no_rows(X: Any) -> None:
    """Refuse what gives rows only after it has been read, and say how to read it."""
    for library in ("polars", "narwhals"):
        if is_a(library, X, "LazyFrame"):
            raise ValueError(
                f"X is a LazyFrame of {library}, whose rows have not been read yet: give X.collect()."
            )
    name = type(X).__name__
    if isinstance(X, str | bytes | PathLike):
        raise ValueError(
            f"X must hold rows, got the {name} {fspath(X)[:100]!r}. If this is a file, give a source of its "
            "rows: tensormachines.blocks.csv(X) or blocks.parquet(X), for a fit with target=... and no y."
        )
    if isinstance(X, Mapping):
        raise ValueError(f"X must hold rows, got a {name}. If its values are columns: pandas.DataFrame(X).")
    if isinstance(X, Iterator):
        raise ValueError(
            f"X must hold rows, got a {name}, which can be read only once. If it yields blocks (X, y), give "
            "tensormachines.blocks.iterable(function), with a function that returns a new one each time, and "
            "no y. If it yields rows, give list(X)."
        )


def _refuse_repeated_names(X: Any) -> None:
    """Refuse a frame with two columns of the same name; polars has none."""
    if is_a("pandas", X) and not X.columns.is_unique:
        check_unique(X.columns, "X")
    if is_a("pyarrow", X, "Table"):
        check_unique(X.column_names, "X")


def _from_dicts(rows: Sequence[dict[str, Any]]) -> Frame:
    """Read rows by the names of their entries; an entry that a row does not have is missing."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"X: the keys of its rows must be names of columns, got {names}.")
    values = [as_objects([row.get(name) for row in rows]) for name in names]
    columns = [object_column(each, column_label(names, j), None) for j, each in enumerate(values)]
    return Frame(
        names, columns, raw=True, booleans=[j for j, each in enumerate(values) if _are_booleans(each)]
    )
