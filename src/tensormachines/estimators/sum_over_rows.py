"""Sums over rows wherever they are: in memory, in a source of blocks, or on a Dask cluster.

Each row is read once, and at most one block is in memory: measures and samples of rows only need a function
of a chunk whose results can be added."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._data.dataframes import read_frame
from .._data.encoding import Columns
from .._data.files.source import Chunk, Source, require_numbers
from .._data.masked import refuse_masked
from .._data.open import import_dask, refuse_targets
from .._model.block import canonical


def fitted_alone(model: Any) -> Any:
    """Return a fitted model as workers need it: the best model of a search, without what only fits need."""
    found = copy(getattr(model, "best_estimator_", model))
    for name in ("_skl_callbacks", "_stream"):
        vars(found).pop(name, None)
    return found


def require_y(y: Any) -> None:
    """Refuse a missing y, and masked entries, which NumPy and scikit-learn would read as targets."""
    if y is None:
        raise ValueError("y is needed: only a source of blocks brings its own targets.")
    refuse_masked(y, "y")


def sum_over_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, function: Callable[[Chunk], Any], targets: bool = True
) -> Any:
    """Return the sum of ``function`` over the chunks of a source or a Dask collection, in order.

    The X of a chunk is a matrix for the kernel of the fitted ``model``; y has an axis of outputs, unless
    there are no ``targets``. A source provides y and weights itself."""
    if isinstance(X, Source):
        refuse_targets(y, sample_weight)
        with closing(model._chunks(X, targets)) as chunks:
            return reduce(add, map(function, map(_with_axis, chunks)))
    if targets:
        require_y(y)
    on_dask = import_dask()
    model._require_fit()
    validate_data(model, on_dask.example_rows(X), reset=False, skip_check_array=True)
    if not targets:  # partitions are counted and read with some y, which may not be missing
        y, sample_weight = (X.iloc[:, 0].isna() if hasattr(X, "iloc") else X[:, 0] != X[:, 0]), None
    rows = on_dask.RowsOnDask(X, y, sample_weight)
    return rows.sum(OnPartition(model._columns, model._takes_raw_columns(), rows.feature_names, function))


def _with_axis(chunk: Chunk) -> Chunk:
    return chunk if chunk.y is None else replace(chunk, y=chunk.y.reshape(len(chunk.y), -1))


@dataclass(frozen=True)
class OnPartition:
    """A function of a partition, evaluated on a worker after encoding its rows by the ``columns`` of a model.

    Without ``columns``, all columns, called ``names``, are numbers; some may be ``missing``."""

    columns: Columns | None
    missing: bool
    names: list[str] | None
    function: Callable[[Chunk], Any]

    def __call__(self, chunk: Chunk) -> Any:
        if self.columns is not None:
            rows: np.ndarray = self.columns.encode(read_frame(chunk.X, self.columns.kinds))
        else:
            require_numbers(chunk, self.names, self.missing)
            rows = canonical(chunk.X)
        return self.function(replace(chunk, X=rows))
