"""Error measures, their intervals, and diagnostics of predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from tensormachines.report.diagnostics import calibration, residuals, wilson
from tensormachines.report.measures import classification_errors, regression_errors

random = np.random.default_rng(0)


def values(measures):
    return {measure.name: measure.value for measure in measures}


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


def test_intervals_of_many_rows_are_those_of_resampled_ones():
    """The same rows, measured both ways."""
    classes = np.array([0, 1])
    scores = random.normal(size=3000)
    y = (scores + random.normal(size=3000) > 0).astype(int)
    likely = 1 / (1 + np.exp(-scores))
    weight = random.integers(1, 4, 3000)
    probabilities = {"it": np.column_stack([1 - likely, likely])}
    numbers = {"it": scores + random.normal(size=3000)}

    def measured(**size):
        return [
            *classification_errors(y, classes, probabilities, weight, **size)["it"],
            *regression_errors(scores, numbers, weight, **size)["it"],
        ]

    for one, other in zip(measured(), measured(most_resampled=1000), strict=True):
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


# ---- diagnostics


@pytest.mark.parametrize(("hits", "rows"), [(0, 5), (3, 10), (10, 10), (500, 1000)])
def test_wilson_interval_is_that_of_scipy(hits, rows):
    expected = stats.binomtest(hits, rows).proportion_ci(method="wilson")
    assert wilson(hits / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_calibration_of_two_and_of_three_classes():
    likely = np.array([0.05, 0.15, 0.9, 0.95])
    found = calibration(np.array([0, 1, 1, 1]), np.column_stack([1 - likely, likely]))
    assert [group["observed"] for group in found["groups"]] == [0, 1, 1, 1]
    assert found["confusion"] == [[1, 0], [1, 2]]
    three = calibration(np.array([0, 2]), np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]))
    assert [(group["predicted"], group["observed"]) for group in three["groups"]] == [(0.5, 0), (0.6, 1)]


def test_every_residual_is_counted():
    y = np.append(random.normal(size=300), [100, -500])
    found = residuals(y, np.zeros(302))
    assert sum(found["counts"]) == 302
    assert len(found["points"]) == 302
    assert found["bias"] == pytest.approx(y.mean())


def test_diagnostics_of_weights_are_those_of_repeated_rows():
    y, predicted = random.normal(size=(2, 300))
    times = random.integers(0, 4, 300)
    found, expected = residuals(y, predicted, times), residuals(y.repeat(times), predicted.repeat(times))
    assert found["bias"] == pytest.approx(expected["bias"])
    distances = np.abs(y - predicted).repeat(times)
    assert found["half"] == np.quantile(distances, 0.5, method="inverted_cdf")
    likely = np.full(30, 0.5)
    codes, times = np.arange(30) % 3 // 2, np.where(np.arange(30) % 3 == 2, 4, 1)
    (first, *_) = calibration(codes, np.column_stack([1 - likely, likely]), times)["groups"]
    assert (first["rows"], first["true"]) == (3, 1)
    assert first["observed"] == pytest.approx(4 / 6)
    assert (first["low"], first["high"]) == pytest.approx(wilson(4 / 6, 36 / 18))


def test_groups_of_a_rare_class_are_small_where_it_is_likely():
    """All rows are in one group, by their probability; groups of rows alike are alike."""
    random = np.random.default_rng(0)
    likely = random.beta(0.3, 20, 5000)
    codes = (random.random(5000) < likely).astype(int)
    groups = calibration(codes, np.column_stack([1 - likely, likely]))["groups"]
    assert len(groups) == 10
    rows = [group["rows"] for group in groups]
    assert sum(rows) == 5000
    assert rows[0] > 1000
    assert 30 < rows[-1] < 250
    start = 0
    for group in groups:
        members = np.argsort(likely, kind="stable")[start : start + group["rows"]]
        assert group["predicted"] == pytest.approx(likely[members].mean())
        assert group["observed"] == pytest.approx(codes[members].mean())
        start += group["rows"]
    for same in (0.3, 0.0, 1.0):
        alike = np.full(100, same)
        groups = calibration(np.zeros(100, int), np.column_stack([1 - alike, alike]))["groups"]
        assert [group["rows"] for group in groups] == [10] * 10
