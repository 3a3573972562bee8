"""Losses of regressors against scikit-learn's linear models, direct minimisation, and their definitions."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import (
    d2_tweedie_score,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
    r2_score,
)
from sklearn.model_selection import KFold

from loss_rows import EXACT, LOG_LINKS, QUANTILE, ROBUST, rows, targets
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines._fit.target_units import weighted_quantiles
from tensormachines.inspection import contributions

# ---- linear models


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOG_LINKS)
def test_degree_1_is_the_generalised_linear_model(rng, loss, weighted):
    """Whose alpha is for y itself: it is that for y in units of its mean, times mean^(2 - power)."""
    X, power = rows(rng), LOG_LINKS[loss]
    y = targets(rng, X, loss)
    weight = rng.integers(0, 3, len(y)).astype(float) if weighted else None
    mean = np.average(y, weights=weight)
    glm = {
        "poisson": PoissonRegressor(),
        "gamma": GammaRegressor(),
        "tweedie": TweedieRegressor(power=1.5, link="log"),
    }[loss]
    glm.set_params(alpha=0.02 * mean ** (2 - power), tol=1e-10, max_iter=10_000)
    glm.fit(X, y, sample_weight=weight)
    ours = TensorMachineRegressor(loss=loss, **EXACT, alpha=0.02).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, glm.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(glm.intercept_, abs=1e-7)
    np.testing.assert_allclose(ours.predict(X), glm.predict(X), rtol=1e-6)
    assert ours.score(X, y, weight) == pytest.approx(glm.score(X, y, weight), abs=1e-9)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_degree_1_is_the_linear_quantile(rng, level):
    """To the width of the parabola around 0, a fiftieth of the deviation."""
    X = rows(rng, 2000)
    y = targets(rng, X, "quantile")
    truth = QuantileRegressor(quantile=level, alpha=0).fit(X, y)
    ours = TensorMachineRegressor(loss="quantile", quantile=level, **EXACT, alpha=0).fit(X, y)
    found, best = (mean_pinball_loss(y, model.predict(X), alpha=level) for model in (ours, truth))
    assert best - 1e-9 <= found < best * 1.0005
    np.testing.assert_allclose(ours.coef_, truth.coef_, atol=0.03)
    assert np.mean(y < ours.predict(X)) == pytest.approx(level, abs=0.01)
    if level == 0.5:
        median = TensorMachineRegressor(loss="absolute_error", **EXACT, alpha=0).fit(X, y)
        np.testing.assert_allclose(median.coef_, ours.coef_, atol=1e-4)


def deviation_of(y):
    return np.subtract(*weighted_quantiles(y, np.ones(len(y)), [0.75, 0.25])) / 1.349


def huber_loss(y, predicted, threshold):
    distance = np.abs(y - predicted)
    return np.where(distance < threshold, distance**2 / 2, threshold * (distance - threshold / 2)).mean()


def test_degree_1_is_the_minimum_of_hubers_loss(rng):
    """Whose threshold is 1.35 deviations of the residuals of medians: a short fit finds these nearly."""
    X = rows(rng)
    y = targets(rng, X, "huber")
    medians = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y)
    threshold = 1.35 * np.median(np.abs(y - medians.predict(X))) / 0.6745

    def loss(params):
        return huber_loss(y, params[0] + X @ params[1:], threshold)

    truth = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    ours = TensorMachineRegressor(loss="huber", **EXACT, alpha=0).fit(X, y)
    np.testing.assert_allclose([ours.intercept_, *ours.coef_], truth, atol=2e-3)
    assert np.abs(truth - [medians.intercept_, *medians.coef_]).max() > 0.01  # which are other models


def test_hubers_loss_hardly_sees_outliers(rng):
    X = rows(rng)
    clean = X @ [0.5, -0.5, 0.25] + 0.1 * rng.standard_normal(len(X))
    y = np.where(rng.random(len(X)) < 0.05, clean + 1000, clean)
    ours = TensorMachineRegressor(loss="huber", **EXACT, alpha=0).fit(X, y)
    for model in (ours, HuberRegressor(alpha=0).fit(X, y)):
        np.testing.assert_allclose(model.coef_, [0.5, -0.5, 0.25], atol=0.02)
    squared = TensorMachineRegressor(**EXACT, alpha=0).fit(X, y)
    assert np.abs(squared.coef_ - [0.5, -0.5, 0.25]).max() > 1


# ---- what a fit does with any loss


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_every_solver_and_storage(rng, loss, solver):
    """A linear truth, found by a polynomial of degree 2 that is hardly penalised."""
    X = rows(rng, 1000)
    y = targets(rng, X, loss)
    settings = {"degree": 2, "rank": 1, "alpha": 1e-3, "loss": loss, "random_state": 0, **QUANTILE}
    truth = TensorMachineRegressor(**EXACT, alpha=0, loss=loss, **QUANTILE).fit(X, y)
    for stored in (X, sparse.csr_array(X)):
        model = TensorMachineRegressor(basis="standard", solver=solver, **settings).fit(stored, y)
        distance = (
            np.log(model.predict(X) / truth.predict(X))
            if loss in LOG_LINKS
            else (model.predict(X) - truth.predict(X))
        )
        assert np.sqrt(np.mean(distance**2)) < 0.2


@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_units_of_the_target_do_not_matter(rng, loss):
    X = rows(rng, 350)
    y = targets(rng, X, loss)
    settings = {"loss": loss, "degree": 2, "rank": 2, "random_state": 0, "solver": "lbfgs", **QUANTILE}
    one, thousand = (
        TensorMachineRegressor(**settings).fit(X, factor * y).predict(X) for factor in (1, 1024.0)
    )
    np.testing.assert_allclose(thousand / 1024, one, rtol=1e-6)


@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_weights_are_repetitions(rng, loss):
    X = rows(rng, 300)
    y, weight = targets(rng, X, loss), rng.integers(0, 3, 300)
    settings = {"loss": loss, "degree": 2, "rank": 2, "max_iter": 5, "random_state": 0, **QUANTILE}
    repeated = TensorMachineRegressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = TensorMachineRegressor(**settings).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_several_outputs_are_fitted_as_each_alone(rng, loss):
    X = rows(rng)
    y = np.column_stack([targets(rng, X, loss), 7 * targets(rng, X, loss)])
    settings = {**EXACT, "loss": loss, "alpha": 0, **QUANTILE}
    both = TensorMachineRegressor(**settings).fit(X, y)
    for k in range(2):
        alone = TensorMachineRegressor(**settings).fit(X, y[:, k])
        rtol, atol = (0.01, 0.02) if loss == "huber" else (1e-4, 1e-3)  # they share its threshold
        np.testing.assert_allclose(both.predict(X)[:, k], alone.predict(X), rtol=rtol, atol=atol)


def test_a_source_of_blocks_and_early_stopping(rng, tmp_path):
    X = rows(rng, 3000)
    for loss in ("poisson", "quantile"):
        y = targets(rng, X, loss)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        source = blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy")
        settings = {"loss": loss, "degree": 2, "rank": 2, "solver": "lbfgs", "alpha": 1e-3, **QUANTILE}
        settings |= {"basis": "standard", "random_state": 0, "tol": 1e-9}
        in_memory = TensorMachineRegressor(**settings).fit(X, y)
        on_disk = TensorMachineRegressor(**settings).fit(source)
        assert on_disk.objective_ == pytest.approx(in_memory.objective_, rel=1e-3)
        stopped = TensorMachineRegressor(**settings, early_stopping=True).fit(X, y)
        assert stopped.n_iter_ < in_memory.n_iter_


@pytest.mark.parametrize("loss", ["poisson", "absolute_error"])
def test_partial_fit(rng, loss):
    X = rows(rng, 4000)
    y = targets(rng, X, loss)
    model = TensorMachineRegressor(loss=loss, degree=2, rank=1, basis="standard", random_state=0)
    for part in np.array_split(np.arange(4000), 8):
        model.partial_fit(X[part], y[part])
    truth = TensorMachineRegressor(**EXACT, alpha=0, loss=loss).fit(X, y)
    link = np.log if loss == "poisson" else np.asarray
    assert np.sqrt(np.mean((link(model.predict(X)) - link(truth.predict(X))) ** 2)) < 0.15
    if loss == "poisson":
        with pytest.raises(ValueError, match=r"y has 1 others, such as -1"):
            model.partial_fit(X[:2], [-1.0, 2.0])


@pytest.mark.parametrize("loss", LOG_LINKS)
def test_a_few_rows_far_out_do_not_spoil_a_log_link(loss):
    """The exponentials of their outputs would dwarf all others, and a first epoch would never return."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    X[::50] *= 3
    y = np.exp(X[:, 0].clip(-3, 3) / 2 + rng.standard_normal(3000) / 2)
    linear = TensorMachineRegressor(degree=1, loss=loss, random_state=0).fit(X, y)
    model = TensorMachineRegressor(loss=loss, random_state=0).fit(X, y)
    assert model.score(X, y) > linear.score(X, y) > 0.45


def test_the_race_scores_by_the_deviance(rng):
    """Counts without a pattern get no less than the usual penalty, 5 / rows."""
    X = rows(rng, 2000)
    noise = TensorMachineRegressor(loss="poisson", random_state=0).fit(X, rng.poisson(5, 2000).astype(float))
    assert noise.alpha_ > 0.99 * 5 / 2000
    sharp = TensorMachineRegressor(loss="gamma", random_state=0).fit(X, np.exp(X[:, 0] * X[:, 1]))
    assert sharp.alpha_ < noise.alpha_


def test_classifiers_have_the_log_loss(rng):
    X = rows(rng, 100)
    y = X[:, 0] > 0
    models = [
        TensorMachineClassifier(degree=1, random_state=0, **loss) for loss in ({}, {"loss": "log_loss"})
    ]
    one, other = (model.fit(X, y).predict_proba(X) for model in models)
    np.testing.assert_array_equal(one, other)
    with pytest.raises(
        ValueError, match="The 'loss' parameter of TensorMachineClassifier must be a str among"
    ):
        TensorMachineClassifier(loss="hinge").fit(X, y)


# ---- what a fitted model says


@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_files_pickles_and_contributions(rng, loss, tmp_path):
    X = rows(rng, 300)
    y = targets(rng, X, loss)
    model = TensorMachineRegressor(loss=loss, degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    model.save(tmp_path / "model.tm")
    for again in (load(tmp_path / "model.tm"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.get_params() == model.get_params()
    outputs = np.log(model.predict(X)) if loss in LOG_LINKS else model.predict(X)
    found = contributions(model, X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.remainder, outputs, atol=1e-9)


def test_scores_are_those_of_scikit_learn(rng):
    X = rows(rng, 300)
    for loss, power in LOG_LINKS.items():
        y, weight = targets(rng, X, loss), rng.random(300)
        model = TensorMachineRegressor(loss=loss, degree=1, random_state=0).fit(X, y)
        expected = d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=power)
        assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)
    y = targets(rng, X, "huber")
    for loss in ROBUST:
        model = TensorMachineRegressor(loss=loss, degree=1, random_state=0).fit(X, y)
        assert model.score(X, y) == r2_score(y, model.predict(X))


@pytest.mark.parametrize("loss", [*LOG_LINKS, *ROBUST])
def test_a_search_scores_by_the_loss(rng, loss):
    X = rows(rng, 200)
    y = targets(rng, X, loss)
    settings = {"loss": loss, "random_state": 0, **QUANTILE}
    search = TensorMachineRegressorCV(
        degrees=[1],
        alphas=[1e-3],
        relevances=[0],
        roughnesses=[3.0],
        bases=["standard"],
        solver="lbfgs",
        cv=KFold(2),
        halving=False,
        n_members=1,
        **settings,
    ).fit(X, y)
    fitted = search.best_estimator_
    assert fitted.loss == loss
    measure = {
        "poisson": mean_poisson_deviance,
        "gamma": mean_gamma_deviance,
        "tweedie": lambda *both: mean_tweedie_deviance(*both, power=1.5),
        "absolute_error": mean_absolute_error,
        "quantile": lambda *both: mean_pinball_loss(*both, alpha=0.8),
        "huber": huber_loss,
    }[loss]
    np.testing.assert_array_equal(search.predict(X), fitted.predict(X))
    assert search.score(X, y) == fitted.score(X, y)
    model = TensorMachineRegressor(**search.best_params_, **settings, solver="lbfgs")
    truth = []
    for train, test in KFold(2).split(X):
        predicted = model.fit(X[train], y[train]).predict(X[test])
        given = (1.35 * deviation_of(y[train]),) if loss == "huber" else ()
        truth.append(-measure(y[test], predicted, *given))
    assert search.best_score_ == pytest.approx(np.mean(truth), rel=1e-4)


@pytest.mark.parametrize("loss", LOG_LINKS)
def test_predictions_of_a_log_link_are_bounded(rng, loss, tmp_path):
    """By the largest target: the exponential of a polynomial of 1000 is infinite."""
    X = rows(rng, 300)
    y = np.column_stack([targets(rng, X, loss), 7 * targets(rng, X, loss)])
    settings = {"loss": loss, "degree": 3, "rank": 2, "basis": "standard", "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(X, y)
    far = 1000 * rng.standard_normal((200, 3))
    predicted = model.predict(far)
    np.testing.assert_allclose(predicted.max(axis=0), y.max(axis=0))
    np.testing.assert_allclose(model.compiled()(far), predicted)
    model.save(tmp_path / "model.tm")
    np.testing.assert_array_equal(load(tmp_path / "model.tm").predict(far), predicted)
    streamed = TensorMachineRegressor(**settings)
    for part in (slice(0, 150), slice(150, 300)):
        streamed.partial_fit(X[part], y[part])
    assert (streamed.predict(far) <= y.max(axis=0) * (1 + 1e-12)).all()


# ---- errors


@pytest.mark.parametrize(
    ("loss", "bad", "message"),
    [
        ("poisson", -1.0, "loss='poisson' needs targets that are 0 or more, but y has 1 others, such as -1"),
        (
            "tweedie",
            -0.5,
            "loss='tweedie' needs targets that are 0 or more, but y has 1 others, such as -0.5",
        ),
        ("gamma", 0.0, "loss='gamma' needs targets that are positive, but y has 1 others, such as 0"),
    ],
)
def test_targets_that_a_loss_is_not_defined_for(rng, loss, bad, message):
    X, y = rows(rng, 50), np.ones(50)
    y[7] = bad
    for model in (TensorMachineRegressor(loss=loss), TensorMachineRegressorCV(loss=loss)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


def test_all_zeros_have_no_logarithm(rng):
    with pytest.raises(ValueError, match="loss='poisson' needs some targets above 0, but all of them are 0"):
        TensorMachineRegressor(loss="poisson").fit(rows(rng, 50), np.zeros(50))


def test_settings_that_cannot_be(rng):
    X, y = rows(rng, 50), np.ones(50)
    for settings in ({"loss": "cauchy"}, {"power": 2.0}, {"quantile": 0.0}, {"quantile": 1}):
        with pytest.raises(ValueError, match=f"The '{next(iter(settings))}' parameter"):
            TensorMachineRegressor(**settings).fit(X, y)


def test_a_fit_does_not_continue_with_another_link(rng):
    X = rows(rng, 60)
    y = np.exp(X[:, 0])
    model = TensorMachineRegressor(degree=1, loss="gamma", warm_start=True, random_state=0).fit(X, y)
    model.set_params(loss="squared_error")
    for go_on in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="cannot continue this model, whose outputs are logarithms of"):
            go_on(X, y)
    np.testing.assert_array_equal(model.predict(X) > 0, True)
