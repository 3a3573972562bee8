"""Minibatch steps on the workers of a Dask cluster: each along its own share of the rows."""

from concurrent.futures import CancelledError
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._fit.solvers.adam import adam
from tensormachines._fit.solvers.protocol import minimise
from tensormachines._model.affine_basis import AffineBasis
from tensormachines._model.block import Block, BlockList, BlocksInMemory, add_up
from tensormachines._model.layout import Layout
from tensormachines._model.losses import SQUARED
from tensormachines._model.objective import Objective

pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

dask_shares = pytest.importorskip("tensormachines._data.dask_shares")

ROWS, COLUMNS = 30_000, 5  # enough minibatches for two shares
CHUNKS = (9000, 1, 0, 12_000, 8999)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS + 5000, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    return X, y


def on_dask(*arrays):
    return [da.from_array(array[:ROWS], chunks=(CHUNKS, -1)[: array.ndim]) for array in arrays]


def blocks_of(X, y, sizes):
    basis = AffineBasis(COLUMNS)
    borders = np.cumsum([0, *sizes])
    return [Block(X[begin:end], basis, y[begin:end, None]) for begin, end in pairwise(borders)]


def test_minibatches_of_a_share_have_all_rows_once_in_similar_numbers(data):
    X, y = data
    pieces = [blocks_of(X[:300], y[:300], [100, 50, 150]), blocks_of(X[300:450], y[300:450], [20, 100, 30])]
    made = dask_shares.made_share([[0, 1, 2], [0, 2]], 3, *pieces)
    assert [block.n_rows for block in made] == [150, 100, 100]
    expected = np.sort(np.concatenate([y[:320], y[420:450]]))
    np.testing.assert_array_equal(np.sort(np.concatenate([block.targets[:, 0] for block in made])), expected)


class SharesInTurn:
    """Shares that are evaluated one after the other, here."""

    def __init__(self, shares):
        self.shares, self.n_shares, self.n_minibatches = shares, len(shares), len(shares[0])

    def total(self, function):
        return add_up(dask_shares.of_share(function, 1, share) for share in self.shares)


class OnMachines(BlocksInMemory):
    def __init__(self, shares):
        super().__init__([block for share in shares for block in share])
        self.shares = SharesInTurn(shares)


def fitted(blocks, layout, max_iter=3):
    objective = Objective(blocks, layout, SQUARED, 1e-3)
    start = np.random.default_rng(0).normal(size=layout.size) / 10
    solver = adam(start, n_functions=objective.n_steps, max_iter=max_iter, seed=0, whole_epochs=True)
    return minimise(objective, [solver])[0], objective


def test_equal_shares_take_the_steps_of_one_of_them(data):
    """Twice the same rows: the mean of the models is each of them, and so are value and steps."""
    X, y = data
    share, layout = blocks_of(X[:600], y[:600], [60] * 10), Layout(COLUMNS, degree=2, rank=2)
    found, _ = fitted(OnMachines([share, share]), layout)
    expected, _ = fitted(BlocksInMemory(share), layout)
    np.testing.assert_allclose(found.params, expected.params, rtol=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert (found.n_iter, found.outcome) == (expected.n_iter, expected.outcome)


def test_the_value_of_unequal_shares_is_that_of_all_rows(data):
    X, y = data
    layout = Layout(COLUMNS, degree=2, rank=2)
    shares = blocks_of(X[:600], y[:600], [60] * 10), blocks_of(X[600:700], y[600:700], [10] * 10)
    found, objective = fitted(OnMachines(shares), layout)
    (value,), _ = objective(found.params[None])
    assert found.value == pytest.approx(value, rel=1e-12)


def test_a_share_of_rows_without_weight_changes_nothing(data):
    X, y = data
    share, layout = blocks_of(X[:600], y[:600], [60] * 10), Layout(COLUMNS, degree=2, rank=2)
    absent = [replace(block, weight=np.zeros(block.n_rows)) for block in share]
    weighted = [replace(block, weight=np.ones(block.n_rows)) for block in share]
    found, _ = fitted(OnMachines([weighted, absent]), layout)
    expected, _ = fitted(BlocksInMemory(weighted), layout)
    np.testing.assert_allclose(found.params, expected.params, rtol=1e-12)
    assert (found.n_iter, found.outcome) == (expected.n_iter, expected.outcome)


def test_a_share_that_diverges_is_noticed(data):
    X, y = data
    y = y.copy()
    y[600:] = 1e200  # its squares overflow
    layout = Layout(COLUMNS, degree=2, rank=2)
    shares = blocks_of(X[:600], y[:600], [60] * 10), blocks_of(X[600:700], y[600:700], [10] * 10)
    found, _ = fitted(OnMachines(shares), layout)
    assert found.n_iter == 0


def test_the_default_takes_its_steps_on_two_workers(client, data):
    X, y = data
    model = TensorMachineRegressor(random_state=0).fit(*on_dask(X, y))
    expected = TensorMachineRegressor(random_state=0).fit(X[:ROWS], y[:ROWS])
    assert (model.solver_, model.n_iter_, model.alpha_) == ("adam", expected.n_iter_, expected.alpha_)
    score = expected.score(X[ROWS:], y[ROWS:])
    assert model.score(X[ROWS:], y[ROWS:]) == pytest.approx(score, abs=0.003)
    again = TensorMachineRegressor(random_state=0).fit(*on_dask(X, y))
    np.testing.assert_array_equal(again._machine.params, model._machine.params)


def test_classes_on_two_workers(client, data):
    X, y = data
    label = np.array(["high", "low", "middling"])[np.digitize(y, [-0.5, 0.5])]
    model = TensorMachineClassifier(random_state=0).fit(*on_dask(X, label))
    expected = TensorMachineClassifier(random_state=0).fit(X[:ROWS], label[:ROWS])
    assert model.solver_ == "adam"
    score = expected.score(X[ROWS:], label[ROWS:])
    assert model.score(X[ROWS:], label[ROWS:]) == pytest.approx(score, abs=0.01)


def test_the_rows_of_shares_depend_on_the_number_of_workers_alone(client, data):
    X, y = data
    pieces = [blocks_of(X[k : k + 600], y[k : k + 600], [10] * 60) for k in range(0, 3000, 600)]
    lists = client.scatter(pieces)
    numbers, rows = [list(range(60))] * 5, np.full(5, 600.0)
    shares = dask_shares.SharesOnDask(client, lists, numbers, rows, n_minibatches=300)
    assert (shares.n_shares, shares.n_minibatches) == (2, 120)
    weights, sums = shares.total(lambda share, threads: (share.weights, sum_of_targets(share)))
    assert weights.sum() == 3000
    np.testing.assert_allclose(sums, y[:3000].sum())
    assert dask_shares.SharesOnDask(client, lists, numbers, rows, n_minibatches=47).n_shares == 1


def test_blocks_that_travel_together_have_one_basis():
    basis = AffineBasis(50_000, np.zeros(50_000), np.ones(50_000))
    X = sparse.csr_array((np.ones(10), np.arange(10), np.arange(11)), shape=(10, 50_000))
    blocks = [Block(X[k : k + 1], basis, np.ones((1, 1))) for k in range(10)]
    header, frames = distributed.protocol.serialize(BlockList(blocks) + blocks)
    assert sum(memoryview(frame).nbytes for frame in frames) < 1.2 * (basis.shift.nbytes + basis.scale.nbytes)
    back = distributed.protocol.deserialize(header, frames)
    assert type(back) is BlockList
    assert len({id(block.basis) for block in back}) == 1


@pytest.mark.parametrize(("lost", "found"), [(0, 1), (3, 1), (4, None)])
def test_sums_are_tried_again_if_what_was_sent_is_lost(client, data, monkeypatch, lost, found):
    X, y = data
    shares = dask_shares.SharesOnDask(
        client, client.scatter([blocks_of(X[:60], y[:60], [60])]), [[0]], np.full(1, 60.0), n_minibatches=1
    )
    calls = []

    def lose(self, function):
        calls.append(function)
        if len(calls) <= lost:
            raise CancelledError
        return total(self, function)

    total = dask_shares.SharesOnDask._total_on_cluster
    monkeypatch.setattr(dask_shares.SharesOnDask, "_total_on_cluster", lose)
    if found is None:
        with pytest.raises(CancelledError):
            shares.total(count_shares)
    else:
        assert shares.total(count_shares) == (found,)


def count_shares(share, threads):
    return (1,)


def sum_of_targets(share):
    return sum(block.targets.sum() for block in share.blocks)
