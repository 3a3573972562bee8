"""Quantiles of several levels are those of each, in order."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score

from loss_rows import rows
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV, load


def test_quantiles_of_several_levels_are_those_of_each_in_order(rng, tmp_path):
    X = rows(rng, 400)
    y = X[:, 0] + (1 + X[:, 1] ** 2) * rng.normal(size=400)
    settings = {"loss": "quantile", "degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
    levels = [0.1, 0.48, 0.5, 0.9]
    model = TensorMachineRegressor(quantile=levels, **settings).fit(X, y)
    each = [TensorMachineRegressor(quantile=level, **settings).fit(X, y) for level in levels]
    truth = np.column_stack([one.predict(X) for one in each])
    assert (np.diff(truth, axis=1) < 0).any()  # these models cross
    np.testing.assert_allclose(model.predict(X), np.sort(truth, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model.linear_, [one.linear_ for one in each])
    shares = [
        d2_pinball_score(y, p, alpha=level) for p, level in zip(model.predict(X).T, levels, strict=True)
    ]
    assert model.score(X, y) == pytest.approx(np.mean(shares))
    model.save(tmp_path / "model.tm")
    loaded = load(tmp_path / "model.tm")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.quantiles_.tolist() == levels
    assert len(loaded.basis_features_) == loaded.linear_.shape[1]
    alone = model.set_params(quantile=0.5).fit(X, y)
    assert not hasattr(alone, "quantiles_")
    again = alone.set_params(quantile=levels).fit(X, y)
    np.testing.assert_allclose(again.loss_curve_, np.mean([one.loss_curve_ for one in each], axis=0))
    assert again.objective_ == pytest.approx(np.mean([one.objective_ for one in each]))


def test_curves_of_levels_that_end_before_others_stay_where_they_are(rng):
    X = rows(rng, 300)
    y = X[:, 0] + rng.normal(size=300)
    settings = {"loss": "quantile", "degree": 1, "solver": "lbfgs", "max_iter": 300, "tol": 1e-3}
    each = [TensorMachineRegressor(quantile=level, **settings).fit(X, y) for level in (0.05, 0.5)]
    model = TensorMachineRegressor(quantile=[0.05, 0.5], **settings).fit(X, y)
    first, second = sorted((one.loss_curve_ for one in each), key=len)
    assert len(first) < len(second) == len(model.loss_curve_)
    assert model.loss_curve_[-1] == pytest.approx((first[-1] + second[-1]) / 2)
    np.testing.assert_allclose(model.loss_curve_[: len(first)], (first + second[: len(first)]) / 2)


def in_order(models, X):
    """What models of one level each predict, in rising order."""
    crossing = np.column_stack([model.predict(X) for model in models])
    assert (np.diff(crossing, axis=1) < 0).any()
    return np.sort(crossing, axis=1)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_a_warm_start_continues_all_levels(rng, solver):
    X = rows(rng, 300)
    y = X[:, 0] + (1 + X[:, 1] ** 2) * rng.normal(size=300)
    levels = [0.1, 0.48, 0.5]
    shape = {"degree": 2, "rank": 2, "alpha": 1e-3, "max_iter": 2, "solver": solver, "random_state": 0}
    settings = {"loss": "quantile", "warm_start": True, **shape}
    model = TensorMachineRegressor(quantile=levels, **settings).fit(X, y)
    before = model.objective_
    each = [TensorMachineRegressor(quantile=level, **settings).fit(X, y).fit(X, y) for level in levels]
    np.testing.assert_allclose(model.fit(X, y).predict(X), in_order(each, X))
    assert model.objective_ < before
    with pytest.raises(
        ValueError, match=r"the quantiles \[0\.1, 0\.9\] cannot continue a model of the quant"
    ):
        clone(model).fit(X, y).set_params(quantile=[0.1, 0.9]).fit(X, y)
    with pytest.raises(ValueError, match="A fit of no list of quantiles cannot continue"):
        clone(model).fit(X, y).set_params(quantile=0.5).fit(X, y)
    with pytest.raises(ValueError, match="cannot continue a model of no list of quantiles"):
        clone(model).set_params(quantile=0.5).fit(X, y).set_params(quantile=levels).fit(X, y)


def test_partial_fit_learns_all_levels(rng):
    X = rows(rng, 600)
    y = X[:, 0] + (1 + X[:, 1] ** 2) * rng.normal(size=600)
    levels = [0.1, 0.48, 0.5]
    settings = {"loss": "quantile", "degree": 2, "rank": 2, "max_iter": 2, "random_state": 0}
    model = TensorMachineRegressor(quantile=levels, **settings)
    each = [TensorMachineRegressor(quantile=level, **settings) for level in levels]
    for part in np.split(np.arange(600), 3):
        for one in (model, *each):
            one.partial_fit(X[part], y[part])
    np.testing.assert_allclose(model.predict(X), in_order(each, X))
    assert model.n_iter_ == 3
    assert not hasattr(model, "feature_importances_")
    expected, blocks_before = model.predict(X), [stream.n_blocks for stream in model._stream]
    with pytest.raises(ValueError, match="not finite"), np.errstate(all="ignore"):
        model.partial_fit(X, np.full(600, 1e308))
    np.testing.assert_array_equal(model.predict(X), expected)  # nothing has changed
    assert [stream.n_blocks for stream in model._stream] == blocks_before
    for one in (model, *each):
        one.fit(X, y).partial_fit(X[:200], y[:200])
    np.testing.assert_allclose(model.predict(X), in_order(each, X))


def test_a_search_of_several_levels_is_that_of_each_in_order(rng, tmp_path):
    X = rows(rng, 200)
    y = X[:, 0] + (1 + X[:, 1] ** 2) * rng.normal(size=200)
    levels = [0.1, 0.48, 0.5]
    only = {"degrees": (2,), "ranks": (2,), "relevances": (0,), "roughnesses": (3.0,), "trends": (False,)}
    settings = {**only, "alphas": (1e-3,), "max_iters": (5,), "n_members": 1, "cv": 2, "random_state": 0}
    search = TensorMachineRegressorCV(loss="quantile", quantile=levels, **settings).fit(X, y)
    each = [TensorMachineRegressorCV(loss="quantile", quantile=level, **settings) for level in levels]
    crossing = np.column_stack([one.fit(X, y).predict(X) for one in each])
    assert (np.diff(crossing, axis=1) < 0).any()
    np.testing.assert_allclose(search.predict(X), np.sort(crossing, axis=1))
    mean_score = np.mean([one.best_score_ for one in each])
    assert mean_score < search.best_score_ < 0.95 * mean_score  # quantiles in order have smaller losses
    assert search.quantiles_.tolist() == levels
    search.save(tmp_path / "search.tm")
    np.testing.assert_array_equal(load(tmp_path / "search.tm").predict(X), search.predict(X))
    np.testing.assert_array_equal(search.compiled()(X), search.predict(X))
    chosen = search.set_params(alphas=(1e-3, 10.0), n_members=2).fit(X, y)
    assert chosen.best_params_["alpha"] == 1e-3
    with pytest.raises(ValueError, match="one target"):
        search.fit(X, X[:, :2])
    with pytest.raises(ValueError, match="intervals need a single quantile"):
        search.set_params(intervals=True).fit(X, y)


def test_levels_that_cannot_be(rng):
    X = rows(rng, 30)
    y = X[:, 0]
    for levels, message in (
        ([0.5, 0.1], "rising order"),
        ([0, 0.5], "between 0 and 1"),
        ([], "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            TensorMachineRegressor(loss="quantile", quantile=levels).fit(X, y)
    model = TensorMachineRegressor(loss="quantile", quantile=[0.1, 0.9])
    with pytest.raises(ValueError, match="one target"):
        model.fit(X, X[:, :2])
    with pytest.raises(ValueError, match="one target"):
        model.partial_fit(X, X[:, :2])
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="intervals need a single quantile"):
        model.set_params(intervals=True).fit(X, y)


def test_a_fit_to_other_columns_forgets_the_names_of_the_last(rng):
    X = rows(rng, 200)
    model = TensorMachineRegressor(loss="quantile", quantile=[0.2, 0.8], max_iter=3, random_state=0)
    table = pytest.importorskip("pandas").DataFrame(X[:, :2], columns=["a", "b"])
    assert model.fit(table, X[:, 0]).feature_names_in_.tolist() == ["a", "b"]
    model.fit(X, X[:, 0])
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (200, 2)


def test_a_search_with_another_loss_ignores_quantiles(rng):
    X = rows(rng, 200)
    settings = {"degrees": (1,), "alphas": (1e-3,), "max_iters": (3,), "n_members": 1, "random_state": 0}
    search = TensorMachineRegressorCV(quantile=[0.1, 0.9], **settings).fit(X, X[:, 0])
    assert search.best_score_ == TensorMachineRegressorCV(**settings).fit(X, X[:, 0]).best_score_
