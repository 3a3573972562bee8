"""Trends: against scikit-learn's linear models, inside and outside the range of the training rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines._fit.trend import PENALTIES, Trend, fit_trend
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.losses import LOGISTIC, MULTINOMIAL, SQUARED
from tensormachines._model.spline_learning import learn_splines
from tensormachines.export import to_python

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def block_of(X, y, weight=None):
    weights = np.ones(len(X)) if weight is None else weight
    basis = learn_splines(X, weights, [None] * X.shape[1], np.dtype(np.float64))
    return Block(basis.rows(X), basis, y.reshape(len(X), -1), weight)


def trend_of(block, loss, n_outputs, **options):
    return fit_trend(BlocksInMemory([block]), block.basis, loss, n_outputs, **options)


def generalised_cross_validation(Z, y, weight, penalty):
    """From the whole hat matrix."""
    root = np.sqrt(weight)[:, None]
    Z = root * (Z - np.average(Z, axis=0, weights=weight))
    y = root * (y - np.average(y, axis=0, weights=weight))
    hat = Z @ np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T)
    return np.sum((y - hat @ y) ** 2) / (len(Z) - 1 - np.trace(hat)) ** 2


@pytest.mark.parametrize("shape", [(60, 3), (20, 30)])
def test_trend_of_numbers_is_ridge_regression(rng, shape):
    X = rng.normal(size=shape) + 5
    y = X[:, :2] @ [[1.0, 2.0], [3.0, -1.0]] + 0.3 * rng.normal(size=(len(X), 2))
    weight = rng.integers(1, 3, len(X)).astype(float)
    weight /= weight.mean()
    trend = trend_of(block_of(X, y, weight), SQUARED, 2)
    columns = trend.basis.columns
    Z = np.column_stack([(X[:, j] - c.mean) / c.deviation for j, c in enumerate(columns)])
    errors = [generalised_cross_validation(Z, y, weight, penalty) for penalty in PENALTIES]
    truth = Ridge(PENALTIES[np.argmin(errors)]).fit(Z, y, weight).predict(Z)
    np.testing.assert_allclose(trend.outputs(block_of(X, y, weight)), truth, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trend.machine.outputs(X), truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("loss", "n_outputs"), [(LOGISTIC, 1), (MULTINOMIAL, 3)])
def test_trend_of_classes_is_logistic_regression(rng, loss, n_outputs):
    X = rng.normal(size=(300, 3))
    z = X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(300, 3))
    y = z.argmax(axis=1) % (2 if n_outputs == 1 else 3)
    trend = trend_of(block_of(X, y), loss, n_outputs)
    columns = trend.basis.columns
    Z = np.column_stack([(X[:, j] - c.mean) / c.deviation for j, c in enumerate(columns)])
    truth = LogisticRegression(tol=1e-8).fit(Z, y).decision_function(Z).reshape(300, -1)
    found = trend.machine.outputs(X)
    if n_outputs > 1:
        found, truth = (each - each.mean(axis=1, keepdims=True) for each in (found, truth))
    np.testing.assert_allclose(found, truth, atol=0.01)


def test_trend_of_several_labels_is_that_of_each(rng):
    X = rng.normal(size=(300, 3))
    labels = (X[:, :2] + rng.normal(size=(300, 2)) > 0.3).astype(float)
    found = trend_of(block_of(X, labels), LOGISTIC, 2).machine.outputs(X)
    for k, label in enumerate(labels.T):
        alone = trend_of(block_of(X, label), LOGISTIC, 1).machine.outputs(X)
        np.testing.assert_allclose(found[:, [k]], alone, atol=0.01)


def test_few_rows_of_many_features_have_no_trend(rng):
    X = rng.normal(size=(5000, 3))
    block = block_of(X, X[:, 0])
    assert trend_of(block, SQUARED, 1) is not None
    assert trend_of(block, SQUARED, 1, most_entries=15) is None
    constant = np.ones((50, 2))
    assert trend_of(block_of(constant, constant[:, 0]), SQUARED, 1) is None


@pytest.mark.parametrize(("n_rows", "noise"), [(100, 0.01), (600, 0.01), (600, 0.5)])
def test_default_regressor_is_no_worse_than_a_linear_model_of_a_linear_truth(rng, n_rows, noise):
    X = rng.standard_t(8, size=(n_rows + 1000, 8))
    y = X @ rng.normal(size=8) + noise * rng.normal(size=len(X))
    model = TensorMachineRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
    linear = Ridge(0.1).fit(X[:n_rows], y[:n_rows])
    errors = [np.sqrt(np.mean((each.predict(X[n_rows:]) - y[n_rows:]) ** 2)) for each in (model, linear)]
    assert errors[0] < 1.2 * errors[1]
    assert model._machine.has_trend


@pytest.mark.parametrize("n_classes", [2, 5])
def test_default_classifier_is_no_worse_than_a_linear_model_of_a_linear_truth(rng, n_classes):
    X = rng.normal(size=(4000, 20))
    y = (X @ rng.normal(size=(20, n_classes)) / 4 + rng.gumbel(size=(4000, n_classes))).argmax(axis=1)
    model = TensorMachineClassifier(random_state=0).fit(X[:2000], y[:2000])
    linear = LogisticRegression().fit(X[:2000], y[:2000])
    ours, theirs = (log_loss(y[2000:], each.predict_proba(X[2000:])) for each in (model, linear))
    assert ours < 1.02 * theirs


def test_products_need_no_trend(rng):
    X = rng.normal(size=(2000, 4))
    model = TensorMachineRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert not model._machine.has_trend


@pytest.fixture
def line(rng):
    X = rng.uniform(-1, 1, size=(400, 2))
    return X, 3 * X[:, 0] - X[:, 1] + 0.01 * rng.normal(size=400)


def test_trend_goes_on_outside_the_range_for_three_ranges(line):
    model = TensorMachineRegressor(trend=True, random_state=0).fit(*line)
    at = np.array([[0.0, 0.0], [2.0, 0.0], [6.8, 0.0], [50.0, 0.0], [1e300, 0.0]])
    found = model.predict(at) - model.predict(at)[0]
    np.testing.assert_allclose(found[1:3], [6.0, 20.4], atol=0.1)
    assert found[3] == found[4]
    assert 20.4 < found[3] < 21.1


def test_weak_trend_ends_with_the_range(rng):
    X = rng.uniform(-1, 1, size=(400, 2))
    y = X[:, 0] + 2 * rng.normal(size=400)
    model = TensorMachineRegressor(trend=True, random_state=0).fit(X, y)
    assert model._machine.has_trend
    inside, outside = model.predict([[X[:, 0].max(), 0.0], [5.0, 0.0]])
    assert inside == pytest.approx(outside, abs=1e-6)


def test_trend_is_saved_and_exported(line, tmp_path):
    X, y = line
    model = TensorMachineRegressor(trend=True, random_state=0).fit(X, y)
    rows = np.vstack([X[:50], [[3.0, -3.0], [1e6, np.nan]]])
    model.save(tmp_path / "model.tm")
    np.testing.assert_array_equal(load(tmp_path / "model.tm").predict(rows), model.predict(rows))
    names = {}
    exec(to_python(model), names)
    np.testing.assert_allclose(names["predict"](rows), model.predict(rows), rtol=1e-9)


def test_warm_start_continues_with_the_trend(line):
    X, y = line
    model = TensorMachineRegressor(warm_start=True, max_iter=3, random_state=0).fit(X, y)
    before = model.predict(X)
    model.set_params(max_iter=1).fit(X, y)
    assert model._machine.has_trend
    np.testing.assert_allclose(model.predict(X), before, atol=0.02)


def test_trend_with_early_stopping_members_and_callbacks(line):
    X, y = line
    for settings in ({"early_stopping": True}, {"n_members": 2}, {"max_iter": 2}):
        model = TensorMachineRegressor(trend=True, random_state=0, **settings).fit(X, y)
        assert model.score(X, y) > 0.999


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "sfo", "kfac"])
def test_every_solver_fits_what_the_trend_of_classes_leaves(rng, solver):
    X = rng.normal(size=(600, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    plain, trend = (
        TensorMachineClassifier(degree=2, rank=3, alpha=1e-3, solver=solver, trend=each, random_state=0)
        for each in (False, True)
    )
    scores = [log_loss(y, each.fit(X, y).predict_proba(X)) for each in (plain, trend)]
    assert scores[1] < scores[0] + 0.02


def test_raw_columns_have_a_trend(rng):
    frame = pd.DataFrame({"x": rng.normal(size=500), "level": rng.choice(["a", "b", "c"], 500)})
    frame.loc[::7, "x"] = np.nan
    y = 2 * frame["x"].fillna(1.0) + frame["level"].map({"a": 0.0, "b": 5.0, "c": -3.0})
    model = TensorMachineRegressor(trend=True, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.9999


def test_search_chooses_a_trend(rng):
    X = rng.standard_t(3, size=(600, 6))
    y = X @ rng.normal(size=6) + 0.1 * rng.normal(size=600)
    settings = {"degrees": (2,), "relevances": (0,), "roughnesses": (3.0,), "alphas": (1e-3, 1e-2)}
    search = TensorMachineRegressorCV(**settings, max_iters=(10,), random_state=0).fit(X[:400], y[:400])
    assert search.best_params_["trend"]
    assert search.score(X[400:], y[400:]) > 0.99
    scaled = StandardScaler().fit(X[:400])
    linear = Ridge(0.1).fit(scaled.transform(X[:400]), y[:400])
    assert search.score(X[400:], y[400:]) > linear.score(scaled.transform(X[400:]), y[400:]) - 0.005


@pytest.mark.parametrize("classes", [False, True])
def test_trends_and_jumps_of_sources_are_those_in_memory(rng, classes):
    X = rng.normal(size=(12_000, 6))  # more entries than are sorted and merged in memory
    z = X @ rng.normal(size=6) + 3 * (X[:, 0] > 0.3)
    y = z + rng.logistic(size=len(X)) > 0 if classes else z + 0.1 * rng.normal(size=len(X))
    options = {"rank": 2, "max_iter": 4, "trend": True, "jumps": True, "alpha": 1e-4, "random_state": 0}
    estimator = TensorMachineClassifier if classes else TensorMachineRegressor
    expected = estimator(**options).fit(X, y)
    source = blocks.iterable([(X[a : a + 5000], y[a : a + 5000]) for a in range(0, len(X), 5000)])
    model = estimator(**options).fit(source)
    assert model._machine.has_trend
    assert model.jumps_.keys() == expected.jumps_.keys() == {"x0"}
    outputs = "decision_function" if classes else "predict"
    np.testing.assert_allclose(getattr(model, outputs)(X), getattr(expected, outputs)(X), atol=1e-3)


def test_a_race_of_a_source_ends_as_in_memory(rng):
    X = rng.normal(size=(13_000, 6))
    y = X @ rng.normal(size=6) + 0.5 * rng.normal(size=len(X))
    options = {"rank": 2, "max_iter": 2, "random_state": 0}
    expected = TensorMachineRegressor(**options).fit(X, y)
    source = blocks.iterable([(X[a : a + 5000], y[a : a + 5000]) for a in range(0, len(X), 5000)])
    model = TensorMachineRegressor(**options).fit(source)
    assert expected._machine.has_trend
    assert model.alpha_ == expected.alpha_
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)


@pytest.mark.parametrize("classes", [False, True])
def test_the_trend_is_folded_into_blocks_on_dask_once(rng, monkeypatch, classes):
    da = pytest.importorskip("dask.array")
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, -1.0, 2.0] + 0.3 * rng.normal(size=3000)
    rows = da.from_array(X, chunks=(1000, -1)), da.from_array(y > 0 if classes else y, chunks=1000)
    estimator = TensorMachineClassifier if classes else TensorMachineRegressor
    options = {"degree": 2, "rank": 1, "alpha": 1e-3, "trend": True, "solver": "lbfgs", "random_state": 0}
    outputs, calls = Trend.outputs, []
    monkeypatch.setattr(Trend, "outputs", lambda self, block: calls.append(1) or outputs(self, block))
    counts = []
    for max_iter in (2, 8):  # that many passes over the rows, and more
        calls.clear()
        estimator(**options, early_stopping=True, max_iter=max_iter).fit(*rows)
        counts.append(len(calls))
    assert counts[0] == counts[1] > 0
