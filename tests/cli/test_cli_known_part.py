"""--exposure and --offset: fits and predictions are those of the estimators."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_tweedie_deviance, r2_score

from commands import error_of, pd, run
from tensormachines import TensorMachineRegressor, load
from tensormachines.datasets.flats import flats

LBFGS = ["--degree", "1", "--alpha", "0.01", "--basis", "standard", "--solver", "lbfgs"]
SETTINGS = {"degree": 1, "alpha": 0.01, "basis": "standard", "solver": "lbfgs", "random_state": 0}
COUNTS = ["--target", "claims", "--loss", "poisson", *LBFGS]


def claims(n_rows, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(18, 80, n_rows), "south": rng.integers(0, 2, n_rows)})
    table["years"], table["shift"] = rng.uniform(0.1, 2, n_rows), rng.normal(0, 0.5, n_rows)
    rate = np.exp(0.8 * (table["age"] < 30) + 0.5 * table["south"] + table["shift"])
    table["claims"] = rng.poisson(rate * table["years"])
    return table


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claims(400, 0).to_csv("claims.csv", index=False)
    claims(100, 1).to_csv("new.csv", index=False)
    return tmp_path


def expected(columns, loss="poisson"):
    """Predictions of new rows by a model fitted in Python."""
    table, new = claims(400, 0), claims(100, 1)
    known, of_new = ({kind: frame[name] for kind, name in columns.items()} for frame in (table, new))
    names = [name for name in ("age", "south", "years", "shift") if name not in columns.values()]
    model = TensorMachineRegressor(**SETTINGS, loss=loss).fit(table[names], table["claims"], **known)
    return model.predict(new[names], **of_new)


@pytest.mark.parametrize("how", [[], ["--stream"]])
@pytest.mark.parametrize(
    ("columns", "loss"),
    [
        ({"exposure": "years"}, "poisson"),
        ({"offset": "shift"}, "squared_error"),
        ({"exposure": "years", "offset": "shift"}, "tweedie"),
    ],
)
def test_fit_predict_and_evaluate(here, capsys, columns, loss, how):
    options = [word for kind, name in columns.items() for word in (f"--{kind}", name)]
    command = ["fit", "claims.csv", *COUNTS, "--loss", loss, *options, *how, "--test", "new.csv"]
    assert run(*command, "-o", "claims.tm") == 0
    assert load("claims.tm")._known_part == columns
    printed = capsys.readouterr()
    assert "--task classification" not in printed.err  # --loss tells that claims are numbers
    notes = {
        "exposure": "note: errors are those of the target divided by years, and weighted by it",
        "offset": "note: errors are those of the target without shift",
    }
    assert [each in printed.err for each in notes.values()] == [each in columns for each in notes]
    shown = printed.out.partition("new.csv:")[2]
    predicted, new = expected(columns, loss), claims(100, 1)
    assert run("predict", "claims.tm", "new.csv", "-o", "out.csv") == 0
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], predicted, rtol=1e-3)
    capsys.readouterr()
    assert run("evaluate", "claims.tm", "new.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    shift = new["shift"] if "offset" in columns else 0 * new["shift"]
    years = new["years"] if "exposure" in columns else 1 + 0 * shift
    if loss == "squared_error":
        weight, left = years, (new["claims"] - shift, predicted - shift)
    else:
        weight = years * np.exp(shift * (1 if loss == "poisson" else 0.5))
        left = [each / (years * np.exp(shift)) for each in (new["claims"], predicted)]
        deviance = mean_tweedie_deviance(*left, sample_weight=weight, power=1 if loss == "poisson" else 1.5)
        assert found["errors"]["claims"]["deviance"]["value"] == pytest.approx(deviance, rel=1e-3)
    for name, measure in (("MAE", mean_absolute_error), ("R2", r2_score)):
        truth = measure(*left, sample_weight=weight)
        assert found["errors"]["claims"][name]["value"] == pytest.approx(truth, rel=1e-3, abs=1e-4)
    assert found["share_in_fit"] == 0
    assert run("evaluate", "claims.tm", "new.csv") == 0
    assert capsys.readouterr().out.partition("new.csv:")[2] == shown
    assert run("evaluate", "claims.tm", "claims.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["share_in_fit"] == 1


def test_other_columns_and_none(here):
    """Columns may have other names in new rows; a model that was fitted in Python knows none."""
    run("fit", "claims.csv", *COUNTS, "--exposure", "years", "-o", "claims.tm")
    new = claims(100, 1)
    new.rename(columns={"years": "time"}).to_csv("time.csv", index=False)
    new.drop(columns="years").to_csv("bare.csv", index=False)
    found = {}
    for name, data, options in (
        ("same", "new.csv", []),
        ("time", "time.csv", ["--exposure", "time"]),
        ("none", "bare.csv", ["--exposure", "none"]),
    ):
        assert run("predict", "claims.tm", data, *options, "-o", "out.csv") == 0
        found[name] = pd.read_csv("out.csv")["prediction"]
    np.testing.assert_array_equal(found["time"], found["same"])
    np.testing.assert_allclose(found["none"] * new["years"], found["same"])
    again = load("claims.tm")
    again._known_part = {"age": "years"}
    with pytest.raises(ValueError, match="_known_part names no columns"):
        again.save("damaged.tm")
    again.fit(new[["age", "south", "shift"]], new["claims"], exposure=new["years"]).save("again.tm")
    assert not hasattr(load("again.tm"), "_known_part")
    assert run("predict", "again.tm", "new.csv", "--exposure", "years", "-o", "out.csv") == 0
    truth = again.predict(new[["age", "south", "shift"]], exposure=new["years"])
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], truth)


def test_held_out_rows_have_their_exposures(here, capsys):
    fit = ["fit", "claims.csv", *COUNTS, "--exposure", "years", "--holdout", "0.25"]
    for how in ([], ["--stream"]):
        capsys.readouterr()
        assert run(*fit, *how, "--holdout-output", "held.csv", "-o", "claims.tm") == 0
        shown = capsys.readouterr().out.partition("held-out rows:")[2]
        assert run("evaluate", "claims.tm", "held.csv") == 0
        assert capsys.readouterr().out.partition("held.csv:")[2] == shown


def test_tune_and_report(here, capsys):
    options = ["--target", "claims", "--loss", "poisson", "--exposure", "years", "--time-budget", "1"]
    assert run("tune", "claims.csv", *options, "--degrees", "1", "-o", "claims.tm") == 0
    assert run("predict", "claims.tm", "new.csv", "-o", "out.csv") == 0
    new, model = claims(100, 1), load("claims.tm")
    truth = model.predict(new[["age", "south", "shift"]], exposure=new["years"])
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], truth)
    capsys.readouterr()
    assert run("report", "claims.tm", "new.csv", "-o", "report.html") == 0
    assert "errors are those of the target divided by years" in capsys.readouterr().err
    rates, predicted = new["claims"] / new["years"], model.predict(new[["age", "south", "shift"]])
    error = np.sqrt(np.average((rates - predicted) ** 2, weights=new["years"]))
    page = (here / "report.html").read_text(encoding="utf-8")
    shown = re.search(r"<tr class=ours>.*?</td><td>(\S+) ", page)[1]
    assert float(shown) == pytest.approx(error, rel=1e-3)
    assert "<strong>claims / years</strong>" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--exposure", "yeas"], "--exposure: claims.csv has no column 'yeas'; did you mean 'years'?"),
        (["--exposure", "claims"], "--exposure claims: that is the target."),
        (["--weight", "years", "--exposure", "years"], "--exposure years: that is the weight."),
        (["--exposure", "years", "--offset", "years"], "--offset years: that is the exposure."),
        (["--exposure", "years", "--category", "years"], "the exposure, which cannot be a category"),
        (["--exposure", "years", "--loss", "squared_error"], "needs --loss poisson, gamma, tweedie"),
        (["--exposure", "years", "--intervals"], "cannot be combined with exposure or offset"),
        (["--exposure", "years", "--task", "classification"], "--exposure and --offset are for regression"),
        (["--exposure", "shift"], "column 'shift': an exposure must be a positive number, got -"),
        (["--exposure", "shift", "--stream"], "column 'shift': an exposure must be a positive number, got -"),
    ],
)
def test_refused_fits(here, capsys, options, message):
    assert message in error_of(capsys, "fit", "claims.csv", *COUNTS, *options, "-o", "claims.tm")


def test_refused_rows(here, capsys):
    run("fit", "claims.csv", *COUNTS, "--exposure", "years", "-o", "claims.tm")
    new = claims(100, 1)
    new.drop(columns="years").to_csv("bare.csv", index=False)
    for command in ("predict", "evaluate"):
        message = error_of(capsys, command, "claims.tm", "bare.csv")
        assert message == (
            "bare.csv has no column 'years', the exposure of the fit: give --exposure COLUMN, or --exposure "
            "none to predict for an exposure of 1."
        )
    fit = ["fit", "claims.csv", *COUNTS, "--exposure", "years", "--test", "bare.csv", "-o", "claims.tm"]
    assert "--test: bare.csv has no column 'years'" in error_of(capsys, *fit)
    new.loc[[2, 5], "years"] = np.nan
    new.loc[2, "claims"] = np.nan
    new.to_csv("gaps.csv", index=False)
    assert "data row 3 (counting from 1), column 'years': an exposure must be a positive number, got a " in (
        error_of(capsys, "predict", "claims.tm", "gaps.csv")
    )
    assert "data row 6 " in error_of(capsys, "evaluate", "claims.tm", "gaps.csv")
    assert "data row 6 " in error_of(capsys, *fit[:1], "gaps.csv", *fit[2:-4], "-o", "claims.tm")


def test_models_of_classes_have_none(here, capsys):
    table = pd.DataFrame(flats(200, 0))
    table.to_csv("flats.csv", index=False)
    run("fit", "flats.csv", "--target", "balcony", "--columns", "size", *LBFGS, "-o", "balcony.tm")
    message = error_of(capsys, "predict", "balcony.tm", "flats.csv", "--exposure", "rooms")
    assert message == "--exposure is for models of fit and tune that predict numbers: leave it out."
