"""Sort rows and merge duplicates, so that small fits do not depend on the order of the rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._model.rows import Rows

LARGEST = 1 << 16  # entries of X


def merge_rows(
    X: Rows, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """Sort the rows of a small data set, add up the weights of equal ones, leave out those of weight 0.

    The objective has many minima, and hundreds of iterations turn a difference in the last bit into another
    one of them. Sorted and merged, a small data set gives the same model, to the bit, in whatever order its
    rows come, and whether a row is given twice or with weight 2. Large data sets are left unchanged: there it
    would cost too much."""
    if X.shape[0] * X.shape[1] > LARGEST:
        return X, y, weight
    weights = np.ones(len(y)) if weight is None else weight
    present = np.flatnonzero(weights)
    keys = np.hstack([X[present].toarray() if sparse.issparse(X) else X[present], y[present]])
    missing = np.isnan(keys)
    if missing.any():  # NaN is not equal to itself, and has no place in an order
        keys = np.hstack([np.where(missing, 0, keys), missing])
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(number.ravel(), weights=weights[present])
    chosen = present[first]
    return X[chosen], y[chosen], None if (merged == 1).all() else merged
