"""Constraints of columns and intervals on the command line: the models are those of the estimators."""

import numpy as np
import pytest

from commands import QUICK, QUICKLY, error_of, pd, run
from tensormachines import TensorMachineRegressor, load

COLUMNS = ["size", "rooms", "floor", "built"]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (
            ["--increasing", "size,rooms", "--decreasing", "floor"],
            {"monotonic_cst": {"size": 1, "rooms": 1, "floor": -1}},
        ),
        (["--increasing", "size", "rooms"], {"monotonic_cst": {"size": 1, "rooms": 1}}),
        (["--interactions", "pairwise"], {"interaction_cst": "pairwise"}),
        (["--interactions", "size,rooms", "floor, built"], {"interaction_cst": [[0, 1], [2, 3]]}),
        (["--periodic", "floor=9", "size=200.5"], {"periodic_features": {"floor": 9, "size": 200.5}}),
        (["--intervals"], {"intervals": True}),
    ],
)
def test_fit(table, tmp_path, options, settings):
    given = ("--target", "rent", "--columns", *COLUMNS, *QUICK, *options)
    assert run("fit", table, *given, "-o", tmp_path / "rent.tm") == 0
    frame = pd.read_csv(table)
    X, found = frame[COLUMNS], load(tmp_path / "rent.tm")
    truth = TensorMachineRegressor(**QUICKLY, **settings).fit(X, frame["rent"])
    np.testing.assert_allclose(found.predict(X), truth.predict(X))


def test_no_interactions_and_streams(table, tmp_path):
    given = ("--target", "rent", "--columns", *COLUMNS, "--max-iter", "5", "--stream")
    options = ("--increasing", "size", "--interactions", "none")
    assert run("fit", table, *given, *options, "-o", tmp_path / "rent.tm") == 0
    model = load(tmp_path / "rent.tm")
    assert model._machine.layout.degree == 1
    rows = pd.read_csv(table)[COLUMNS][:1].loc[[0] * 50].assign(size=np.linspace(20, 170, 50))
    assert (np.diff(model.predict(rows)) >= 0).all()


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_predict_writes_bounds(table, tmp_path, command, capsys):
    quick = QUICK if command == "fit" else ["--time-budget", "1"]
    given = ("--target", "rent", "--ignore", "id", *quick, "--intervals", "-o", tmp_path / "rent.tm")
    assert run(command, table, *given) == 0
    options = ("--interval", "0.8", "--keep", "rent", "-o", tmp_path / "out.csv")
    assert run("predict", tmp_path / "rent.tm", table, *options) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found) == ["rent", "prediction", "lower", "upper"]
    model, X = load(tmp_path / "rent.tm"), pd.read_csv(table).drop(columns=["id", "rent"])
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(X, 0.8), rtol=1e-6)
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--increasing", "id"], "--increasing id: the model is not fitted to this column"),
        (["--increasing", "size", "--decreasing", "size"], "--increasing and --decreasing both name size"),
        (["--periodic", "floor"], "--periodic takes a column and its period, a positive number, such as"),
        (["--periodic", "floor=0"], "such as hour=24, got 'floor=0'"),
        (["--periodic", "flor=7"], "--periodic: flats.csv has no column 'flor'"),
        (["--periodic", "floor=7", "--periodic", "floor=5"], "--periodic names floor twice"),
        (["--interactions", "size,rums"], "--interactions: flats.csv has no column 'rums'; did you"),
        (["--decreasing", "district"], "--decreasing names column 'district', which is a category"),
        (["--target", "district", "--increasing", "size"], "--increasing needs two classes: with more"),
        (
            ["--periodic", "floor=3"],
            "--periodic has a period of 3 for column 'floor', whose numbers span more",
        ),
        (
            ["--increasing", "size", "--interactions", "size,floor"],
            "--interactions has a set that contains column 'size', which has a sign in --increasing",
        ),
    ],
)
def test_columns_that_cannot_be(table, tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    target = () if "--target" in options else ("--target", "rent")
    given = (*target, "--ignore", "id", *QUICK, *options, "-o", "rent.tm")
    assert message in error_of(capsys, "fit", "flats.csv", *given)


def test_intervals_that_cannot_be(table, tmp_path, capsys):
    given = ("--ignore", "id", *QUICK, "-o", tmp_path / "m.tm")
    assert run("fit", table, "--target", "rent", *given) == 0
    predict = ("predict", tmp_path / "m.tm", table, "--interval", "0.9")
    assert "has no intervals; fit the model with --intervals" in error_of(capsys, *predict)
    assert run("fit", table, "--target", "balcony", *given) == 0
    assert "predicts classes; --probabilities shows" in error_of(capsys, *predict)
    (tmp_path / "rows.svm").write_text("1 1:2\n2 1:3\n3 2:1\n")
    options = ("--increasing", "size", "-o", tmp_path / "m.tm")
    assert "columns of svmlight files have no names" in error_of(
        capsys, "fit", tmp_path / "rows.svm", *options
    )
