"""Rows that are not in memory: which table they are, and methods that evaluate them where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .disk import TableOnDisk
from .files.source import Source
from .table import Table


def open_table(X: Any, y: Any, sample_weight: Any) -> Table | None:
    """The table that X stands for, unless it is rows in memory."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A source of blocks brings its own targets and weights: give neither y nor sample_weight."
            )
        return TableOnDisk(X)
    if is_on_dask(X):
        return _import_dask().TableOnDask(X, y, sample_weight)
    return None


def is_on_dask(X: Any) -> bool:
    """Whether X is a Dask collection, told without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def _import_dask() -> ModuleType:
    try:
        return import_module("._data.dask", "tensormachines")
    except ImportError as error:
        raise ImportError(
            f'Dask collections need more of Dask than is installed: pip install "tensormachines[dask]" ({error}).'
        ) from error


def lazy_on_dask(method: Callable[[Any, Any], np.ndarray]) -> Callable[[Any, Any], np.ndarray]:
    """A method that maps rows to numbers; of a Dask collection it gives a Dask array, and nothing is computed
    until that is.
    """

    @wraps(method)
    def of_rows(self: Any, X: Any) -> Any:
        if not is_on_dask(X):
            return method(self, X)
        self._require_fit()
        on_dask = _import_dask()
        validate_data(self, on_dask.example_rows(X), reset=False, skip_check_array=True)
        return on_dask.map_rows(self, method.__name__, X)

    return of_rows
