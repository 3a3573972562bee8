"""Reports on rows with weights, exposures and offsets: errors are those that `score` averages."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_tweedie_deviance, r2_score

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks
from tensormachines.report import html_report
from tensormachines.report.findings import MODEL, find

pd = pytest.importorskip("pandas")
ROWS = 300
LINEAR = {"degree": 1, "alpha": 0.01, "solver": "lbfgs", "random_state": 0}


@pytest.fixture(scope="module")
def claims():
    """Return a model of claims, and rows with their exposures."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(2 * ROWS, 2)), columns=["a", "b"])
    years = rng.uniform(0.1, 2, 2 * ROWS)
    y = pd.Series(rng.poisson(years * np.exp(table["a"])), name="claims")
    model = TensorMachineRegressor(loss="poisson", **LINEAR)
    model.fit(table[ROWS:], y[ROWS:], exposure=years[ROWS:])
    return model, table, y, years


def values_of(measures):
    return {each.name: each.value for each in measures}


def test_errors_are_weighted_by_the_exposure(claims):
    model, table, y, years = claims
    X, rates, weight = table[:ROWS], y[:ROWS] / years[:ROWS], years[:ROWS]
    page = html_report(model, X, y[:ROWS], exposure=weight, data_name="rows")
    assert page == html_report(
        model, X, rates, sample_weight=weight, target="claims / exposure", data_name="rows"
    )
    assert "predicts <strong>claims / exposure</strong>" in page
    assert "Rows count by their weights." in page
    found = find(model, X, rates, sample_weight=weight, most_rows=200)
    predicted, (of_all,) = model.predict(X), map(values_of, found.of_all_rows)
    for name, measure in (("R2", r2_score), ("mean absolute error", mean_absolute_error)):
        assert of_all[name] == pytest.approx(measure(rates, predicted, sample_weight=weight))
    deviance = mean_tweedie_deviance(rates, predicted, sample_weight=weight, power=1)
    assert of_all["deviance"] == pytest.approx(deviance)
    explained = 1 - deviance / mean_tweedie_deviance(
        rates, np.full(ROWS, np.average(rates, weights=weight)), sample_weight=weight, power=1
    )
    assert model.score(X, y[:ROWS], exposure=weight) == pytest.approx(explained)
    complete = find(model, X, rates, sample_weight=weight)
    shown = values_of(complete.errors[0].measures[MODEL])
    assert shown["R2"] == pytest.approx(of_all["R2"])
    bias = complete.errors[0].diagnostics["bias"]
    assert bias == pytest.approx(np.average(rates - predicted, weights=weight))


def test_training_rows_have_exposures_of_their_own(claims):
    """The mean rate of the training rows is the prediction of the constant."""
    model, table, y, years = claims
    X, actual, weight = table[:ROWS], y[:ROWS], years[:ROWS]
    train = {"X_train": table[ROWS:], "y_train": y[ROWS:], "exposure_train": years[ROWS:]}
    page = html_report(model, X, actual, exposure=weight, **train)
    cell = re.search(r'<th scope="row">Constant</th>.*?</td><td>(\S+) ', page)[1]
    constant = y[ROWS:].sum() / years[ROWS:].sum()
    error = np.sqrt(np.average((actual / weight - constant) ** 2, weights=weight))
    assert float(cell) == pytest.approx(error, rel=1e-3)
    with pytest.raises(ValueError, match="exposure and exposure_train are those of X and X_train"):
        html_report(model, X, actual, exposure=weight, **train | {"exposure_train": None})
    with pytest.raises(ValueError, match="offset_train needs X_train"):
        html_report(model, X, actual, offset=weight, offset_train=weight)


def test_offsets_of_numbers_are_subtracted(claims):
    _, table, _, shift = claims
    y = table["a"] + shift
    model = TensorMachineRegressor(**LINEAR).fit(table, y, offset=shift)
    page = html_report(model, table, y, offset=shift)
    assert page == html_report(model, table, table["a"] * 1.0 + shift - shift)
    assert "Rows count by their weights." not in page


@pytest.mark.parametrize("kind", ["source", "dask"])
def test_weights_of_rows_that_are_not_in_memory(claims, kind):
    model, table, y, years = claims
    expected = html_report(model, table, y, exposure=years, target="rate")
    if kind == "source":
        pieces = [slice(0, 250), slice(250, 2 * ROWS)]
        source = blocks.iterable([(table[part], (y / years)[part], years[part]) for part in pieces])
        found = html_report(model, source, target="rate")
    else:
        dd = pytest.importorskip("dask.dataframe")
        lazy = dd.from_pandas(table.assign(claims=y, years=years), npartitions=3)
        found = html_report(model, lazy[["a", "b"]], lazy["claims"], exposure=lazy["years"], target="rate")
    assert found == expected


def test_weights_of_classes(claims):
    _, table, _, weight = claims
    labels = np.where(table["a"] + np.random.default_rng(1).normal(size=2 * ROWS) > 0, "yes", "no")
    model = TensorMachineClassifier(**LINEAR).fit(table, labels)
    found = find(model, table, labels, sample_weight=weight)
    accuracy = values_of(found.errors[0].measures[MODEL])["accuracy"]
    assert accuracy == pytest.approx(model.score(table, labels, sample_weight=weight))
    groups = json.dumps(found.errors[0].diagnostics["groups"])
    assert groups != json.dumps(find(model, table, labels).errors[0].diagnostics["groups"])
    with pytest.raises(ValueError, match="exposure and offset are for reports on TensorMachineRegressor"):
        html_report(model, table, labels, exposure=weight)
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        html_report(model, table, labels, sample_weight=0 * weight)


def test_an_exposure_needs_targets(claims):
    model, table, _, years = claims
    with pytest.raises(ValueError, match="y is needed"):
        html_report(model, table, exposure=years)
