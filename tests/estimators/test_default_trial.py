"""The default settings as a candidate of a search."""

import pickle
from itertools import count

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines.estimators import halving as search_module
from tensormachines.estimators.default_trial import has_usual_grid

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_default_settings_are_tried_on_fewer_splits_if_time_is_short(rng):
    X = rng.normal(size=(200, 2))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=200)
    search = TensorMachineRegressorCV(time_budget=100.0, random_state=0, verbose=0)
    seconds = count(step=4.0)  # the clock of a slow machine
    search._clock = lambda: next(seconds)
    search.fit(X, y)
    tried = search.cv_results_["params"]
    (number,) = [k for k, params in enumerate(tried) if params["alpha"] == "auto"]
    assert 1 <= search.n_splits_ < 5
    assert np.isfinite(search.cv_results_["mean_test_score"][number])


@pytest.mark.parametrize("kind", [TensorMachineRegressorCV, TensorMachineClassifierCV])
def test_a_pickled_search_tries_the_default_settings_too(kind):
    assert has_usual_grid(pickle.loads(pickle.dumps(kind())))
    assert has_usual_grid(kind(solver="".join(["ad", "am"])))
    assert not has_usual_grid(kind(alphas=(1e-3,)))
    assert not has_usual_grid(kind(degrees=np.array([1, 2, 3, 4, 6])))


def test_the_default_settings_are_tried_where_the_grid_is_left_to_the_search(rng):
    X = rng.normal(size=(400, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=400)
    settings = {"n_members": 1, "time_budget": 3.0, "random_state": 0}
    search, restricted = (
        TensorMachineRegressorCV(**settings),
        TensorMachineRegressorCV(degrees=(2,), **settings),
    )
    for each in (search, restricted):
        each._clock = count(step=0.003).__next__  # whatever else the machine does
        each.fit(X, y)
    tried = search.cv_results_["params"]
    (number,) = [k for k, params in enumerate(tried) if params["alpha"] == "auto"]
    assert tried[number]["degree"] == tried[number]["rank"] == "auto"
    default = [
        cross_val_score(
            TensorMachineRegressor(**{**tried[number], "trend": "auto", "jumps": "auto"}, random_state=0),
            *(X, y),
            cv=[split],
            scoring="neg_mean_squared_error",
        )[0]
        for split in search._splits(X, y, None, None, 0)
    ]
    assert search.cv_results_["mean_test_score"][number] == pytest.approx(np.mean(default), rel=1e-6)
    assert search.best_score_ >= search.cv_results_["mean_test_score"][number]
    assert not any(params["alpha"] == "auto" for params in restricted.cv_results_["params"])


def test_the_default_settings_can_win(rng, monkeypatch):
    monkeypatch.setattr(search_module, "MARGIN", 1e6)  # nothing beats the first
    X = rng.normal(size=(300, 3))
    search = TensorMachineClassifierCV(time_budget=2.0, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert search.best_params_["alpha"] == search.best_params_["degree"] == "auto"
    assert search.score(X, X[:, 0] * X[:, 1] > 0) > 0.9
    single = TensorMachineClassifier(**search.best_params_, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert single.score(X, X[:, 0] * X[:, 1] > 0) > 0.9
