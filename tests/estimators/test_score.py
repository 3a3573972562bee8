"""Scores of rows in files and on Dask are those of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, TensorMachineRegressorCV, blocks

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


@pytest.mark.parametrize(("model", "target"), MODELS[::3], ids=str)
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


def test_targets_are_given_once(table, tmp_path):
    model = TensorMachineRegressor(**QUICK).fit(table[["a", "b", "town"]], table["price"])
    with pytest.raises(ValueError, match="brings its own targets"):
        model.score(source(table, tmp_path, "price"), table["price"])
    with pytest.raises(ValueError, match="score needs y"):
        model.score(table[["a", "b", "town"]])
    without = blocks.csv(tmp_path / "t.csv", columns=["a", "b", "town"])
    with pytest.raises(ValueError, match="has no targets"):
        model.score(without)
