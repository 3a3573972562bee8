"""Scores of rows in files and on Dask are those of the same rows in memory."""

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, TensorMachineRegressorCV, blocks

pd = pytest.importorskip("pandas")

QUICK = {"degree": 2, "rank": 2, "alpha": 1e-3, "random_state": 0}


@pytest.fixture
def table(rng):
    table = pd.DataFrame(rng.standard_normal((300, 2)), columns=["a", "b"])
    table["town"] = rng.choice(["x", "y", "z"], 300)
    table["weight"] = rng.uniform(0.5, 2, 300)
    table["price"] = np.round(np.exp(table["a"] + (table["town"] == "x")), 3)
    table["dear"] = np.where(table["price"] > 1, "yes", "no")
    return table


def source(table, path, target):
    others = {"price", "dear"} - {target}
    table.drop(columns=[*others]).to_csv(path / "t.csv", index=False)
    return blocks.csv(path / "t.csv", target=target, weight="weight", rows=70)


MODELS = [
    (TensorMachineRegressor(**QUICK), "price"),
    (TensorMachineRegressor(**QUICK, loss="gamma"), "price"),
    (TensorMachineRegressor(**QUICK, loss="quantile", quantile=[0.2, 0.8]), "price"),
    (TensorMachineClassifier(**QUICK), "dear"),
]


@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_a_source_scores_as_its_rows(table, tmp_path, model, target):
    X, y, weight = table[["a", "b", "town"]], table[target], table["weight"]
    model = model.fit(X, y, sample_weight=weight)
    assert model.score(source(table, tmp_path, target)) == pytest.approx(model.score(X, y, weight), rel=1e-6)


@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_a_dask_frame_scores_as_its_rows(table, model, target):
    dd = pytest.importorskip("dask.dataframe")
    model = model.fit(table[["a", "b", "town"]], table[target])
    lazy = dd.from_pandas(table, npartitions=3)
    score = model.score(lazy[["a", "b", "town"]], lazy[target], lazy["weight"])
    expected = model.score(table[["a", "b", "town"]], table[target], table["weight"])
    assert score == pytest.approx(expected, rel=1e-6)


def test_a_search_scores_a_source(table, tmp_path):
    X, y = table[["a", "b", "town"]], table["price"]
    search = TensorMachineRegressorCV(degrees=(2,), alphas=(1e-3,), time_budget=None, cv=2, random_state=0)
    search.fit(X, y)
    found = search.score(source(table, tmp_path, "price"))
    assert found == pytest.approx(search.score(X, y, table["weight"]), rel=1e-6)


def test_a_score_reads_rows_once_in_any_order(rng):
    X = rng.normal(size=(400, 2))
    y = np.sort(
        rng.poisson(np.exp(X[:, 0] - 1)).astype(float)
    )  # so that all targets of the first blocks are 0
    model = TensorMachineRegressor(**QUICK, loss="poisson").fit(X, y)
    passes = []

    def items():
        passes.append(1)
        yield from zip(np.split(X, 8), np.split(y, 8), strict=True)

    assert y[:100].max() == 0
    assert model.score(blocks.iterable(items)) == pytest.approx(model.score(X, y), rel=1e-9)
    assert len(passes) == 1
    several = np.column_stack([y, X[:, 1]])
    both = TensorMachineRegressor(**QUICK).fit(X, several)
    assert both.score(blocks.npy(X, several, rows=70)) == pytest.approx(both.score(X, several), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_r2_of_a_constant_target_is_that_of_scikit_learn(rng, offset):
    X = rng.normal(size=(40, 2))
    model = TensorMachineRegressor(basis=None, degree=1, alpha=1.0).fit(X, X[:, 0])
    y = np.full(40, offset)
    assert model.score(blocks.npy(X, y, rows=9)) == model.score(X, y) == 0.0


def test_quantiles_of_many_rows_are_scored_on_a_sample(rng):
    X = rng.normal(size=(150_000, 1))
    y = X[:, 0] + rng.normal(size=len(X))
    model = TensorMachineRegressor(**QUICK, loss="quantile", quantile=[0.2, 0.8]).fit(X[:2000], y[:2000])
    assert model.score(blocks.npy(X, y)) == pytest.approx(model.score(X, y), abs=0.005)


def test_targets_are_given_once(table, tmp_path):
    model = TensorMachineRegressor(**QUICK).fit(table[["a", "b", "town"]], table["price"])
    with pytest.raises(ValueError, match="brings its own targets"):
        model.score(source(table, tmp_path, "price"), table["price"])
    with pytest.raises(ValueError, match="y is needed"):
        model.score(table[["a", "b", "town"]])
    without = blocks.csv(tmp_path / "t.csv", columns=["a", "b", "town"])
    with pytest.raises(ValueError, match="has no targets"):
        model.score(without)
