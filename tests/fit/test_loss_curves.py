"""The objective after each iteration of a fit."""

import pickle
from math import ceil

import numpy as np
import pytest

from targets import teacher
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV, blocks, load
from tensormachines._fit.race import SHARE_LEFT
from tensormachines.peers import GreedyTensorMachineRegressor

SETTINGS = {"degree": 2, "rank": 2, "alpha": 1e-3, "basis": "standard", "random_state": 0}
IGNORE_LIMIT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def rows(rng):
    X, y = teacher(rng, 400)
    return X, y + rng.standard_normal(400)


@IGNORE_LIMIT
@pytest.mark.parametrize("solver", ["lbfgs", "kfac"])
def test_passes_over_all_rows_end_at_the_objective(rows, solver):
    model = TensorMachineRegressor(**SETTINGS, solver=solver, max_iter=12).fit(*rows)
    assert len(model.loss_curve_) == model.n_iter_
    assert model.loss_curve_[-1] == model.objective_
    assert (np.diff(model.loss_curve_) < 0).all()


@IGNORE_LIMIT
def test_fewer_iterations_have_the_beginning_of_the_curve(rows):
    few, many = (
        TensorMachineRegressor(**SETTINGS, solver="lbfgs", tol=0, max_iter=most).fit(*rows).loss_curve_
        for most in (4, 9)
    )
    np.testing.assert_array_equal(few, many[:4])


@IGNORE_LIMIT
@pytest.mark.parametrize("solver", ["adam", "sfo"])
def test_minibatches_end_near_the_objective(rows, solver):
    model = TensorMachineRegressor(**SETTINGS, solver=solver, max_iter=30).fit(*rows)
    assert len(model.loss_curve_) == model.n_iter_
    assert model.loss_curve_[-1] == pytest.approx(model.objective_, rel=0.02)


def test_an_epoch_of_adam_has_the_objective_of_each_minibatch_before_its_step(rng):
    """Eight rows are one minibatch: before the first step, that is the objective at the start, where the
    terms are small and the standardised target leaves about half its variance."""
    X, y = teacher(rng, 8)
    model = TensorMachineRegressor(**SETTINGS, init_scale=1e-6, max_iter=3).fit(X, y)
    assert model.loss_curve_[0] == pytest.approx(0.5, rel=1e-4)


def test_the_curve_in_numpy(rows, numpy_only, request):
    ours = TensorMachineRegressor(**SETTINGS, max_iter=4).fit(*rows).loss_curve_
    request.getfixturevalue("monkeypatch").undo()
    np.testing.assert_allclose(
        ours, TensorMachineRegressor(**SETTINGS, max_iter=4).fit(*rows).loss_curve_, rtol=1e-9
    )


def test_a_polished_fit_has_a_longer_curve(rng):
    X, y = teacher(rng, 300)
    settings = {"degree": 3, "rank": 2, "alpha": 0.0, "basis": "standard", "random_state": 0}
    model = TensorMachineRegressor(**settings, solver="kfac").fit(X, y)
    assert model.objective_ < 1e-20
    assert len(model.loss_curve_) == model.n_iter_
    assert model.loss_curve_[-1] == model.objective_


@pytest.mark.parametrize("settings", [{"n_restarts": 3}, {"n_members": 3}])
def test_the_curve_of_several_starts_is_that_of_the_best(rows, settings):
    options = {**SETTINGS, "solver": "lbfgs", "tol": 1e-3}
    model = TensorMachineRegressor(**options, **settings).fit(*rows)
    assert model.loss_curve_[-1] == model.objective_
    assert len(model.loss_curve_) == model.n_iter_


def test_after_a_race_the_curve_is_that_of_the_fit_to_all_rows(rows):
    model = TensorMachineRegressor(random_state=0, max_iter=10).fit(*rows)
    assert len(model.loss_curve_) == model.n_iter_ == ceil(SHARE_LEFT * 10)


@IGNORE_LIMIT
def test_a_greedy_fit_has_the_iterations_of_all_ranks(rows):
    settings = {**SETTINGS, "rank": 3, "max_iter": 5}
    model = GreedyTensorMachineRegressor(**settings).fit(*rows)
    assert len(model.loss_curve_) == model.n_iter_
    assert model.loss_curve_[-1] == model.objective_


def test_curves_in_files_pickles_and_searches(rows, tmp_path):
    X, y = rows
    model = TensorMachineRegressor(**SETTINGS, max_iter=3).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    model.save(tmp_path / "model.tm")
    for again in (load(tmp_path / "model.tm"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.loss_curve_, model.loss_curve_)
        np.testing.assert_array_equal(again.validation_loss_curve_, model.validation_loss_curve_)
    few = {"degrees": [1], "ranks": [1], "alphas": [1e-3], "relevances": [0], "roughnesses": [3.0]}
    search = TensorMachineRegressorCV(**few, trends=[False], max_iters=[3], cv=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(search.loss_curve_, search.best_estimator_.loss_curve_)
    assert len(search.loss_curve_) == 3


@IGNORE_LIMIT
def test_fits_from_disk_have_curves(rows, tmp_path):
    X, y = rows
    for name, array in (("X", X), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    source = blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=150)
    settings = {**SETTINGS, "solver": "lbfgs", "max_iter": 6}
    of_disk, in_memory = (TensorMachineRegressor(**settings).fit(*data) for data in ((source,), rows))
    assert of_disk.loss_curve_[-1] == of_disk.objective_
    np.testing.assert_allclose(of_disk.loss_curve_, in_memory.loss_curve_, rtol=1e-6)
    stopped = TensorMachineRegressor(**settings, early_stopping=True).fit(source)
    assert np.argmin(stopped.validation_loss_curve_) + 1 == stopped.n_iter_
