"""A source of blocks, and the form that all its blocks share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..._model.rows import Rows


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are together in memory. They may be the caller's own arrays: to be read, not written.

    Attributes
    ----------
    X : ndarray in C order, or csr_array, of shape (rows, n_columns), float32 or float64
    y : ndarray of shape (rows,) or (rows, targets), or None
        Numbers or text.
    weight : ndarray of shape (rows,), float64, or None
        Finite and not negative.
    place : str
        Where the rows are from, for messages.
    """

    X: Rows
    y: np.ndarray | None
    weight: np.ndarray | None
    place: str


class Source:
    """Blocks of rows that can be iterated over again and again; made by the functions of
    `tensormachines.blocks`.

    The blocks of an iteration have one form: as many columns, dense or sparse, one float type, targets and
    weights in all or in none. A block has at least one row. It never has rows of two files, so that its place
    is one file and a range of rows.

    Attributes
    ----------
    feature_names : list of str, or None
        The names of the columns of X, where they have names; for `iterable` known with the first block.
    n_columns : int or None
        The number of columns of X; None where only the first block will tell.
    """

    feature_names: list[str] | None = None
    n_columns: int | None = None

    def __iter__(self) -> Iterator[Chunk]:
        form, rows = None, 0
        for chunk in self._chunks():
            if form is None:
                form = _Form.of(chunk)
                self.n_columns = form.n_columns
            chunk = form.applied(chunk)
            if chunk.X.shape[0]:
                rows += chunk.X.shape[0]
                yield chunk
        if not rows:
            raise ValueError(f"{self!r}: there are no rows.")

    def __repr__(self) -> str:
        return f"<blocks.{self._description()}>"

    def _chunks(self) -> Iterator[Chunk]:
        """Blocks from the beginning, each checked by itself."""
        raise NotImplementedError

    def _description(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class _Form:
    """What all blocks of a source share, and the place of the block that set it."""

    n_columns: int
    dtype: np.dtype
    words: tuple[str, ...]
    place: str

    @classmethod
    def of(cls, chunk: Chunk) -> _Form:
        words = (
            "a sparse X" if sparse.issparse(chunk.X) else "a dense X",
            f"{chunk.X.shape[1]} columns of X",
            _target_words(chunk.y),
            "no weights" if chunk.weight is None else "weights",
        )
        return cls(chunk.X.shape[1], chunk.X.dtype, words, chunk.place)

    def applied(self, chunk: Chunk) -> Chunk:
        """The chunk in this form; float32 becomes float64, which loses nothing, and any other difference is
        refused.
        """
        form = _Form.of(chunk)
        for now, before in zip(form.words, self.words, strict=True):
            if now != before:
                raise ValueError(f"{form.place}: {now}, but {before} in {self.place}.")
        if form.dtype == self.dtype:
            return chunk
        if self.dtype == np.float32:
            raise ValueError(f"{form.place}: X is float64, but float32 in {self.place}; convert one of them.")
        return replace(chunk, X=chunk.X.astype(np.float64))


def _target_words(y: np.ndarray | None) -> str:
    if y is None:
        return "no y"
    kind = {"U": "text", "S": "bytes"}.get(y.dtype.kind, "numbers")
    return f"y of {kind}" if y.ndim == 1 else f"y of {kind} in {y.shape[1]} columns"
