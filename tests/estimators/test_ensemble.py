"""Weighted means of candidates: which are chosen, and what their sum is."""

import numpy as np
import pytest

from tensormachines import TensorMachineClassifierCV, TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines.estimators.ensemble import MOST_DISTINCT, best_scale, choose, join, mean_outputs
from tensormachines.inspection import explain_row


def squared_error_to(y):
    return lambda outputs: float(np.mean([np.mean((each - y) ** 2) for each in outputs]))


def test_errors_that_cancel_are_averaged(rng):
    y, error = rng.standard_normal((2, 200))
    outputs = {0: [y + error], 1: [y - error], 2: [y + 3 * error]}
    weights = choose(outputs, {0: -1.0, 1: -1.0, 2: -9.0}, 0, squared_error_to(y))
    assert weights == {0: 0.5, 1: 0.5}
    np.testing.assert_allclose(mean_outputs(outputs, weights), [y])


def test_a_candidate_counts_as_often_as_it_lowers_the_loss(rng):
    y, error = rng.standard_normal((2, 200))
    outputs = {0: [y + 3 * error], 1: [y - error]}
    weights = choose(outputs, {0: -9.0, 1: -1.0}, 0, squared_error_to(y))
    assert weights == {0: 0.25, 1: 0.75}


def test_no_candidate_is_added_without_a_gain(rng):
    y = rng.standard_normal(200)
    outputs = {0: [y], 1: [y + 1]}
    assert choose(outputs, {0: 0.0, 1: -1.0}, 0, squared_error_to(y)) == {0: 1.0}


def test_few_different_candidates_are_chosen(rng):
    y = rng.standard_normal(500)
    outputs = {k: [y + rng.standard_normal(500)] for k in range(10)}
    weights = choose(outputs, dict.fromkeys(outputs, -1.0), 3, squared_error_to(y))
    assert len(weights) == MOST_DISTINCT
    assert next(iter(weights)) == 3
    assert sum(weights.values()) == pytest.approx(1)


def test_the_scale_is_that_of_the_lowest_loss(rng):
    y = rng.standard_normal(300)
    assert best_scale([1.25 * y], squared_error_to(y)) == pytest.approx(0.8, rel=1e-3)
    assert best_scale([9 * y], squared_error_to(y)) == pytest.approx(1 / 1.5, rel=1e-3)


def test_the_joined_model_has_the_weighted_sum_of_the_outputs(rng):
    X = rng.standard_normal((300, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    models = [TensorMachineRegressor(degree, random_state=0, alpha=1e-3).fit(X, y) for degree in (1, 3)]
    expected = 0.3 * models[0].predict(X) + 0.7 * models[1].predict(X)
    importances = 0.3 * models[0].feature_importances_ + 0.7 * models[1].feature_importances_
    join(models[1], models, [0.3, 0.7])
    np.testing.assert_allclose(models[1].predict(X), expected)
    np.testing.assert_allclose(models[1].feature_importances_, importances)
    np.testing.assert_allclose(models[1]._mean_outputs, expected.mean(), rtol=1e-5)
    assert explain_row(models[1], X[0])[()] == pytest.approx(expected.mean(), abs=1e-6)


def test_a_search_says_what_its_model_is_a_mean_of(rng):
    X = rng.standard_normal((600, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(600)
    search = TensorMachineRegressorCV(
        degrees=(1, 2, 3), ranks=(2,), relevances=(0,), roughnesses=(3.0,), max_iters=(10,), random_state=0
    ).fit(X, y)
    assert {name: search.members_[0][name] for name in search.best_params_} == search.best_params_
    assert sum(member["weight"] for member in search.members_) == pytest.approx(1)
    several = {**search.get_params(), "n_members": 1}
    assert len(TensorMachineRegressorCV(**several).fit(X, y).members_) == 1


def test_probabilities_of_a_search_are_calibrated(rng):
    """A penalty that is far too small makes outputs that are far too large."""
    X = rng.standard_normal((1500, 2))
    y = rng.random(1500) < 1 / (1 + np.exp(-X[:, 0]))
    search = TensorMachineClassifierCV(
        degrees=(3, 4), alphas=(1e-6,), relevances=(0,), roughnesses=(20.0,), max_iters=(30,), random_state=0
    ).fit(X[:1000], y[:1000])
    assert sum(member["weight"] for member in search.members_) < 0.9
    plain = search.best_estimator_
    assert plain.score(X[1000:], y[1000:]) > 0.5
