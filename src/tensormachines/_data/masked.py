"""Masked arrays of NumPy: masked entries are missing values, which `np.asarray` would silently uncover."""

from __future__ import annotations

from typing import Any

import numpy as np


def without_mask(array: Any) -> np.ndarray:
    """Return an array with NaN, NaT or None instead of masked entries; the same numbers if there are none."""
    if not is_masked(array):
        return np.asarray(array)
    kind = array.dtype.kind
    if kind in "fc":
        return np.asarray(array.filled(np.nan))
    if kind in "iu":
        return np.asarray(array.astype(np.float64).filled(np.nan))
    if kind in "mM":
        return np.asarray(array.filled(np.array("NaT", array.dtype)))
    objects = np.array(array, dtype=object)
    objects[np.ma.getmaskarray(array)] = None
    return objects


def is_masked(values: Any) -> bool:
    """Tell whether an array has masked entries."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))


def refuse_masked(values: Any, name: str) -> None:
    """Refuse targets or weights with masked entries."""
    if not is_masked(values):
        return
    mask = np.atleast_1d(np.ma.getmaskarray(values))
    rows = np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))
    count = "a masked entry" if len(rows) == 1 else f"{len(rows):,} rows with masked entries, the first"
    raise ValueError(
        f"{name} has {count} in row {rows[0]} (counting from 0), which is missing: leave such rows out."
    )
