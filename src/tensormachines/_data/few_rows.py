"""A few rows of a frame as a matrix, in microseconds: the fast path of predictions.

It handles frames exactly as in the fit, and leaves the rest to `dataframes`; both must return the same
numbers. It inspects as little as possible: reading the dtypes of a pandas frame alone takes longer than a
prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any
from weakref import ref

import numpy as np

from .encoding import Column
from .frame import is_missing, level_name
from .raw_columns import FEW_ROWS, is_a

FEW_LEVELS = 50  # up to this number, all names take less time than one name
OBJECT, SINGLE = np.dtype(object), np.dtype(np.float32)
PLAIN = {np.dtype(name) for name in ("float64", "int64", "int32", "bool")}  # all become float64
PLAIN_IN_POLARS = {
    "Float64",
    "Boolean",
    *(f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)),
}
NAMED_IN_POLARS = {"String", "Categorical", "Enum"}


def read_few_rows(X: Any, names: list[str], categories: Mapping[int, Column]) -> np.ndarray | None:
    """Return at most FEW_ROWS rows of a pandas or polars frame as a matrix of float64 or float32.

    ``names`` are the names of the fit, ``categories`` its categories by column index. Return None if
    something is not exactly as in the fit, or must be examined by `read_frame`."""
    if is_a("pandas", X) and 0 < len(X) <= FEW_ROWS and _has_names(X.columns, names):
        return _rows_of_pandas(X, categories)
    if is_a("polars", X) and 0 < len(X) <= FEW_ROWS and X.columns == names:
        return _rows_of_polars(X, categories)
    return None


# ---- pandas


class Remembered:
    """Facts about pandas indexes or dtypes, which never change, for as long as these objects live."""

    def __init__(self) -> None:
        self._facts: dict[int, tuple[ref[Any], Any]] = {}

    def __getitem__(self, thing: Any) -> Any:
        """Return what is known about this very object; None if nothing is known."""
        found = self._facts.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def __setitem__(self, thing: Any, fact: Any) -> None:
        key = id(thing)
        self._facts[key] = ref(thing, lambda _: self._facts.pop(key, None)), fact


class LevelNames(dict[int, str | None]):
    """Names of levels by code, read from a pandas array on demand."""

    def __init__(self, levels: Any) -> None:
        super().__init__({-1: None})
        few_strings = len(levels) < FEW_LEVELS and isinstance(levels, _arrays().ArrowStringArray)
        self._levels = levels.__arrow_array__().to_pylist() if few_strings else levels

    def __missing__(self, code: int) -> str:
        level = self._levels[code]
        self[code] = name = level if type(level) is str else level_name(level)
        return name


_names, _levels = Remembered(), Remembered()


def _has_names(index: Any, names: list[str]) -> bool:
    """Tell whether the columns have these names; an index seen before has the same strings, compared fast."""
    if _names[index] == names:
        return True
    equal = bool(index.equals(_pandas_index(tuple(names))))
    if equal:
        _names[index] = names
    return equal


@cache
def _arrays() -> Any:
    import pandas

    return pandas.arrays


@lru_cache(maxsize=64)
def _pandas_index(names: tuple[str, ...]) -> Any:
    import pandas

    return pandas.Index(names)


def _rows_of_pandas(X: Any, categories: Mapping[int, Column]) -> np.ndarray | None:
    """Read the private arrays of a frame: reading it by columns takes 20 microseconds per column."""
    codes: dict[int, list[float]] = {}
    numbers = []
    for block in getattr(getattr(X, "_mgr", None), "blocks", ()):
        values, places = block.values, block.mgr_locs
        if not isinstance(values, np.ndarray):
            (j, *others) = places.as_array.tolist()
            if others or j not in categories or (names := _names_of_array(values)) is None:
                return None
            codes[j] = categories[j].codes(names)
        elif values.dtype == OBJECT:
            for j, entries in zip(places.as_array.tolist(), values.tolist(), strict=True):
                if j not in categories or (names := _only_names(entries)) is None:
                    return None
                codes[j] = categories[j].codes(names)
        else:
            numbers.append((values, places))
    return _joined(X.shape, numbers, codes) if len(codes) == len(categories) else None


def _joined(
    shape: tuple[int, int], numbers: list[tuple[np.ndarray, Any]], codes: dict[int, list[float]]
) -> np.ndarray | None:
    """Return the matrix of blocks of numbers and columns of codes; None if some numbers are not plain."""
    types = {values.dtype for values, _ in numbers}
    single = types == {SINGLE}
    if not (single or types <= PLAIN) or not (numbers or codes):
        return None
    matrix = np.empty(shape, SINGLE if single else np.float64)
    # Assigning a number takes NumPy a quarter of the time of an array or list of one number.
    for values, places in numbers:
        matrix[:, places.indexer] = values.item() if values.size == 1 else values.T
    for j, column in codes.items():
        matrix[:, j] = column[0] if len(column) == 1 else column
    return matrix


def _names_of_array(values: Any) -> Iterable[str | None] | None:
    """Return the names in an extension array of pandas; None if it has other entries."""
    arrays = _arrays()
    if isinstance(values, arrays.Categorical):
        names = _levels[values.dtype]
        if names is None:
            _levels[values.dtype] = names = LevelNames(values.categories.array)
        return map(names.__getitem__, values.codes.tolist())
    if isinstance(values, arrays.ArrowStringArray):
        return values.__arrow_array__().to_pylist()
    return _only_names(values.to_numpy(dtype=object).tolist())


def _only_names(entries: Sequence[Any]) -> Sequence[str | None] | None:
    """Return the entries of a category, with None for missing ones; None if an entry is not a name."""
    for entry in entries:
        if type(entry) is not str:
            break
    else:
        return entries
    names = [None if is_missing(entry) else entry for entry in entries]
    return names if set(map(type, names)) <= {str, type(None)} else None


# ---- polars


def _rows_of_polars(X: Any, categories: Mapping[int, Column]) -> np.ndarray | None:
    if not categories:
        return _row_of_polars(X) if len(X) == 1 else _matrix_of_polars(X)
    rows = X.rows()
    if not _are_plain(_dtypes_that_matter(X, rows, categories)):
        return None
    encoded, incomplete = [list(row) for row in rows], set()
    for j, category in categories.items():
        for row in encoded:
            if row[j] is None:
                incomplete.add(j)
            elif type(row[j]) is not str:
                return None
            row[j] = category.code(row[j])
    if not all(type(X.to_series(j).dtype).__name__ in NAMED_IN_POLARS for j in incomplete):
        return None
    return np.array(encoded, dtype=np.float64)


def _row_of_polars(X: Any) -> np.ndarray | None:
    """Return one row of numbers; for a row cut from many, this is much faster than its matrix."""
    rows = X.rows()
    types = set(map(type, rows[0]))
    # Among floats, one Float64 column is enough: narrower columns then also become float64.
    if types <= {float, int} and _are_plain([X.to_series(0).dtype] if types == {float} else X.dtypes):
        return np.array(rows, dtype=np.float64)
    return _matrix_of_polars(X)


def _matrix_of_polars(X: Any) -> np.ndarray | None:
    if not all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in X.dtypes):
        return None  # beside floats, dates and durations become numbers of their own units
    matrix = X.to_numpy()
    return matrix.astype(np.float64, order="C") if matrix.dtype in PLAIN else None


def _dtypes_that_matter(
    X: Any, rows: Sequence[tuple[Any, ...]], categories: Mapping[int, Column]
) -> list[Any]:
    """Return the numeric dtypes that values do not reveal; dtypes of categories take long and do not matter.

    For the floats of a single row, one dtype is enough, see above. None may be of any type."""
    if len(rows) > 1:
        return [dtype for j, dtype in enumerate(X.dtypes) if j not in categories]
    is_float = {j: type(value) is float for j, value in enumerate(rows[0]) if j not in categories}
    floats, others = ([j for j in is_float if is_float[j] is wanted] for wanted in (True, False))
    return [X.to_series(j).dtype for j in (*floats[:1], *others)]


def _are_plain(dtypes: Sequence[Any]) -> bool:
    return all(type(dtype).__name__ in PLAIN_IN_POLARS for dtype in dtypes)
