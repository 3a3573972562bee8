"""The rows of a search: those that candidates are tried on, in memory, and all rows, wherever they are."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier

from .._data.drawn_rows import Draw, draw_rows
from .._data.open import is_on_dask, open_rows
from .column_parameters import refuse_other_categories
from .halving import Report

Given = tuple[Any, Any, Any]  # X, y and sample_weight


@dataclass(frozen=True)
class SearchRows:
    """Rows to try candidates on, in memory; ``elsewhere`` are all rows, None if these are all of them.

    There are ``growth`` times as many of them."""

    tried: Given
    elsewhere: Given | None = None
    growth: float = 1.0

    @property
    def distant(self) -> bool:
        """Tell whether the fit to all rows asks other machines."""
        return self.elsewhere is not None and is_on_dask(self.elsewhere[0])


def rows_of_search(search: Any, given: Given, seed: int, report: Report) -> SearchRows:
    """Return the rows of a search; of a source or a Dask collection, one pass draws at most ``subsample``."""
    training = open_rows(*given)
    if training is None:
        return SearchRows(given)
    refuse_other_categories(search, given[0])
    report("reads all rows")
    with closing(training):
        drawn = draw_rows(training, Draw(int(search.subsample), seed, is_classifier(search)))
    if not (drawn.complete or search.cv is None or isinstance(search.cv, int) or hasattr(search.cv, "split")):
        raise ValueError(
            f"cv lists the rows of its splits, but only {len(drawn.y):,} of {drawn.n_rows:,} rows are drawn "
            "to try candidates on: give a number of folds or a splitter, or raise subsample."
        )
    y = drawn.y[:, 0] if training.flat else drawn.y
    tried = drawn.named(training.feature_names), y, drawn.weight
    return SearchRows(tried) if drawn.complete else SearchRows(tried, given, drawn.n_rows / len(y))
