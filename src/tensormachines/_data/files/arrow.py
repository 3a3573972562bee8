"""Rows in Parquet files, and in what else Apache Arrow reads."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np

from .checks import Where, as_target, as_weight, block_rows, check_finite, check_unique, float_type, labels
from .paths import Columns, Path, check_present, choose_columns, files_below, files_in_words, find_files
from .source import Chunk, Source


def parquet(
    path: Path | Sequence[Path],
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
) -> Source:
    """Blocks from Parquet files; needs pyarrow.

    Columns are found by name, so that their order may differ from file to file. In a folder all files are
    read, in the order of their names, those of folders within it too, but for names that begin with '.' or
    '_'; folders named like ``year=2024`` give a column, of whole numbers if the name is, else of text.

    Parameters
    ----------
    path : path of a file or a folder, glob, or list of paths of files
    target : str or list of str, optional
        The name of the column that is y, or the names of the columns of a y of two dimensions. Numbers,
        booleans or text.
    weight : str, optional
        The name of the column of weights.
    columns : list of str, optional
        The columns of X, in this order; None for all that are neither target nor weight. Numbers or booleans.
    rows : int, optional
        Rows in a block; None for about 32 MB of them, and at least 1024.

    Returns
    -------
    Source
        X is float32 if all its columns are, in all files, else float64.
    """
    _pyarrow("pyarrow")
    folder = os.fspath(path) if isinstance(path, str | os.PathLike) and os.path.isdir(path) else None
    files = find_files(path) if folder is None else files_below(folder)
    parts: list[_Part] = [_File(name, () if folder is None else _constants(name, folder)) for name in files]
    return _ArrowSource("parquet", parts, target, weight, columns, rows)


def arrow(
    dataset: Any,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
) -> Source:
    """Blocks from a `pyarrow.dataset.Dataset` or a `pyarrow.Table`; needs pyarrow.

    The types of the columns are those of the dataset's schema. See `parquet` for the other parameters. Rows
    of a dataset with a filter are counted over the whole dataset.

    Returns
    -------
    Source
    """
    pyarrow, datasets = _pyarrow("pyarrow"), _pyarrow("pyarrow.dataset")
    if isinstance(dataset, pyarrow.Table):
        parts: list[_Part] = [_Whole("the table", dataset)]
    elif isinstance(dataset, datasets.Dataset):
        parts = _fragments(dataset)
    else:
        raise ValueError(
            f"dataset must be a pyarrow.dataset.Dataset or a pyarrow.Table, got {type(dataset).__name__}."
        )
    return _ArrowSource("arrow", parts, target, weight, columns, rows)


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError('Parquet and Arrow need pyarrow: pip install "tensormachines[parquet]".') from error


@dataclass(frozen=True)
class _File:
    """A Parquet file, and columns that the names of its folders give, one value each."""

    name: str
    constants: tuple[tuple[str, int | str], ...]

    def schema(self) -> Any:
        pyarrow = _pyarrow("pyarrow")
        with self._open() as file:
            schema = file.schema_arrow
        for name, value in self.constants:
            schema = schema.append(pyarrow.field(name, pyarrow.scalar(value).type))
        return schema

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        pyarrow = _pyarrow("pyarrow")
        with self._open() as file:
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                for name, value in self.constants:
                    batch = batch.append_column(name, pyarrow.repeat(value, batch.num_rows))
                yield batch.select(columns)

    def _open(self) -> Any:
        # A dataset, or a file without this small buffer, would hold a whole row group in memory: it may be
        # the whole file.
        return _pyarrow("pyarrow.parquet").ParquetFile(self.name, buffer_size=2**16, pre_buffer=False)


@dataclass(frozen=True, eq=False)
class _Fragment:
    """A file of a dataset, read as the schema of the dataset has it."""

    name: str
    fragment: Any
    dataset_schema: Any

    def schema(self) -> Any:
        return self.dataset_schema

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        return self.fragment.to_batches(
            schema=self.dataset_schema, columns=columns, batch_size=rows, **_READ_LITTLE
        )


@dataclass(frozen=True, eq=False)
class _Whole:
    """A table, or a dataset that does not show its files."""

    name: str
    rows: Any

    def schema(self) -> Any:
        return self.rows.schema

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        if isinstance(self.rows, _pyarrow("pyarrow").Table):
            return iter(self.rows.select(columns).to_batches(max_chunksize=rows))
        return self.rows.to_batches(columns=columns, batch_size=rows, **_READ_LITTLE)


_READ_LITTLE = {"batch_readahead": 1, "fragment_readahead": 1}  # of what follows a batch, while it is used
_Part: TypeAlias = _File | _Fragment | _Whole


def _constants(name: str, folder: str) -> tuple[tuple[str, int | str], ...]:
    """Columns in the names of folders, as in folder/year=2024/country=no/file."""
    inside = os.path.relpath(os.path.dirname(name), folder).split(os.sep)
    found = [each.partition("=") for each in inside if "=" in each]
    for key, _, value in found:
        if value in ("", "__HIVE_DEFAULT_PARTITION__"):
            raise ValueError(f"{name}, column {key!r}: the name of the folder stands for a missing value.")
    return tuple(
        (key, int(value) if re.fullmatch("-?[0-9]{1,18}", value) else unquote(value))
        for key, _, value in found
    )


def _fragments(dataset: Any) -> list[_Part]:
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it has a filter, which the fragments would not have
        return [_Whole("the dataset", dataset)]
    if not fragments:
        raise FileNotFoundError("The dataset has no files.")
    if any(getattr(fragment, "path", None) is None for fragment in fragments):
        return [_Whole("the dataset", dataset)]
    return [_Fragment(fragment.path, fragment, dataset.schema) for fragment in fragments]


class _ArrowSource(Source):
    def __init__(
        self,
        function: str,
        parts: list[_Part],
        target: str | Sequence[str] | None,
        weight: str | None,
        columns: Sequence[str] | None,
        rows: int | None,
    ):
        schemas = [_read_schema(part) for part in parts]
        chosen = choose_columns(parts[0].name, schemas[0].names, target, weight, columns)
        for part, schema in zip(parts, schemas, strict=True):
            _check_schema(
                part.name, schema, chosen, parts[0].name, schemas[0], others_allowed=columns is not None
            )
        self.feature_names = chosen.features
        self.n_columns = len(chosen.features)
        self._function = function
        self._parts = parts
        self._chosen = chosen
        self._rows = block_rows(rows, len(chosen.features))
        self._dtype = float_type(_number_type(schema, name) for schema in schemas for name in chosen.features)
        self._target_type = np.result_type(
            *[_number_type(schema, name) for schema in schemas for name in chosen.targets]
            or [np.dtype(np.float64)]
        )

    def _description(self) -> str:
        return f"{self._function} {files_in_words([part.name for part in self._parts])}: {self._chosen.in_words()}"

    def _chunks(self) -> Iterator[Chunk]:
        for part in self._parts:
            where, slices = Where(part.name), _slices(part, self._chosen.all, self._rows)
            while chunk := self._chunk(slices, where):
                yield chunk
                where = Where(part.name, where.first + chunk.X.shape[0])

    def _chunk(self, slices: Iterator[Any], where: Where) -> Chunk | None:
        """The next block, filled slice by slice, so that its rows are not in memory twice; None if there are
        no more.
        """
        X = np.empty((self._rows, len(self._chosen.features)), dtype=self._dtype)
        y: list[np.ndarray] = []
        weight: list[np.ndarray] = []
        count = 0
        for each in slices:
            at, stop = Where(where.name, where.first + count), count + each.num_rows
            self._fill(X[count:stop], each, at)
            if self._chosen.targets:
                y.append(self._target(each, at))
            if self._chosen.weight is not None:
                weight.append(
                    as_weight(
                        _values(each, self._chosen.weight, at), at, labels([self._chosen.weight], "weight")
                    )
                )
            count = stop
            if count == self._rows:
                break
        if not count:
            return None
        return Chunk(
            X[:count],
            np.concatenate(y) if y else None,
            np.concatenate(weight) if weight else None,
            where.rows(count),
        )

    def _fill(self, X: np.ndarray, batch: Any, where: Where) -> None:
        for j, name in enumerate(self._chosen.features):
            X[:, j] = _values(batch, name, where)
        check_finite(X, where, labels(self._chosen.features, "X"))

    def _target(self, batch: Any, where: Where) -> np.ndarray:
        chosen = self._chosen
        found = [_values(batch, name, where) for name in chosen.targets]
        y = found[0] if chosen.single else np.column_stack(found)
        return as_target(
            y if self._target_type.kind == "U" else y.astype(self._target_type),
            where,
            labels(chosen.targets, "y"),
        )


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Errors of Arrow as a ValueError with the name of the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {name!r}.") from error
    except (_pyarrow("pyarrow").ArrowException, OSError) as error:
        raise ValueError(
            f"{name} cannot be read; it may be truncated, corrupt or of another format: {' '.join(str(error).split())}"
        ) from error


def _read_schema(part: _Part) -> Any:
    with _readable(part.name):
        return part.schema()


def _slices(part: _Part, columns: list[str], rows: int) -> Iterator[Any]:
    """Batches that end where a block of so many rows does: Arrow's own end with each row group."""
    count = 0
    with _readable(part.name):
        for batch in part.batches(columns, -(-rows // 8)):  # small, since the reader holds several
            batch.validate(full=True)  # offsets of a damaged IPC file lead out of memory
            while batch.num_rows:
                taken = batch.slice(0, rows - count)
                yield taken
                batch = batch.slice(taken.num_rows)
                count = (count + taken.num_rows) % rows


def _values(batch: Any, name: str, where: Where) -> np.ndarray:
    """A column as numbers or, if it is text, as an array of text."""
    types = _pyarrow("pyarrow").types
    column = batch.column(name)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"{where.cell(row, f'column {name!r}')}: a missing value.")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_decimal(column.type):
        column = column.cast("float64")
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if _kind(column.type) == "text" else values


def _kind(type_: Any) -> str | None:
    """What a column can be used as; None if as nothing."""
    types = _pyarrow("pyarrow").types
    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    if (
        types.is_boolean(type_)
        or types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_decimal(type_)
    ):
        return "numbers"
    return "text" if str(type_) in ("string", "large_string", "string_view") else None


def _number_type(schema: Any, name: str) -> np.dtype:
    """The NumPy type of a column; text of no particular length if it is text."""
    types = _pyarrow("pyarrow").types
    found = schema.field(name).type
    found = found.value_type if types.is_dictionary(found) else found
    if _kind(found) == "text":
        return np.dtype(str)
    return np.dtype(np.float64 if types.is_decimal(found) else found.to_pandas_dtype())


def _check_schema(
    name: str, schema: Any, chosen: Columns, first_name: str, first: Any, *, others_allowed: bool
) -> None:
    check_unique(schema.names, name)
    check_present(name, schema.names, chosen)
    used = set(chosen.all)
    others = [column for column in schema.names if column not in used]
    if others and not others_allowed:
        raise ValueError(
            f"{name}: the column {others[0]!r} is not in {first_name}; name the columns to be used."
        )
    for column in chosen.all:
        kind, before = _kind(schema.field(column).type), _kind(first.field(column).type)
        type_, allowed = (
            schema.field(column).type,
            ("numbers", "text") if column in chosen.targets else ("numbers",),
        )
        if kind not in allowed:
            raise ValueError(
                f"{name}, column {column!r}: {' or '.join(allowed)} needed, got the type {type_}."
            )
        if kind != before:
            raise ValueError(
                f"{name}, column {column!r}: the type is {type_}, but {first.field(column).type} in {first_name}."
            )
    if len({_kind(schema.field(column).type) for column in chosen.targets}) > 1:
        raise ValueError(
            f"{name}: the targets {chosen.targets} are numbers and text; they must all be the same."
        )
