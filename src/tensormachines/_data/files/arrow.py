"""Parquet and Arrow IPC (Feather) files, datasets and tables; needs pyarrow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np

from ..frame import Levels, check_unique, level_name, number_levels
from ..temporal import dates_of_arrow, span_of_arrow
from .cells import CellBlock, TextCells, WrongCellError
from .checks import Where, block_rows, float_type
from .column_kinds import ColumnKinds
from .paths import (
    Chosen,
    Path,
    check_present,
    choose_columns,
    files_below,
    find_files,
    import_pyarrow,
    readable,
)
from .source import ColumnSource, Source

ROWS = 20_000  # of a block by default
INDEX = re.compile(
    r"__index_level_\d+__"
)  # pandas' name for the row index, which pandas does not treat as a column


def parquet(
    path: Path | Sequence[Path],
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
) -> Source:
    """Read blocks from Parquet files; requires pyarrow.

    Columns are found by name, so their order may differ between files. In a folder, all files are read in the
    order of their names, including files in subfolders, except for names that begin with '.' or '_'. Folders
    named like ``year=2024`` give a column, of integers if the value is an integer, otherwise of text.

    Numbers, booleans, durations (in seconds) and times of the day (in hours) are numbers. Text and
    dictionaries are categories, or text in the target. X may also have dates and missing values; target and
    weight may have neither.

    Parameters
    ----------
    path : path of a file or a folder, glob, or list of paths of files
    target : str or list of str, optional
        Name of the column to use as y, or names of the columns of a two-dimensional y.
    weight : str, optional
        Name of the column of weights.
    columns : list of str, optional
        Columns of X, in this order; None for all columns that are neither target nor weight.
    rows : int, optional
        Number of rows per block; None for about 32 MB of numbers, and at least 1024 rows.

    Returns
    -------
    Source
        The X of a block is a matrix if all columns are numbers, otherwise a frame. The matrix is float32 if
        all columns in all files are float32, else float64.
    """
    import_pyarrow()
    folder = os.fspath(path) if isinstance(path, str | os.PathLike) and os.path.isdir(path) else None
    files = find_files(path) if folder is None else files_below(folder)
    opened = [open_parquet(name, () if folder is None else _constants(name, folder)) for name in files]
    return _arrow_source("parquet", opened, target, weight, columns, rows)


def arrow(
    dataset: Any,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
) -> Source:
    """Read blocks from a `pyarrow.dataset.Dataset` or a `pyarrow.Table`; requires pyarrow.

    The columns have the types of the dataset's schema. See `parquet` for the other parameters. For a dataset
    with a filter, row numbers count over the whole dataset.

    Returns
    -------
    Source
    """
    pyarrow, datasets = import_pyarrow(), import_pyarrow("pyarrow.dataset")
    if isinstance(dataset, pyarrow.Table):
        files = [ArrowFile("the table", dataset.schema, partial(_table_batches, dataset))]
    elif isinstance(dataset, datasets.Dataset):
        files = _files_of(dataset)
    else:
        raise ValueError(
            f"dataset must be a pyarrow.dataset.Dataset or a pyarrow.Table, got {type(dataset).__name__}."
        )
    return _arrow_source("arrow", files, target, weight, columns, rows)


def _arrow_source(
    function: str,
    files: list[ArrowFile],
    target: str | Sequence[str] | None,
    weight: str | None,
    columns: Sequence[str] | None,
    rows: int | None,
) -> Source:
    first = files[0]
    chosen = choose_columns(first.label, first.names, target, weight, columns)
    for file in files:
        _check_schema(file, chosen, first, others_allowed=columns is not None)
    kinds = {name: _use(first.types[name]) for name in chosen.all}
    types = {name: [_number_type(file.types[name]) for file in files] for name in chosen.all}
    numbers = [each for name in chosen.features for each in types[name] if kinds[name] == "number"]
    targets = [each for name in chosen.targets for each in types[name] if kinds[name] == "number"]
    return ColumnSource(
        function,
        files,
        chosen,
        ColumnKinds(chosen.all, kinds),
        block_rows(rows, len(chosen.features)),
        float_type(numbers),
        np.result_type(*targets) if targets else None,
    )


# ---- files


class ArrowFile:
    """A part of a data set, read by columns; ``types`` holds the Arrow type of each column.

    ``batches(columns, rows)`` reads record batches of these columns, of at most about ``rows`` rows."""

    rereadable = True

    def __init__(self, label: str, schema: Any, batches: Callable[[list[str], int], Iterator[Any]]):
        self.label = label
        self._batches = batches
        self.names = [name for name in schema.names if not INDEX.fullmatch(name)]
        if not self.names:
            raise ValueError(f"{self.label} has no columns.")
        check_unique(self.names, self.label)
        self.types = {name: schema.field(name).type for name in self.names}

    def blocks(self, names: Sequence[str], rows: int | None = None) -> Iterator[CellBlock]:
        rows = rows or ROWS
        before = 0
        with _readable(self.label):
            for batch in self._batches(list(names), -(-rows // 8)):  # small, because the reader holds several
                batch.validate(full=True)  # offsets of a damaged IPC file may point outside memory
                for start in range(0, batch.num_rows, rows):
                    piece = batch.slice(start, rows)
                    cells = {name: ArrowCells(f"column {name!r}", piece.column(name)) for name in names}
                    yield CellBlock(cells, Where(self.label, before + 1), piece.num_rows)
                    before += piece.num_rows


def open_arrow(path: str) -> ArrowFile:
    """Open an Arrow IPC (Feather) file."""
    with _readable(path), _open_ipc(path) as file:
        return ArrowFile(path, file.schema, partial(_ipc_batches, path))


def open_parquet(path: str, constants: tuple[tuple[str, int | str], ...] = ()) -> ArrowFile:
    """Open a Parquet file, with columns of one value each from the names of its folders."""
    pyarrow = import_pyarrow()
    with _readable(path), _open_parquet(path) as file:
        schema = file.schema_arrow
    for name, value in constants:
        schema = schema.append(pyarrow.field(name, pyarrow.scalar(value).type))
    return ArrowFile(path, schema, partial(_parquet_batches, path, constants))


def _readable(label: str) -> AbstractContextManager[None]:
    return readable(label, import_pyarrow().ArrowException, OSError)


def _open_parquet(path: str) -> Any:
    # A dataset, or a file without this small buffer, would hold a whole row group in memory, which may be the
    # whole file.
    return import_pyarrow("pyarrow.parquet").ParquetFile(path, buffer_size=2**16, pre_buffer=False)


def _parquet_batches(
    path: str, constants: tuple[tuple[str, int | str], ...], columns: list[str], rows: int
) -> Iterator[Any]:
    pyarrow = import_pyarrow()
    with _open_parquet(path) as file:
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            for name, value in constants:
                batch = batch.append_column(name, pyarrow.repeat(value, batch.num_rows))
            yield batch.select(columns)


def _open_ipc(path: str) -> Any:
    # A batch may be the whole file. A memory map, unless compressed, brings only what is used into memory;
    # telling the reader which fields to include would copy all of it.
    pyarrow = import_pyarrow()
    return pyarrow.ipc.open_file(pyarrow.memory_map(path))


def _ipc_batches(path: str, columns: list[str], rows: int) -> Iterator[Any]:
    with _open_ipc(path) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number).select(columns)


def _table_batches(table: Any, columns: list[str], rows: int) -> Iterator[Any]:
    return iter(table.select(columns).to_batches(max_chunksize=rows))


AHEAD = {"batch_readahead": 1, "fragment_readahead": 1}


def _fragment_batches(fragment: Any, schema: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Read a file of a dataset by the schema of the dataset."""
    return fragment.to_batches(columns=columns, batch_size=rows, schema=schema, **AHEAD)


def _dataset_batches(dataset: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Read a whole dataset. Its filter reads damaged batches before they can be validated."""
    if isinstance(getattr(dataset, "format", None), import_pyarrow("pyarrow.dataset").IpcFileFormat):
        for path in dataset.files:
            with _readable(path):
                _validate_ipc(dataset.filesystem, path)
    yield from dataset.to_batches(columns=columns, batch_size=rows, **AHEAD)


def _validate_ipc(filesystem: Any, path: str) -> None:
    with filesystem.open_input_file(path) as opened, import_pyarrow().ipc.open_file(opened) as file:
        for number in range(file.num_record_batches):
            file.get_batch(number).validate(full=True)


def _files_of(dataset: Any) -> list[ArrowFile]:
    whole = ArrowFile("the dataset", dataset.schema, partial(_dataset_batches, dataset))
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it has a filter, which its fragments would lack
        return [whole]
    if not fragments:
        raise FileNotFoundError("The dataset has no files.")
    if any(getattr(fragment, "path", None) is None for fragment in fragments):
        return [whole]
    return [
        ArrowFile(fragment.path, dataset.schema, partial(_fragment_batches, fragment, dataset.schema))
        for fragment in fragments
    ]


def _constants(name: str, folder: str) -> tuple[tuple[str, int | str], ...]:
    """Return columns from the names of folders, as in folder/year=2024/country=no/file."""
    inside = os.path.relpath(os.path.dirname(name), folder).split(os.sep)
    found = [each.partition("=") for each in inside if "=" in each]
    for key, _, value in found:
        if value in ("", "__HIVE_DEFAULT_PARTITION__"):
            raise ValueError(f"{name}, column {key!r}: the name of the folder stands for a missing value.")
    return tuple(
        (key, int(value) if re.fullmatch("-?[0-9]{1,18}", value) else unquote(value))
        for key, _, value in found
    )


def _check_schema(file: ArrowFile, chosen: Chosen, first: ArrowFile, *, others_allowed: bool) -> None:
    """Refuse a file whose columns differ from those of the first file, or cannot be used."""
    check_present(file.label, file.names, chosen.all)
    used = set(chosen.all)
    others = [name for name in file.names if name not in used]
    if others and not others_allowed:
        raise ValueError(
            f"{file.label}: the column {others[0]!r} is not in {first.label}; name the columns to be used."
        )
    for name in chosen.all:
        type_, before = file.types[name], first.types[name]
        is_weight, is_target = name == chosen.weight, name in chosen.targets
        unfit = _use(type_) != "number" if is_weight else is_target and _is_temporal(type_)
        if refused(type_) or unfit:
            needed = "numbers" if is_weight else "numbers or text" if is_target else "numbers, text or dates"
            raise ValueError(f"{file.label}, column {name!r}: {needed} needed, got the type {type_}.")
        if _use(type_) != _use(before) or _is_temporal(type_) != _is_temporal(before):
            raise ValueError(
                f"{file.label}, column {name!r}: the type is {type_}, but {before} in {first.label}."
            )


# ---- columns


class ArrowCells:
    """A column of a batch whose kind the file declares: dates; numbers, including booleans, durations and
    times of the day; everything else, and any dictionary, is levels. ``label`` is its name in messages.
    """

    def __init__(self, label: str, array: Any):
        self.label = label
        self.array = array
        types = import_pyarrow().types
        self._is_dictionary = types.is_dictionary(array.type)
        self.ordered = self._is_dictionary and bool(array.type.ordered)
        is_boolean = types.is_boolean(array.type)
        self.declared: str | None = "boolean" if is_boolean else _use(array.type)
        self._holds_numbers = _use(_value_type(array.type)) == "number"

    def numbers(self, booleans: bool = True) -> np.ndarray:
        """Return numbers in their own type, or in float64 with NaN if some are missing."""
        pyarrow = import_pyarrow()
        array = self.array.dictionary_decode() if self._is_dictionary else self.array
        if not self._holds_numbers:
            texts = ["" if text is None else text for text in self._as_text(array).to_pylist()]
            return TextCells(texts).numbers(booleans)
        if _is_temporal(array.type):
            return span_of_arrow(array)
        if not pyarrow.types.is_floating(array.type) and (
            array.null_count or pyarrow.types.is_decimal(array.type)
        ):
            array = array.cast(pyarrow.float64(), safe=False)
        values = array.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "f" and np.isinf(values).any():
            raise WrongCellError(int(np.argmax(np.isinf(values))), "infinity")
        return values

    def dates(self) -> np.ndarray:
        """Return dates, NaT where missing, in the wall-clock time of their time zone if they have one."""
        if self.declared != "date":
            texts = ["" if text is None else text for text in self._as_text(self.array).to_pylist()]
            return TextCells(texts).dates()
        return dates_of_arrow(self.array)

    def levels(self, known: Container[str] = ()) -> Levels:
        """Return levels named by the text in the file; only null is missing."""
        if self.declared == "number" and not import_pyarrow().types.is_integer(self.array.type):
            return number_levels(self.numbers())
        plain = self.array if self._holds_numbers or self._is_dictionary else self._as_text(self.array)
        encoded = plain if self._is_dictionary else plain.dictionary_encode()
        signed = encoded.indices.cast(import_pyarrow().int64())  # those of polars and DuckDB have no sign
        codes = signed.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        texts: dict[str, int] = {}
        numbers = [
            -1 if name is None else texts.setdefault(name, len(texts))
            for name in self._names(encoded.dictionary)
        ]
        return Levels(np.array([*numbers, -1], dtype=np.intp)[codes], list(texts), self.ordered)

    def as_they_are(self) -> Sequence[Any]:
        return self.array

    def _names(self, values: Any) -> list[str | None]:
        if not self._holds_numbers:
            return self._as_text(values).to_pylist()
        return [
            None if value is None or value != value else level_name(value) for value in values.to_pylist()
        ]

    def _as_text(self, values: Any) -> Any:
        pyarrow = import_pyarrow()
        try:
            # The text of a duration would be a number without its unit; bytes need not be text.
            if pyarrow.types.is_duration(values.type) or "binary" in str(values.type):
                raise pyarrow.ArrowTypeError
            return values.cast(pyarrow.string())
        except pyarrow.ArrowException:
            raise ValueError(
                f"{self.label} is of type {self.array.type}, which is neither number nor text: "
                "leave it out (--ignore), or make a number or text of it."
            ) from None


def _value_type(type_: Any) -> Any:
    return type_.value_type if import_pyarrow().types.is_dictionary(type_) else type_


def _use(type_: Any) -> str:
    """Return what a column of an Arrow type is used as, "number", "date" or "category"."""
    types = import_pyarrow().types
    if types.is_date(type_) or types.is_timestamp(type_):
        return "date"
    numeric = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    spans = (types.is_duration, types.is_time)
    return "number" if any(is_numeric(type_) for is_numeric in (*numeric, *spans)) else "category"


def _is_temporal(type_: Any) -> bool:
    return import_pyarrow().types.is_temporal(type_)


def refused(type_: Any) -> bool:
    """Tell whether an Arrow type is neither number nor date nor category; a dictionary of dates is not."""
    values = _value_type(type_)
    if _is_temporal(values):
        return values != type_ or import_pyarrow().types.is_interval(values)
    return _use(values) == "category" and not (import_pyarrow().types.is_null(values) or str(values) in TEXT)


TEXT = ("string", "large_string", "string_view")


def _number_type(type_: Any) -> np.dtype:
    in_double = import_pyarrow().types.is_decimal(type_) or _is_temporal(type_) or _use(type_) != "number"
    return np.dtype(np.float64 if in_double else type_.to_pandas_dtype())
