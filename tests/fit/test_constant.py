"""A fit that is worse on its own rows than a constant becomes that constant, and says so."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._fit.solvers.protocol import Outcome, Solution

QUICK = {"degree": 2, "rank": 1, "random_state": 0, "basis": "standard", "alpha": 1e-3, "solver": "lbfgs"}


@pytest.fixture
def diverging(monkeypatch):
    """Let every solver end far away, as one that diverges does."""

    def far_away(problem, settings, random_state, **options):
        params = problem.random_start(1.0, random_state) * 100
        return [Solution(params, 1e6, 5, 5, Outcome.CONVERGED)]

    monkeypatch.setattr("tensormachines.estimators.polynomial_model.solve", far_away)


def test_a_regressor_returns_the_weighted_mean(rng, diverging):
    X, y, weight = rng.standard_normal((60, 3)), rng.standard_normal(60) + 5, rng.random(60)
    with pytest.warns(ConvergenceWarning, match="worse than a constant, and returns that constant"):
        model = TensorMachineRegressor(**QUICK).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), np.average(y, weights=weight))
    assert model.objective_ == pytest.approx(0.5)  # of a standardised target
    assert not model.feature_importances_.any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_returns_the_shares_of_the_classes(rng, diverging, n_classes):
    X, y = rng.standard_normal((60, 3)), np.arange(60) ** 2 % 7 % n_classes
    with pytest.warns(ConvergenceWarning, match="worse than a constant"):
        model = TensorMachineClassifier(**QUICK).fit(X, y)
    shares = np.bincount(y) / 60
    np.testing.assert_allclose(model.predict_proba(X), np.tile(shares, (60, 1)), rtol=1e-6)
    assert model.objective_ == pytest.approx(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize("loss", ["poisson", "absolute_error"])
def test_other_losses_return_their_center(rng, diverging, loss):
    X, y = rng.standard_normal((61, 3)), rng.poisson(3, 61).astype(float)
    with pytest.warns(ConvergenceWarning, match="worse than a constant"):
        model = TensorMachineRegressor(**QUICK, loss=loss).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.mean(y) if loss == "poisson" else np.median(y))


def test_a_constant_target_is_fitted_exactly(rng):
    X = rng.standard_normal((50, 3))
    for solver in ("adam", "kfac", "lbfgs", "sfo"):
        model = TensorMachineRegressor(solver=solver, degree=2, max_iter=5, random_state=0).fit(
            X, np.full(50, 3.0)
        )
        np.testing.assert_array_equal(model.predict(X), 3.0)


def test_a_warm_start_does_not_continue_from_a_constant(rng):
    X = rng.standard_normal((300, 3))
    model = TensorMachineRegressor(**QUICK, warm_start=True).fit(X, np.ones(300))
    assert not model.linear_.any()
    assert model.fit(X, X[:, 0] * X[:, 1]).score(X, X[:, 0] * X[:, 1]) > 0.9


def test_targets_too_small_are_named(rng):
    X = rng.standard_normal((20, 2))
    with pytest.raises(ValueError, match="y has values too small"):
        TensorMachineRegressor().fit(X, (X[:, 0] + 9) * 1e-200)
