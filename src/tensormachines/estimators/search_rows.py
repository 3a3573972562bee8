"""The rows of a search: the rows in memory to try candidates on, and all rows, wherever they are."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from scipy import sparse
from sklearn.base import is_classifier

from .._data.column_counts import count_columns
from .._data.disk import RowsOnDisk
from .._data.files.source import Chunk
from .._data.frame import Frame
from .._data.open import is_on_dask, open_rows
from .._data.row_sample import RowSample
from .._data.training import RowsElsewhere
from .column_parameters import refuse_other_categories
from .halving import Report

MOST_ENTRIES = 20_000_000  # in dense rows: 160 MB in float64, and a search makes a few copies
FEWEST_ROWS = 2000  # even with very many columns: on fewer, candidates can hardly be told apart

Given = tuple[Any, Any, Any]  # X, y and sample_weight


@dataclass(frozen=True)
class SearchRows:
    """Rows in memory to try candidates on; ``elsewhere`` are all rows, or None if all rows are in memory.

    All rows are ``growth`` times as many."""

    tried: Given
    elsewhere: Given | None = None
    growth: float = 1.0

    @property
    def distant(self) -> bool:
        """Tell whether the fit to all rows uses other machines."""
        return self.elsewhere is not None and is_on_dask(self.elsewhere[0])


def rows_of_search(search: Any, given: Given, seed: int, report: Report) -> SearchRows:
    """Return the rows of a search; one pass draws at most ``subsample`` from a source or a Dask
    collection."""
    training = open_rows(*given)
    if training is None:
        return SearchRows(given)
    refuse_other_categories(search, given[0])
    report("reads all rows")
    with closing(training):
        drawn = draw(training, Subsample(int(search.subsample), seed, is_classifier(search)))
    X, y, weight = drawn.parts
    if not (drawn.complete or search.cv is None or isinstance(search.cv, int) or hasattr(search.cv, "split")):
        raise ValueError(
            f"cv lists the rows of its splits, but only {len(y):,} of {drawn.n_rows:,} rows are drawn to try "
            "candidates on: give a number of folds or a splitter, or raise subsample."
        )
    tried = _named(X, training.feature_names), y[:, 0] if training.flat else y, weight
    return SearchRows(tried) if drawn.complete else SearchRows(tried, given, drawn.n_rows / len(y))


@dataclass(frozen=True)
class Subsample:
    """Draw at most ``most_rows`` rows of a chunk, fewer if they are dense with many columns. Rows of weight 0
    come last. If y holds ``classes``, some rows of each class are kept."""

    most_rows: int
    seed: int
    classes: bool

    def __call__(self, chunk: Chunk) -> RowSample:
        return RowSample.of(
            (chunk.X, chunk.y, chunk.weight),
            chunk.first,
            self.most(chunk.X),
            self.seed,
            last=None if chunk.weight is None else chunk.weight == 0,
            classes=self.classes,
        )

    def most(self, X: Any) -> int:
        if sparse.issparse(X):
            return self.most_rows
        return min(self.most_rows, max(FEWEST_ROWS, MOST_ENTRIES // X.shape[1]))


def draw(training: RowsElsewhere, subsample: Subsample) -> RowSample:
    """Return a sample of X, y and weights on disk or on Dask, or all of them if they are few."""
    drawn: RowSample = training.sum(subsample)
    if drawn.complete and isinstance(training, RowsOnDisk):  # otherwise the fit to all rows warns
        X = drawn.parts[0]
        training.warn_of_mistakes(count_columns(X) if isinstance(X, Frame) else None)
    return drawn


def _named(X: Any, names: list[str] | None) -> Any:
    """Return rows with the names of their columns, if they have any."""
    return X if names is None or isinstance(X, Frame) or sparse.issparse(X) else Frame(names, list(X.T))
