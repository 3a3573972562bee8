"""Models of frames with dates, from the fit to predictions, files, exports and explanations."""

import json
import pickle

import numpy as np
import pytest

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    export,
    inspection,
    load,
)
from tensormachines.report import html_report

pd, pl, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))

QUICK = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
PARTS = ["when: days", "when: time of year", "when: weekday", "when: time of day"]


def counts(n_rows, seed=0):
    """Counts by the hour, with patterns of the day, the weekend and the season; the truth is the mean."""
    random = np.random.default_rng(seed)
    hours = np.sort(random.choice(24 * 700, n_rows, replace=False))
    when = pd.Series(pd.Timestamp("2022-01-01") + pd.to_timedelta(hours, unit="h"))
    clock, weekend = 2 * np.pi * when.dt.hour / 24, when.dt.day_of_week >= 5
    season = np.cos(2 * np.pi * when.dt.day_of_year / 365)
    mean = 20 - 8 * np.cos(clock) + np.where(weekend, 6 * np.sin(clock), 0) + 5 * season
    frame = pd.DataFrame({"when": when, "warm": random.random(n_rows) < 0.5})
    return frame, (mean + 4 * frame["warm"] + random.normal(size=n_rows)).to_numpy()


FRAME, TARGET = counts(400)


@pytest.fixture(scope="module")
def model():
    return TensorMachineRegressor(**QUICK).fit(FRAME, TARGET)


def test_a_date_is_as_good_as_columns_made_by_hand():
    frame, y = counts(3000)
    by_hand = pd.DataFrame(
        {
            "hour": frame["when"].dt.hour,
            "weekday": frame["when"].dt.day_of_week.astype("category"),
            "day": frame["when"].dt.day_of_year,
            "elapsed": (frame["when"] - frame["when"][0]).dt.days,
            "warm": frame["warm"],
        }
    )
    train = np.random.default_rng(0).random(len(y)) < 0.7
    scores = [
        TensorMachineRegressor(random_state=0).fit(X[train], y[train]).score(X[~train], y[~train])
        for X in (frame, by_hand)
    ]
    most = 1 - 1 / y[~train].var()  # the noise has variance 1
    assert scores[0] > max(scores[1], most) - 0.01


def test_any_library_and_any_number_of_rows_give_the_same_predictions(model):
    expected = model.predict(FRAME)
    for form in (
        pl.from_pandas(FRAME),
        pyarrow.Table.from_pandas(FRAME, preserve_index=False),
        FRAME.astype(object),
        FRAME.to_dict("records"),
    ):
        np.testing.assert_array_equal(model.predict(form), expected)
        fitted = TensorMachineRegressor(**QUICK).fit(form, TARGET)
        np.testing.assert_array_equal(fitted.predict(FRAME), expected)
    as_text = FRAME.assign(when=FRAME["when"].astype(str))
    np.testing.assert_array_equal(model.predict(as_text), expected)
    for frame in (FRAME, pl.from_pandas(FRAME)):
        alone = [model.predict(frame[i : i + 1])[0] for i in range(9)]
        np.testing.assert_allclose(alone, expected[:9], rtol=1e-12)


def test_missing_dates_are_missing_in_all_parts(model):
    frame = FRAME.copy()
    frame.loc[::3, "when"] = None
    fitted = TensorMachineRegressor(**QUICK).fit(frame, TARGET)
    assert [column.missing for column in fitted._machine.basis.columns] == [True] * 4 + [False]
    np.testing.assert_array_equal(fitted.predict(pl.from_pandas(frame)), fitted.predict(frame))
    one = frame[:1].astype({"when": object}).assign(when=None)  # a row without anything that shows its type
    np.testing.assert_allclose(fitted.predict(one), fitted.predict(frame[:1]), rtol=1e-12)
    assert np.isfinite(model.predict(frame)).all()  # of a fit without missing dates


def test_names_and_importances_are_those_of_the_columns_of_x(model):
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (2, ["when", "warm"])
    shares = inspection.importance(model, FRAME)
    assert list(shares) == [*PARTS, "warm"]
    assert model.feature_importances_.shape == (2,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[0] > 0.8
    names = {name.partition(" wave")[0] for name in model.basis_features_ if " wave" in name}
    assert names == {*PARTS, "warm"}
    parts = inspection.contributions(model, FRAME[:20], order=2)
    np.testing.assert_allclose(parts.values.sum(axis=1), model.predict(FRAME[:20]), rtol=1e-6)
    features = TensorMachineFeatures(**QUICK).fit(FRAME, TARGET)
    assert features.transform(FRAME).shape[1] == len(features.get_feature_names_out())
    assert "when" in features.get_feature_names_out()[0]
    with pytest.raises(ValueError, match="column 'when' holds a date: use predict"):
        model.compiled()


def test_booleans_after_dates_are_shown_as_such(model):
    assert "false" in str(inspection.formula(model, FRAME))
    assert PARTS[3] in html_report(model, FRAME, TARGET)


def test_files_keep_the_model_to_the_bit(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded._columns == model._columns
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)


def test_files_of_dates_give_the_models_of_frames(model, tmp_path):
    table = FRAME.assign(y=TARGET)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    for source in (
        blocks.csv(tmp_path / "t.csv", "y", rows=90),
        blocks.parquet(tmp_path / "t.parquet", "y", rows=90),
        blocks.iterable([(FRAME[:150], TARGET[:150]), (FRAME[150:], TARGET[150:])]),
    ):
        fitted = TensorMachineRegressor(**QUICK).fit(source)
        assert fitted._columns.columns[0] == model._columns.columns[0]
        np.testing.assert_allclose(fitted.predict(source), fitted.predict(FRAME), rtol=1e-9)
        np.testing.assert_allclose(model.predict(source), model.predict(FRAME), rtol=1e-9)
        with pytest.raises(ValueError, match="dates, where numbers are needed"):
            TensorMachineRegressor(basis="standard").fit(source)


def test_searches_and_classifiers_take_dates(tmp_path):
    search = TensorMachineRegressorCV(
        degrees=(2,), ranks=(2,), alphas=(1e-3, 1e-2), max_iters=(5,), time_budget=None, random_state=0
    ).fit(FRAME, TARGET)
    assert search.feature_importances_.shape == (2,)
    search.save(tmp_path / "search")
    np.testing.assert_array_equal(load(tmp_path / "search").predict(FRAME), search.predict(FRAME))
    labels = np.where(TARGET > 20, "many", "few")
    assert TensorMachineClassifier(random_state=0).fit(FRAME, labels).score(FRAME, labels) > 0.9


def test_unknown_dates_are_numbers_beyond_those_of_the_fit():
    frame = FRAME[["when"]]
    days = (frame["when"] - pd.Timestamp(0)).dt.total_seconds() / 86400
    model = TensorMachineRegressor(**QUICK, trend=False).fit(frame, days)
    last = frame["when"].max()
    later = pd.DataFrame({"when": [last, last + pd.Timedelta(days=7 * 52 * 7 + 15)]})
    # The same weekday and time of the day, and nearly the same time of the year: elapsed time has ended.
    assert model.predict(later)[1] == pytest.approx(model.predict(later)[0], rel=0.01)


def test_exports_take_the_numbers_of_dates_by_name(model):
    numbers = pd.DataFrame(model._check_rows(FRAME), columns=[*PARTS, "warm"])
    space = {}
    exec(export.to_python(model), space)
    np.testing.assert_allclose(space["predict"](numbers), model.predict(FRAME), rtol=1e-9)
    with pytest.raises(ValueError, match="no column 'when: days'"):
        space["predict"](FRAME)
    with pytest.raises(ValueError, match="dates and durations must be given as numbers"):
        space["predict"](numbers.assign(**{"when: days": FRAME["when"]}))
    described = json.loads(export.to_json(model))
    assert [column["name"] for column in described["columns"]] == [*PARTS, "warm"]


# What docs/export.md advises.
IN_PANDAS = {
    "when: days": lambda when: (when - pd.Timestamp(0)) / pd.Timedelta(days=1),
    "when: time of year": lambda when: when.dt.month + (when.dt.day - 1) / 31,
    "when: weekday": lambda when: when.dt.day_of_week + 1,
    "when: time of day": lambda when: (when - when.dt.normalize()) / pd.Timedelta(hours=1),
}
IN_SQL = {
    "when: days": 'extract(epoch FROM "when") / 86400',
    "when: time of year": 'extract(month FROM "when") + (extract(day FROM "when") - 1) / 31.0',
    "when: weekday": 'extract(isodow FROM "when")',
    "when: time of day": 'extract(epoch FROM CAST("when" AS time)) / 3600',
}


def test_the_numbers_of_dates_as_documented(model):
    matrix = model._check_rows(FRAME)
    for j, part in enumerate(PARTS):
        np.testing.assert_allclose(IN_PANDAS[part](FRAME["when"]), matrix[:, j], rtol=1e-12)
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect()
    database.register("things", FRAME)
    numbers = ", ".join(f'{formula} AS "{part}"' for part, formula in IN_SQL.items())
    database.sql(f"CREATE VIEW numbers AS SELECT {numbers}, warm FROM things")
    found = database.sql(export.to_sql(model, "numbers")).df()["prediction"]
    np.testing.assert_allclose(found, model.predict(FRAME), rtol=1e-9)


def test_a_cell_that_is_no_date_is_named(model, tmp_path):
    FRAME.assign(when=["soon", *FRAME["when"].astype(str)[1:]]).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"data row 1 .*, column 'when': 'soon', where a date is needed"):
        model.predict(blocks.csv(tmp_path / "t.csv"))
