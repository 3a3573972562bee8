"""The penalty that alpha="auto" chooses."""

import numpy as np
import pytest
from sklearn.base import clone

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load
from tensormachines._fit import race as race_module
from tensormachines._fit.race import FEWEST_ROWS, Losses
from tensormachines._fit.settings import usual_alpha


def smooth(rng, n_rows, noise):
    X = rng.uniform(-1, 1, (n_rows, 3))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] + noise * rng.standard_normal(n_rows)


def test_a_target_without_noise_gets_a_smaller_penalty(rng):
    X, y = smooth(rng, 600, noise=0.0)
    X_test, y_test = smooth(rng, 600, noise=0.0)
    chosen = TensorMachineRegressor(random_state=0).fit(X, y)
    of_rule = TensorMachineRegressor(alpha="rows", random_state=0).fit(X, y)
    assert of_rule.alpha_ == usual_alpha(600, 1, False)
    assert chosen.alpha_ < 0.7 * of_rule.alpha_
    errors = [np.mean((model.predict(X_test) - y_test) ** 2) for model in (chosen, of_rule)]
    assert errors[0] < 0.7 * errors[1]


def test_pure_noise_keeps_the_usual_penalty_and_its_model(rng):
    X, y = rng.standard_normal((600, 3)), rng.standard_normal(600)
    chosen = TensorMachineRegressor(random_state=0).fit(X, y)
    of_rule = TensorMachineRegressor(alpha="rows", random_state=0).fit(X, y)
    assert chosen.alpha_ == of_rule.alpha_
    np.testing.assert_array_equal(chosen.predict(X), of_rule.predict(X))


def test_classes_without_noise_get_a_smaller_penalty(rng):
    X = rng.uniform(-1, 1, (900, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", np.where(X[:, 0] > 0, "right", "left"))
    model = TensorMachineClassifier(random_state=0).fit(X, y, sample_weight=rng.integers(1, 3, 900))
    assert model.alpha_ < usual_alpha(900, 3, True)


def test_few_rows_other_solvers_and_numbers_do_not_race(rng, monkeypatch):
    monkeypatch.setattr(race_module, "_losses", lambda *_: pytest.fail("there was a race"))
    X, y = smooth(rng, FEWEST_ROWS - 1, noise=0.0)
    more = smooth(rng, FEWEST_ROWS, noise=0.0)
    assert TensorMachineRegressor(random_state=0).fit(X, y).alpha_ == usual_alpha(len(X), 1, False)
    for settings in ({"solver": "lbfgs", "basis": "standard"}, {"alpha": "rows"}):
        model = TensorMachineRegressor(degree=1, random_state=0, **settings).fit(*more)
        assert model.alpha_ == usual_alpha(FEWEST_ROWS, 1, False)
    assert TensorMachineRegressor(alpha=0.1, random_state=0).fit(*more).alpha_ == 0.1


def test_a_warm_start_keeps_the_penalty_that_was_chosen(rng):
    X, y = smooth(rng, 400, noise=0.0)
    model = TensorMachineRegressor(random_state=0, warm_start=True, max_iter=5).fit(X, y)
    chosen = model.alpha_
    assert model.fit(X, y + 5 * rng.standard_normal(400)).alpha_ == chosen
    assert not hasattr(clone(model), "alpha_")


def test_files_keep_the_penalty(rng, tmp_path):
    X, y = smooth(rng, 100, noise=0.1)
    model = TensorMachineRegressor(random_state=0, max_iter=2).fit(X, y)
    model.save(tmp_path / "model.tm")
    assert load(tmp_path / "model.tm").alpha_ == model.alpha_


def test_a_gain_counts_if_it_is_larger_than_its_standard_error():
    weights = np.ones(4)
    before = Losses(np.array([1.0, 1.0, 1.0, 1.0]), weights)
    assert race_module._clearly_better(Losses(np.array([0.9, 0.8, 0.9, 0.8]), weights), before)
    assert not race_module._clearly_better(Losses(np.array([0.9, 1.2, 0.9, 0.9]), weights), before)
    assert not race_module._clearly_better(Losses(np.array([0.5, 0.5, 0.5, np.nan]), weights), before)
    assert not race_module._clearly_better(before, before)
