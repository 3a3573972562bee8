"""Fits and predictions of Dask collections on threads, without a cluster, and what is refused."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from dask_rows import BY_LBFGS, CHUNKS, COLUMNS, NAMES, frame_on_dask, numbers, on_dask, same
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, blocks

dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
add_neighbours = pytest.importorskip("tensormachines._data.dask_blocks").add_neighbours

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data():
    return numbers()


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


def half_squares(y, z):
    return (z - y) ** 2 / 2, z - y


def test_given_settings_with_a_loss_of_ones_own_begin_with_a_fit_to_some_of_the_rows(data):
    """Workers cannot take compiled steps of such a loss, so L-BFGS goes over all rows."""
    X, y, _ = data
    options = {"degree": 2, "rank": 2, "alpha": 1e-4, "relevance": 1, "random_state": 0, "loss": half_squares}
    expected = TensorMachineRegressor(**options).fit(X, y)
    model = TensorMachineRegressor(**options).fit(*on_dask(X, y))
    assert model.alpha_ == expected.alpha_
    assert model.solver_ == "lbfgs"
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
