"""The form that all blocks of a source share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..dates import is_dates
from ..frame import Frame

if TYPE_CHECKING:
    from .source import Chunk


@dataclass(frozen=True)
class Form:
    """What all blocks of a source share, and the place of the block that set it."""

    n_columns: int
    dtype: np.dtype | None
    words: tuple[str, ...]
    place: str

    @classmethod
    def of(cls, chunk: Chunk) -> Form:
        X = chunk.X
        words = (
            "a sparse X"
            if sparse.issparse(X)
            else "categories or dates in X"
            if isinstance(X, Frame)
            else "a dense X",
            _dates_in_words(X),
            f"{X.shape[1]} columns of X",
            _target_words(chunk.y),
            "no weights" if chunk.weight is None else "weights",
        )
        return cls(X.shape[1], None if isinstance(X, Frame) else X.dtype, words, chunk.place)

    def applied(self, chunk: Chunk) -> Chunk:
        """Return the chunk in this form: float32 becomes float64, and any other difference is refused."""
        form = Form.of(chunk)
        for now, before in zip(form.words, self.words, strict=True):
            if now != before:
                raise ValueError(f"{form.place}: {now}, but {before} in {self.place}.")
        if form.dtype == self.dtype:
            return chunk
        if self.dtype == np.float32:
            raise ValueError(f"{form.place}: X is float64, but float32 in {self.place}; convert one of them.")
        return replace(chunk, X=chunk.X.astype(np.float64))


def _dates_in_words(X: Any) -> str:
    columns = X.columns if isinstance(X, Frame) else ()
    places = [str(j) for j, column in enumerate(columns) if is_dates(column)]
    several = "s" if len(places) > 1 else ""
    return f"dates in column{several} {', '.join(places)} of X" if places else "no dates in X"


def _target_words(y: np.ndarray | None) -> str:
    if y is None:
        return "no y"
    kind = {"U": "text", "O": "text", "S": "bytes"}.get(y.dtype.kind, "numbers")
    return f"y of {kind}" if y.ndim == 1 else f"y of {kind} in {y.shape[1]} columns"
