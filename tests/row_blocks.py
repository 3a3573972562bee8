"""What tests of sources of row blocks ask of them: all rows, and the one error that names what is wrong."""

import pickle

import numpy as np
import pytest
from scipy import sparse


def whole(source):
    """All rows of a source as one X, y and weight; read twice, and through a pickle, to the same end."""
    first, second, third = list(source), list(source), list(pickle.loads(pickle.dumps(source)))
    for again in (second, third):
        assert [chunk.place for chunk in again] == [chunk.place for chunk in first]
        for one, other in zip(again, first, strict=True):
            np.testing.assert_array_equal(dense(one.X), dense(other.X))
            np.testing.assert_array_equal(one.y, other.y)
            np.testing.assert_array_equal(one.weight, other.weight)
    assert source.n_columns == first[0].X.shape[1]
    for chunk in first:
        assert sparse.issparse(chunk.X) or chunk.X.flags.c_contiguous
        assert chunk.X.dtype in (np.float32, np.float64)
        assert chunk.weight is None or chunk.weight.dtype == np.float64
    return tuple(joined([getattr(chunk, each) for chunk in first]) for each in ("X", "y", "weight"))


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def joined(parts):
    return None if parts[0] is None else np.concatenate([dense(part) for part in parts])


def sizes(source):
    return [chunk.X.shape[0] for chunk in source]


def fails(make, *parts, error=ValueError):
    """The one error, at the making of a source or while it is read, holds all parts of a message."""
    with pytest.raises(error) as caught:
        list(make())
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"
    assert type(caught.value) is error
    assert "\n" not in str(caught.value).strip()


def row(number):
    return f"data row {number} (counting from 1)"


def identical(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def texts(levels):
    return [None if code < 0 else levels.names[code] for code in levels.codes]
