"""Dispatch of training rows that are not in memory: sources of blocks, and Dask collections."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from .disk import RowsOnDisk
from .files.source import Source
from .training import RowsElsewhere


def open_rows(X: Any, y: Any, sample_weight: Any) -> RowsElsewhere | None:
    """Return the training rows of X; None if X is in memory."""
    if isinstance(X, Source):
        refuse_targets(y, sample_weight)
        return RowsOnDisk(X)
    if is_on_dask(X):
        return import_dask().RowsOnDask(X, y, sample_weight)
    return None


def refuse_targets(y: Any, sample_weight: Any) -> None:
    """Refuse targets and weights beside a source of blocks."""
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source of blocks brings its own targets and weights: give neither y nor sample_weight."
        )


def is_in_memory(X: Any) -> bool:
    """Tell whether X is neither a source of blocks nor a Dask collection."""
    return not isinstance(X, Source) and not is_on_dask(X)


def is_on_dask(X: Any) -> bool:
    """Tell whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def import_dask(module: str = "dask") -> ModuleType:
    """Import a module of this package that needs Dask."""
    try:
        return import_module(f"._data.{module}", "tensormachines")
    except ImportError as error:
        raise ImportError(
            'Dask collections need packages that are not installed: pip install "tensormachines[dask]" '
            f"({error})."
        ) from error
