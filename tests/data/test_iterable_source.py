"""Rows from Python iterables: what was written comes back, and what is wrong is named."""

from datetime import datetime

import numpy as np
import pytest
from scipy import sparse

from row_blocks import fails, identical, row, sizes, texts, whole
from tensormachines import blocks

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


class Twice:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("kind", [list, Twice, lambda items: Twice(items).__iter__])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterables(rng, kind, dtype):
    X, y, weight = rng.standard_normal((30, 3)).astype(dtype), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    cuts = [slice(0, 11), slice(11, 11), slice(11, 12), slice(12, 30)]
    source = blocks.iterable(kind([(X[cut], y[cut], weight[cut]) for cut in cuts]))
    assert source.n_columns is None
    found = whole(source)
    identical(found[0], X)
    identical(found[1], y)
    identical(found[2], weight.astype(np.float64))
    assert [chunk.place for chunk in source] == [
        "item 1, rows 1 to 11",
        "item 3, rows 1 to 1",
        "item 4, rows 1 to 18",
    ]
    assert whole(blocks.iterable(kind([X, X])))[1:] == (None, None)
    identical(whole(blocks.iterable(kind([(X, None, weight)])))[2], weight.astype(np.float64))
    identical(whole(blocks.iterable(list(source)))[0], X)


def test_iterables_of_any_layout_and_type(rng):
    X = rng.integers(0, 2, (10, 4))
    for item in (
        np.asfortranarray(X),
        X.astype(bool),
        X.tolist(),
        X.astype(object),
        X.astype(np.float16),
        np.repeat(X, 2, axis=1)[:, ::2],
    ):
        identical(whole(blocks.iterable([item]))[0], X.astype(np.float64))
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.csr_array, sparse.lil_array):
        source = blocks.iterable([form(X), form(X.astype(np.float32))])
        identical(whole(source)[0], np.vstack([X, X]).astype(np.float64))
        assert all(isinstance(chunk.X, sparse.csr_array) for chunk in source)
    twice = sparse.csr_array((np.ones(2), [1, 1], [0, 2]), shape=(1, 2))
    identical(whole(blocks.iterable([twice]))[0], np.array([[0.0, 2.0]]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_iterables_of_frames(frame):
    columns = {"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}
    series = pd.Series if frame is pd.DataFrame else pl.Series
    source = blocks.iterable([(frame(columns), series(["x", "yy"])), (frame(columns), series(["z", "z"]))])
    X, y, _ = whole(source)
    identical(X, np.array([[1, 0.5, 1], [2, 1.5, 0]] * 2))
    assert y.tolist() == ["x", "yy", "z", "z"]
    assert source.feature_names == ["a", "b", "c"]
    small = frame({"a": np.ones(2, np.float32)})
    assert next(iter(blocks.iterable([small]))).X.dtype == np.float32
    other = frame({"a": [1], "c": [1], "b": [1]})
    fails(lambda: blocks.iterable([frame(columns), other]), "item 2", "['a', 'c', 'b']", "['a', 'b', 'c']")
    fails(lambda: blocks.iterable([frame(columns), np.ones((2, 3))]), "item 2", "None", "['a', 'b', 'c']")
    mixed = blocks.iterable([frame({"a": [1, 2], "t": values}) for values in (["x", "y"], [None, "y"])])
    assert [level for chunk in mixed for level in texts(chunk.X.column("t"))] == ["x", "y", None, "y"]
    np.testing.assert_array_equal(whole(blocks.iterable([frame({"a": [1.0, None]})]))[0], [[1.0], [np.nan]])
    dates, numbers = frame({"t": np.array([1], "M8[ms]")}), frame({"t": [1.0]})
    assert next(iter(blocks.iterable([dates]))).X.column("t").tolist() == [
        datetime(1970, 1, 1, 0, 0, 0, 1000)
    ]
    fails(lambda: blocks.iterable([dates, numbers]), "item 2", "a dense X, but categories or dates in X")
    mixed = [frame({"a": ["x"], "t": each["t"]}) for each in (dates, numbers)]
    fails(
        lambda: blocks.iterable(mixed),
        "item 2",
        "no dates in X, but dates in column 1 of X",
    )


def test_iterables_of_pandas_types():
    nullable = pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": pd.array([True, False], "boolean")})
    identical(
        whole(blocks.iterable([(nullable, pd.Series(["x", "y"], dtype="category"))]))[0],
        np.array([[1.0, 1.0], [2.0, 0.0]]),
    )
    missing = pd.DataFrame({"a": pd.array([1, None], "Int64")})
    identical(whole(blocks.iterable([missing]))[0], np.array([[1.0], [np.nan]]))
    numbers, strings = pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": ["x", "2"]})
    fails(lambda: blocks.iterable([numbers, strings]), "item 2", "column 'a' holds text, but numbers before")
    levels = [texts(chunk.X.column("a")) for chunk in blocks.iterable([strings, numbers])]
    assert levels == [["x", "2"], ["1", "2"]]
    unnamed = blocks.iterable([pd.DataFrame(np.eye(2))])
    identical(whole(unnamed)[0], np.eye(2))
    assert unnamed.feature_names is None
    fails(
        lambda: blocks.iterable([pd.DataFrame(np.eye(2), columns=["a", "a"])]),
        "item 1",
        "more than one column named 'a'",
    )
    labels = pd.Series(["x", None], dtype="category")
    fails(lambda: blocks.iterable([(np.eye(2), labels)]), "item 1", row(2), "y", "a missing value")
    fails(
        lambda: blocks.iterable([(np.eye(2), np.array([None, 1.0], object))]),
        "item 1",
        row(1),
        "y",
        "a missing value",
    )
    whole_numbers = whole(blocks.iterable([(np.eye(2), np.array([2, 1], object))]))[1]
    identical(whole_numbers, np.array([2, 1]))


def test_iterators_are_refused():
    for once in (
        iter([np.eye(2)]),
        (np.eye(2) for _ in range(2)),
        zip([np.eye(2)], [np.ones(2)], strict=True),
    ):
        fails(lambda once=once: blocks.iterable(once), "only once", "a list", "__iter__", "function")
    fails(lambda: blocks.iterable(5), "iterable or a function", "int")
    spent = iter([np.eye(2)])
    source = blocks.iterable(lambda: spent)
    assert sizes(source) == [2]
    fails(lambda: source, "no rows")


def test_errors_of_iterables():
    X, y = np.ones((3, 2)), np.ones(3)
    narrow, sparse_X = np.ones((3, 1)), sparse.csr_array(X)

    def bad(*items):
        return lambda: blocks.iterable(list(items))

    fails(bad(), "no rows")
    fails(bad(X[:0]), "no rows")
    fails(bad(y), "item 1", "X must have 2 dimensions", "(3,)")
    fails(bad("text"), "item 1", "X must have 2 dimensions", "str")
    fails(bad([[1, 2], [3]]), "item 1", "X is not an array")
    fails(bad([["a", {}]]), "item 1", "column 1 of X is of type dict")
    fails(bad(X.astype(complex)), "item 1", "complex128")
    fails(bad(sparse_X.astype(complex)), "item 1", "complex128")
    fails(bad(X, (X, y, y, y)), "item 2", "tuple of 4")
    fails(bad((X, y), (X, y[:2])), "item 2", "X has 3 rows, but y has 2")
    fails(bad((X, y, y[:2])), "item 1", "X has 3 rows, but weight has 2")
    fails(bad((X, np.ones((3, 1, 1)))), "item 1", "y must have 1 or 2 dimensions")
    fails(bad((X, y, X)), "item 1", "weight must have 1 dimension")
    fails(bad((X, y.astype(complex))), "item 1", "y must be numbers or text", "complex128")
    fails(bad((X, y, -y)), "item 1", row(1), "negative weight")
    fails(bad(X, np.where([[0], [0], [1]], np.inf, X)), "item 2", row(3), "column 0 of X", "infinity")
    fails(bad((X, y), (X, y * np.inf)), "item 2", row(1), "y: infinity")
    hole = sparse.csr_array(([1.0, np.inf], ([0, 2], [0, 1])), shape=(3, 2))
    fails(bad(sparse_X, hole), "item 2", row(3), "column 1 of X", "infinity")
    fails(bad(X, narrow), "item 2", "1 columns of X", "2 columns of X in item 1, rows 1 to 3")
    fails(bad(X, sparse_X), "item 2", "a sparse X, but a dense X in item 1")
    fails(bad((X, y), X), "item 2", "no y, but y of numbers in item 1")
    fails(bad((X, y), (X, ["a", "b", "c"])), "item 2", "y of text, but y of numbers in item 1")
    fails(bad((X, y), (X, X)), "item 2", "y of numbers in 2 columns, but y of numbers in item 1")
    fails(bad((X, y), (X, y, y)), "item 2", "weights, but no weights in item 1")
    fails(bad(X.astype(np.float32), X), "item 2", "X is float64, but float32 in item 1")
    assert [chunk.X.dtype for chunk in blocks.iterable([X, X.astype(np.float32)])] == [np.float64, np.float64]


def test_corrupt_sparse_items_are_refused():
    X = sparse.csr_array(np.eye(3))
    X.indices[0] = 7
    fails(lambda: blocks.iterable([np.eye(3)[:0], X]), "item 2", "corrupt CSR")
