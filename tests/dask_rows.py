"""Numbers on Dask, in partitions of several lengths, for tests."""

from itertools import pairwise

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROWS, COLUMNS = 12000, 6  # more entries than what is sorted and merged in memory
CHUNKS = (5000, 1, 0, 4499, 2500)
NAMES = list("abcdef")
BY_LBFGS = {"basis": "standard", "solver": "lbfgs", "alpha": 1e-4}


def on_dask(*arrays):
    return [da.from_array(array, chunks=(CHUNKS, -1)[: array.ndim]) for array in arrays]


def frame_on_dask(X, **columns):
    """Partitions of the same lengths as elsewhere, an empty one among them."""
    borders = np.cumsum([0, *CHUNKS])
    whole = pd.DataFrame(X, columns=NAMES).assign(**columns)
    parts = [whole.iloc[begin:end] for begin, end in pairwise(borders)]
    return dd.from_map(lambda part: part, parts, meta=whole.iloc[:0])


def same(model, expected, X, tolerance=1e-7):
    assert model.n_features_in_ == X.shape[1]
    assert model._machine.params.dtype == expected._machine.params.dtype
    np.testing.assert_allclose(
        model._machine.params, expected._machine.params, rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=tolerance)


def numbers():
    """X, a target that is a number, and weights, of which some are 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)) * [1, 2, 3, 1, 1, 1] + 1
    y = X @ [1, -1, 0.5, 0, 0, 1] + X[:, 0] * X[:, 1] + rng.normal(size=ROWS)
    return X, y, rng.integers(0, 15, size=ROWS).astype(float)
