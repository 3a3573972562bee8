"""Losses on the command line: the models are those of the estimators."""

import json
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, r2_score

from commands import QUICK, QUICKLY, error_of, pd, run
from tensormachines import TensorMachineRegressor, load
from tensormachines._model.losses import NAMES
from tensormachines.cli import main

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


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_help_lists_all_losses_of_regressors(capsys, command):
    """A list of its own, because importing the losses would make help six times as slow."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"--loss {{{','.join(NAMES)}}}" in "".join(capsys.readouterr().out.split("\n"))


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
        assert ("below" in found) == (name == "pinball")
        assert found["R2"]["constant"] == pytest.approx(r2_score(y, np.full(len(y), constant)), abs=1e-9)


def test_several_quantiles(table, tmp_path, capsys):
    model, y = tmp_path / "levels.tm", pd.read_csv(table)["rent"].to_numpy()
    options = ["--loss", "quantile", "--quantile", "0.1", "0.9"]
    columns = ["--columns", "size", "rooms"]
    assert (
        run("fit", table, "--target", "rent", *columns, *QUICK, *options, "--holdout", "0.5", "-o", model)
        == 0
    )
    assert "held-out rows, quantile 0.9 of rent:" in capsys.readouterr().out
    assert load(model).quantile == [0.1, 0.9]
    assert run("predict", model, table, "-o", tmp_path / "out.csv") == 0
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert list(predicted) == ["prediction_0.1", "prediction_0.9"]
    capsys.readouterr()
    assert run("evaluate", model, table, "--target", "rent", "--json") == 0
    found = json.loads(capsys.readouterr().out)["errors"]
    assert list(found) == ["quantile 0.1 of rent", "quantile 0.9 of rent"]
    for level, measures in zip((0.1, 0.9), found.values(), strict=True):
        quantile = predicted[f"prediction_{level}"].to_numpy()
        assert measures["pinball"]["value"] == pytest.approx(mean_pinball_loss(y, quantile, alpha=level))
        assert measures["below"]["value"] == pytest.approx(np.mean(y <= quantile), abs=1 / len(y))
        assert measures["below"]["constant"] == pytest.approx(level, abs=1 / len(y))
    message = error_of(capsys, "evaluate", model, table, "--target", "rent", "--target", "size")
    assert "--target: the model predicts 1, got 2" in message


def test_tune_several_quantiles(table, tmp_path, capsys):
    options = ["--degrees", "1", "--ranks", "1", "--cv", "2", "--members", "1", "--time-budget", "2"]
    levels = ["--loss", "quantile", "--quantile", "0.2", "0.8"]
    model = tmp_path / "tuned.tm"
    columns = ["--target", "rent", "--columns", "size", "rooms"]
    assert run("tune", table, *columns, *options, *levels, "-o", model) == 0
    assert run("evaluate", model, table) == 0
    assert "quantile 0.8 of rent:" in capsys.readouterr().out


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


@pytest.mark.parametrize("command", ["fit", "tune"])
@pytest.mark.parametrize(
    ("options", "loss"),
    [
        (["--quantile", "0.9"], "quantile"),
        (["--quantile", "0.1", "0.9", "--loss", "absolute_error"], "quantile"),
        (["--power", "1.2"], "tweedie"),
        (["--power", "1.2", "--loss", "gamma"], "tweedie"),
    ],
)
def test_settings_of_another_loss_are_refused(table, tmp_path, capsys, command, options, loss):
    option = options[0]
    message = error_of(capsys, command, table, "--target", "rent", *options, "-o", tmp_path / "rent.tm")
    assert message == f"{option} needs --loss {loss}: give it, or leave out {option}."
    assert not (tmp_path / "rent.tm").exists()
