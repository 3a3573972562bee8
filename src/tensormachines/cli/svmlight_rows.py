"""The rows of svmlight files that a model is fitted to, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .._data.files.source import Chunk, Source
from .._data.frame import as_text, number_levels, whole_numbers
from .._data.row_assignment import held_out


class SvmlightRows(Source):
    """The rows of a source without column names, for a fit; see `FileRows` for the attributes."""

    holdout: tuple[float, int] | None = None
    given = held = 0
    sketch = None

    def __init__(self, source: Source, classes: bool, whole: bool):
        self._source, self._classes, self._whole = source, classes, whole
        self.n_columns = source.n_columns

    def _description(self) -> str:
        return self._source._description()

    def _chunks(self) -> Iterator[Chunk]:
        self.given = self.held = 0
        for chunk in self._source:
            first, n_rows = self.given + self.held, chunk.X.shape[0]
            keep = np.ones(n_rows, dtype=bool)
            if self.holdout is not None:
                keep = ~held_out(first, n_rows, *self.holdout)
            self.given += int(keep.sum())
            self.held += int((~keep).sum())
            where = replace(chunk.where, kept=np.flatnonzero(keep))
            yield replace(chunk, X=chunk.X[keep], y=self._targets(chunk.y[keep]), where=where)
        if self.holdout is not None and 0 in (self.given, self.held):
            raise nothing_left(self.holdout[0], self.given + self.held)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Return numbers, or classes: integers, or the names of other numbers."""
        if not self._classes:
            return y
        whole = whole_numbers(y) if self._whole else None
        return as_text(number_levels(y)) if whole is None else whole


def nothing_left(share: float, n_rows: int) -> ValueError:
    return ValueError(f"--holdout {share:g} of {n_rows} rows leaves nothing to fit, or nothing to test.")
