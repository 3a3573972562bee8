"""Methods that evaluate rows where they are: on a Dask cluster, lazily."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._data.open import import_dask, is_on_dask
from .sum_over_rows import fitted_alone


def lazy_on_dask(method: Callable[[Any, Any], np.ndarray]) -> Callable[[Any, Any], np.ndarray]:
    """Make a method that maps rows to numbers return a lazy Dask array for a Dask collection."""

    @wraps(method)
    def of_rows(self: Any, X: Any) -> Any:
        if not is_on_dask(X):
            return method(self, X)
        self._require_fit()
        on_dask = import_dask()
        validate_data(self, on_dask.example_rows(X), reset=False, skip_check_array=True)
        return on_dask.map_rows(fitted_alone(self), method.__name__, X)

    return of_rows
