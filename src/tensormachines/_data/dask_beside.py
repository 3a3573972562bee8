"""An exposure or an offset of the rows of a Dask collection: how it changes targets and weights for a fit,
and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array
import numpy as np

from .dask import aligned, is_array, is_frame, lengths_of, partitions_of, require_collection
from .files.checks import check_same_rows

WithoutKnownPart = Callable[[Any, Any, Any], tuple[np.ndarray, np.ndarray | None]]


def map_targets(
    function: WithoutKnownPart, X: Any, y: Any, weight: Any, known: Any, what: str, weighted: bool
) -> tuple[Any, Any]:
    """Return the targets and weights that a function computes from those of X and one number per row, as lazy
    Dask arrays. There are no weights unless the function is ``weighted`` or there were weights before.
    """
    beside = {"y": y, what: known} | ({} if weight is None else {"sample_weight": weight})
    for name, each in beside.items():
        require_collection(X, each, name)
    if known.ndim != 1:
        raise ValueError(f"{what} must have one number for each row, got {known.ndim} axes.")
    lengths, *others = lengths_of(*beside.values())
    pairs = zip(list(beside.items())[1:], others, strict=True)
    collections = [y, *(aligned(y, lengths, each, of, name, "y") for (name, each), of in pairs)]
    parts = zip(*(partitions_of(each, is_array(X)) for each in collections), strict=True)
    call = dask.delayed(_without_known_part, pure=False)
    made = [call(function, number, *of_part) for number, of_part in enumerate(parts)]
    width = (y.shape[1],) if y.ndim == 2 else ()
    targets = [_array(each[0], (length, *width)) for each, length in zip(made, lengths, strict=True)]
    if not weighted and weight is None:
        return dask.array.concatenate(targets), None
    weights = [_array(each[1], (length,)) for each, length in zip(made, lengths, strict=True)]
    return dask.array.concatenate(targets), dask.array.concatenate(weights)


def _array(values: Any, shape: tuple[int, ...]) -> Any:
    return dask.array.from_delayed(values, shape=shape, dtype=np.float64)


def _without_known_part(
    function: WithoutKnownPart, number: int, y: Any, known: Any, weight: Any = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Apply the function to a partition, numbered from 0."""
    try:
        return function(y, weight, known)
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error


def map_predictions(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], X: Any, predicted: Any, known: Any, what: str
) -> Any:
    """Return a function of the predictions of X and one number per row, lazily."""
    beside = _beside(X, predicted, known, what)
    beside = beside if predicted.ndim == 1 else beside[:, None]
    shape = {"chunks": predicted.chunks, "dtype": predicted.dtype, "meta": predicted._meta}
    return dask.array.map_blocks(_call_beside, predicted, beside, function, what, **shape)


def _beside(X: Any, predicted: Any, known: Any, what: str) -> Any:
    """Return numbers as a Dask array with the partitions of the predictions of X."""
    lengths = predicted.chunks[0]
    if not np.isnan(lengths).any() and not is_frame(known):
        known = known if is_array(known) else np.asarray(known)
        if known.shape != predicted.shape[:1]:
            raise ValueError(f"{what} must have one number for each row of X, got shape {known.shape}.")
        return known.rechunk((lengths,)) if is_array(known) else dask.array.from_array(known, (lengths,))
    require_collection(X, known, what)
    parts = partitions_of(known)
    if known.ndim != 1 or len(parts) != len(lengths):
        raise ValueError(
            f"{what} must have one number for each row of X, in the same partitions: X has {len(lengths)} "
            f"partitions, {what} has {len(parts)} and {known.ndim} axes. Take both from one dataframe."
        )
    values = dask.delayed(np.asarray, pure=False)
    arrays = [dask.array.from_delayed(values(part), shape=(np.nan,), dtype=np.float64) for part in parts]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def _call_beside(
    predicted: np.ndarray, beside: np.ndarray, function: Callable[..., np.ndarray], what: str
) -> np.ndarray:
    check_same_rows(len(predicted), len(beside), what, "In a partition")
    return function(predicted, np.ravel(beside)) if len(predicted) else predicted
