"""What a report says, before a browser shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline

from exported_models import factorization_model
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines.inspection import importance, interaction_strength
from tensormachines.report import findings as facts_file
from tensormachines.report import html_report
from tensormachines.report import measures as errors_file
from tensormachines.report.baselines import CONSTANT, LINEAR, TREES, baseline_predictions
from tensormachines.report.browser_model import live_inputs
from tensormachines.report.diagnostics import calibration, residuals, wilson
from tensormachines.report.findings import find_facts
from tensormachines.report.measures import classification_errors, regression_errors

random = np.random.default_rng(0)
QUICK = {"degree": 2, "rank": 2, "random_state": 0}


def values(measures):
    return {measure.name: measure.value for measure in measures}


# ---- errors


@pytest.mark.parametrize("weighted", [False, True])
def test_regression_errors_are_those_of_scikit_learn(weighted):
    y = random.normal(size=500) * 1e3 + 1e6
    predicted = y + random.normal(size=500) * 100
    weight = random.integers(0, 4, 500).astype(float) if weighted else None
    found = values(regression_errors(y, {"it": predicted}, weight)["it"])
    assert found["R2"] == pytest.approx(r2_score(y, predicted, sample_weight=weight), rel=1e-9)
    assert found["root mean square error"] == pytest.approx(
        root_mean_squared_error(y, predicted, sample_weight=weight), rel=1e-9
    )
    assert found["mean absolute error"] == pytest.approx(
        mean_absolute_error(y, predicted, sample_weight=weight), rel=1e-9
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_classification_errors_are_those_of_scikit_learn(weighted):
    classes = np.array(["no", "yes"])
    scores = random.normal(size=400).round(1)  # many are equal
    y = classes[(scores + random.normal(size=400) > 0).astype(int)]
    likely = 1 / (1 + np.exp(-scores))
    probabilities = np.column_stack([1 - likely, likely])
    weight = random.integers(0, 4, 400).astype(float) if weighted else None
    found = values(classification_errors(y, classes, {"it": probabilities}, weight)["it"])
    predicted = classes[probabilities.argmax(axis=1)]
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted, sample_weight=weight))
    assert found["log loss"] == pytest.approx(log_loss(y, probabilities, sample_weight=weight))
    assert found["area under the ROC curve"] == pytest.approx(roc_auc_score(y, likely, sample_weight=weight))


def test_intervals_have_the_width_that_theory_gives():
    """The mean of 400 absolute errors that are 0 or 1 is a share; its standard error is known."""
    wrong = random.random(400) < 0.3
    measure = regression_errors(np.arange(400.0), {"it": np.arange(400.0) + wrong})["it"][2]
    low, high = measure.interval
    width = 2 * 1.96 * np.sqrt(wrong.mean() * (1 - wrong.mean()) / 400)
    assert high - low == pytest.approx(width, rel=0.12)
    assert low < measure.value < high


def test_intervals_of_many_rows_are_those_of_redrawn_ones(monkeypatch):
    """The same rows, measured both ways."""
    classes = np.array([0, 1])
    scores = random.normal(size=3000)
    y = (scores + random.normal(size=3000) > 0).astype(int)
    likely = 1 / (1 + np.exp(-scores))
    weight = random.integers(1, 4, 3000)
    probabilities = {"it": np.column_stack([1 - likely, likely])}
    numbers = {"it": scores + random.normal(size=3000)}
    redrawn = [
        classification_errors(y, classes, probabilities, weight)["it"],
        regression_errors(scores, numbers, weight)["it"],
    ]
    monkeypatch.setattr(errors_file, "MOST_REDRAWN", 1000)
    drawn = [
        classification_errors(y, classes, probabilities, weight)["it"],
        regression_errors(scores, numbers, weight)["it"],
    ]
    for one, other in zip([*redrawn[0], *redrawn[1]], [*drawn[0], *drawn[1]], strict=True):
        assert one.value == other.value
        assert other.draws.std() == pytest.approx(one.draws.std(), rel=0.1)


def test_interval_of_the_area_is_that_of_pairs_drawn_again():
    """Against scikit-learn's area of rows that are really drawn again."""
    scores = random.normal(size=300).round(1)
    y = (scores + 2 * random.normal(size=300) > 0).astype(int)
    likely = 1 / (1 + np.exp(-scores))
    measure = classification_errors(y, np.array([0, 1]), {"it": np.column_stack([1 - likely, likely])})["it"][
        2
    ]
    draws = [roc_auc_score(y[rows], scores[rows]) for rows in random.integers(300, size=(200, 300))]
    assert measure.draws.std() == pytest.approx(np.std(draws), rel=0.15)


def test_the_same_draws_for_all_predictions():
    """Twice the errors in each draw, not only on average."""
    y = random.normal(size=100)
    error = random.normal(size=100)
    found = regression_errors(y, {"one": y + error, "two": y - 2 * error})
    np.testing.assert_allclose(found["two"][1].draws, 2 * found["one"][1].draws)


def test_errors_of_huge_and_of_constant_targets():
    huge = random.normal(size=50) * 1e200
    found = regression_errors(huge, {"it": np.zeros(50)})["it"]
    assert np.isfinite(found[1].value)
    constant = regression_errors(np.full(50, 3.0), {"it": np.full(50, 3.0)})["it"]
    assert np.isnan(constant[0].value)
    assert constant[1].value == 0


def test_probability_zero_of_what_happened_has_a_finite_loss():
    found = classification_errors(
        np.array([0, 1]), np.array([0, 1]), {"it": np.array([[0.0, 1.0], [0.0, 1.0]])}
    )["it"]
    assert np.isfinite(found[1].value)


def test_area_is_unknown_where_there_is_one_class():
    found = classification_errors(np.array([1, 1, 1]), np.array([0, 1]), {"it": np.array([[0.5, 0.5]] * 3)})[
        "it"
    ]
    assert np.isnan(found[2].value)
    assert np.isnan(found[2].interval).all()


# ---- checks


@pytest.mark.parametrize(("hits", "rows"), [(0, 5), (3, 10), (10, 10), (500, 1000)])
def test_wilson_interval_is_that_of_scipy(hits, rows):
    expected = stats.binomtest(hits, rows).proportion_ci(method="wilson")
    assert wilson(hits / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_calibration_of_two_and_of_three_classes():
    likely = np.array([0.05, 0.15, 0.9, 0.95])
    found = calibration(np.array([0, 1, 1, 1]), np.column_stack([1 - likely, likely]))
    assert [group["share"] for group in found["groups"]] == [0, 1, 1, 1]
    assert found["confusion"] == [[1, 0], [1, 2]]
    three = calibration(np.array([0, 2]), np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]))
    assert [(group["stated"], group["share"]) for group in three["groups"]] == [(0.5, 0), (0.6, 1)]


def test_every_residual_is_counted():
    y = np.append(random.normal(size=300), [100, -500])
    found = residuals(y, np.zeros(302))
    assert sum(found["counts"]) == 302
    assert len(found["points"]) == 302
    assert found["bias"] == pytest.approx(y.mean())


# ---- rivals


def frame_and_model():
    frame = pd.DataFrame(
        {
            "a": random.normal(size=200),
            "b": random.choice(["x", "y", None], 200),
            "c": random.normal(size=200),
        }
    )
    frame.loc[::7, "c"] = np.nan
    y = frame.a + (frame.b == "x") * 2
    return frame, y.to_numpy(), TensorMachineRegressor(**QUICK).fit(frame, y)


def test_rivals_learn_from_the_training_rows_alone():
    frame, y, model = frame_and_model()
    rows = model._check_rows(frame)
    found = baseline_predictions(model, rows[100:], y[100:], (rows[:100], y[:100]))
    np.testing.assert_allclose(found[CONSTANT], y[:100].mean())
    assert np.corrcoef(found[LINEAR], y[100:])[0, 1] > 0.95  # needs the category
    assert np.corrcoef(found[TREES], y[100:])[0, 1] > 0.8


def test_rivals_do_not_predict_rows_that_they_were_fitted_to():
    frame, _, model = frame_and_model()
    noise = random.normal(size=200)
    found = baseline_predictions(model, model._check_rows(frame), noise, None)
    assert np.corrcoef(found[CONSTANT], noise)[0, 1] < 0  # the mean of the others
    assert abs(np.corrcoef(found[TREES], noise)[0, 1]) < 0.3


def test_rivals_on_sparse_rows_and_unknown_classes():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK).fit(sparse.csr_matrix(X), y)
    rows, labels = sparse.csr_matrix(X[:100]), y[:100]  # two classes of three
    found = baseline_predictions(model, rows, labels, (rows, labels))
    for probabilities in found.values():
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert (probabilities[:, 2] == 0).all()
    assert (found[TREES].argmax(axis=1) == labels).mean() > 0.95


def test_rivals_where_one_class_or_nothing_is_known():
    """scikit-learn's models refuse these."""
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK).fit(X, y)
    rows, labels = X[45:51].copy(), y[45:51]  # one row of the second class: a fold has none of it
    rows[:, 2] = np.nan
    for train in (None, (rows[:5], labels[:5])):
        for probabilities in baseline_predictions(model, rows, labels, train).values():
            np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_rivals_of_huge_numbers():
    """Whose variance overflows."""
    X = np.column_stack([random.normal(size=60) * 1e300, random.normal(size=60)])
    model = TensorMachineRegressor(**QUICK).fit(X, X[:, 1])
    for train in (None, (X, X[:, 1])):
        found = baseline_predictions(model, X, X[:, 1], train)
        assert np.corrcoef(found[LINEAR], X[:, 1])[0, 1] > 0.99


# ---- the page


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = TensorMachineRegressor(**QUICK).fit(X[:300], y[:300])
    return model, X[300:], y[300:], X[:300], y[:300]


def data_of(page):
    return json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])


def test_shares_are_those_of_inspection(diabetes):
    model, X, y, *_ = diabetes
    facts = find_facts(model, X, y, None, None, None, 0, 0)
    (view,) = facts.views
    names = list(X)
    expected = importance(model, X)
    assert {names[j]: share for j, share in view.columns} == pytest.approx(dict(expected), abs=1e-9)
    assert [names[j] for j, _ in view.columns] == list(expected.largest())
    pairs = interaction_strength(model, X)
    assert {tuple(names[j] for j in columns): share for columns, share in view.pairs} == pytest.approx(
        {key: share for key, share in pairs.largest(20).items() if abs(share) >= facts_file.SMALLEST_SHARE},
        abs=1e-9,
    )


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


def test_many_rows_are_sampled(diabetes, monkeypatch):
    model, X, y, *_ = diabetes
    monkeypatch.setattr(facts_file, "MOST_ROWS", 50)
    page = html_report(model, X, y)
    assert "Measured on 50 rows, drawn from 142." in page


def test_a_model_that_says_the_same_of_all_rows():
    X = random.normal(size=(40, 3))
    model = TensorMachineRegressor(degree=1, alpha=1e6, basis="standard", random_state=0).fit(
        X, np.full(40, 5.0)
    )
    data = data_of(html_report(model, X, np.full(40, 5.0)))
    assert data["views"][0]["pairs"] == []


def test_an_error_many_times_that_of_a_rival():
    """It is told in times, not in millions of per cent."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = TensorMachineRegressor(degree=1, basis=None, alpha=1e9, random_state=0).fit(X, X[:, 0])
    lead = re.search(r'class="lead">(.*?)</p>', html_report(model, X, X[:, 0], X_train=X, y_train=X[:, 0]))[1]
    assert re.search(
        r"root mean square error is [\d,]+ times that of the best rival here, a linear model \(95 % interval [\d,]+ to [\d,]+\)",
        lead,
    )


@pytest.mark.parametrize("first", [0, 2023, 10**16, -(10**16)])
def test_counts_of_whole_numbers(first):
    """Also where they are so large that halves are lost between them."""
    values = first + 2.0 * np.repeat([0, 1, 2], [30, 20, 10])
    found = live_inputs(TensorMachineRegressor(**QUICK).fit(values[:, None], values), values[:, None], [0])[0]
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
    """y = 7 + 3 z0 - 2 z1 z2 of columns that are moved and stretched; z are their deviations from the mean."""
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


def test_labels_that_the_model_does_not_know():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"labels that the model does not know: 2\. It knows 0, 1"):
        html_report(model, X, y)
