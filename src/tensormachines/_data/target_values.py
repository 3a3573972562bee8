"""Checks of y in memory, and its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frame import is_missing, is_number
from .masked import refuse_masked
from .open import is_on_dask
from .raw_columns import column_names, is_a, is_frame


def target_name(y: Any) -> str | list[str] | None:
    """Return the name of a pandas, polars or Dask series, or of the columns of a frame, if any."""
    if is_on_dask(y):
        y = y._meta
    if is_frame(y):
        names = column_names(y)
        return None if names is None else names[0] if len(names) == 1 else list(names)
    is_series = is_a("pandas", y, "Series") or is_a("polars", y, "Series")
    return y.name if is_series and isinstance(y.name, str) and y.name else None


def refuse_missing_targets(y: Any) -> None:
    """Refuse a y with missing values of any kind, and a y that is empty or not yet read."""
    if is_a("polars", y, "LazyFrame"):
        raise ValueError("y is a LazyFrame of polars, whose rows have not been read yet: give y.collect().")
    refuse_masked(y, "y")
    of_row = _missing(y)
    if of_row.shape == (0,):
        raise ValueError("y is empty: give a target for each row of X.")
    missing = np.flatnonzero(of_row)
    if len(missing):
        count = "a missing value" if len(missing) == 1 else f"{len(missing):,} missing values, the first"
        raise ValueError(
            f"y has {count} in row {missing[0]} (counting from 0), and a row without a target teaches "
            "nothing: leave such rows out of X and y."
        )


def _missing(y: Any) -> np.ndarray:
    """Return a mask of the rows of y with a missing value."""
    if is_a("pandas", y) or is_a("pandas", y, "Series"):
        missing = np.asarray(y.isna())
    else:
        values = np.asarray(y)
        missing = np.zeros(values.shape, dtype=bool)
        if values.dtype.kind == "f":
            missing = np.isnan(values)
        elif values.dtype.kind == "O" and values.ndim:
            missing[...] = np.reshape([is_missing(value) for value in values.ravel()], values.shape)
    return np.asarray(missing.any(axis=tuple(range(1, missing.ndim))))


def refuse_other_targets(y: Any, name: str) -> None:
    """Refuse a y with dates, durations, or text that does not spell a number.

    ``name`` is the name of the class that needs numbers."""
    values = np.asarray(y)
    if values.dtype.kind in "mM":
        what, instead = ("dates", "days") if values.dtype.kind == "M" else ("durations", "seconds")
        raise ValueError(f"y holds {what}, and {name} predicts numbers: give numbers of {instead} as y.")
    if values.dtype.kind not in "OUT":
        return
    texts = (value for value in values.flat if isinstance(value, str))
    example = next((text for text in texts if not is_number(text)), None)
    if example is not None:
        raise ValueError(
            f"y holds text such as {str(example)!r}, and {name} predicts numbers: TensorMachineClassifier "
            "predicts classes. If y should hold numbers, convert it first."
        )


def refuse_several_labels(y: Any, name: str) -> None:
    """Refuse several class targets, and say which scikit-learn estimator accepts them."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            "y should be a 1d array of labels, or a matrix of 0 and 1 with a column for each label, got an "
            f"array of shape {tuple(shape)} instead. For several targets with classes of their own, use "
            f"sklearn.multioutput.MultiOutputClassifier({name}())."
        )
