"""Effects on the scales of the link and of the target. For a linear model, other parts are 0 in the mean row:
there its own predictions are the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.base import clone

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import bootstrap, contributions, effect, effect_band, formula

pd = pytest.importorskip("pandas")

random = np.random.default_rng(0)
X = random.normal(size=(80, 3)) + np.array([0, 3, -1])
COUNTS = random.poisson(np.exp(0.5 * X[:, 0] - 0.2 * X[:, 1]))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + random.normal(size=80), [-0.5, 0.5])]
LABELS = (X[:, :2] + random.normal(size=(80, 2)) > 1).astype(int)
LINEAR = {"degree": 1, "basis": "standard", "alpha": 1e-3, "solver": "lbfgs", "max_iter": 50}


QUANTILES = {"loss": "quantile", "quantile": (0.2, 0.8)}
CASES = {  # a model, its target, the output, and what predicts it
    "identity": (TensorMachineRegressor(**LINEAR), 5 + X[:, 0] * X[:, 1], None, "predict"),
    "log": (TensorMachineRegressor(loss="poisson", **LINEAR), COUNTS, None, "predict"),
    "quantiles": (TensorMachineRegressor(**QUANTILES, **LINEAR), X[:, 0] + COUNTS, 0.8, "predict"),
    "two classes": (TensorMachineClassifier(**LINEAR), CLASSES == "a", None, "predict_proba"),
    "three classes": (TensorMachineClassifier(**LINEAR), CLASSES, "b", "predict_proba"),
    "labels": (TensorMachineClassifier(**LINEAR), LABELS, 1, "predict_proba"),
}


@pytest.mark.parametrize("case", CASES)
def test_target_scale_is_the_prediction_where_other_parts_are_0(case):
    unfitted, target, output, method = CASES[case]
    model = clone(unfitted).fit(X, target)
    rows = np.tile(X.mean(axis=0), (80, 1))
    rows[:, 1] = X[:, 1]
    predicted = getattr(model, method)(rows)
    found = effect(model, "x1", X, output=output, scale="target")
    np.testing.assert_allclose(found, predicted if predicted.ndim == 1 else predicted[:, 1], rtol=2e-4)


def test_target_scale_is_the_mean_output_plus_the_part():
    settings = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
    counts = TensorMachineRegressor(loss="poisson", **settings).fit(X, COUNTS)
    split = contributions(counts, X)
    for columns in ("x0", ("x0", "x2")):
        expected = np.minimum(np.exp(split[()] + split[columns]), COUNTS.max())
        np.testing.assert_allclose(effect(counts, columns, X, scale="target"), expected)
    classes = TensorMachineClassifier(**settings).fit(X, CLASSES)
    splits = [contributions(classes, X, output=label) for label in "abc"]
    powers = np.exp([each[()] + each["x0"] for each in splits])
    found = [effect(classes, 0, X, output=label, scale="target") for label in "abc"]
    np.testing.assert_allclose(found, powers / powers.sum(axis=0))
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(80) + 7)
    model = TensorMachineRegressor(loss="poisson", **settings).fit(frame, COUNTS)
    series = effect(model, "b", frame, scale="target")
    assert (series.name, series.index[0]) == ("b", 7)


def test_reference_moves_the_base():
    model = TensorMachineRegressor(loss="poisson", **LINEAR).fit(X, COUNTS)
    rows = X[:10].mean(axis=0) + np.zeros((80, 3))
    rows[:, 2] = X[:, 2]
    found = effect(model, 2, X, reference=X[:10], scale="target")
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-4)


def test_no_prediction_above_the_largest_target():
    model = TensorMachineRegressor(loss="poisson", **LINEAR).fit(X, COUNTS)
    far = np.array([[1000.0, 0, 0]])
    assert effect(model, "x0", far, scale="target")[0] == pytest.approx(COUNTS.max())


def test_band_of_counts_is_the_exponential_of_that_of_their_logarithm():
    model = TensorMachineRegressor(loss="poisson", **LINEAR).fit(X, COUNTS)
    members = bootstrap(model, X, COUNTS, n_members=3, random_state=0)
    of_log = effect_band(model, "x0", X, members)
    constant = contributions(model, X[:1])[()][0]
    found = effect_band(model, "x0", X, members, scale="target")
    np.testing.assert_allclose(found, np.exp(constant + of_log).clip(max=COUNTS.max()))


def test_band_of_one_of_several_classes_is_made_of_log_odds_against_the_others():
    model = TensorMachineClassifier(**LINEAR).fit(X, CLASSES)
    members = bootstrap(model, X, CLASSES, n_members=4, random_state=0)
    constants = np.array([contributions(model, X[:1], output=label)[()][0] for label in "abc"])

    def log_odds(each, row):
        parts = [effect(each, "x0", X[row : row + 1], output=label)[0] for label in "abc"]
        powers = np.exp(constants + parts)
        return logit(powers[2] / powers.sum())

    found = effect_band(model, "x0", X[:5], members, output="c", scale="target", coverage=0.8)
    for row, (low, high) in enumerate(found):
        at, middle = [log_odds(each, row) for each in members], log_odds(model, row)
        half = student.ppf(0.9, 3) * np.hypot(np.std(at, ddof=1), 2 * (np.mean(at) - middle))
        assert (low, high) == (pytest.approx(expit(middle - half)), pytest.approx(expit(middle + half)))


def test_refuses_another_scale():
    model = TensorMachineRegressor(**LINEAR).fit(X, COUNTS)
    with pytest.raises(ValueError, match=r"scale must be one of \['link', 'target'\], got 'log'"):
        effect(model, 0, X, scale="log")


def test_outputs_are_named_with_their_link():
    settings = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
    counts = TensorMachineRegressor(loss="poisson", **settings).fit(X, pd.Series(COUNTS, name="claims"))
    assert formula(counts, X).name == "log of claims"
    frame = pd.DataFrame(LABELS, columns=["red", "round"])
    labels = TensorMachineClassifier(**settings).fit(X, frame)
    assert formula(labels, X, output="red").name == "log-odds of red"
    numbers = TensorMachineRegressor(**settings).fit(X, COUNTS)
    assert formula(numbers, X).name == "output"
