"""What is said of rows in files and on Dask is what is said of the same rows in memory."""

import numpy as np
import pytest

from tensormachines import TensorMachineRegressor, blocks, inspection, plots

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    table["town"] = rng.choice(["x", "y", "z"], 600)
    table["sunny"] = rng.random(600) < 0.5
    table["price"] = table["a"] * table["b"] + (table["town"] == "x") + 2 * table["sunny"]
    return table


@pytest.fixture(scope="module")
def model(table):
    settings = {"degree": 2, "rank": 3, "alpha": 1e-3, "random_state": 0}
    return TensorMachineRegressor(**settings).fit(table.drop(columns="price"), table["price"])


def sources(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", index=False)
    X, y = table.drop(columns="price"), table["price"]
    return {
        "csv": blocks.csv(folder / "t.csv", target="price", rows=130),
        "parquet": blocks.parquet(folder / "t.parquet", target="price", rows=130),
        "iterable": blocks.iterable(
            lambda: [(X[low : low + 130], y[low : low + 130]) for low in range(0, 600, 130)]
        ),
        "dask": dd.from_pandas(X, npartitions=4),
    }


FUNCTIONS = [
    inspection.importance,
    inspection.part_importance,
    inspection.interaction_strength,
    inspection.variance_shares,
    inspection.column_variance_shares,
]


@pytest.mark.parametrize("kind", ["csv", "parquet", "iterable", "dask"])
def test_shares_of_rows_wherever_they_are(model, table, tmp_path, kind):
    rows, X = sources(table, tmp_path)[kind], table.drop(columns="price")
    for function in FUNCTIONS:
        found, expected = function(model, rows), function(model, X)
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-6, atol=1e-9)
    assert str(inspection.formula(model, rows)) == str(
        inspection.formula(model, X)
    )  # "false" and "true", too
    assert inspection.distil(model, rows).fidelity == pytest.approx(inspection.distil(model, X).fidelity)
    assert inspection.rademacher_bound(model, rows).n_rows == 600
    bars, expected = (plots.effect_curve(model, "sunny", each).patches for each in (rows, X))
    assert [bar.get_height() for bar in bars] == pytest.approx([bar.get_height() for bar in expected])
    assert len(bars) == 2
    plt.close("all")


def test_many_rows_are_read_once_and_some_are_drawn(rng):
    X = rng.normal(size=(60_000, 2))
    X[30_000:, 1] *= 3  # later rows differ
    machine = TensorMachineRegressor(degree=1, alpha=1e-6, basis=None).fit(X, X[:, 0] + X[:, 1])
    passes = []

    def items():
        passes.append(1)
        return np.split(X, 6)

    found = inspection.importance(machine, blocks.iterable(items))
    assert len(passes) == 1
    assert found["x1"] == pytest.approx(5 / 6, abs=0.01)


def test_the_first_column_on_dask_may_have_missing_values(table):
    X = table.drop(columns="price").assign(a=table["a"].where(table["b"] < 1))
    fitted = TensorMachineRegressor(degree=2, rank=3, alpha=1e-3, random_state=0).fit(X, table["price"])
    expected = inspection.importance(fitted, X)
    found = inspection.importance(fitted, dd.from_pandas(X, npartitions=4))
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-6, atol=1e-9)
