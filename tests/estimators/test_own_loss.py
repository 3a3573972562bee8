"""Losses that users write, against the built-in ones and scikit-learn's linear models."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold, cross_val_score

from losses import LOSSES, make_targets
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV, blocks, load
from tensormachines._fit.own_units import own_units
from tensormachines._model import kernel
from tensormachines._model.basis import AffineBasis
from tensormachines._model.block import Block
from tensormachines._model.layout import Layout
from tensormachines._model.losses import own_loss

EXACT = {"degree": 1, "rank": 1, "basis": None, "solver": "lbfgs", "tol": 1e-13, "max_iter": 5000}
SMALL = {"degree": 2, "rank": 2, "random_state": 0, "jumps": False, "trend": False}


def squared(y, z):
    return 0.5 * (z - y) ** 2, z - y


def poisson(y, z):
    """Half the deviance of counts with the mean exp(z)."""
    return np.exp(z) - y + y * (np.log(np.maximum(y, 1e-300)) - z), np.exp(z) - y


def pinball(y, z, level):
    above = np.where(z > y, 1 - level, -level)
    return above * (z - y), above


class Scaled:
    """An object with parameters of its own."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, y, z):
        values, slopes = squared(y, z)
        return self.factor * values, self.factor * slopes


def rows(rng, n=400):
    return rng.standard_normal((n, 3))


def numbers(rng, X):
    return 1000 + 7 * (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(len(X)))


# ---- the same as losses that are known


@pytest.mark.parametrize("name", ["squared", "poisson", "quantile"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("compiled", [True, False])
def test_kernels_take_any_function(rng, request, name, storage, shared, compiled):
    """With weights, offsets, several models, and a row of weight 0 that overflows."""
    if not compiled:
        request.getfixturevalue("numpy_only")
    known, outputs = LOSSES[name]

    def of_elements(y, z):
        values, slopes = known.pointwise(y[:, None], z[:, None])
        return values, slopes[:, 0]

    X, y = rng.standard_normal((21, 3)), make_targets(rng, known, 21, outputs)
    weight, offset = rng.integers(0, 3, 21).astype(float), rng.normal(size=(21, outputs))
    weight[4], X[4] = 0, 1e200
    layout = Layout(3, 3, 2, outputs, shared)
    params = 0.5 * rng.standard_normal((2, layout.size))
    block = Block(storage(X), AffineBasis(3), y, weight, offset)
    found = kernel.value_and_gradient(block, layout, params, own_loss(of_elements))
    for one, truth in zip(found, kernel.value_and_gradient(block, layout, params, known), strict=True):
        np.testing.assert_allclose(one, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
@pytest.mark.parametrize("loss", [squared, Scaled(100.0)])
def test_own_squared_error_is_the_built_in_one(rng, solver, loss):
    """Whatever its units, and with the same penalty."""
    X = rows(rng)
    y = numbers(rng, X)
    truth = TensorMachineRegressor(solver=solver, **SMALL).fit(X, y)
    model = TensorMachineRegressor(solver=solver, loss=loss, **SMALL).fit(X, y)
    assert model.alpha_ == pytest.approx(truth.alpha_)
    assert model.objective_ == pytest.approx(truth.objective_, rel=1e-3)
    assert np.abs(model.predict(X) - truth.predict(X)).max() < 0.02 * y.std()


def test_targets_far_from_0_keep_their_digits(rng):
    X = rows(rng)
    y = numbers(rng, X)
    near, far = (TensorMachineRegressor(loss=squared, **SMALL).fit(X, y + shift) for shift in (0, 1e9))
    np.testing.assert_allclose(far.predict(X) - 1e9, near.predict(X), atol=0.02 * y.std())


def test_own_poisson_loss_is_the_generalised_linear_model(rng):
    X = rows(rng)
    y = rng.poisson(np.exp(X @ [0.5, -0.5, 0.25] + 3)).astype(float)
    truth = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(X, y)
    built_in = TensorMachineRegressor(loss="poisson", **EXACT, alpha=0).fit(X, y)
    model = TensorMachineRegressor(loss=poisson, **EXACT, alpha=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, truth.coef_, atol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict(X)), built_in.predict(X), rtol=1e-5)
    assert poisson(y, model.predict(X))[0].mean() == pytest.approx(built_in.objective_ * y.mean())


def test_own_pinball_loss_is_the_linear_quantile(rng):
    """Though it has a kink, as adam does not mind."""
    X = rows(rng, 2000)
    y = X @ [0.5, -0.5, 0.25] + rng.standard_t(3, 2000)
    truth = QuantileRegressor(quantile=0.8, alpha=0).fit(X, y)
    loss = partial(pinball, level=0.8)
    model = TensorMachineRegressor(degree=1, basis="standard", loss=loss, alpha=0, random_state=0).fit(X, y)
    ours, best = (mean_pinball_loss(y, each.predict(X), alpha=0.8) for each in (model, truth))
    assert ours < 1.001 * best


def test_units_are_those_of_squared_error(rng):
    y, weight = rng.gamma(2, 1000, 500), rng.integers(0, 3, 500).astype(float)
    mean = np.average(y, weights=weight)
    deviation = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    np.testing.assert_allclose(own_units(own_loss(squared), y, weight), [mean, deviation, deviation**2])
    np.testing.assert_allclose(
        own_units(own_loss(Scaled(5.0)), y, weight), [mean, deviation, 5 * deviation**2]
    )
    center, deviation, _ = own_units(own_loss(partial(pinball, level=0.5)), y, np.ones(500))
    assert center == pytest.approx(np.median(y), rel=0.01)
    first, third = np.quantile(y, [0.25, 0.75])
    assert 0.7 * (third - first) < deviation < 1.4 * (third - first)
    tiny = own_units(own_loss(squared), 1e-12 * y, weight)
    np.testing.assert_allclose(
        tiny, own_units(own_loss(squared), y, weight) * np.array([1e-12, 1e-12, 1e-24])
    )
    flat = own_units(own_loss(squared), np.full(20, 3.0), np.ones(20))
    assert flat == (3.0, 1.0, 1.0)


# ---- what works with it


def test_several_targets_weights_and_blocks(rng, tmp_path):
    X = rows(rng)
    y, weight = numbers(rng, X), rng.integers(0, 3, 400)
    settings = {**EXACT, "loss": squared, "alpha": 0}
    both = TensorMachineRegressor(**settings).fit(X, np.column_stack([y, -3 * y]))
    alone = TensorMachineRegressor(**settings).fit(X, y)
    np.testing.assert_allclose(both.predict(X), [1, -3] * alone.predict(X)[:, None])
    weighted = TensorMachineRegressor(**settings).fit(X, y, sample_weight=weight)
    repeated = TensorMachineRegressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    on_disk = TensorMachineRegressor(**settings).fit(blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy"))
    np.testing.assert_allclose(on_disk.predict(X), alone.predict(X), rtol=1e-6)
    streamed = TensorMachineRegressor(loss=squared, degree=1, basis="standard", random_state=0)
    for _ in range(5):
        streamed.partial_fit(X, y)
    assert streamed.score(X, y) == pytest.approx(alone.score(X, y), abs=0.01)


def test_scikit_learn_files_and_checkpoints(rng, tmp_path):
    X = rows(rng)
    y = numbers(rng, X)
    model = TensorMachineRegressor(loss=Scaled(2.0), **SMALL)
    assert clone(model).loss.factor == 2
    scores = cross_val_score(model, X, y, cv=KFold(2))
    truth = cross_val_score(TensorMachineRegressor(**SMALL), X, y, cv=KFold(2))
    np.testing.assert_allclose(scores, truth, atol=0.01)
    model.set_params(checkpoint=tmp_path / "fit.checkpoint").fit(X, y)
    again = clone(model).fit(X, y)  # another object, with the same loss
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.warns(UserWarning, match="Files hold no functions"):
        model.save(tmp_path / "model.tm")
    loaded = load(tmp_path / "model.tm")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.loss == "squared_error"


def test_a_search_scores_by_it(rng):
    X = rows(rng, 200)
    y = rng.poisson(np.exp(X @ [0.5, -0.5, 0.25] + 1)).astype(float)
    one = {"degrees": [1], "alphas": [1e-3], "relevances": [0], "roughnesses": [3.0], "bases": ["standard"]}
    search = TensorMachineRegressorCV(
        **one, loss=poisson, solver="lbfgs", cv=KFold(2), halving=False, n_members=1, random_state=0
    ).fit(X, y)
    model = TensorMachineRegressor(**search.best_params_, loss=poisson, solver="lbfgs", random_state=0)
    truth = [
        -poisson(y[test], model.fit(X[train], y[train]).predict(X[test]))[0].mean()
        for train, test in KFold(2).split(X)
    ]
    assert search.best_score_ == pytest.approx(np.mean(truth), rel=1e-4)


# ---- what is refused


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (lambda y, z: (z - y) ** 2, TypeError, "must return a tuple of two arrays"),
        (
            lambda y, z: (np.sum((z - y) ** 2), 2 * (z - y)),
            ValueError,
            r"a number for each row.*got \(\) and",
        ),
        (lambda y, z: (z - np.log(z), 1 - 1 / z), ValueError, "must be finite for every y.*z = 0"),
        (lambda y, z: (np.exp(z) - y * z, np.exp(z) - y), ValueError, "must not be negative: for y = "),
        (lambda y, z: (0.5 * (z - y) ** 2, y - z), ValueError, "loss has no minimum"),
        (lambda y, z: (np.maximum(z, 0), np.ones_like(z)), ValueError, "loss has no minimum"),
        (lambda y, z: (0.5 * (z - y) ** 2, 3 * (z - y)), ValueError, "these do not agree: for y = "),
        (lambda y, z: (0.5 * (z - y) ** 2, np.sign(z - y)), ValueError, "these do not agree: for y = "),
    ],
)
def test_impossible_losses_are_refused(rng, loss, error, message):
    X = rows(rng, 100)
    with pytest.raises(error, match=message):
        TensorMachineRegressor(loss=loss).fit(X, np.exp(X[:, 0]) + 5)


def test_offsets_and_exposures_need_a_known_loss(rng):
    X = rows(rng, 20)
    model = TensorMachineRegressor(loss=squared)
    with pytest.raises(ValueError, match="offset cannot be combined with a loss of your own"):
        model.fit(X, X[:, 0], offset=X[:, 1])
    with pytest.raises(ValueError, match=r'exposure needs loss="poisson".* got a function as loss'):
        model.fit(X, X[:, 0], exposure=np.ones(20))
