"""Fits and predictions on a Dask cluster: as in memory, wherever the rows are and whatever happens to them
there.
"""

import importlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from dask_rows import BY_LBFGS, CHUNKS, COLUMNS, NAMES, ROWS, frame_on_dask, numbers, on_dask, same
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def cluster():
    # Fifteen seconds after a worker was killed, Dask would close its successor if that was just killed, too.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def data():
    return numbers()


def tasks_on(client):
    """What the scheduler knows of, as soon as that is nothing, else after a while."""
    for _ in range(40):
        if not (
            tasks := client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))
        ):
            break
        time.sleep(0.05)
    return tasks


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 1, "tol": 1e-9},
        {"degree": 3, "rank": 2, "max_iter": 4, "n_restarts": 2},
        {"degree": 2, "solver": "sfo", "max_iter": 1},
    ],
    ids=["convex", "restarts", "sfo"],
)
def test_same_as_in_memory_on_two_processes(client, data, options):
    X, y, weight = data
    options = {**BY_LBFGS, "random_state": 0, **options}
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y, weight))
    same(model, TensorMachineRegressor(**options).fit(X, y, weight), X)
    assert model.linear_.shape == (COLUMNS + 1,)


def test_the_default_races_as_in_memory_and_then_takes_its_steps_on_a_worker(client, data):
    X, y, _ = data
    options = {"rank": 2, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    expected = TensorMachineRegressor(**options).fit(X, y)
    assert (model.solver_, expected.solver_) == ("adam", "adam")
    assert model.n_iter_ == expected.n_iter_
    assert model.alpha_ == expected.alpha_
    assert model.jumps_.keys() == expected.jumps_.keys()
    assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=0.002)
    assert tasks_on(client) == []


@pytest.mark.parametrize("loss", ["poisson", "quantile", "huber"])
def test_losses_are_those_in_memory(client, data, loss):
    X, y, _ = data
    y = np.round(np.exp((y - y.mean()) / y.std()))
    options = {**BY_LBFGS, "degree": 2, "rank": 1, "max_iter": 4, "random_state": 0, "loss": loss}
    exposure = {"exposure": 1 + np.abs(X[:, 0])} if loss == "poisson" else {}
    expected = TensorMachineRegressor(**options).fit(X, y, **exposure)
    on_cluster = {name: on_dask(values)[0] for name, values in exposure.items()}
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y), **on_cluster)
    same(model, expected, X)
    predicted = model.predict(on_dask(X)[0], **on_cluster)
    np.testing.assert_allclose(predicted.compute(), expected.predict(X, **exposure), rtol=1e-6)


def test_classes_by_name_in_a_dataframe_on_two_processes(client, data):
    X, y, weight = data
    label = np.array(["high", "low", "middling"])[np.digitize(y, [0, 3])]
    frame = frame_on_dask(X, label=label, weight=weight)
    options = {
        **BY_LBFGS,
        "degree": 2,
        "rank": 2,
        "max_iter": 4,
        "class_weight": "balanced",
        "random_state": 0,
    }
    model = TensorMachineClassifier(**options).fit(frame[NAMES], frame["label"], frame["weight"])
    expected = TensorMachineClassifier(**options).fit(X, label, weight)
    same(model, expected, X)
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_array_equal(model.predict(frame[NAMES]).compute(), expected.predict(X))
    np.testing.assert_allclose(model.predict_proba(frame[NAMES]).compute(), expected.predict_proba(X))


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({}, "evaluate"),
        ({"basis": "spline", "trend": True, "max_iter": 6}, "changed_partition"),
        ({"basis": "spline", "solver": "adam", "max_iter": 100}, "of_share"),
    ],
)
def test_a_worker_that_is_killed_costs_time_but_not_the_result(client, data, settings, task):
    X, y, _ = data
    options = {**BY_LBFGS, "degree": 2, "rank": 2, "max_iter": 25, "tol": 0, "random_state": 0, **settings}
    expected = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    pids = client.run(os.getpid)
    killed = []

    def kill():
        """The worker that holds most of the rows, once the fit goes over them."""
        while not killed:
            time.sleep(0.01)
            tasks = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
            held = {
                worker: sum("partition" in str(key) for key in keys)
                for worker, keys in client.has_what().items()
            }
            victim = max(held, key=held.get)
            if held[victim] and any(task in key for key in tasks):
                os.kill(pids[victim], signal.SIGKILL)
                killed.append(pids[victim])

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    assert killed, "the fit was over before a worker was killed"
    [victim] = killed
    np.testing.assert_array_equal(model._machine.params, expected._machine.params)
    client.wait_for_workers(2, timeout=30)
    assert victim not in client.run(os.getpid).values()
    assert tasks_on(client) == []


def test_pieces_that_no_worker_holds_are_evaluated_by_any(client, data, monkeypatch):
    """Seen when a worker had just died: Dask refused the task."""
    options = {**BY_LBFGS, "degree": 2, "rank": 2, "max_iter": 2, "random_state": 0}
    expected = TensorMachineRegressor(**options).fit(*on_dask(*data[:2]))
    module = importlib.import_module("tensormachines._data.dask_blocks")
    monkeypatch.setattr(
        module, "_shares_of_threads", lambda _, futures: [(None, [piece]) for piece in futures]
    )
    found = TensorMachineRegressor(**options).fit(*on_dask(*data[:2]))
    np.testing.assert_array_equal(found._machine.params, expected._machine.params)


def test_an_evaluation_is_a_task_for_each_thread_and_rounds_as_without_a_cluster(client, data):
    """There are far fewer threads than partitions, whose parts are of different sizes."""
    X, y, _ = data
    lengths = tuple(np.random.default_rng(0).multinomial(ROWS, np.full(20, 0.05)))
    rows = da.from_array(X, chunks=(lengths, -1)), da.from_array(y, chunks=(lengths,))

    def tasks_of_fit(max_iter):
        before = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        options = {**BY_LBFGS, "degree": 2, "rank": 2, "tol": 0, "random_state": 0, "early_stopping": True}
        model = TensorMachineRegressor(**options, n_iter_no_change=99, max_iter=max_iter).fit(*rows)
        after = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        return model, after - before

    (_, few), (model, many) = tasks_of_fit(1), tasks_of_fit(6)
    # A pass evaluates training rows and those held out, perhaps more than once; a task has 4 to 6 states.
    assert many - few < 5 * 20 * 4  # less than one task for each partition
    with dask.config.set(scheduler="synchronous"):
        alone, _ = tasks_of_fit(6)
    np.testing.assert_array_equal(model._machine.params, alone._machine.params)
    assert tasks_on(client) == []


def test_rows_stay_where_they_are(client, data):
    X, y, _ = data
    X, y = dask.persist(*on_dask(np.tile(X, 10), y))
    distributed.wait([X, y])

    def sent(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    before = sum(client.run(sent).values())
    TensorMachineRegressor(degree=1, **BY_LBFGS, max_iter=3, tol=0).fit(X, y)
    # On a busy machine Dask may move a chunk to the other worker once; every evaluation would be far more.
    assert sum(client.run(sent).values()) - before < X.nbytes


def test_nothing_is_left_on_the_scheduler(client, data):
    X, y, _ = data
    kept = client.persist(on_dask(X, y))
    model = TensorMachineRegressor(degree=1, **BY_LBFGS, early_stopping=True, max_iter=3).fit(*kept)
    predicted = model.predict(kept[0])
    predicted.compute()
    del kept, predicted
    assert tasks_on(client) == []


def test_nothing_is_left_after_a_fit_that_failed(client, data):
    X, y, _ = data
    wrong = X.copy()
    wrong[5003, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"partition 3, data row 3 \(counting from 1\), column 2 of X: infinity"
    ) as in_the_data:
        TensorMachineRegressor().fit(*on_dask(wrong, y))

    class Interrupted(TensorMachineRegressor):
        def _fitted_attributes(self, problem, params):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        Interrupted(degree=1, max_iter=2).fit(*on_dask(X, y))
    assert tasks_on(client) == []
    assert in_the_data.traceback  # which still refers to all that the fit knew
    assert interrupted.traceback


def test_prediction_is_lazy(client, data):
    X, y, _ = data
    model = TensorMachineRegressor(degree=1, **BY_LBFGS).fit(X, y)
    expected = model.predict(X)
    rows = on_dask(X)[0]
    predicted = model.predict(rows)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (CHUNKS,)
    assert predicted.dtype == np.float64
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0
    model.fit(X, -y)
    np.testing.assert_allclose(predicted.compute(), expected)  # of the model that was asked
    np.testing.assert_allclose(predicted[4990:5010].compute(), expected[4990:5010])
