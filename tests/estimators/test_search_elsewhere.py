"""Searches in files and on Dask: of few rows they are those in memory, of many they try a sample."""

from math import ceil, sqrt

import numpy as np
import pytest

from tensormachines import (
    TensorMachineClassifierCV,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines.estimators.halving import Budget, Rung, Trial

pd = pytest.importorskip("pandas")

FEW = {
    "degrees": (1, 2),
    "ranks": (2,),
    "alphas": (1e-4, 1e-2),
    "relevances": (0,),
    "trends": (False,),
    "roughnesses": (3.0,),
    "max_iters": (10,),
    "cv": 2,
    "time_budget": None,
    "random_state": 0,
}
COLUMNS = ["a", "b", "town"]
MANY, SOME = 6000, 1500


@pytest.fixture
def table(rng):
    table = pd.DataFrame(rng.standard_normal((400, 2)), columns=["a", "b"])
    table["town"] = rng.choice(["x", "y", "z"], 400)
    table["price"] = table["a"] * table["b"] + (table["town"] == "x") + 0.1 * rng.standard_normal(400)
    return table.assign(kind=np.where(table["price"] > 0.5, "dear", "cheap"), weight=rng.uniform(1, 2, 400))


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((MANY, 6))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(MANY)


class Counted:
    """Items that know how often they have been read."""

    def __init__(self, X, y):
        self.X, self.y, self.reads = X, y, 0

    def __iter__(self):
        self.reads += 1
        for first in range(0, len(self.y), 1300):
            yield self.X[first : first + 1300], self.y[first : first + 1300]


def of_file(kind, table, target, path):
    """Return the arguments of a fit to the same rows, elsewhere."""
    rows = table[[*COLUMNS, target]]
    if kind == "csv":
        rows.to_csv(path / "rows.csv", index=False)
        return (blocks.csv(path / "rows.csv", target=target, rows=90),)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        rows.to_parquet(path / "rows.parquet")
        return (blocks.parquet(path / "rows.parquet", target=target, rows=90),)
    lazy = pytest.importorskip("dask.dataframe").from_pandas(rows, npartitions=4)
    return lazy[COLUMNS], lazy[target]


# ---- few rows


@pytest.mark.parametrize("kind", ["csv", "parquet", "dask"])
def test_few_rows_are_searched_as_in_memory_to_the_bit(table, tmp_path, kind):
    expected = TensorMachineRegressorCV(**FEW).fit(table[COLUMNS], table["price"])
    rows = of_file(kind, table, "price", tmp_path)
    search = TensorMachineRegressorCV(**FEW).fit(*rows)
    assert search.best_params_ == expected.best_params_
    assert search.members_ == expected.members_
    assert search.subsample_ == expected.subsample_ == 400
    assert search.feature_names_in_.tolist() == COLUMNS
    np.testing.assert_array_equal(search.predict(table[COLUMNS]), expected.predict(table[COLUMNS]))
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert search.score(*rows) == pytest.approx(expected.score(table[COLUMNS], table["price"]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_in_files_keep_their_type(table, tmp_path, dtype):
    X, y = table[["a", "b"]].to_numpy(dtype), table["price"].to_numpy(dtype)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    expected = TensorMachineRegressorCV(**FEW).fit(X, y)
    search = TensorMachineRegressorCV(**FEW).fit(blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=90))
    np.testing.assert_array_equal(search.predict(X), expected.predict(X))
    assert search.predict(X).dtype == dtype
    named = table[["a", "b"]].astype(dtype)
    named.assign(price=y).to_csv(tmp_path / "named.csv", index=False)
    source = blocks.csv(tmp_path / "named.csv", target="price", rows=90, dtype=dtype)
    of_names = TensorMachineRegressorCV(**FEW).fit(source)
    assert of_names.feature_names_in_.tolist() == ["a", "b"]
    assert of_names.predict(named).dtype == dtype


def test_classes_and_weights_of_a_file(table, tmp_path):
    rows = table[[*COLUMNS, "kind", "weight"]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    source = blocks.csv(tmp_path / "rows.csv", target="kind", weight="weight", rows=90)
    expected = TensorMachineClassifierCV(**FEW).fit(table[COLUMNS], table["kind"], table["weight"])
    search = TensorMachineClassifierCV(**FEW).fit(source)
    np.testing.assert_allclose(
        search.predict_proba(table[COLUMNS]), expected.predict_proba(table[COLUMNS]), rtol=1e-6
    )
    assert search.target_name_ == "kind"
    score = expected.score(table[COLUMNS], table["kind"], table["weight"])
    assert search.score(source) == pytest.approx(score)
    search.save(tmp_path / "search.tm")
    again = load(tmp_path / "search.tm")
    assert (again.subsample_, again.target_name_) == (400, "kind")
    np.testing.assert_array_equal(again.predict(source), search.predict(source))


# ---- many rows


def test_many_rows_of_a_source_are_tried_on_a_sample(many):
    X, y = many
    items = Counted(X, y)
    settings = {**FEW, "alphas": (1e-4, 1e-3), "n_members": 1}
    search = TensorMachineRegressorCV(**settings, subsample=SOME).fit(blocks.iterable(items))
    assert items.reads == 3  # for the sample, and twice for the last fit
    assert search.subsample_ == SOME
    assert search.cv_results_["n_resources"].max() == SOME // 2
    growth = MANY / SOME
    assert search.alpha_ == search.members_[0]["alpha"] == search.best_params_["alpha"] / sqrt(growth)
    in_memory = TensorMachineRegressorCV(**settings).fit(X, y)
    assert search.best_params_["degree"] == in_memory.best_params_["degree"] == 2
    assert search.score(X, y) == pytest.approx(in_memory.score(X, y), abs=0.005)
    again = TensorMachineRegressorCV(**settings, subsample=SOME).fit(blocks.iterable(Counted(X, y)))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_the_model_of_a_source_is_the_mean_of_candidates_fitted_to_all_its_rows(many):
    X, y = many
    y = y + (np.sign(X[:, 0]) - X[:, 0]) * X[:, 1]  # a step: one candidate is too smooth, one too rough
    source = blocks.iterable(Counted(X, y))
    settings = {**FEW, "degrees": (2,), "alphas": (1e-3,), "roughnesses": (1.0, 20.0)}
    search = TensorMachineRegressorCV(**settings, subsample=SOME).fit(source)
    assert len(search.members_) > 1
    expected = np.zeros(MANY)
    for member in search.members_:
        weight = member.pop("weight")
        n_members = ceil(search.n_members / len(search.members_))
        model = TensorMachineRegressor(**member, n_members=n_members, random_state=0).fit(source)
        expected += weight * model.predict(X)
    np.testing.assert_allclose(search.predict(X), expected, atol=1e-4)


def test_many_rows_on_dask_are_tried_on_the_same_sample(many):
    da = pytest.importorskip("dask.array")
    X, y = many
    settings = {**FEW, "alphas": (1e-4, 1e-3), "subsample": SOME, "n_members": 3}
    on_disk = TensorMachineRegressorCV(**settings, refit=False).fit(blocks.iterable(Counted(X, y)))
    rows = da.from_array(X, chunks=(2500, -1)), da.from_array(y, chunks=2500)
    search = TensorMachineRegressorCV(**settings).fit(*rows)
    assert search.best_params_ == on_disk.best_params_
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], on_disk.cv_results_["mean_test_score"]
    )
    assert (search.best_estimator_.n_members, search.best_estimator_.solver_) == (1, "adam")
    in_memory = TensorMachineRegressorCV(**{**settings, "n_members": 1}).fit(X, y)
    assert search.score(*rows) == pytest.approx(in_memory.score(X, y), abs=0.005)
    assert isinstance(search.predict(rows[0]), da.Array)


def test_all_classes_of_a_large_file_are_known(many):
    X, _ = many
    label = np.where(X[:, 0] > 0, "high", "low").astype(object)
    label[5000:5006] = "odd"
    search = TensorMachineClassifierCV(**{**FEW, "alphas": (1e-3,)}, subsample=500)
    search.fit(blocks.iterable(Counted(X, label)))
    assert search.classes_.tolist() == ["high", "low", "odd"]
    assert search.subsample_ < 510
    assert search.score(X, label) > 0.95


def test_intervals_are_calibrated_on_the_sample(many):
    X, y = many
    settings = {**FEW, "degrees": (2,), "alphas": (1e-3,), "n_members": 1, "intervals": True}
    search = TensorMachineRegressorCV(**settings, subsample=SOME).fit(blocks.iterable(Counted(X, y)))
    low, high = search.predict_interval(X, coverage=0.8).T
    # The errors are those of models of fewer rows, and so a little larger than those of the last one.
    assert 0.79 < np.mean((low <= y) & (y <= high)) < 0.88


# ---- the time


def test_reading_takes_of_the_time_and_the_last_fit_is_not_cut(many):
    """The time is over as soon as the rows have been read."""
    X, y = many
    items = Counted(X, y)
    search = TensorMachineRegressorCV(**{**FEW, "time_budget": 1.0}, subsample=SOME)
    search._clock = lambda: float(items.reads > 0)
    search.fit(blocks.iterable(items))
    assert len(search.cv_results_["params"]) == 1
    assert search.n_iter_ == 10
    assert search.best_estimator_.n_members == 1


def test_more_rows_elsewhere_take_longer():
    budget = Budget(100.0, [1.0], 2, clock=lambda: 0.0)
    rung = Rung(rows=1.0, most_splits=1, iterations=1.0, tolerance=1.0, n_candidates=1)
    one = np.ones(1)
    budget.note([Trial(0, 0, one, 2 * one, 0 * one)], rung)
    assert budget.fits_left(0, 5) == 33
    assert budget.deadline([0]) == 100 - 6
    assert budget.refit_deadline(0).end == 100
    budget.growth = 10.0
    assert budget.fits_left(0, 5) == 3
    assert budget.deadline([0]) == pytest.approx(100 - 100 / 3)
    assert budget.refit_deadline(0).end == np.inf


# ---- refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"cv": [(np.arange(50), np.arange(50, 100))]},
            "cv lists the rows of its splits",
        ),
        ({"categorical_features": ["a"]}, "categorical_features needs X in memory"),
        ({"subsample": 1}, "'subsample' parameter"),
    ],
)
def test_what_has_no_meaning_for_a_sample_is_refused(table, tmp_path, settings, message):
    source = of_file("csv", table, "price", tmp_path)
    with pytest.raises(ValueError, match=message):
        TensorMachineRegressorCV(**{**FEW, "subsample": 100, **settings}).fit(*source)


def test_a_source_brings_its_targets(table, tmp_path):
    (source,) = of_file("csv", table, "price", tmp_path)
    with pytest.raises(ValueError, match="give neither y nor sample_weight"):
        TensorMachineRegressorCV(**FEW).fit(source, table["price"])
