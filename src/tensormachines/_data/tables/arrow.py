"""Tables in Parquet and Arrow IPC (Feather) files; needs pyarrow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..dataframes import level_name, number_levels
from ..levels import Levels
from .blocks import ROWS, Block
from .cells import Codes, NotANumberError, TextCells
from .open import import_pyarrow

INDEX = re.compile(
    r"__index_level_\d+__"
)  # what pandas calls the names of rows of a frame, which are no column there


class ArrowFile:
    def __init__(self, path: str, is_parquet: bool, rows: int = ROWS):
        self.label = path
        self.rereadable = True
        self._path = path
        self._is_parquet = is_parquet
        self._rows = rows
        self._pyarrow = import_pyarrow()
        with self._readable(), self._open() as opened:
            schema = opened.schema_arrow if is_parquet else opened.schema
            self.names = [name for name in schema.names if not INDEX.fullmatch(name)]
        if not self.names:
            raise ValueError(f"{path} has no columns.")
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"{path}: two columns are named {twice[0]!r}; give each its own name.")

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        before = 0
        with self._readable(), self._open() as opened:
            for batch in self._batches(opened, list(names)):
                yield Block(
                    {name: ArrowCells(name, batch.column(name), self._pyarrow) for name in names},
                    before,
                    batch.num_rows,
                )
                before += batch.num_rows

    def _open(self) -> Any:
        if not self._is_parquet:
            return self._pyarrow.ipc.open_file(self._pyarrow.OSFile(self._path))
        from pyarrow.parquet import ParquetFile

        # Without this small buffer it would hold a whole row group in memory, which may be the whole file.
        return ParquetFile(self._path, buffer_size=2**16, pre_buffer=False)

    def _batches(self, opened: Any, names: list[str]) -> Iterator[Any]:
        if self._is_parquet:
            yield from opened.iter_batches(batch_size=self._rows, columns=names)
            return
        for number in range(opened.num_record_batches):
            batch = opened.get_batch(number).select(names)
            batch.validate(
                full=True
            )  # IPC is used as it lies in the file: offsets of a damaged one lead out of memory
            for start in range(0, batch.num_rows, self._rows):
                yield batch.slice(start, self._rows)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (self._pyarrow.ArrowException, OSError) as error:
            what = " ".join(str(error).split())
            raise ValueError(
                f"{self._path} cannot be read; it may be truncated, damaged or of another format: {what}"
            ) from error


class ArrowCells:
    """A column of a batch: numbers and booleans are numbers; all else, and any dictionary, is levels. A file
    says itself which.
    """

    def __init__(self, name: str, array: Any, pyarrow: Any):
        self.name = name
        self.array = array
        self._pyarrow = pyarrow
        types = pyarrow.types
        self._is_dictionary = types.is_dictionary(array.type)
        self.ordered = self._is_dictionary and bool(array.type.ordered)
        type_ = array.type.value_type if self._is_dictionary else array.type
        self._is_boolean = types.is_boolean(type_)
        self._is_number = (
            types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_) or self._is_boolean
        )
        numeric = "boolean" if self._is_boolean else "number"
        self.declared: str | None = numeric if self._is_number and not self._is_dictionary else "category"

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self, booleans: bool = True) -> np.ndarray:
        array = self.array.dictionary_decode() if self._is_dictionary else self.array
        if not self._is_number:
            return TextCells(
                ["" if text is None else text for text in self._as_text(array).to_pylist()]
            ).numbers(booleans)
        values = array.cast(self._pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise NotANumberError(row, str(values[row]))
        return values

    def codes(self, known: Codes) -> np.ndarray:
        levels = self.levels()
        numbers = np.array([*(known[name] for name in levels.names), -1], dtype=np.intp)
        return numbers[levels.codes]  # -1, missing, is the last

    def levels(self, known: Container[str] = ()) -> Levels:
        """Text is taken as it is, whether ``known`` or not: what is missing is null."""
        if self.declared == "number":
            return number_levels(self.numbers())
        plain = self.array if self._is_number or self._is_dictionary else self._as_text(self.array)
        encoded = plain if self._is_dictionary else plain.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        texts = Codes()
        numbers = np.array(
            [*(-1 if name is None else texts[name] for name in self._names(encoded.dictionary)), -1]
        )
        return replace(texts.levels(numbers[codes], known=texts), ordered=self.ordered)

    def as_they_are(self) -> Sequence[Any]:
        return self.array

    def _names(self, values: Any) -> list[str | None]:
        if not self._is_number:
            return self._as_text(values).to_pylist()
        return [
            None if value is None or value != value else level_name(value) for value in values.to_pylist()
        ]

    def _as_text(self, values: Any) -> Any:
        try:
            if self._pyarrow.types.is_duration(values.type):  # whose text would be a number without its unit
                raise self._pyarrow.ArrowTypeError
            return values.cast(self._pyarrow.string())
        except self._pyarrow.ArrowException:
            what = f"is of type {self.array.type}, which is neither number nor text"
            raise ValueError(f"Column {self.name!r} {what}: --ignore it, or make a number of it.") from None
