"""Terms fitted one rank at a time: the path, what stays, what it starts."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines.peers import (
    FactorizationMachineRegressor,
    GreedyTensorMachineClassifier,
    GreedyTensorMachineRegressor,
)


@pytest.mark.parametrize("kind", [Layout, AnovaLayout])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_params_of_fewer_terms_are_found_in_those_of_more(rng, kind, shared, outputs):
    layout = kind(4, 3, 5, outputs, shared)
    params = rng.standard_normal(layout.size)
    for rank in range(6):
        fewer = layout.with_rank(rank)
        part = params[layout.terms_before(rank)]
        assert len(part) == fewer.size
        np.testing.assert_array_equal(fewer.bias(part), layout.bias(params))
        np.testing.assert_array_equal(fewer.linear(part), layout.linear(params))
        if rank:
            np.testing.assert_array_equal(fewer.weights(part), layout.weights(params)[..., :rank])
        for p, factors in fewer.factors_by_degree(part).items():
            np.testing.assert_array_equal(factors, layout.factors_by_degree(params)[p][:, :rank])


def test_the_objective_falls_with_every_rank_and_earlier_terms_stay(rng):
    X, y = rng.standard_normal((500, 5)), rng.standard_normal(500)
    y += X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4]
    three = GreedyTensorMachineRegressor(rank=3, basis=None, init_scale=0.5, random_state=0).fit(X, y)
    assert (np.diff(three.objective_path_) < 0).all()
    assert three.objective_path_.shape == (4,)
    assert three.objective_path_[-1] == three.objective_
    stages = list(three.staged_predict(X))
    assert len(stages) == 4
    np.testing.assert_array_equal(stages[-1], three.predict(X))
    # Each rank leaves the factors of those before it.
    first = three._stages[1].layout.factors_by_degree(three._stages[1].params)
    for p, factors in three.factors_.items():
        np.testing.assert_allclose(factors[:, :1], first[p][:, :1], rtol=1e-12)


def test_degree_one_has_no_path(rng):
    X = rng.standard_normal((50, 3))
    assert len(GreedyTensorMachineRegressor(degree=1, rank=4).fit(X, X[:, 0]).objective_path_) == 1


def test_rank_zero_is_ridge(rng):
    X, y = rng.standard_normal((300, 4)), rng.standard_normal(300)
    y += X @ [1.0, -2.0, 0.5, 0.0]
    model = GreedyTensorMachineRegressor(basis=None, alpha=0.1, tol=1e-12, random_state=0).fit(X, y)
    linear = next(model.staged_predict(X))
    np.testing.assert_allclose(linear, Ridge(alpha=0.1 * 300).fit(X, y).predict(X), rtol=1e-4, atol=1e-5)


def test_a_target_of_one_term_is_found_by_one_step(rng):
    X = rng.standard_normal((800, 5))
    y = (X[:, 0] + X[:, 1]) * (X[:, 1] - X[:, 2]) * X[:, 3]
    model = GreedyTensorMachineRegressor(
        degree=3, rank=1, alpha=1e-8, basis=None, tol=1e-4, random_state=1
    ).fit(X, y)
    assert model.score(X, y) > 0.999


def test_classes_and_their_stages(rng):
    X = rng.standard_normal((400, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    model = GreedyTensorMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y)
    accuracy = [np.mean(predicted == y) for predicted in model.staged_predict(X)]
    assert accuracy[0] < 0.7
    assert accuracy[-1] > 0.95
    assert accuracy[-1] == model.score(X, y)
    assert not hasattr(model, "partial_fit")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "lbfgs"},
        {"solver": "sfo", "max_iter": 20},
        {"n_restarts": 2},
        {"max_norm": 5.0},
        {"early_stopping": True},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_greedy_start_of_every_solver(rng, options):
    X, y = teacher(rng, 1000)
    model = TensorMachineRegressor(degree=3, rank=2, init="greedy", random_state=0, **options).fit(X, y)
    assert model.score(X, y) > 0.95


def test_the_full_fit_goes_on_where_the_greedy_one_ends(rng):
    X, y = teacher(rng, 400)
    y += rng.standard_normal(400)
    settings = {"rank": 5, "alpha": 1e-4, "basis": "standard", "random_state": 0}
    greedy = GreedyTensorMachineRegressor(**settings, max_iter=50)
    full = TensorMachineRegressor(**settings, solver="lbfgs", init="greedy", max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning):
        full.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        greedy.fit(X, y)
    assert full.objective_ < greedy.objective_
    assert full.objective_ == pytest.approx(greedy.objective_, rel=0.05)


def test_a_checkpoint_resumes_without_the_greedy_steps(rng, tmp_path, monkeypatch):
    X, y = teacher(rng, 400)
    settings = {
        "init": "greedy",
        "checkpoint": tmp_path / "fit.npz",
        "checkpoint_every": 1,
        "random_state": 0,
    }
    first = TensorMachineRegressor(**settings).fit(X, y)

    def never(*args, **options):
        raise AssertionError("the steps were taken again")

    monkeypatch.setattr("tensormachines._fit.solver_table.greedy", never)
    again = TensorMachineRegressor(**settings).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))


def test_other_estimators_start_greedily_too(rng):
    X, y = teacher(rng, 300)
    assert TensorMachineClassifier(init="greedy", random_state=0).fit(X, y > 0).score(X, y > 0) > 0.9
    assert TensorMachineFeatures(rank=5, init="greedy", random_state=0).fit_transform(X, y).shape == (300, 10)
    with pytest.raises(TypeError, match="init"):
        FactorizationMachineRegressor(init="greedy")


def test_early_stopping_ends_the_path(rng):
    X, y = rng.standard_normal((200, 6)), rng.standard_normal(200)
    y += 0.5 * X[:, 0] * X[:, 1]
    model = GreedyTensorMachineRegressor(
        rank=20, alpha=1e-8, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    assert len(model.objective_path_) < 21
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))


def test_early_stopping_ends_a_rank_before_it_ends_the_path(rng):
    """The linear part has nothing to learn here: on held-out rows it is best at once, and the terms come all
    the same.
    """
    X = rng.standard_normal((1000, 6))
    y = X[:, 0] * X[:, 1] > 0
    for seed in range(4):
        model = GreedyTensorMachineClassifier(
            degree=2, rank=3, early_stopping=True, n_iter_no_change=3, random_state=seed
        ).fit(X, y)
        assert model.score(X, y) > 0.9


def test_the_warning_names_the_parameter_as_it_is(rng):
    X = rng.standard_normal((50, 4))
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=2 before"):
        GreedyTensorMachineRegressor(rank=2, max_iter=2, tol=0, random_state=0).fit(X, X[:, 0] * X[:, 1])
