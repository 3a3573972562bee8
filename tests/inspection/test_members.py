"""Members of a bootstrap, and bands from them; scikit-learn's linear regression and loops are the truth."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines.blocks import iterable
from tensormachines.estimators.refit import refitted
from tensormachines.inspection import bootstrap, coefficient_spread, effect, effect_band, members

pd = pytest.importorskip("pandas")

LINEAR = {"degree": 1, "basis": "standard", "solver": "kfac", "alpha": 0.0, "tol": 1e-10}
QUICK = {"degree": 2, "rank": 2, "max_iter": 3, "random_state": 0}
FEW = {"degrees": (1, 2), "ranks": (2,), "alphas": (1e-3,), "relevances": (0,), "trends": (False,), "cv": 2}


@pytest.fixture
def lines(rng):
    X = rng.normal(size=(80, 2))
    return X, 2 * X[:, 0] - X[:, 1] + rng.normal(size=80)


@pytest.fixture
def table(rng):
    """A table whose levels would be pooled, or not, depending on the weights of a few rows."""
    level = rng.choice(["a", "b"], 120)
    level[50:52] = "c", "d"
    frame = pd.DataFrame({"size": rng.normal(size=120), "level": level})
    frame.loc[:5, "size"] = np.nan
    return frame, np.where(level == "a", 1, 0) + frame["size"].fillna(0) + 0.1 * rng.normal(size=120)


def test_members_are_fits_to_drawn_rows(lines, rng):
    X, y = lines
    given = rng.integers(0, 3, 80).astype(float)
    model = TensorMachineRegressor(**LINEAR).fit(X, y, sample_weight=given)
    found = bootstrap(model, X, y, sample_weight=given, n_members=3, random_state=5)
    random = np.random.RandomState(5)
    for member in found:
        drawn = np.zeros(80)
        for row in random.choice(np.flatnonzero(given), np.count_nonzero(given)):
            drawn[row] += given[row]
        random.randint(1 << 31)  # the seed of the fit
        truth = LinearRegression().fit(X, y, sample_weight=drawn)
        np.testing.assert_allclose(member.predict(X), truth.predict(X), atol=1e-5)


def test_coefficients_spread_as_theory_says(lines):
    X, y = lines
    model = TensorMachineRegressor(**LINEAR).fit(X, y)
    found = bootstrap(model, X, y, n_members=60, random_state=0)
    design = np.column_stack([np.ones(80), X])
    noise = (y - model.predict(X)).std(ddof=3)
    expected = noise * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    spread = coefficient_spread(model, [(), "x0", "x1"], members=found)
    np.testing.assert_allclose([each[1] for each in spread.values()], expected, rtol=0.3)
    mean = np.mean([effect(member, "x0", [[1, 0]]) - effect(member, "x0", [[0, 0]]) for member in found])
    assert spread["x0",][0] == pytest.approx(mean)


def test_band_is_made_of_the_spread_of_members_and_of_their_distance(lines):
    X, y = lines
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    found = bootstrap(model, X, y, n_members=4, random_state=0)
    curve = effect(model, "x1", X)
    for coverage in (0.5, 0.9):
        for row, (low, high) in enumerate(effect_band(model, "x1", X[:3], found, coverage=coverage)):
            at = [effect(member, 1, X)[row] for member in found]
            mean = sum(at) / 4
            variance = sum((each - mean) ** 2 for each in at) / 3
            half = student.ppf(0.5 + coverage / 2, 3) * (variance + 4 * (mean - curve[row]) ** 2) ** 0.5
            assert (low, high) == (pytest.approx(curve[row] - half), pytest.approx(curve[row] + half))
    about = effect_band(model, ("x0", "x1"), X[:3], found, reference=X[:7])
    np.testing.assert_allclose(about.mean(axis=1), effect(model, ("x0", "x1"), X[:3], reference=X[:7]))


def test_straight_lines_are_covered_as_often_as_promised():
    random, slopes = np.random.default_rng(0), np.arange(6)
    inside = []
    for seed in range(10):
        X = random.normal(size=(80, 6))
        y = X @ slopes + random.normal(size=80)
        model = TensorMachineRegressor(**LINEAR).fit(X, y)
        found = bootstrap(model, X, y, n_members=15, random_state=seed)
        for j, slope in enumerate(slopes):
            low, high = effect_band(model, j, np.ones((1, 6)), found)[0]
            inside.append(low <= slope <= high)
    assert 0.82 <= np.mean(inside) <= 0.97


def test_with_the_weights_and_the_seed_of_the_fit_it_is_the_same_model(table):
    X, y = table
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    again = refitted(model, X, y, np.ones(120), 0)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    search = TensorMachineRegressorCV(**FEW, max_iters=(3,), n_members=4, random_state=0, verbose=0).fit(X, y)
    assert len(search.members_) > 1
    again = refitted(search, X, y, np.ones(120), 0)
    np.testing.assert_allclose(again.predict(X), search.predict(X), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_levels_are_those_of_the_model(table):
    X, y = table
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    weight = np.where(X["level"].isin(["c", "d"]), 9.0, 1.0)
    anew = TensorMachineRegressor(**QUICK).fit(X, y, sample_weight=weight)
    assert anew._columns != model._columns
    assert refitted(model, X, y, weight, 0)._columns == model._columns
    found = bootstrap(model, X, y, n_members=3, random_state=0)
    assert np.isfinite(effect_band(model, "level", X, found)).all()
    assert not any("_known_columns" in vars(member) for member in found)


def test_searches_classes_and_quantiles_have_members(table):
    X, y = table
    labels = np.digitize(y, [0, 1])
    classifier = TensorMachineClassifier(**QUICK).fit(X, labels)
    found = bootstrap(classifier, X, labels, n_members=2, random_state=0)
    curve = effect(classifier, "size", X, output=1)
    np.testing.assert_allclose(effect_band(classifier, "size", X, found, output=1).mean(axis=1), curve)
    levels = TensorMachineRegressor(**QUICK, loss="quantile", quantile=[0.1, 0.9]).fit(X, y)
    found = bootstrap(levels, X, y, n_members=2, random_state=0)
    assert (np.diff(effect_band(levels, "size", X, found, output=0.1), axis=1) > 0).all()
    search = TensorMachineRegressorCV(**FEW, max_iters=(3,), n_members=1, random_state=0, verbose=0).fit(X, y)
    found = bootstrap(search, X, y, n_members=2, random_state=0)
    assert found[0].degree == search.best_params_["degree"]
    assert (np.diff(effect_band(search, "size", X, found), axis=1) > 0).all()


def test_what_cannot_be_is_refused(lines, table):
    X, y = lines
    model = TensorMachineRegressor(**LINEAR).fit(X, y)
    found = bootstrap(model, X, y, n_members=2, random_state=0)
    with pytest.raises(ValueError, match="n_members must be 2 or more, got 1"):
        bootstrap(model, X, y, n_members=1)
    with pytest.raises(TypeError, match="in memory"):
        bootstrap(model, iterable(lambda: iter([(X, y)])), y)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1, got 90"):
        effect_band(model, 0, X, found, coverage=90)
    other = TensorMachineRegressor(**QUICK).fit(*table)
    for members_of_another in (found, found[:1], []):
        with pytest.raises(ValueError, match="give what inspection"):
            effect_band(other, 0, table[0], members_of_another)
    splines = TensorMachineRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="use effect_band"):
        coefficient_spread(splines, [(0, 1)], members=found)


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(members).failed == 0
