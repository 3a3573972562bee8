"""A Frame is to the models what a DataFrame is; and models remember what their target is called."""

import numpy as np
import pytest

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    load,
)
from tensormachines._data.files.checks import Where
from tensormachines._data.frame import Frame, Levels
from tensormachines.inspection import explain_row, importance

pd = pytest.importorskip("pandas")

QUICK = {"degree": 2, "rank": 2, "max_iter": 3, "random_state": 0}


@pytest.fixture
def tables(rng):
    """The same rows as a DataFrame and as a Frame, and a target."""
    n = 120
    x, codes = rng.standard_normal(n), rng.integers(-1, 3, n)
    x[rng.random(n) < 0.1] = np.nan
    names = ["red", "green", "blue"]
    data = pd.DataFrame(
        {"x": x, "colour": [None if code < 0 else names[code] for code in codes], "z": rng.random(n)}
    )
    frame = Frame(["x", "colour", "z"], [x, Levels(codes, names), data["z"].to_numpy()])
    return data, frame, data["z"].to_numpy() * (codes == 1) + 0.1 * rng.random(n)


@pytest.mark.parametrize("columns", [["x", "colour", "z"], ["x", "z"]])
def test_a_model_of_a_frame_is_that_of_the_dataframe(tables, columns):
    data, frame, y = tables
    expected = TensorMachineRegressor(**QUICK).fit(data[columns], y)
    model = TensorMachineRegressor(**QUICK).fit(frame.select(columns), y)
    np.testing.assert_array_equal(model.predict(frame.select(columns)), expected.predict(data[columns]))
    np.testing.assert_array_equal(model.predict(data[columns][:7]), expected.predict(data[columns][:7]))
    assert model.feature_names_in_.tolist() == columns
    assert dict(importance(model, frame.select(columns))) == pytest.approx(
        dict(importance(expected, data[columns]))
    )
    assert dict(explain_row(model, frame.select(columns)[:1])) == pytest.approx(
        dict(explain_row(expected, data[columns][:1]))
    )


def test_a_search_and_partial_fit(tables):
    data, frame, y = tables
    few = {
        "degrees": (1, 2),
        "ranks": (2,),
        "alphas": (1e-3,),
        "max_iters": (3,),
        "cv": 2,
        "n_members": 1,
        "random_state": 0,
    }
    for columns in (["x", "colour"], ["z"]):
        expected = TensorMachineRegressorCV(**few).fit(data[columns], y)
        model = TensorMachineRegressorCV(**few).fit(frame.select(columns), y)
        np.testing.assert_array_equal(model.predict(frame.select(columns)), expected.predict(data[columns]))
        assert model.best_estimator_.feature_names_in_.tolist() == columns
    model = TensorMachineRegressor(**QUICK).partial_fit(frame[:60], y[:60]).partial_fit(frame[60:], y[60:])
    assert model.feature_names_in_.tolist() == ["x", "colour", "z"]


def test_other_columns_are_refused(tables):
    _, frame, y = tables
    model = TensorMachineRegressor(**QUICK).fit(frame, y)
    with pytest.raises(
        ValueError,
        match=r"named as in the fit, \['x', 'colour', 'z'\], in that order; got \['z', 'x', 'colour'\]",
    ):
        model.predict(frame.select(["z", "x", "colour"]))
    with pytest.raises(ValueError, match="named as in the fit"):
        model.predict(frame.select(["x"]))
    with pytest.raises(ValueError, match="needs numbers: column 'colour' holds strings"):
        TensorMachineRegressor(**QUICK, basis="standard").fit(frame.select(["colour", "z"]), y)
    with pytest.raises(ValueError, match="column 'x' has missing values"):
        TensorMachineRegressor(**QUICK, basis="standard").fit(frame.select(["x", "z"]), y)
    numbers = TensorMachineRegressor(**QUICK).fit(frame.select(["z"]), y)
    with pytest.raises(ValueError, match="column 'z' holds strings"):
        numbers.predict(Frame(["z"], [Levels(np.zeros(2, dtype=int), ["text"])]))


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_target_name(tables, tmp_path):
    data, _, y = tables
    X, named = data[["z"]], pd.Series(y, name="rent")
    model = TensorMachineRegressor(**QUICK).fit(X, named)
    assert model.target_name_ == "rent"
    model.save(tmp_path / "model.tm")
    assert load(tmp_path / "model.tm").target_name_ == "rent"
    assert not hasattr(model.fit(X, y), "target_name_")
    model.save(tmp_path / "model.tm")
    assert not hasattr(load(tmp_path / "model.tm"), "target_name_")
    assert not hasattr(model.fit(X, pd.Series(y)), "target_name_")
    assert TensorMachineClassifier(**QUICK).fit(X, named.gt(0.1).rename("high")).target_name_ == "high"
    assert TensorMachineFeatures(**QUICK).fit(X, named).target_name_ == "rent"
    two = TensorMachineRegressor(**QUICK).fit(X, pd.DataFrame({"rent": y, "size": -y}))
    two.save(tmp_path / "two.tm")
    assert load(tmp_path / "two.tm").target_name_ == two.target_name_ == ["rent", "size"]
    polars = pytest.importorskip("polars")
    assert TensorMachineRegressor(**QUICK).fit(X, polars.Series("rent", y)).target_name_ == "rent"
    two.target_name_ = ["rent"]
    with pytest.raises(ValueError, match="target_name_ does not name the outputs"):
        two.save(tmp_path / "two.tm")


def test_a_failed_fit_keeps_the_name(tables):
    data, _, y = tables
    model = TensorMachineRegressor(**QUICK).fit(data[["z"]], pd.Series(y, name="rent"))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(data[["z"]], pd.Series(y[:5], name="other"))
    assert model.target_name_ == "rent"


def test_the_place_of_rows_that_were_kept():
    where = Where("a.csv", 11, np.array([2, 3, 7]))
    assert where.rows(3) == "a.csv, rows 13 to 18"
    assert where.row(2) == "a.csv, data row 18 (counting from 1)"
    assert Where("a.csv", 11).rows(3) == "a.csv, rows 11 to 13"
    assert where.rows(0) == "a.csv, no rows"
