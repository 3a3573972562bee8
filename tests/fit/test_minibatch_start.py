"""Epochs over minibatches: lower than the start, the same for a seed, and never out of hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines._fit import solver_table
from tensormachines._fit.minibatch_start import descend_by_minibatches


class Sum:
    """Least squares with a minibatch a part, its share of the rows as weight; counts the calls."""

    def __init__(self, rng, n_parts=20, columns=4):
        self.X = rng.standard_normal((n_parts, 30, columns))
        self.y = self.X @ np.arange(1, columns + 1)
        self.blocks = SimpleNamespace(weights=np.full(n_parts, 30.0))
        self.calls = 0

    def partial(self, params, part, likely_next=None):
        self.calls += 1
        residual = self.X[part] @ params[0] - self.y[part]
        share = self.blocks.weights[part] / self.blocks.weights.sum()
        gradient = share * (residual @ self.X[part] / 30)[None]
        return np.array([share * 0.5 * np.mean(residual**2)]), gradient.astype(params.dtype)

    def value(self, params):
        return sum(
            float(self.partial(params[None], part)[0][0]) for part in np.flatnonzero(self.blocks.weights)
        )


class WithAWall(Sum):
    """A minibatch that explodes within a step of the usual size."""

    def partial(self, params, part, likely_next=None):
        value, gradient = super().partial(params, part)
        if part == 3:
            value = value + 1e9 * max(0.0, float(np.abs(params).max()) - 0.05)
        return value, gradient


def test_descends_the_same_way_for_a_seed(rng):
    objective, start = Sum(rng), np.zeros(4)
    one, same, other = (descend_by_minibatches(objective, start, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert objective.value(one) < 0.5 * objective.value(start)
    np.testing.assert_array_equal(start, 0)


def test_costs_eleven_passes(rng):
    objective = Sum(rng)
    descend_by_minibatches(objective, np.zeros(4), 0)
    assert objective.calls == 11 * 20


def test_goes_no_further_than_a_wall(rng):
    objective, start = WithAWall(rng), np.zeros(4)
    found = descend_by_minibatches(objective, start, 0)
    assert np.abs(found).max() < 0.06
    assert objective.value(found) <= objective.value(start)


def test_gives_the_start_where_nothing_is_finite(rng):
    objective, start = Sum(rng), np.full(4, np.nan)
    assert descend_by_minibatches(objective, start, 0) is start


def test_parts_without_weight_are_left_out(rng):
    objective = Sum(rng)
    objective.blocks.weights[5] = 0
    objective.y[5] = np.nan
    assert np.isfinite(descend_by_minibatches(objective, np.zeros(4), 0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_type(rng, dtype):
    objective = Sum(rng)
    objective.X, objective.y = objective.X.astype(dtype), objective.y.astype(dtype)
    assert descend_by_minibatches(objective, np.zeros(4, dtype), 0).dtype == dtype


def test_begins_no_epoch_when_time_is_over(rng):
    objective, start = Sum(rng), np.zeros(4)
    np.testing.assert_array_equal(descend_by_minibatches(objective, start, 0, lambda: True), start)
    assert objective.calls == 20


@pytest.fixture
def calls(monkeypatch):
    """One entry for each descent."""
    found = []

    def counted(*args):
        found.append(args)
        return descend_by_minibatches(*args)

    monkeypatch.setattr(solver_table, "descend_by_minibatches", counted)
    return found


def test_a_search_descends_once_for_all_penalties(rng, calls):
    X = rng.standard_normal((4000, 3))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(4000)
    settings = {"degrees": (2,), "ranks": (2,), "bases": ("standard",), "roughnesses": (3.0,)}
    settings |= {"relevances": (0,), "cv": 2}
    settings |= {"solver": "kfac", "max_iters": (5,), "halving": False, "refit": False, "random_state": 0}
    together = TensorMachineRegressorCV(alphas=(1e-5, 1e-3, 1e-1), **settings).fit(X, y).cv_results_
    assert len(calls) == 2  # on each split
    assert len(together["params"]) == 3
    for params, score in zip(together["params"], together["mean_test_score"], strict=True):
        alone = TensorMachineRegressorCV(alphas=(params["alpha"],), **settings).fit(X, y).cv_results_
        assert alone["mean_test_score"][0] == pytest.approx(score, rel=1e-6)


def test_only_the_continued_start_is_left_as_it_is(rng, calls):
    X = rng.standard_normal((4000, 3))
    model = TensorMachineRegressor(
        degree=2, rank=2, solver="kfac", basis="standard", n_restarts=3, warm_start=True, random_state=0
    )
    model.fit(X, X[:, 0] * X[:, 1])
    assert len(calls) == 3
    model.fit(X, X[:, 0] * X[:, 1])
    assert len(calls) == 3 + 2
