"""Exposures and offsets of regressors: fits, scores, searches, and what is refused."""

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance, mean_tweedie_deviance
from sklearn.model_selection import KFold, cross_val_score

from loss_rows import EXACT, LOG_LINKS, rows, targets
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV


@pytest.mark.parametrize("loss", LOG_LINKS)
def test_exposure_is_a_weight_of_rates(rng, loss):
    X, exposure = rows(rng, 300), rng.uniform(0.1, 2, 300)
    y, weight = targets(rng, X, loss) * exposure, rng.random(300)
    settings = {"loss": loss, "degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
    ours = TensorMachineRegressor(**settings).fit(X, y, sample_weight=weight, exposure=exposure)
    truth = TensorMachineRegressor(**settings).fit(X, y / exposure, sample_weight=weight * exposure)
    np.testing.assert_array_equal(ours.predict(X), truth.predict(X))
    np.testing.assert_array_equal(ours.predict(X, exposure=exposure), truth.predict(X) * exposure)


@pytest.mark.parametrize("kind", ["exposure", "offset"])
def test_a_number_for_each_row_is_needed(rng, kind):
    X, known = rows(rng, 30), {kind: np.ones(7)}
    model = TensorMachineRegressor(loss="poisson", degree=1, random_state=0).fit(X, np.ones(30))
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=f"{kind} must have one number for each row, got 7 for 30 rows"):
            call(X, np.ones(30), **known)
    with pytest.raises(ValueError, match=f"{kind} must have one number for each row, got 7 for 30 rows"):
        model.predict(X, **known)


def test_a_search_takes_exposure(rng):
    X, exposure = rows(rng, 300), rng.uniform(0.1, 2, 300)
    y = targets(rng, X, "poisson") * exposure
    settings = {"loss": "poisson", "degrees": [1, 2], "random_state": 0, "time_budget": None}
    settings |= {"ranks": [1], "alphas": [1e-3], "relevances": [0], "roughnesses": [3.0], "max_iters": [5]}
    ours = TensorMachineRegressorCV(**settings).fit(X, y, exposure=exposure)
    truth = TensorMachineRegressorCV(**settings).fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_array_equal(ours.predict(X, exposure=exposure), truth.predict(X) * exposure)


def test_exposure_of_counts_is_an_offset(rng):
    """The likelihood of counts y with means exposure * exp(f), minimised directly."""
    X, exposure = rows(rng, 400), rng.uniform(0.1, 2, 400)
    y = rng.poisson(np.exp(X @ [0.5, -0.5, 0.25]) * exposure).astype(float)

    def loss(params):
        f = params[0] + X @ params[1:] + np.log(exposure)
        return np.mean(np.exp(f) - y * f)

    truth = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    model = TensorMachineRegressor(**EXACT, alpha=0, loss="poisson").fit(X, y, exposure=exposure)
    np.testing.assert_allclose([model.intercept_, *model.coef_], truth, atol=1e-5)


@pytest.mark.parametrize("loss", ["poisson", "squared_error"])
def test_partial_fit_takes_exposures_and_offsets(rng, loss):
    """Blocks of what is left after a known part lead to the fit of all rows."""
    X, weight = rows(rng, 3000), rng.uniform(0.5, 1.5, 3000)
    exposure, offset = rng.uniform(0.2, 2, 3000), rng.normal(size=3000) / 2
    if loss == "poisson":
        y = rng.poisson(exposure * np.exp(offset + X @ [0.5, -0.5, 0.25])).astype(float)
        known, left, weights = {"exposure": exposure, "offset": offset}, y / exposure, weight * exposure
        left, weights = left / np.exp(offset), weights * np.exp(offset)
    else:
        y = offset + X @ [0.5, -0.5, 0.25] + rng.normal(size=3000) / 10
        known, left, weights = {"offset": offset}, y - offset, weight
    settings = {"loss": loss, "degree": 1, "basis": "standard", "random_state": 0}
    ours, same = TensorMachineRegressor(**settings), TensorMachineRegressor(**settings)
    for part in np.array_split(np.arange(3000), 6):
        of_part = {kind: numbers[part] for kind, numbers in known.items()}
        ours.partial_fit(X[part], y[part], weight[part], **of_part)
        same.partial_fit(X[part], left[part], weights[part])
    np.testing.assert_allclose(ours.predict(X), same.predict(X), rtol=1e-9)
    outputs = np.log(ours.predict(X)) if loss == "poisson" else ours.predict(X)
    assert np.sqrt(np.mean((outputs - X @ [0.5, -0.5, 0.25]) ** 2)) < 0.1
    with pytest.raises(ValueError, match="offset must have one number for each row, got 2 for 3000 rows"):
        ours.partial_fit(X, y, offset=[0.0, 0.0])


def test_exposure_is_routed(rng):
    X, exposure = rows(rng, 60), rng.uniform(0.5, 2, 60)
    y = rng.poisson(exposure).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = TensorMachineRegressor(degree=1, loss="poisson", random_state=0)
        model.set_fit_request(exposure=True).set_predict_request(exposure=True)
        found = cross_val_score(
            model, X, y, cv=KFold(2), params={"exposure": exposure}, scoring="neg_mean_poisson_deviance"
        )
    truth = []
    for train, test in KFold(2).split(X):
        fitted = TensorMachineRegressor(degree=1, loss="poisson", random_state=0)
        fitted.fit(X[train], y[train], exposure=exposure[train])
        truth.append(-mean_poisson_deviance(y[test], fitted.predict(X[test])))
    np.testing.assert_allclose(found, truth)


def test_scores_are_those_of_rates(rng):
    X, exposure = rows(rng, 200), rng.choice([0.05, 20.0], 200)
    y = rng.poisson(exposure * np.exp(X[:, 0])).astype(float)
    model = TensorMachineRegressor(degree=1, loss="poisson", random_state=0).fit(X, y, exposure=exposure)
    truth = d2_tweedie_score(y / exposure, model.predict(X), sample_weight=exposure, power=1)
    assert model.score(X, y, exposure=exposure) == pytest.approx(truth)
    assert model.score(X, y, offset=np.log(exposure)) == pytest.approx(truth)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = model.set_fit_request(exposure=True).set_score_request(exposure=True)
        found = cross_val_score(asks, X, y, cv=KFold(2), params={"exposure": exposure})
    train, test = next(KFold(2).split(X))
    fitted = TensorMachineRegressor(degree=1, loss="poisson", random_state=0)
    fitted.fit(X[train], y[train], exposure=exposure[train])
    assert found[0] == pytest.approx(fitted.score(X[test], y[test], exposure=exposure[test]))


def test_exposure_that_cannot_be(rng):
    X = rows(rng, 20)
    y = np.ones(20)
    model = TensorMachineRegressor(loss="poisson", degree=1)
    with pytest.raises(ValueError, match="exposure must hold positive, finite numbers"):
        model.fit(X, y, exposure=np.zeros(20))
    with pytest.raises(ValueError, match="one number for each row, got 19 for 20 rows"):
        model.fit(X, y, exposure=np.ones(19))
    with pytest.raises(ValueError, match='"gamma" or "tweedie", got loss=\'squared_error\': leave it out'):
        TensorMachineRegressor().fit(X, y, exposure=np.ones(20))
    with pytest.raises(ValueError, match=r"exposure must have one number for each row, got 2\.0"):
        model.fit(X, y, exposure=2.0)
    with pytest.raises(ValueError, match=r"exposure must have one number for each row, got 2\.0"):
        model.fit(X, y).predict(X, exposure=2.0)


# ---- offset


@pytest.mark.parametrize("loss", ["gamma", "tweedie"])
def test_offset_of_a_log_link_minimises_the_deviance(rng, loss):
    """The deviance of y from exp(f + offset), minimised directly."""
    X, offset = rows(rng, 400), rng.normal(size=400)
    y = targets(rng, X, loss) * np.exp(offset)
    power = 2.0 if loss == "gamma" else 1.5

    def deviance(params):
        return mean_tweedie_deviance(y, np.exp(params[0] + X @ params[1:] + offset), power=power)

    truth = minimize(deviance, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    model = TensorMachineRegressor(**EXACT, alpha=0, loss=loss).fit(X, y, offset=offset)
    np.testing.assert_allclose([model.intercept_, *model.coef_], truth, atol=1e-4)
    np.testing.assert_allclose(model.predict(X, offset=offset), model.predict(X) * np.exp(offset))


@pytest.mark.parametrize("loss", ["squared_error", "quantile"])
def test_offset_of_an_identity_link_is_subtracted(rng, loss):
    X, offset = rows(rng, 200), rng.normal(size=200)
    y = X[:, 0] + offset
    settings = {"loss": loss, "degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
    ours = TensorMachineRegressor(**settings).fit(X, y, offset=offset)
    truth = TensorMachineRegressor(**settings).fit(X, y - offset)
    np.testing.assert_array_equal(ours.predict(X, offset=offset), truth.predict(X) + offset)
    with pytest.raises(ValueError, match="offset must hold finite numbers"):
        ours.fit(X, y, offset=np.full(200, np.inf))
    with pytest.raises(ValueError, match="one number for each row"):
        ours.fit(X, y, offset=0.5)
    with pytest.raises(ValueError, match="between -100 and 100"):
        TensorMachineRegressor(loss="poisson").fit(X, np.abs(y), offset=np.full(200, 800.0))
