"""Losses on the command line: the models are those of the estimators."""

import json
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, r2_score

from commands import QUICK, QUICKLY, error_of, pd, run
from tensormachines import TensorMachineRegressor, load

PINBALL = partial(mean_pinball_loss, alpha=0.9)


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


def test_evaluate_shows_the_loss(table, tmp_path, capsys):
    y = pd.read_csv(table)["rent"].to_numpy()
    for options, name, measure, constant in (
        (["--loss", "gamma"], "deviance", mean_gamma_deviance, y.mean()),
        (["--loss", "quantile", "--quantile", "0.9"], "pinball", PINBALL, np.quantile(y, 0.9)),
    ):
        model = tmp_path / f"{name}.tm"
        assert run("fit", table, "--target", "rent", "--ignore", "id", *QUICK, *options, "-o", model) == 0
        capsys.readouterr()
        assert run("evaluate", model, table, "--json") == 0
        found = json.loads(capsys.readouterr().out)["errors"]["rent"]
        predicted = load(model).predict(pd.read_csv(table).drop(columns=["id", "rent"]))
        assert found[name]["value"] == pytest.approx(measure(y, predicted))
        assert found[name]["constant"] == pytest.approx(measure(y, np.full(len(y), constant)))
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]
        assert found["R2"]["constant"] == pytest.approx(r2_score(y, np.full(len(y), constant)), abs=1e-9)


def test_evaluate_refuses_several_quantiles(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    model = TensorMachineRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], **QUICKLY)
    model.fit(frame[["size", "rooms"]], frame["rent"]).save(tmp_path / "levels.tm")
    for target in ([], ["--target", "rent"]):
        message = error_of(capsys, "evaluate", tmp_path / "levels.tm", table, *target)
        assert "predicts 3 quantiles of one target, 0.1, 0.5, 0.9, which evaluate does not measure" in message
        assert "use score in Python, or fit a model for each with --loss quantile --quantile" in message


def test_explain_tells_of_logarithms(table, tmp_path, capsys):
    run(
        "fit", table, "--target", "rent", "--ignore", "id", *QUICK, "--loss", "gamma", "-o", tmp_path / "m.tm"
    )
    assert run("explain", tmp_path / "m.tm", table) == 0
    assert "values add up to the logarithm of rent" in capsys.readouterr().err


def test_losses_are_for_regression(table, tmp_path, capsys):
    options = ("--target", "district", "--loss", "poisson", "-o", tmp_path / "m.tm")
    assert "--loss, --power, --quantile, --intervals, --exposure and --offset are for regression" in error_of(
        capsys, "fit", table, *options
    )
    options = ("--target", "rent", "--loss", "tweedie", "--power", "2", "-o", tmp_path / "m.tm")
    with pytest.raises(SystemExit):
        run("fit", table, *options)
    assert "must be a number between 1 and 2, got '2'" in capsys.readouterr().err
