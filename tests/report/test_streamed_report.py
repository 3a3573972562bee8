"""The report of rows in files and on Dask is that of the same rows in memory."""

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks
from tensormachines.report import html_report
from tensormachines.report.findings import find
from tensormachines.report.page import page_of

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
QUICK = {"degree": 2, "rank": 2, "alpha": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    table["town"] = rng.choice(["x", "y", "z"], 300)
    table["sunny"] = rng.random(300) < 0.5
    table.loc[::9, "a"] = None
    table["price"] = np.round(
        table["b"] + (table["town"] == "x") + 2 * table["sunny"] + rng.normal(size=300), 3
    )
    table["dear"] = np.where(table["price"] > 1, "yes", "no")
    return table


def rows_of(table, target, kind, folder):
    """Return X and y of some kind."""
    chosen = table[["a", "b", "town", "sunny", target]]
    X, y = chosen.drop(columns=target), chosen[target]
    if kind == "csv":
        chosen.to_csv(folder / "t.csv", index=False)
        return blocks.csv(folder / "t.csv", target=target, rows=70), None
    if kind == "iterable":
        return blocks.iterable(
            lambda: [(X[low : low + 70], y[low : low + 70]) for low in range(0, 300, 70)]
        ), None
    lazy = dd.from_pandas(chosen, npartitions=3)
    return (lazy[list(X.columns)], lazy[target]) if kind == "dask" else (X, y)


@pytest.mark.parametrize(
    ("kind", "estimator", "target", "most_rows"),
    [
        ("csv", TensorMachineRegressor, "price", 120),
        ("iterable", TensorMachineRegressor, "price", 1000),
        ("dask", TensorMachineClassifier, "dear", 120),
    ],
)
def test_the_page_is_the_same(table, tmp_path, kind, estimator, target, most_rows):
    X, y = rows_of(table, target, "memory", tmp_path)
    model = estimator(**QUICK).fit(X, y)
    pages = [
        page_of(find(model, *rows_of(table, target, each, tmp_path), n_examples=5, most_rows=most_rows))
        for each in ("memory", kind)
    ]
    assert pages[0] == pages[1]
    assert ("On all 300 rows" in pages[0]) == (most_rows < 300)


def test_training_rows_may_be_a_source(table, tmp_path):
    X, y = rows_of(table, "price", "memory", tmp_path)
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    source, _ = rows_of(table, "price", "csv", tmp_path)
    page = html_report(model, X[:100], y[:100], X_train=source)
    assert page == html_report(model, X[:100], y[:100], X_train=X, y_train=y)
    with pytest.raises(ValueError, match="X_train and y_train must be given together"):
        html_report(model, X, y, X_train=X)
    with pytest.raises(ValueError, match="A source of blocks brings its own targets"):
        html_report(model, source, y)
    with pytest.raises(ValueError, match="y is needed"):
        html_report(model, X)
