"""Baselines that a model is compared with."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

from tensormachines.report import baselines
from tensormachines.report.baselines import CONSTANT, LINEAR, TREES, baseline_predictions

random = np.random.default_rng(0)
N_CODES = [0, 2, 0]


def rows_and_target():
    """A number, a category of two levels, and a number, the last two with missing values."""
    rows = np.column_stack(
        [random.normal(size=200), random.choice([0, 1, np.nan], 200), random.normal(size=200)]
    )
    rows[::7, 2] = np.nan
    return rows, rows[:, 0] + 2 * (rows[:, 1] == 0)


def test_baselines_learn_from_the_training_rows_alone():
    rows, y = rows_and_target()
    found = baseline_predictions(rows[100:], y[100:], (rows[:100], y[:100]), N_CODES, None)
    np.testing.assert_allclose(found[CONSTANT], y[:100].mean())
    assert np.corrcoef(found[LINEAR], y[100:])[0, 1] > 0.95  # needs the category
    assert np.corrcoef(found[TREES], y[100:])[0, 1] > 0.8


def test_baselines_do_not_predict_rows_that_they_were_fitted_to():
    rows, _ = rows_and_target()
    noise = random.normal(size=200)
    found = baseline_predictions(rows, noise, None, N_CODES, None)
    assert np.corrcoef(found[CONSTANT], noise)[0, 1] < 0  # the mean of the others
    assert abs(np.corrcoef(found[TREES], noise)[0, 1]) < 0.3


def test_weights_of_baselines_are_repeated_rows():
    rows, y = rows_and_target()
    times = random.integers(1, 4, 100)
    weighted = baseline_predictions(
        rows[100:], y[100:], (rows[:100], y[:100]), N_CODES, None, weight=times.astype(float)
    )
    repeated = (rows[:100].repeat(times, axis=0), y[:100].repeat(times))
    expected = baseline_predictions(rows[100:], y[100:], repeated, N_CODES, None)
    np.testing.assert_allclose(weighted[CONSTANT], expected[CONSTANT])
    np.testing.assert_allclose(weighted[LINEAR], expected[LINEAR], atol=0.02)  # scaled without weights
    weight = random.uniform(size=200)
    for found in baseline_predictions(
        rows, y > 0, None, N_CODES, np.array([False, True]), weight=weight
    ).values():
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_baselines_on_sparse_rows_and_unknown_classes():
    X, y = load_iris(return_X_y=True)
    rows, labels = sparse.csr_matrix(X[:100]), y[:100]  # two classes of three
    found = baseline_predictions(rows, labels, (rows, labels), [0] * 4, np.unique(y))
    for probabilities in found.values():
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert (probabilities[:, 2] == 0).all()
    assert (found[TREES].argmax(axis=1) == labels).mean() > 0.95


def test_baselines_where_one_class_or_nothing_is_known():
    """scikit-learn's models refuse these."""
    X, y = load_iris(return_X_y=True)
    rows, labels = X[45:51].copy(), y[45:51]  # one row of the second class: a fold has none of it
    rows[:, 2] = np.nan
    for train in (None, (rows[:5], labels[:5])):
        for probabilities in baseline_predictions(rows, labels, train, [0] * 4, np.unique(y)).values():
            np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_baselines_of_huge_numbers():
    """Whose variance overflows."""
    X = np.column_stack([random.normal(size=60) * 1e300, random.normal(size=60)])
    for train in (None, (X, X[:, 1])):
        found = baseline_predictions(X, X[:, 1], train, [0, 0], None)
        assert np.corrcoef(found[LINEAR], X[:, 1])[0, 1] > 0.99


def test_a_class_of_one_row():
    rows = random.normal(size=(10_100, 2))
    y = (rows[:, 0] > 0).astype(int)
    y[0] = 2
    for train in (None, (rows, y)):
        found = baseline_predictions(rows, y, train, [0, 0], np.arange(3))
        np.testing.assert_allclose(found[TREES].sum(axis=1), 1)


def test_ridge_regression_of_many_levels_is_solved_by_iterations(monkeypatch):
    rows = np.column_stack([random.integers(0, 200, 400), random.normal(size=400)]).astype(float)
    y = np.sin(rows[:, 0]) + rows[:, 1]
    exact = baseline_predictions(rows, y, (rows, y), [200, 0], None)[LINEAR]
    monkeypatch.setattr(baselines, "MOST_EXACT", 100)
    found = baseline_predictions(rows, y, (rows, y), [200, 0], None)[LINEAR]
    assert np.corrcoef(found, y)[0, 1] > 0.9
    assert np.corrcoef(found, exact)[0, 1] > 0.9
