"""The report, before a browser shows it."""

from __future__ import annotations

import json
import re
from datetime import date

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_multilabel_classification
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    mean_pinball_loss,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline

import tensormachines
from exported_models import factorization_model
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines.inspection import (
    bootstrap,
    effect_band,
    explain_row,
    formula,
    importance,
    interaction_strength,
)
from tensormachines.inspection.displacements import column_forms
from tensormachines.report import html_report
from tensormachines.report.browser_model import number_input
from tensormachines.report.findings import SMALLEST_SHARE, find
from tensormachines.report.formatting import probability
from tensormachines.report.page import page_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

random = np.random.default_rng(0)
QUICK = {"degree": 2, "rank": 2, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = TensorMachineRegressor(**QUICK).fit(X[:300], y[:300])
    return model, X[300:], y[300:], X[:300], y[:300]


def data_of(page):
    return json.loads(re.search(r'id="findings">(.*?)</script>', page, re.DOTALL)[1])


def test_shares_are_those_of_inspection(diabetes):
    model, X, y, *_ = diabetes
    (shares,) = find(model, X, y).shares
    names = list(X)
    expected = importance(model, X)
    assert {names[j]: share for j, share in shares.columns} == pytest.approx(dict(expected), abs=1e-9)
    assert [names[j] for j, _ in shares.columns] == list(expected.largest())
    pairs = interaction_strength(model, X)
    assert {tuple(names[j] for j in columns): share for columns, share in shares.pairs} == pytest.approx(
        {key: share for key, share in pairs.largest(20).items() if share >= SMALLEST_SHARE},
        abs=1e-9,
    )


def test_contributions_start_from_the_mean_prediction_of_the_training_rows(diabetes):
    model, X, y, X_train, _ = diabetes
    found = find(model, X, y).browser
    assert found["average"] == "average"
    assert explain_row(model, X[:1])[()] == pytest.approx(model.predict(X_train).mean(), rel=1e-5)
    np.testing.assert_array_equal(found["model"]["mean_parts"], model._mean_parts)


def test_contributions_start_from_the_mean_of_the_rows_where_that_of_the_fit_is_not_known(diabetes):
    _, X, y, X_train, y_train = diabetes
    again = TensorMachineRegressor(**QUICK).fit(X_train, y_train).partial_fit(X_train, y_train)
    found = find(again, X, y).browser
    assert found["average"] == "average of these rows"
    forms = column_forms(again, None, X)
    assert forms.mean_output == pytest.approx(again.predict(X).mean(), rel=1e-9)
    np.testing.assert_allclose(found["model"]["mean_parts"], [forms.means], rtol=1e-9, atol=1e-9)


def test_the_page_is_complete_alone_and_repeatable(diabetes):
    model, X, y, X_train, y_train = diabetes
    page = html_report(
        model, X, y, X_train=X_train, y_train=y_train, target="progression", title="Sugar & more"
    )
    assert page == html_report(
        model, X, y, X_train=X_train, y_train=y_train, target="progression", title="Sugar & more"
    )
    assert "http://www.w3.org/2000/svg" in page  # the name of SVG, which is not fetched
    assert not re.search(r"(src|href)=(?!\"#)|@import|url\(|fetch\(", page)
    assert "<title>Sugar &amp; more</title>" in page
    assert f"{root_mean_squared_error(y, model.predict(X)):.4g}" in page
    assert "fitted to 300 training rows" in page
    assert len(page) < 300_000


def test_the_top_says_when_from_what_and_by_what_it_was_made(diabetes):
    model, X, y, *_ = diabetes
    findings = find(model, X, y)
    page = page_of(findings, data_name="a & b.csv", today=date(2026, 2, 3))
    made = re.search(r'<p class="made">(.*?)</p>', page)[1]
    assert '<time datetime="2026-02-03">3 February 2026</time>' in made
    assert f"{len(X)} rows of a &amp; b.csv" in made
    assert f"tensormachines {tensormachines.__version__}" in made
    assert f"· {len(X)} rows ·" in page_of(findings)


def test_booleans_are_told_from_numbers():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "lift": random.random(60) < 0.5,
            "new": pd.array(random.random(60) < 0.5, dtype="boolean"),
            "two": random.integers(0, 2, 60),
            "size": random.random(60),
        }
    )
    y = table["size"] + table["lift"] + 0.5 * table["two"] + table["new"].astype(float)
    model = TensorMachineRegressor(degree=1, max_iter=5, random_state=0).fit(table, y)
    objects = table.astype({"lift": object, "new": object})
    objects.loc[3, "new"] = None
    arrow = pa.Table.from_pandas(table)
    for given in (table, pl.from_pandas(table), objects, arrow, objects.to_dict("records")):
        inputs = {of["column"]: of["boolean"] for of in find(model, given, y).browser["inputs"]}
        assert inputs == {0: True, 1: True, 2: False, 3: False}


def test_a_boolean_of_which_all_rows_are_true():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"lift": random.random(60) < 0.5, "size": random.random(60)})
    y = table["size"] + table["lift"]
    model = TensorMachineRegressor(degree=1, max_iter=5, random_state=0).fit(table, y)
    rows = table["lift"]
    inputs = {of["column"]: of for of in find(model, table[rows], y[rows]).browser["inputs"]}
    assert inputs[0]["boolean"]
    assert inputs[0]["counts"] == [0, rows.sum()]


def test_the_page_knows_the_jumps_of_numbers():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"zone": random.choice(["A", "B"], 1000), "weight": random.uniform(0, 30, 1000)})
    y = 4.0 * (table["weight"] > 10) + 0.1 * random.standard_normal(1000)
    model = TensorMachineRegressor(random_state=0).fit(table, y)
    inputs = {of["column"]: of for of in find(model, table, y).browser["inputs"]}
    assert inputs[1]["jumps"] == model.jumps_["weight"].tolist() != []
    plain = TensorMachineRegressor(basis="standard", random_state=0).fit(table[["weight"]], y)
    assert find(plain, table[["weight"]], y).browser["inputs"][0]["jumps"] == []


def test_the_page_has_the_bands_of_inspection(rng):
    table = pd.DataFrame(
        {
            "size": rng.normal(size=90),
            "rooms": rng.integers(1, 5, 90),
            "zone": rng.choice(["A", "B"], 90),
            "lift": rng.random(90) < 0.5,
        }
    )
    table.loc[:9, "size"] = np.nan
    y = table["size"].fillna(0) + table["rooms"] + (table["zone"] == "A") + rng.normal(size=90)
    model = TensorMachineRegressor(**QUICK, max_iter=3).fit(table, y)
    members = bootstrap(model, table, y, n_members=3, random_state=0)
    page = html_report(model, table, y, members=members)
    assert "come from 3 models of the same kind" in page
    inputs = {list(table)[of["column"]]: of for of in data_of(page)["inputs"]}
    low, high = inputs["size"]["low"], inputs["size"]["high"]
    values = {
        "size": [*np.linspace(low, high, 64), np.nan],
        "rooms": [1, 2, 3, 4],
        "zone": ["A", "B"],
        "lift": [False, True],
    }
    for name, points in values.items():
        rows = table.iloc[np.zeros(len(points), dtype=int)].reset_index(drop=True).assign(**{name: points})
        half = np.diff(effect_band(model, name, rows, members), axis=1)[:, 0] / 2
        np.testing.assert_allclose(inputs[name]["band"], [half], rtol=1e-3)
    plain = html_report(model, table, y)
    assert "bands" not in plain.partition("<script")[0]
    assert not any("band" in of for of in data_of(plain)["inputs"])
    with pytest.raises(ValueError, match="give what inspection"):
        html_report(model, table, y, members=members[:1])


def test_no_bands_where_columns_have_no_effects(diabetes):
    _, X, y, *_ = diabetes
    model = TensorMachineRegressor(basis="sphere", max_iter=2, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="use a basis other than unit and sphere"):
        html_report(model, X, y, members=bootstrap(model, X, y, n_members=2, random_state=0))


def test_rows_are_kept_out_where_that_is_asked(diabetes):
    model, X, y, *_ = diabetes
    assert len(data_of(html_report(model, X, y))["examples"]) == 20
    assert data_of(html_report(model, X, y, examples=0))["examples"] == []


def test_examples_are_named_by_their_place_in_the_data(diabetes):
    model, X, y, *_ = diabetes
    data = data_of(html_report(model, X, y))
    for number, row, actual in zip(data["example_numbers"], data["examples"], data["actual"], strict=True):
        np.testing.assert_allclose(row, X.iloc[number - 1])
        assert actual == [y.iloc[number - 1]]


def test_many_rows_are_sampled(diabetes):
    model, X, y, *_ = diabetes
    findings = find(model, X, y, most_rows=50)
    assert (findings.n_measured, findings.n_given) == (50, 142)
    page = page_of(findings, data_name="new.csv")
    assert "Measured on 50 rows, drawn at random from 142." in page
    assert "142 rows of new.csv, 50 of them shown" in page
    error, explained = mean_absolute_error(y, model.predict(X)), model.score(X, y)
    all_rows = re.search('class="all-rows">(.*?)</p>', page)[1]
    assert f"On all 142 rows, this model has: R² {explained:.4g} (" in all_rows
    assert f"Mean absolute error {error:.4g} (" in all_rows


def test_findings_are_complete_before_the_page_is_written(diabetes, monkeypatch):
    """The page is text alone: nothing is predicted, fitted or described while it is written."""
    model, X, y, X_train, y_train = diabetes
    findings = find(model, X, y, X_train, y_train)
    page = page_of(findings)
    for method in ("predict", "_check_rows", "get_params"):
        monkeypatch.setattr(type(model), method, None)
    monkeypatch.delattr(model, "_machine")
    assert page_of(findings) == page


def test_predictions_of_the_findings_are_those_of_the_model(diabetes):
    model, X, y, *_ = diabetes
    points = find(model, X, y).errors[0].diagnostics["points"]
    np.testing.assert_allclose(points, np.column_stack([model.predict(X), y]), rtol=1e-5)


def test_a_model_that_says_the_same_of_all_rows():
    X = random.normal(size=(40, 3))
    model = TensorMachineRegressor(degree=1, alpha=1e6, basis="standard", random_state=0).fit(
        X, np.full(40, 5.0)
    )
    data = data_of(html_report(model, X, np.full(40, 5.0)))
    assert data["shares"][0]["pairs"] == []


def test_an_error_many_times_that_of_a_baseline():
    """It is told in times, not in millions of per cent."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = TensorMachineRegressor(degree=1, basis=None, alpha=1e9, random_state=0).fit(X, X[:, 0])
    lead = re.search(r'class="lead">(.*?)</p>', html_report(model, X, X[:, 0], X_train=X, y_train=X[:, 0]))[1]
    assert re.search(
        r"root mean square error is [\d,]+ times that of the best baseline, a linear model "
        r"\(95 % interval [\d,]+ to [\d,]+\)",
        lead,
    )


@pytest.mark.parametrize("first", [0, 2023, 10**16, -(10**16)])
def test_counts_of_whole_numbers(first):
    """Also where they are so large that halves are lost between them."""
    values = first + 2.0 * np.repeat([0, 1, 2], [30, 20, 10])
    found = number_input(values)
    assert found["counts"] == [30, 0, 20, 0, 10]
    assert (found["low"], found["high"]) == (first, first + 4)


def test_two_classes_of_text():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    labels = np.where(y == 1, "benign", "malignant")
    model = TensorMachineClassifier(**QUICK).fit(X[:400], labels[:400])
    page = html_report(model, X[400:], labels[400:], X_train=X[:400], y_train=labels[:400])
    assert data_of(page)["classes"] == ["benign", "malignant"]
    assert f"{accuracy_score(labels[400:], model.predict(X[400:])):.4g}" in page
    assert f"{roc_auc_score(labels[400:] == 'malignant', model.predict_proba(X[400:])[:, 1]):.4g}" in page


def test_the_largest_terms_are_those_of_standardised_columns():
    """y = 7 + 3 z0 - 2 z1 z2 of columns that are shifted and scaled; z are the standardised columns."""
    z = random.normal(size=(400, 3))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    y = 7 + 3 * z[:, 0] - 2 * z[:, 1] * z[:, 2]
    X = pd.DataFrame(z * [10, 0.1, 1000] + [5, 0, -300], columns=["a", "b", "the c"])
    model = TensorMachineRegressor(
        degree=2, rank=2, alpha=1e-10, basis="standard", solver="lbfgs", random_state=0
    ).fit(X, y)
    page = html_report(model, X, y)
    table = re.search(r'<table class="terms">.*?</table>', page, re.DOTALL)[0]
    found = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', table)[:3]
    assert [name for name, _ in found] == ["constant", "a", "b [the c]"]
    assert [float(value.replace("\N{MINUS SIGN}", "-")) for _, value in found] == pytest.approx(
        [7, 3, -2], abs=0.01
    )


def test_no_terms_where_the_polynomial_is_of_something_else(diabetes):
    model, X, y, *_ = diabetes  # splines
    assert '<table class="terms">' not in html_report(model, X, y)


def test_the_model_section_shows_the_functions_of_this_model(diabetes):
    model, X, y, *_ = diabetes
    section = html_report(model, X, y).partition('<section id="model"')[2]
    expected = formula(model, X, max_functions=12)
    assert f"{100 * expected.fidelity:.1f}&nbsp;% of the model" in section
    shown = re.findall(
        r"<figure><h3>(.*?) <small>(.*?)&nbsp;%</small></h3>(.*?)</figure>", section, re.DOTALL
    )
    assert [title for title, *_ in shown] == [
        " \N{MULTIPLICATION SIGN} ".join(each.columns) for each in expected.functions
    ]
    first = expected.functions[0]
    cells = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', shown[0][2])
    assert [label for label, _ in cells] == first.axes[0].labels
    assert [float(value.replace("\N{MINUS SIGN}", "-")) for _, value in cells] == pytest.approx(
        first.values.tolist(), rel=0.01
    )
    assert f"alpha = {model.alpha_:.3g}" in section


def test_functions_of_several_outputs_are_folded_away():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK).fit(X, y)
    page = html_report(model, X, y)
    assert page.count('<details class="functions">') == 3
    assert "<strong>score of 2</strong>" in page
    sphere = TensorMachineClassifier(**QUICK, basis="sphere").fit(X, y)
    assert '<details class="functions"' not in html_report(sphere, X, y)


def test_calibration_in_numbers():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = TensorMachineClassifier(**QUICK).fit(X[:400], y[:400])
    page = html_report(model, X[400:], y[400:])
    table = re.search(r'<table class="calibration">.*?</table>', page, re.DOTALL)[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr><td>.*?</tr>", table)]
    assert sum(int(row[3]) for row in rows) == 169
    assert sum(int(row[4]) for row in rows) == (y[400:] == 1).sum()
    groups = find(model, X[400:], y[400:]).errors[0].diagnostics["groups"]
    assert [row[0] for row in rows] == [probability(group["predicted"]) for group in groups]


def test_probabilities_are_told_from_0_and_1():
    shown = [probability(share) for share in (0, 1e-9, 0.00123, 0.0512, 0.5, 0.9951, 0.99999, 1)]
    assert shown == ["0 %", "below 0.01 %", "0.123 %", "5.12 %", "50 %", "99.51 %", "above 99.99 %", "100 %"]


# ---- refusals


def test_what_cannot_be_reported_is_refused_by_name(diabetes):
    model, X, y, *_ = diabetes
    with pytest.raises(TypeError, match="Of a pipeline"):
        html_report(make_pipeline(LinearRegression()).fit(X, y), X, y)
    with pytest.raises(TypeError, match="FactorizationMachineRegressor"):
        html_report(factorization_model("single"), X, y)
    with pytest.raises(TypeError, match="TensorMachineFeatures"):
        html_report(TensorMachineFeatures(**QUICK).fit(X, y), X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        html_report(model, X, y[:-1])
    with pytest.raises(ValueError, match="given together"):
        html_report(model, X, y, X_train=X)
    with pytest.raises(ValueError, match="at least 10 rows"):
        html_report(model, X[:9], y[:9])
    with pytest.raises(ValueError, match="y must hold finite numbers"):
        html_report(model, X, y.where(y > 100))


def test_predictions_that_overflow_are_refused():
    X = random.normal(size=(50, 2))
    model = TensorMachineRegressor(degree=3, rank=1, basis=None, random_state=0).fit(X, X[:, 0] * X[:, 1])
    X[7] = 1e200
    with pytest.raises(ValueError, match="Some predictions overflow"):
        html_report(model, X, X[:, 0] * 0)


def test_labels_that_the_model_does_not_know():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"labels that the model does not know: 2\. It knows 0, 1"):
        html_report(model, X, y)


def test_quantiles_are_measured_by_their_losses_and_shares(diabetes):
    *_, X, y = diabetes
    settings = {"degree": 1, "max_iter": 5, "random_state": 0, "loss": "quantile"}
    model = TensorMachineRegressor(quantile=[0.1, 0.8], **settings).fit(X[:200], y[:200])
    rows, actual = X[200:], y[200:]
    found = find(model, rows, actual, X[:200], y[:200], n_examples=2)
    assert found.outputs == ["quantile 0.1 of target", "quantile 0.8 of target"]
    assert [len(each) for each in found.browser["actual"]] == [2, 2]
    for level, predicted, errors in zip(model.quantiles_, model.predict(rows).T, found.errors, strict=True):
        below, pinball = errors.measures["this model"]
        assert below.value == pytest.approx(np.mean(actual <= predicted))
        assert pinball.value == pytest.approx(mean_pinball_loss(actual, predicted, alpha=level))
        constant = np.quantile(y[:200], level)
        expected = mean_pinball_loss(actual, np.full(len(actual), constant), alpha=level)
        assert errors.measures["constant"][1].value == pytest.approx(expected)
        assert errors.comparison.baseline == "boosted trees"
    page = page_of(found)
    assert "its pinball loss for quantile 0.1 of target is" in page
    assert "penalty by cross-validation" not in page
    alone = find(model.set_params(quantile=0.8).fit(X[:200], y[:200]), rows, actual, X[:200], y[:200])
    ours = [[each.value for each in of.errors[-1].measures["boosted trees"]] for of in (found, alone)]
    assert ours[0] == ours[1]


def test_quantiles_of_more_rows_than_are_shown(rng):
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    settings = {"degree": 1, "max_iter": 2, "random_state": 0, "loss": "quantile"}
    model = TensorMachineRegressor(quantile=[0.1, 0.8], **settings).fit(X, y)
    on_all = find(model, X, y, most_rows=100).of_all_rows
    assert [[each.name for each in of_level] for of_level in on_all] == [["share below", "pinball loss"]] * 2
    assert [below.value for below, _ in on_all] == pytest.approx(np.mean(y[:, None] <= model.predict(X), 0))


def test_errors_of_labels_are_those_of_each_alone():
    X, Y = make_multilabel_classification(300, 5, n_classes=2, random_state=0)
    settings = {"degree": 1, "alpha": 1e-2, "solver": "lbfgs"}
    labels = pd.DataFrame(Y, columns=["red", "blue"])
    both = find(TensorMachineClassifier(**settings).fit(X[:200], labels[:200]), X[200:], labels[200:])
    assert both.outputs == ["red", "blue"]
    for k, errors in enumerate(both.errors):
        alone = find(TensorMachineClassifier(**settings).fit(X[:200], Y[:200, k]), X[200:], Y[200:, k])
        assert errors.label == both.outputs[k]
        assert list(errors.measures) == list(alone.errors[0].measures)
        for found, expected in zip(errors.measures.values(), alone.errors[0].measures.values(), strict=True):
            assert [each.name for each in found] == [each.name for each in expected]
            assert [each.value for each in found] == pytest.approx(
                [each.value for each in expected], rel=1e-3
            )
        assert errors.diagnostics["confusion"] == alone.errors[0].diagnostics["confusion"]
    page = html_report(TensorMachineClassifier(**settings).fit(X, Y), X, sparse.csr_array(Y))
    assert "not label 1" in page
    with pytest.raises(ValueError, match="y must hold 0 and 1, a column for each label"):
        find(TensorMachineClassifier(**settings).fit(X, Y), X, 2 * Y)


def test_one_quantile_of_several_targets(rng):
    X = rng.normal(size=(200, 2))
    Y = np.column_stack([X[:, 0], 100 * X[:, 1]]) + rng.normal(size=(200, 2))
    model = TensorMachineRegressor(loss="quantile", quantile=0.9, degree=1, max_iter=20, random_state=0)
    model.fit(X[:100], Y[:100])
    found = find(model, X[100:], Y[100:], X[:100], Y[:100])
    assert len(found.errors) == 2
    for k, errors in enumerate(found.errors):
        expected = mean_pinball_loss(Y[100:, k], np.full(100, np.quantile(Y[:100, k], 0.9)), alpha=0.9)
        assert errors.measures["constant"][1].value == pytest.approx(expected)


def test_a_model_that_has_only_seen_blocks(diabetes):
    _, X, y, X_train, y_train = diabetes
    model = TensorMachineRegressor(**QUICK).partial_fit(X_train, y_train)
    page = html_report(model, X, y)
    assert "Penalty" not in page
