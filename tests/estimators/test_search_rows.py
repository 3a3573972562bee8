"""Rows that are drawn at random in one pass: the same ones however the rows come, from all of them alike."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from tensormachines import blocks
from tensormachines._data.disk import RowsOnDisk
from tensormachines._data.row_assignment import priorities
from tensormachines._data.row_sample import ROWS_OF_CLASS, RowSample
from tensormachines.estimators.search_rows import MOST_ENTRIES, Subsample, draw

ROWS = 20_000


class Drawn(NamedTuple):
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    sample: RowSample


def drawn(X, y, weight=None, most_rows=1000, seed=3, classes=False, rows=3000):
    def items():
        for first in range(0, len(y), rows):
            some = slice(first, first + rows)
            yield (X[some], y[some]) if weight is None else (X[some], y[some], weight[some])

    sample = draw(RowsOnDisk(blocks.iterable(items)), Subsample(most_rows, seed, classes))
    return Drawn(*sample.parts, sample)


def numbered(n_rows=ROWS):
    return np.arange(n_rows, dtype=np.float64)[:, None], np.arange(n_rows, dtype=np.float64)


def test_rows_with_the_smallest_random_numbers_are_drawn_in_their_order():
    X, y = numbered()
    found = drawn(X, y)
    truth = sorted(sorted(range(ROWS), key=priorities(0, ROWS, seed=3).__getitem__)[:1000])
    assert found.X[:, 0].tolist() == found.y[:, 0].tolist() == truth
    assert (found.sample.n_rows, found.sample.complete) == (ROWS, False)
    assert drawn(X, y, rows=777).y.tolist() == found.y.tolist()  # however they are cut into chunks
    assert drawn(X, y, seed=4).y.tolist() != found.y.tolist()


def test_all_stretches_of_a_file_have_their_share():
    found = drawn(*numbered(), most_rows=5000)
    of_tenths = np.histogram(found.y, bins=10, range=(0, ROWS))[0]
    deviations = (of_tenths - 500) / np.sqrt(500 * 0.9 * 0.75)  # drawn without replacement
    assert np.sum(deviations**2) < 27.9  # the 0.999 quantile of chi-square with 9 degrees of freedom


def test_rows_without_weight_come_last():
    X, y = numbered()
    weight = (np.arange(ROWS) % 40 == 0).astype(float)  # 500 rows
    found = drawn(X, y, weight)
    assert len(found.y) == 1000
    assert found.weight.sum() == 500
    np.testing.assert_array_equal(found.weight, found.y[:, 0] % 40 == 0)


def test_few_rows_are_all_there():
    X, y = numbered(700)
    found = drawn(X, y, rows=300)
    assert found.sample.complete
    np.testing.assert_array_equal(found.X, X)


def test_rare_classes_are_kept():
    X, number = numbered()
    label = np.where(number % 5000 == 17, "rare", np.where(number == 4, "once", "usual")).astype(object)
    found = drawn(X, label, classes=True, most_rows=100)
    labels, counts = np.unique(found.y[:, 0], return_counts=True)
    assert labels.tolist() == ["once", "rare", "usual"]
    assert counts[:2].tolist() == [1, 4]  # all that there are
    many = drawn(X, (number % 50).astype(int), classes=True, most_rows=100)
    assert np.bincount(many.y[:, 0]).min() >= ROWS_OF_CLASS


def test_sparse_rows(rng):
    X = sparse.random_array((5000, 30), density=0.1, format="csr", random_state=rng)
    found = drawn(X, np.arange(5000.0), most_rows=400)
    np.testing.assert_array_equal(found.X.toarray(), X[found.y[:, 0].astype(int)].toarray())


@pytest.mark.parametrize(("n_columns", "most"), [(10, 50_000), (1000, 20_000), (10**6, 2000)])
def test_dense_rows_of_many_columns_are_fewer(n_columns, most):
    X = np.broadcast_to(np.zeros(1), (1, n_columns))
    assert Subsample(50_000, 0, False).most(X) == most
    assert Subsample(50_000, 0, False).most(sparse.csr_array((1, n_columns))) == 50_000
    assert n_columns * most <= MOST_ENTRIES or most == 2000
