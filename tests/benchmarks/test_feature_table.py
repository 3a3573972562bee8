"""The table of features: its checks tell features from models without them, and the page shows its rows."""

from pathlib import Path

import numpy as np
import pytest

import feature_table
import feature_table_checks as checks

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


def least_squares(X, y, weight=None):
    """A linear model: it passes what a linear model can."""
    root = np.ones(len(X)) if weight is None else np.sqrt(weight)
    columns = np.column_stack([np.ones(len(X)), X])
    coefficients = np.linalg.lstsq(columns * root[:, None], y * root.reshape(-1, *[1] * (y.ndim - 1)))[0]
    return lambda rows: np.column_stack([np.ones(len(rows)), rows]) @ coefficients


def test_weights_must_count():
    assert checks.weights(least_squares) == "yes"
    with pytest.raises(AssertionError):
        checks.weights(lambda X, y, weight: least_squares(X, y))


def test_targets_must_be_predicted_together():
    assert checks.targets(least_squares) == "yes"
    with pytest.raises(AssertionError, match="shape"):
        checks.targets(lambda X, y: least_squares(X, y[:, 0]))


def test_labels_must_have_probabilities_of_their_own():
    def fit(X, y):
        linear = least_squares(X, y)
        return lambda rows: linear(rows).clip(0.01, 1)

    def exclusive(X, y):
        found = fit(X, y)
        return lambda rows: found(rows) / found(rows).sum(axis=1, keepdims=True)

    assert checks.labels(fit) == "yes"
    with pytest.raises(AssertionError):
        checks.labels(exclusive)
    with pytest.raises(AssertionError, match="shape"):
        checks.labels(lambda X, y: lambda rows: fit(X, y)(rows)[:, :2])


def test_a_loss_of_ones_own_must_be_minimised():
    def fit(loss):
        def by_newton(X, y):
            columns, coefficients = np.column_stack([np.ones(len(X)), X]), np.zeros(3)
            for _ in range(20):
                _, slope, second = loss(y, columns @ coefficients)
                coefficients -= np.linalg.solve((columns.T * second) @ columns, columns.T @ slope)
            return lambda rows: np.column_stack([np.ones(len(rows)), rows]) @ coefficients

        return by_newton

    assert checks.own_loss(fit) == "yes"
    with pytest.raises(AssertionError, match="not between"):
        checks.own_loss(lambda loss: least_squares)


def test_offsets_must_count():
    def rates(X, y, offset):
        return np.sum(y * np.exp(-X[:, 0])) / np.sum(np.exp(offset))

    def fit(X, y, offset):
        level = rates(X, y, offset)
        return lambda rows, given: level * np.exp(rows[:, 0] + given)

    def in_the_fit(X, y, offset):
        level = rates(X, y, offset)
        return lambda rows: level * np.exp(rows[:, 0])

    assert checks.offset(fit) == "yes"
    assert checks.offset(in_the_fit) == "in the fit only"
    with pytest.raises(AssertionError):
        checks.offset(lambda X, y, offset: fit(X, y, 0 * offset))


def test_monotonic_predictions_are_told_from_those_that_fall():
    def truth(ramp):
        return lambda X, y: lambda rows: 4 * rows[:, 0] * rows[:, 1] + rows[:, 2] - ramp * (rows[:, 0] > 0.8)

    assert checks.monotonic(truth(0)) == "yes"
    assert checks.monotonic(least_squares) == "not in interactions"
    with pytest.raises(AssertionError):
        checks.monotonic(truth(0.5))


def test_interactions_are_found():
    def truth(across):
        def fit(X, y):
            return lambda x: 4 * x[:, 0] * x[:, 1] + 4 * x[:, 2] * x[:, 3] + across * x[:, 0] * x[:, 2] + 1

        return fit

    with pytest.raises(AssertionError):
        checks.limits(truth(4))  # more accurate, but a pair meets that must not
    with pytest.raises(AssertionError):
        checks.limits(least_squares)  # no interactions at all


def test_quantiles_that_cross_are_seen():
    def true_quantiles(levels, factor=1.0):
        def predict(X):
            scale = 0.2 + 0.6 * (X[:, 0] > 0.5)
            found = 2 * X[:, 1, None] - scale[:, None] * np.log(1 - np.asarray(levels))
            found[:, 3] += np.where(X[:, 0] < 0.02, factor - 1, 0)
            return found

        return lambda X, y: predict

    assert checks.quantiles(true_quantiles) == "yes"
    assert checks.quantiles(lambda levels: true_quantiles(levels, 5)).endswith("% of rows cross")


def test_parts_that_depend_on_other_columns_are_no_functions():
    def fit(X, y):
        def split(rows):
            half = 2 * rows[:, 0] * rows[:, 1]
            return {(0,): half, (1,): half, (2,): np.sin(6 * rows[:, 2])}

        return (lambda rows: sum(split(rows).values())), split

    def joined(X, y):
        predict, split = fit(X, y)
        return predict, lambda rows: {(0, 1): 2 * split(rows)[0,], (2,): split(rows)[2,]}

    assert checks.parts(fit) == "SHAP values"
    assert checks.parts(joined) == "functions of columns"


def test_the_first_trial_that_works_counts():
    def fails(X, y, weight):
        raise RuntimeError("no such thing")

    cells = {"weights": [("", fails), ("somehow", least_squares)], "missing": fails}
    found, reason = feature_table.mark("weights", cells)
    assert found == "somehow"
    assert "no such thing" in reason
    assert feature_table.mark("missing", cells)[0] == "no"
    assert feature_table.mark("sparse", cells) == ("no", "not offered")


def test_the_page_has_all_features_and_libraries():
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert lines[0] == ["feature", *(title for title, _ in feature_table.LIBRARIES.values())]
    assert [line[0] for line in lines[2:]] == [title for title, _ in feature_table.FEATURES.values()]
