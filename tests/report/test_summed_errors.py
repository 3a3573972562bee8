"""Errors as sums over chunks are those of the same rows in memory, and those of scikit-learn."""

from functools import reduce
from itertools import pairwise
from operator import add
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_pinball_loss, mean_tweedie_deviance, r2_score, roc_auc_score

from tensormachines._data.binned_sums import MOST, BinnedSums
from tensormachines._model.losses import SQUARED, loss_named
from tensormachines.report.summed_errors import (
    CONSTANT,
    MODEL,
    SummedErrors,
    area_under_curve,
    measures_in_memory,
)

ROWS = 25_000  # more than are resampled


def summed(model, y, predicted, pieces=4, weight=None):
    borders = np.linspace(0, len(y), pieces + 1).astype(int)
    parts = [
        SummedErrors.of(
            model, y[low:high], predicted[low:high], low, None if weight is None else weight[low:high]
        )
        for low, high in pairwise(borders)
    ]
    return reduce(add, parts)


def weights_of(rng, weighted):
    """Return weights of which a whole chunk is 0, or None."""
    return np.where(np.arange(ROWS) < ROWS // 4, 0, rng.gamma(1.0, size=ROWS)) if weighted else None


def same(found, expected):
    """Values are the same, and intervals but for their draws."""
    for ours, theirs in zip(found[MODEL], expected[MODEL], strict=True):
        assert ours.name == theirs.name
        assert ours.value == pytest.approx(theirs.value, rel=1e-7)
        width = theirs.interval[1] - theirs.interval[0]
        np.testing.assert_allclose(ours.interval, theirs.interval, atol=0.15 * width)
    for ours, theirs in zip(found[CONSTANT], expected[CONSTANT], strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    "loss",
    [SQUARED, *(loss_named(name, 1.5, 0.8) for name in ("poisson", "tweedie", "quantile", "absolute_error"))],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_in_any_order_of_rows(rng, loss, weighted):
    mean = np.exp(rng.normal(size=ROWS))
    y = rng.poisson(mean) + 1e6 * (loss is SQUARED)  # far from 0, in comparison with its spread
    order = np.argsort(y)
    y, predicted = y[order].astype(float), mean[order] + 1e6 * (loss is SQUARED)
    model, weight = SimpleNamespace(_loss=lambda: loss), weights_of(rng, weighted)
    (found,) = summed(model, y, predicted, weight=weight).measures(model)
    same(found, measures_in_memory(model, y, predicted, weight)[0])
    values = {each.name: each.value for each in found[MODEL]}
    assert values["R2"] == pytest.approx(r2_score(y, predicted, sample_weight=weight), rel=1e-6)
    if loss.log_link:
        power = 1 if loss.name == "poisson" else 1.5
        expected = mean_tweedie_deviance(y, predicted, sample_weight=weight, power=power)
        assert values["deviance"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["poisson", "tweedie"])
def test_counts_that_are_all_0(name):
    model = SimpleNamespace(_loss=lambda: loss_named(name, 1.5, 0.5))
    (found,) = summed(model, np.zeros(ROWS), np.full(ROWS, 0.5)).measures(model)
    ours, constant = ({each.name: each.value for each in found[who]} for who in (MODEL, CONSTANT))
    assert ours["deviance"] > 0
    assert constant["deviance"] == pytest.approx(0, abs=1e-100)


def test_several_quantiles_of_one_target(rng):
    y = rng.poisson(9, size=ROWS).astype(float)
    predicted = np.column_stack([np.full(ROWS, 6.0), 0.8 * y + 3])
    model = SimpleNamespace(quantiles_=np.array([0.2, 0.9]))
    found = summed(model, y, predicted).measures(model)
    for k, measures in enumerate(found):
        same(measures, measures_in_memory(model, y, predicted)[k])
        *_, pinball, below = measures[MODEL]
        expected = mean_pinball_loss(y, predicted[:, k], alpha=model.quantiles_[k])
        assert pinball.value == pytest.approx(expected)
        assert below.value == pytest.approx(np.mean(y <= predicted[:, k]))
    assert len(found) == 2


def test_numbers_of_any_size(rng):
    y, model = rng.standard_cauchy(ROWS) * 1e12, SimpleNamespace(_loss=lambda: SQUARED)
    (found,) = summed(model, y, 0.9 * y).measures(model)
    for ours, theirs in zip(found[MODEL], measures_in_memory(model, y, 0.9 * y)[0][MODEL], strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-9)


def test_a_deviance_is_not_shown_where_some_target_has_none(rng):
    loss = loss_named("gamma", 1.5, 0.5)
    y, model = rng.gamma(1.0, size=ROWS), SimpleNamespace(_loss=lambda: loss)
    y[7] = -1
    (found,) = summed(model, y, np.full(ROWS, 2.0)).measures(model)
    assert [each.name for each in found[MODEL]] == ["R2", "root mean square error", "mean absolute error"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(rng, n_classes, weighted):
    probabilities = rng.dirichlet(np.ones(n_classes), ROWS)
    codes = (rng.random(ROWS)[:, None] > np.cumsum(probabilities, axis=1)).sum(axis=1)
    model = SimpleNamespace(classes_=np.array(["a", "b", "c"][:n_classes]), _target_link="identity")
    y = model.classes_[np.minimum(codes, n_classes - 1)]
    weight = weights_of(rng, weighted)
    (found,) = summed(model, y, probabilities, weight=weight).measures(model)
    same(found, measures_in_memory(model, y, probabilities, weight)[0])
    assert found[MODEL][1].value == pytest.approx(log_loss(y, probabilities, sample_weight=weight))
    if n_classes == 2:
        area = roc_auc_score(y, probabilities[:, 1], sample_weight=weight)
        assert found[MODEL][2].value == pytest.approx(area, abs=1e-6)


@pytest.mark.parametrize("n_rows", [800, ROWS])
def test_intervals_of_weighted_rows_are_those_of_many_data_sets(rng, n_rows):
    """The mean absolute error varies as much as its interval says."""
    model, loss = SimpleNamespace(_loss=lambda: loss), loss_named("poisson", 1.5, 0.5)
    found = []
    for _ in range(60):
        weight = rng.uniform(0.1, 2, n_rows)
        rates = rng.poisson(weight) / weight
        (measures,) = summed(model, rates, np.ones(n_rows), weight=weight).measures(model)
        found.append(measures[MODEL][2])
    widths = [high - low for low, high in (each.interval for each in found)]
    expected = 2 * 1.96 * np.std([each.value for each in found])
    assert np.mean(widths) == pytest.approx(expected, rel=0.3)


def test_several_labels_are_measured_one_by_one(rng):
    likely = rng.random((ROWS, 2))
    y = (rng.random((ROWS, 2)) < likely).astype(float)
    model = SimpleNamespace(classes_=np.arange(2), _target_link="sigmoid")
    found = summed(model, y, likely).measures(model)
    for label, measures in enumerate(found):
        assert measures[MODEL][0].value == pytest.approx(np.mean((likely[:, label] > 0.5) == y[:, label]))
        assert measures[MODEL][2].value == pytest.approx(
            roc_auc_score(y[:, label], likely[:, label]), abs=1e-6
        )
    assert len(found) == 2


def test_few_rows_are_measured_as_in_memory(rng):
    y, model = rng.normal(size=500), SimpleNamespace(_loss=lambda: SQUARED)
    (found,), (expected,) = (
        summed(model, y, 0.9 * y).measures(model),
        measures_in_memory(model, y, 0.9 * y),
    )
    for name in (MODEL, CONSTANT):
        assert [each.interval for each in found[name]] == [each.interval for each in expected[name]]


def test_the_area_of_more_scores_than_bins(rng):
    scores, positive = rng.normal(size=200_000), rng.random(200_000) < 0.1
    scores[positive] += 1
    counts = np.tile(np.column_stack([~positive, positive]).astype(float), 2)  # weights, and their squares
    bins = reduce(add, map(BinnedSums.of, np.split(scores, 5), np.split(counts, 5)))
    assert MOST / 2 < len(bins.keys) <= MOST
    assert area_under_curve(bins)[0] == pytest.approx(roc_auc_score(positive, scores), abs=1e-6)


def test_bins_are_in_the_order_of_numbers_and_exact_if_these_are_few():
    numbers = np.array([3.0, -2.5, 0.0, -0.0, 1e300, -1e-300, 3.0])
    bins = BinnedSums.of(numbers, np.column_stack([np.ones(7), numbers]))
    np.testing.assert_array_equal(bins.sums[:, 0], [1, 1, 2, 2, 1])
    np.testing.assert_array_equal(bins.sums[:, 1], [-2.5, -1e-300, 0, 6, 1e300])
