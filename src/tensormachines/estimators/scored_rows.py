"""Predictions and targets of rows wherever they are, in memory: all that a score needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.files.source import Source
from .._data.open import is_on_dask, refuse_targets


def scored_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return predictions, targets and weights of rows; those of a source are its own."""
    if isinstance(X, Source):
        refuse_targets(y, sample_weight)
        return estimator.predict(X), *_own_targets(X)
    if y is None:
        raise ValueError("score needs y: only a source of blocks brings its own targets.")
    return _computed(estimator.predict(X)), _computed(y), _computed(sample_weight)


def _computed(values: Any) -> Any:
    return values.compute() if is_on_dask(values) else values


def _own_targets(source: Source) -> tuple[np.ndarray, np.ndarray | None]:
    targets, weights = [], []
    for chunk in source:
        if chunk.y is None:
            raise ValueError(f"{source!r} has no targets: name them where the source is made.")
        targets.append(chunk.y)
        if chunk.weight is not None:
            weights.append(chunk.weight)
    return np.concatenate(targets), np.concatenate(weights) if weights else None
