"""Losses on the command line: the models are those of the estimators."""

import numpy as np
import pytest

from commands import QUICK, QUICKLY, error_of, pd, run, write
from tensormachines import TensorMachineRegressor, load
from tensormachines.datasets.flats import flats


@pytest.fixture
def table(tmp_path):
    write(tmp_path / "flats.csv", flats(300, 0))
    return tmp_path / "flats.csv"


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--loss", "poisson"], {"loss": "poisson"}),
        (["--loss", "tweedie", "--power", "1.2"], {"loss": "tweedie", "power": 1.2}),
        (["--loss", "quantile", "--quantile", "0.9"], {"loss": "quantile", "quantile": 0.9}),
    ],
)
def test_fit_and_predict(table, tmp_path, options, settings):
    columns = ["--columns", "size", "rooms"]
    assert run("fit", table, "--target", "rent", *columns, *QUICK, *options, "-o", tmp_path / "rent.tm") == 0
    frame = pd.read_csv(table)
    X, found = frame[["size", "rooms"]], load(tmp_path / "rent.tm")
    truth = TensorMachineRegressor(**QUICKLY, **settings).fit(X, frame["rent"])
    np.testing.assert_allclose(found.predict(X), truth.predict(X))
    assert run("predict", tmp_path / "rent.tm", table, "-o", tmp_path / "out.csv") == 0
    predicted = pd.read_csv(tmp_path / "out.csv").iloc[:, -1]
    np.testing.assert_allclose(predicted, found.predict(X), rtol=1e-6)


def test_explain_tells_of_logarithms(table, tmp_path, capsys):
    run(
        "fit", table, "--target", "rent", "--ignore", "id", *QUICK, "--loss", "gamma", "-o", tmp_path / "m.tm"
    )
    assert run("explain", tmp_path / "m.tm", table) == 0
    assert "values add up to the logarithm of rent" in capsys.readouterr().err


def test_losses_are_for_regression(table, tmp_path, capsys):
    options = ("--target", "district", "--loss", "poisson", "-o", tmp_path / "m.tm")
    assert "--loss, --power and --quantile are for regression" in error_of(capsys, "fit", table, *options)
    options = ("--target", "rent", "--loss", "tweedie", "--power", "2", "-o", tmp_path / "m.tm")
    with pytest.raises(SystemExit):
        run("fit", table, *options)
    assert "must be a number between 1 and 2, got '2'" in capsys.readouterr().err
