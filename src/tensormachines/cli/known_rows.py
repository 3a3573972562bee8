"""Rows of a table that a model was fitted to: errors on them say little about new rows."""

from __future__ import annotations

from typing import Any

from .._data.frame import Frame
from .._data.row_sketch import Overlap, target_columns

LEAST_SHARE = 0.05  # fewer rows than this may be the same by chance


class KnownRows:
    """Count rows that were in the fit of a model, if it was fitted from the command line."""

    def __init__(self, model: Any):
        self._hashes = getattr(model, "_rows_of_fit", None)
        self._overlap = Overlap()

    def add(self, rows: Any) -> None:
        if self._hashes is not None and isinstance(rows.X, Frame):
            beside = [*target_columns(rows.y), *rows.known.values()]
            self._overlap += Overlap.of(self._hashes, rows.X, beside)

    @property
    def share(self) -> float | None:
        """Return the estimated share of rows that were in the fit; None if the model does not know."""
        return None if self._hashes is None or not self._overlap.compared else self._overlap.share

    def warning(self, label: str) -> str | None:
        """Return a sentence about rows that were in the fit, if there are any."""
        if self.share is None or self.share < LEAST_SHARE:
            return None
        every = self.share > 1 - LEAST_SHARE
        rows = f"The rows of {label}" if every else f"About {100 * self.share:.0f} % of the rows of {label}"
        return f"{rows} were in the fit: on new rows, errors are larger than these."
