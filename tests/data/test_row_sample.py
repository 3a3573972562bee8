"""A sample of rows depends on the rows alone, not on how they are cut."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy import sparse

from tensormachines._data.row_sample import RowSample


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("borders", [[], [1, 2], [300, 700], [999]])
def test_chunks_give_the_sample_of_all_rows(of, borders):
    X, y = np.arange(2000.0).reshape(1000, 2), np.arange(1000)
    firsts = [0, *borders]
    chunks = [
        RowSample.of((of(rows), some, None), first, 50, seed=3)
        for first, rows, some in zip(firsts, np.split(X, borders), np.split(y, borders), strict=True)
    ]
    sample = reduce(add, chunks)
    rows = sample.parts[0].toarray() if of is sparse.csr_array else sample.parts[0]
    assert sample.n_rows == 1000
    assert sample.parts[2] is None
    np.testing.assert_array_equal(sample.numbers, RowSample.of((X,), 0, 50, seed=3).numbers)
    np.testing.assert_array_equal(rows, X[sample.numbers])
    np.testing.assert_array_equal(sample.parts[1], sample.numbers)
    assert (np.diff(sample.numbers) > 0).all()


def test_few_rows_are_all_there_and_others_are_drawn_evenly():
    y = np.arange(40_000)
    assert len(RowSample.of((y,), 0, 40_000).numbers) == 40_000
    drawn = RowSample.of((y,), 0, 4000).numbers
    by_quarter = np.histogram(drawn, bins=4, range=(0, 40_000))[0]
    assert np.abs(by_quarter - 1000).max() < 110  # four standard deviations
