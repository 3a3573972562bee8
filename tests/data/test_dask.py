"""Fits and predictions on Dask collections: as in memory, wherever the rows are and whatever happens to them
there.
"""

import os
import signal
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, blocks

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
add_neighbours = pytest.importorskip("tensormachines._data.dask_blocks").add_neighbours

ROWS, COLUMNS = 12000, 6  # more entries than what is sorted and merged in memory
CHUNKS = (5000, 1, 0, 4499, 2500)
NAMES = list("abcdef")
BY_LBFGS = {"basis": "standard", "solver": "lbfgs", "alpha": 1e-4}

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)) * [1, 2, 3, 1, 1, 1] + 1
    y = X @ [1, -1, 0.5, 0, 0, 1] + X[:, 0] * X[:, 1] + rng.normal(size=ROWS)
    return X, y, rng.integers(0, 3, size=ROWS).astype(float)


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


def tasks_on(client):
    """What the scheduler knows of, as soon as that is nothing, else after a while."""
    for _ in range(40):
        if not (
            tasks := client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))
        ):
            break
        time.sleep(0.05)
    return tasks


# ---- on a cluster


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


def test_the_default_races_as_in_memory_and_then_goes_over_all_rows_at_a_time(client, data):
    X, y, _ = data
    options = {"rank": 2, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    expected = TensorMachineRegressor(**options).fit(X, y)
    assert (model.solver_, expected.solver_) == ("lbfgs", "adam")
    assert model.n_iter_ <= 50
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


def test_exposures_are_on_dask_as_the_rows_are(data):
    X, y, _ = (each[:100] for each in data)
    y, exposure = np.abs(y), np.ones(100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=2)
    model = TensorMachineRegressor(loss="poisson", degree=1, random_state=0)
    for rows, target, lengths in (
        (da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50), r"X\.chunks\[0\]"),
        (frame[NAMES], frame["y"], r"tuple\(X\.map_partitions\(len\)\.compute\(\)\)"),
    ):
        advice = rf"exposure must be one, too, got .*from_array\(exposure, chunks={lengths}\)"
        with pytest.raises(TypeError, match=advice):
            model.fit(rows, target, exposure=exposure)
    model.fit(frame[NAMES].compute(), y)
    with pytest.raises(TypeError, match=advice):
        model.predict(frame[NAMES], exposure=exposure)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", ["exposure", "offset"])
def test_predictions_for_an_exposure_or_an_offset_are_those_in_memory(data, kind, n_outputs):
    X, y, _ = (each[:100] for each in data)
    known, y = 1 + np.abs(X[:, 0]), np.exp(y / 10)
    names = pd.DataFrame(X, columns=NAMES)
    frame = dd.from_pandas(names.assign(known=known), npartitions=3)
    model = TensorMachineRegressor(loss="poisson", degree=1, random_state=0)
    model.fit(X, y if n_outputs == 1 else np.column_stack([y, y**2]))
    expected = model.predict(X, **{kind: known})
    rows, other = da.from_array(X, chunks=(40, -1)), da.from_array(known, chunks=30)
    for beside in (known, other, da.from_array(known, chunks=40)):
        found = model.predict(rows, **{kind: beside})
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), expected)
    with pytest.raises(ValueError, match=f"In a partition: X has .* rows, but {kind} has 33."):
        model.predict(rows, **{kind: frame["known"]}).compute()
    for given in (known[:50], other[:50], 2.0):
        with pytest.raises(ValueError, match=f"{kind} must have one number for each row of X, got shape"):
            model.predict(rows, **{kind: given})
    model.fit(names, y if n_outputs == 1 else np.column_stack([y, y**2]))
    for beside in (frame["known"], frame["known"].to_dask_array(lengths=True)):
        found = model.predict(frame[NAMES], **{kind: beside})
        np.testing.assert_allclose(found.compute(), expected)
    for given, has in ((other, "has 4 and 1 axes"), (frame[["known"]], "has 3 and 2 axes")):
        with pytest.raises(ValueError, match=f"X has 3 partitions, {kind} {has}. Take both from one"):
            model.predict(frame[NAMES], **{kind: given})
    with pytest.raises(ValueError, match=f"{kind} must hold"):
        model.predict(frame[NAMES], **{kind: frame["known"] * np.nan}).compute()


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_fits_with_an_exposure_or_an_offset_are_those_in_memory(data, loss, n_outputs):
    X, y, weight = (each[:200] for each in data)
    y, offset, exposure = np.exp(y / 10), X[:, 1] / 10, 1 + np.abs(X[:, 2])
    y = y if n_outputs == 1 else np.column_stack([y, y**2])
    names = [*NAMES, "weight", "offset", "exposure", *(f"y{k}" for k in range(n_outputs))]
    table = pd.DataFrame(np.column_stack([X, weight, offset, exposure, y]), columns=names)
    frame = dd.from_pandas(table, npartitions=3)
    target = frame["y0"] if n_outputs == 1 else frame[["y0", "y1"]]
    for with_weight in (False, True):
        known = {"offset": offset} | ({} if loss == "squared_error" else {"exposure": exposure})
        given = known | ({"sample_weight": weight} if with_weight else {})
        model = TensorMachineRegressor(loss=loss, degree=1, **BY_LBFGS, random_state=0)
        expected = model.fit(X, y, **given).predict(X)
        score = model.score(X, y, **given)
        arrays = {name: da.from_array(each, chunks=30) for name, each in given.items()}
        rows, targets = da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=(40, -1)[: y.ndim])
        np.testing.assert_allclose(
            model.fit(rows, targets, **arrays).predict(X), expected, rtol=1e-6, atol=1e-7
        )
        series = {name: frame["weight" if name == "sample_weight" else name] for name in given}
        model.fit(frame[NAMES], target, **series)
        np.testing.assert_allclose(model.predict(table[NAMES]), expected, rtol=1e-6, atol=1e-7)
        assert model.score(frame[NAMES], target, **series) == pytest.approx(score)


def test_what_is_wrong_with_an_exposure_or_an_offset_is_named(data):
    X, y, _ = (each[:100] for each in data)
    rows, target = da.from_array(X, chunks=(40, -1)), da.from_array(np.abs(y), chunks=40)
    known = da.from_array(np.where(np.arange(100) == 70, np.nan, 1.0), chunks=40)
    model = TensorMachineRegressor(loss="poisson", degree=1)
    for kind, allowed in (("exposure", "positive, finite"), ("offset", "finite")):
        with pytest.raises(ValueError, match=f"partition 1: {kind} must hold {allowed} numbers"):
            model.fit(rows, target, **{kind: known})
        with pytest.raises(ValueError, match=f"{kind} must have one number for each row, got 2 axes"):
            model.fit(rows, target, **{kind: known[:, None]})
        with pytest.raises(ValueError, match=f"has 100 rows, but {kind} has 99"):
            model.fit(rows, target, **{kind: known[1:]})
        series = dd.from_pandas(pd.Series(np.ones(100)), npartitions=2)
        with pytest.raises(
            ValueError, match=f"y and {kind} must have the same rows in each partition: y has"
        ):
            model.fit(rows, target, **{kind: series})


@pytest.mark.parametrize(
    ("settings", "power"), [({"loss": "poisson"}, 1), ({"loss": "gamma"}, 2), ({"loss": "tweedie"}, 1.5)]
)
def test_what_takes_the_place_of_an_offset_in_a_source_is_said(data, settings, power):
    X, y, _ = (each[:100] for each in data)
    y, offset = np.exp(y / 10), X[:, 1] / 10
    model = TensorMachineRegressor(**settings, degree=1, random_state=0)
    expected = model.fit(X, y, offset=offset).predict(X)
    with pytest.raises(
        ValueError,
        match=r"offset needs X and y in memory or on Dask: let the source divide y by exp\(offset\)",
    ) as found:
        model.fit(blocks.iterable(lambda: [(X, y)]), offset=offset)
    factors = {1: "give exp(offset) as the weight", 1.5: "give exp(0.5 * offset) as the weight"}
    assert factors.get(power, "by exp(offset).") in str(found.value)
    model.fit(X, y / np.exp(offset), sample_weight=np.exp((2 - power) * offset))
    np.testing.assert_allclose(model.predict(X), expected)


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
    [({}, "evaluate"), ({"basis": "spline", "trend": True, "max_iter": 6}, "changed_partition")],
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


# ---- on threads, without a cluster


def never(part=None):
    raise AssertionError("this must not be computed")


def test_without_a_cluster(data):
    X, y, weight = data
    options = {**BY_LBFGS, "degree": 1, "tol": 1e-9, "random_state": 0}
    expected = TensorMachineRegressor(**options).fit(X, np.stack([y, -2 * y], axis=1), weight)
    both = np.stack([y, -2 * y], axis=1)
    X_on_dask = da.from_array(
        X, chunks=(4000, 4)
    )  # of which columns are in several chunks, and rows in others than those of y
    model = TensorMachineRegressor(**options).fit(X_on_dask, *on_dask(both, weight))
    same(model, expected, X)
    assert model.predict(X_on_dask).chunks == ((4000, 4000, 4000), (2,))
    np.testing.assert_allclose(
        model.predict(X_on_dask), expected.predict(X), atol=1e-7
    )  # of numbers about 5: other sums round otherwise
    assert model.score(X_on_dask, da.from_array(both)) == pytest.approx(expected.score(X, both))


def test_given_settings_begin_with_a_fit_to_some_of_the_rows(data):
    X, y, _ = data
    options = {"degree": 2, "rank": 2, "alpha": 1e-4, "relevance": 1, "random_state": 0}
    expected = TensorMachineRegressor(**options).fit(X, y)
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    assert model.alpha_ == expected.alpha_
    assert model.n_iter_ <= 50
    assert model.loss_curve_[0] == pytest.approx(expected.objective_, rel=0.1)  # far from that of a start
    assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=0.002)


def test_float32_stays_float32(data):
    X, y, _ = data
    X, y = X.astype(np.float32), y.astype(np.float32)
    options = {**BY_LBFGS, "degree": 1, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    same(model, TensorMachineRegressor(**options).fit(X, y), X, tolerance=1e-4)
    predicted = model.predict(on_dask(X)[0])
    assert predicted.dtype == predicted.compute().dtype == np.float32


@pytest.mark.parametrize("solver", ["lbfgs", "sfo"])
def test_early_stopping_holds_out_the_rows_that_it_does_on_disk(data, solver):
    X, y, _ = data
    borders = np.cumsum([0, *CHUNKS])
    source = blocks.iterable([(X[a:b], y[a:b]) for a, b in pairwise(borders) if b > a])
    options = {
        **BY_LBFGS,
        "degree": 2,
        "rank": 1,
        "early_stopping": True,
        "max_iter": 3,
        "solver": solver,
        "random_state": 0,
    }
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    same(model, TensorMachineRegressor(**options).fit(source), X)


def test_warm_start_goes_on(data):
    X, y, _ = data
    options = {**BY_LBFGS, "degree": 2, "rank": 1, "max_iter": 3, "warm_start": True, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(X, y).fit(*on_dask(X, y))
    same(model, TensorMachineRegressor(**options).fit(X, y).fit(X, y), X)


def test_a_checkpoint_knows_its_data(data, tmp_path):
    X, y, _ = data
    options = {
        **BY_LBFGS,
        "degree": 2,
        "rank": 1,
        "max_iter": 3,
        "checkpoint": tmp_path / "fit",
        "random_state": 0,
    }
    first = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    again = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    np.testing.assert_array_equal(again._machine.params, first._machine.params)
    with pytest.raises(ValueError, match="is the checkpoint of another fit: data"):
        TensorMachineRegressor(**options).fit(*on_dask(X, y + 1e-9))


def test_features_of_a_task(data):
    X, y, _ = data
    options = {**BY_LBFGS, "degree": 2, "rank": 2, "max_iter": 3, "task": "classification", "random_state": 0}
    rows, label = on_dask(X, y > 1)
    model = TensorMachineFeatures(**options).set_output(transform="default").fit(rows, label)
    expected = TensorMachineFeatures(**options).fit(X, y > 1)
    features = model.transform(rows)
    assert features.chunks == (CHUNKS, (2,))
    np.testing.assert_allclose(features.compute(), expected.transform(X), rtol=1e-6)
    with pytest.raises(ValueError, match='task="auto" looks at all of y'):
        TensorMachineFeatures().fit(rows, label)


def test_sparse_blocks(data):
    X, y, _ = data
    X = np.where(np.abs(X) > 1.5, X, 0)
    rows, target = on_dask(X, y)
    rows = rows.map_blocks(sparse.csr_array)
    options = {**BY_LBFGS, "degree": 2, "rank": 1, "max_iter": 3, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(rows, target)
    expected = TensorMachineRegressor(**options).fit(sparse.csr_array(X), y)
    same(model, expected, X)
    np.testing.assert_allclose(model.predict(rows).compute(), expected.predict(X))


def test_types_of_columns_of_a_dataframe(data):
    X, y, _ = data
    frame = frame_on_dask(X, y=y)
    frame["b"] = frame["b"] > 0
    frame["c"] = frame["c"].round().astype("Int64")
    frame["d"] = frame["d"].astype("float32")
    local = frame.compute()
    options = {**BY_LBFGS, "degree": 1, "tol": 1e-9, "random_state": 0}
    model = TensorMachineRegressor(**options).fit(frame[NAMES], frame[["y"]])
    expected = TensorMachineRegressor(**options).fit(local[NAMES].astype(float), local[["y"]])
    same(model, expected, X)
    np.testing.assert_allclose(
        model.predict(frame[NAMES]).compute(), expected.predict(local[NAMES].astype(float)), atol=1e-7
    )


def test_chunks_of_unknown_length(data):
    X, y, _ = data
    frame = frame_on_dask(X, y=y)
    model = TensorMachineRegressor(degree=1, **BY_LBFGS, random_state=0).fit(
        frame[NAMES].to_dask_array(), frame["y"].to_dask_array()
    )
    same(model, TensorMachineRegressor(degree=1, **BY_LBFGS, random_state=0).fit(*on_dask(X, y)), X)


def test_columns_of_parquet_files_keep_their_partitions(data, tmp_path):
    """Dask would read several files at once where few of their columns are wanted: of y, but not of X."""
    pytest.importorskip("pyarrow")
    X, y, _ = data
    whole = pd.DataFrame(X, columns=NAMES).assign(y=y)
    for number in range(4):
        whole.iloc[3000 * number : 3000 * (number + 1)].to_parquet(tmp_path / f"{number}.parquet")
    frame = dd.read_parquet(tmp_path)
    assert len(frame["y"].optimize().to_delayed()) < len(frame[NAMES].optimize().to_delayed())
    model = TensorMachineRegressor(degree=1, **BY_LBFGS, tol=1e-9, random_state=0).fit(
        frame[NAMES], frame["y"]
    )
    same(model, TensorMachineRegressor(degree=1, **BY_LBFGS, tol=1e-9, random_state=0).fit(X, y), X)
    predicted = model.predict(frame[NAMES])
    assert predicted.npartitions == 4
    np.testing.assert_allclose(predicted.compute(), model.predict(whole[NAMES]))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_method_of_a_classifier_is_lazy(data, method, n_classes):
    X, y, _ = data
    label = np.array([10, 20, 30])[:n_classes][np.digitize(y, [1, 3][: n_classes - 1])]
    model = TensorMachineClassifier(degree=1, **BY_LBFGS, max_iter=3, random_state=0).fit(X, label)
    ask, expected = getattr(model, method), getattr(model, method)(X)
    unread = da.from_delayed(dask.delayed(never)(), shape=X.shape, dtype=np.float64)
    assert ask(unread).shape == expected.shape
    assert ask(unread).dtype == expected.dtype
    rows = on_dask(X)[0]
    assert ask(rows)._meta.ndim == expected.ndim
    np.testing.assert_allclose(ask(rows).compute(), expected)
    frame = frame_on_dask(X).rename(columns=dict(zip(NAMES, range(COLUMNS), strict=True)))
    np.testing.assert_allclose(ask(frame).compute(), expected)


@pytest.mark.parametrize("n_leaves", [1, 7, 8, 9, 70])
def test_sums_do_not_depend_on_who_adds_up_which_leaves(n_leaves, rng):
    leaves = {(0, k): (number,) for k, number in enumerate(rng.normal(size=n_leaves))}
    level = [number for (number,) in leaves.values()]
    while len(level) > 1:
        level = [sum(level[k + 1 : k + 8], level[k]) for k in range(0, len(level), 8)]
    for n_workers in (1, 2, 5):
        holders = rng.integers(n_workers, size=n_leaves)
        held = [{p: leaves[p] for p in leaves if holders[p[1]] == w} for w in range(n_workers)]
        found = [add_neighbours(some, n_leaves) for some in held]
        ((total,),) = add_neighbours({p: v for some in found for p, v in some.items()}, n_leaves).values()
        assert total == level[0]


# ---- refused


def test_what_is_wrong_is_named_at_once(data):
    X, y, weight = data
    rows, target = on_dask(X, y)
    frame = frame_on_dask(X, y=y)
    regressor = TensorMachineRegressor(degree=1, **BY_LBFGS)
    with pytest.raises(
        TypeError, match=r"y must be one, too, got ndarray.*dask.array.from_array\(y, chunks=X.chunks\[0\]\)"
    ):
        regressor.fit(rows, y)
    with pytest.raises(TypeError, match="sample_weight must be one, too"):
        regressor.fit(rows, target, weight)
    with pytest.raises(ValueError, match="y is needed"):
        regressor.fit(rows)
    with pytest.raises(ValueError, match="let the source subtract it from y"):
        regressor.fit(blocks.iterable(lambda: [(X, y)]), offset=y)
    with pytest.raises(ValueError, match="X has 12000 rows, but y has 11999"):
        regressor.fit(rows, target[1:])
    with pytest.raises(ValueError, match="X must have 2 dimensions"):
        regressor.fit(rows[:, 0], target)
    with pytest.raises(
        ValueError, match="same rows in each partition: X has 5000, 1, 0, 4499, 2500, y has 6000, 6000"
    ):
        regressor.fit(frame[NAMES], da.from_array(y, chunks=6000))
    with pytest.raises(
        ValueError, match=r"partition \d, data row 1 .*, column 'b': '.*', where a number is needed"
    ):
        regressor.fit(frame.assign(b=frame["b"].astype(str))[NAMES], frame["y"])
    with pytest.raises(TypeError, match="X must be a Dask array or dataframe, got Delayed"):
        regressor.fit(dask.delayed(X), target)
    with pytest.raises(TypeError, match="must all be text, or none of them"):
        regressor.fit(frame[NAMES].rename(columns={"a": 0}), frame["y"])
    with pytest.raises(ValueError, match="no columns"):
        regressor.fit(rows[:, :0], target)
    with pytest.raises(ValueError, match="no columns"):
        regressor.fit(frame[[]], frame["y"])
    with pytest.raises(ValueError, match="no rows"):
        regressor.fit(rows[:0], target[:0])


def test_what_is_wrong_on_a_worker_is_named(data):
    X, y, weight = data
    rows, target, weights = on_dask(X, y, weight)
    frame = frame_on_dask(X)
    missing = frame.assign(c=frame["c"].mask(frame["c"] > 3))
    regressor = TensorMachineRegressor(degree=1, **BY_LBFGS)
    with pytest.raises(
        ValueError, match=r"partition \d, data row \d+ \(counting from 1\), column 'c': a missing value"
    ):
        regressor.fit(missing, target)
    with pytest.raises(ValueError, match=r"partition \d, data row 1 .*, y: infinity"):
        regressor.fit(rows, target + np.inf)
    with pytest.raises(ValueError, match=r"partition \d, data row .*, weight: a negative weight, -1"):
        regressor.fit(rows, target, weights - 1)
    with pytest.raises(ValueError, match="y must be numbers for regression"):
        regressor.fit(rows, target.astype(str))
    with pytest.raises(ValueError, match="leave no row"):
        regressor.fit(rows, target, weights * 0)
    assert not hasattr(regressor, "coef_")
    regressor.fit(rows, target)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        regressor.predict(da.where(rows > 3, np.nan, rows)).compute()


def test_columns_are_checked_before_anything_is_computed(data):
    X, y, _ = data
    frame = frame_on_dask(X, y=y)
    model = TensorMachineRegressor(degree=1, **BY_LBFGS).fit(frame[NAMES], frame["y"])
    unread = dd.from_map(never, [0], meta=frame[NAMES]._meta)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(unread.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(unread[NAMES[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(on_dask(X)[0])
    with pytest.raises(ValueError, match="X has 5 features, but TensorMachineRegressor is expecting 6"):
        TensorMachineRegressor(degree=1, **BY_LBFGS).fit(X, y).predict(on_dask(X)[0][:, :5])


def test_without_the_extra_it_is_named(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setitem(sys.modules, "tensormachines._data.dask", None)
    with pytest.raises(ImportError, match=r'pip install "tensormachines\[dask\]"'):
        TensorMachineRegressor().fit(*on_dask(X, y))
