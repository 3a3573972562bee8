"""Dask dataframes of raw columns: a model of them is that of the same DataFrame in memory."""

from itertools import pairwise

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks

dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROWS = 12_000  # times 7 columns: more entries than are sorted and merged in memory
BORDERS = (0, 5000, 5000, 11_600, ROWS)
QUICK = {"degree": 2, "rank": 2, "solver": "lbfgs", "max_iter": 3, "random_state": 0}
ROUNDING = 1e-6  # of predictions about 1: sums in another order

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(ROWS) < 0.1, np.nan, rng.standard_normal(ROWS)),
            "rooms": pd.array(rng.integers(1, 9, ROWS), dtype="Int64"),
            "district": pd.Categorical(rng.choice(["Harbour", "Mill", "Park"], ROWS)),
            "agent": [f"agent {i}" for i in rng.geometric(0.02, ROWS)],
            "lift": rng.random(ROWS) < 0.5,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, ROWS), unit="D"),
            "wait": pd.to_timedelta(rng.integers(0, 1000, ROWS), unit="s"),
        }
    )
    frame.loc[::17, ["district", "agent"]] = None
    frame.loc[::13, ["rooms", "when"]] = None
    effect = frame["district"].astype(object).map({"Harbour": 2.0, "Mill": -1.0}).fillna(0.0)
    frame["rent"] = frame["size"].fillna(1.5) * frame["lift"] + effect + 0.1 * rng.standard_normal(ROWS)
    return frame


def on_dask(frame):
    """Partitions of different lengths, an empty one among them."""
    parts = [frame.iloc[begin:end] for begin, end in pairwise(BORDERS)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def new_rows(table):
    """Rows with levels that the fit has not seen, and with others missing."""
    rows = table.sample(300, random_state=1).reset_index(drop=True).drop(columns="rent")
    rows["district"] = rows["district"].astype(object)
    rows.loc[:40, "district"] = "unheard of"
    rows.loc[30:60, "agent"] = "agent never"
    rows.loc[50:90, ["size", "when"]] = None
    return rows


def test_regression_is_that_of_the_dataframe(table):
    X, y = table.drop(columns="rent"), table["rent"]
    expected = TensorMachineRegressor(**QUICK).fit(X, y)
    frame = on_dask(table)
    model = TensorMachineRegressor(**QUICK).fit(frame.drop(columns="rent"), frame["rent"])
    assert model._columns == expected._columns
    kinds = ("number", "number", "category", "category", "number", "date", "number")
    assert model._columns.kinds == kinds
    assert model._columns.columns[3].pooled
    assert model.feature_names_in_.tolist() == list(X.columns)
    new = new_rows(table)
    np.testing.assert_allclose(model.predict(new), expected.predict(new), atol=ROUNDING)
    predicted = model.predict(frame.drop(columns="rent"))
    assert isinstance(predicted, da.Array)
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))
    lazily = model.predict(dd.from_pandas(new, npartitions=3))
    np.testing.assert_array_equal(lazily.compute(), model.predict(new))


def test_classes_weights_and_early_stopping_are_those_on_disk(table):
    weight = np.random.default_rng(1).integers(0, 3, ROWS)
    labelled = table.assign(kind=np.where(table["rent"] > 1, "dear", "cheap"), weight=weight)
    names = [*table.columns[:-1]]
    frame = on_dask(labelled)
    options = {**QUICK, "early_stopping": True}
    model = TensorMachineClassifier(**options).fit(frame[names], frame["kind"], frame["weight"])
    pieces = [labelled[begin:end] for begin, end in pairwise(BORDERS) if begin < end]
    source = blocks.iterable([(piece[names], piece["kind"], piece["weight"]) for piece in pieces])
    expected = TensorMachineClassifier(**options).fit(source)
    assert model._columns == expected._columns
    rows = labelled[names]
    np.testing.assert_allclose(model.predict_proba(rows), expected.predict_proba(rows), atol=ROUNDING)
    np.testing.assert_array_equal(model.predict(frame[names]).compute(), model.predict(rows))


def test_columns_of_python_objects_are_looked_at_in_all_partitions():
    with dask.config.set({"dataframe.convert-string": False}):
        rng = np.random.default_rng(0)
        floor = [*rng.integers(0, 4, 400), *rng.choice(np.array([0, 2, "attic"], dtype=object), 200)]
        frame = pd.DataFrame(
            {
                "floor": pd.Series(floor, dtype=object),  # numbers alone in the first partition
                "balcony": rng.choice(np.array([True, False, None], dtype=object), 600),
                "since": pd.Series([None] * 300 + [pd.Timestamp("2020-01-01").date()] * 300, dtype=object),
                "gap": pd.Series([None] * 300 + list(rng.random(300)), dtype=object),
                "y": rng.standard_normal(600),
            }
        )
        lazy = dd.from_pandas(frame, npartitions=2)
        assert {dtype.name for dtype in lazy.dtypes.iloc[:4]} == {"object"}
        names = ["floor", "balcony", "since", "gap"]
        model = TensorMachineRegressor(**QUICK).fit(lazy[names], lazy["y"])
        expected = TensorMachineRegressor(**QUICK).fit(frame[names], frame["y"])
        assert model._columns == expected._columns
        assert model._columns.kinds == ("category", "number", "date", "number")
        predicted = model.predict(lazy[names]).compute()
        np.testing.assert_array_equal(predicted, model.predict(frame[names]))
        mixed = lazy.assign(since=lazy["since"].map(lambda day: day or "unknown", meta=("since", object)))
        with pytest.raises(
            ValueError, match="column 'since' holds dates in some partitions, and text in oth"
        ):
            TensorMachineRegressor(**QUICK).fit(mixed[names], lazy["y"])


def test_missing_values_of_arrays_on_dask_and_in_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 6))
    y = X[:, 0] + 0.1 * rng.standard_normal(ROWS)
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = TensorMachineRegressor(**QUICK).fit(X, y).predict(X)
    rows, target = da.from_array(X, chunks=(5000, 6)), da.from_array(y, chunks=5000)
    model = TensorMachineRegressor(**QUICK).fit(rows, target)
    np.testing.assert_allclose(model.predict(rows).compute(), expected, atol=ROUNDING)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=5000)
    np.testing.assert_allclose(
        TensorMachineRegressor(**QUICK).fit(source).predict(source), expected, atol=ROUNDING
    )
    for standard in ((rows, target), (source,)):
        with pytest.raises(ValueError, match=r'a missing value, where a number is needed\. Use basis="auto"'):
            TensorMachineRegressor(**QUICK, basis="standard").fit(*standard)


def test_infinite_numbers_beside_categories_are_named():
    frame = pd.DataFrame({"name": ["a", "b"] * 10, "x": [*range(19), np.inf], "y": np.arange(20.0)})
    lazy = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match=r"partition 1, data row 10 \(counting from 1\), column 'x': infin"):
        TensorMachineRegressor(**QUICK).fit(lazy[["name", "x"]], lazy["y"])
