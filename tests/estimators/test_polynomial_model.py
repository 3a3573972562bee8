"""Members whose mean is the result, zeros for what hardly matters, the penalty that the data ask for, the
short way to a prediction.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, load
from tensormachines._fit.problem import Problem
from tensormachines._fit.settings import Settings
from tensormachines.estimators.fit_scope import fit_scope

QUICK = {"degree": 3, "rank": 2, "max_iter": 6, "random_state": 0}


@pytest.fixture
def members(monkeypatch):
    """The params of the members of the last fit, with their problem."""
    found = []
    average = Problem.average

    def noted(self, models):
        found[:] = [(self, model) for model in models]
        return average(self, models)

    monkeypatch.setattr(Problem, "average", noted)
    return found


@pytest.mark.parametrize("basis", ["auto", "standard"])
def test_a_prediction_is_the_mean_of_those_of_the_members(rng, members, basis, monkeypatch):
    monkeypatch.setattr("tensormachines._fit.pruning.NEGLIGIBLE", 0.0)
    X, y = teacher(rng, 300)
    model = TensorMachineRegressor(**QUICK, basis=basis, n_members=3).fit(X, y)
    assert len(members) == 3
    outputs = [problem.machine(params).outputs(X)[:, 0] for problem, params in members]
    assert np.std(outputs, axis=0).mean() > 1e-3 * y.std()  # they do differ
    np.testing.assert_allclose(model.predict(X), np.mean(outputs, axis=0), rtol=1e-9, atol=1e-9)
    assert {p: factors.shape[1] for p, factors in model.factors_.items()} == {2: 6, 3: 6}
    assert model.n_parameters_ == model._machine.layout.size


def test_members_begin_where_restarts_do(rng, members):
    """The best of the restarts is one of the members, and the objective is that of the best member."""
    X, y = teacher(rng, 300)
    several = TensorMachineRegressor(**QUICK, basis="standard", n_members=3).fit(X, y)
    params = [params for _, params in members]
    best = TensorMachineRegressor(**QUICK, basis="standard", n_restarts=3).fit(X, y)
    ((_, of_best),) = members
    assert any(np.allclose(of_best, one, rtol=1e-6, atol=1e-9) for one in params)
    assert several.objective_ == pytest.approx(best.objective_)


def test_restarts_are_for_each_member(rng, members):
    X, y = teacher(rng, 300)
    TensorMachineRegressor(**QUICK, basis="standard", n_members=2, n_restarts=3).fit(X, y)
    assert len(members) == 2


def test_features_and_classes_of_members():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(**QUICK, n_members=2).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    features = TensorMachineFeatures(**QUICK, n_members=2).fit(X, y)
    assert features.transform(X).shape == (150, 3 * 2 * 2 * 2) == (150, len(features.get_feature_names_out()))


def test_members_cannot_go_on_from_their_mean(rng):
    X, y = teacher(rng, 100)
    model = TensorMachineRegressor(**QUICK, n_members=2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start needs n_members=1"):
        model.fit(X, y)


def test_the_mean_of_members_learns_from_more_rows(rng):
    X, y = teacher(rng, 2000)
    model = TensorMachineRegressor(**{**QUICK, "max_iter": 20}, alpha=1e-4, n_members=2).fit(
        X[:1000], y[:1000]
    )
    before = model.score(X, y)
    for _ in range(3):
        model.partial_fit(X[1000:], y[1000:])
    assert model.factors_[3].shape[1] == 4
    assert model.score(X, y) > before - 0.01
    with pytest.raises(ValueError, match="began with"):
        model.set_params(rank=4).partial_fit(X, y)


def test_a_warm_start_of_adam_goes_on(rng):
    X, y = teacher(rng, 500)
    model = TensorMachineRegressor(
        **{**QUICK, "max_iter": 10}, alpha=1e-4, basis="standard", warm_start=True
    ).fit(X, y)
    before = model.objective_
    assert model.fit(X, y).objective_ < before


@pytest.mark.parametrize("basis", ["auto", "standard"])
def test_a_loop_of_single_epochs_goes_down(rng, basis):
    X, y = teacher(rng, 500)
    settings = {**QUICK, "max_iter": 1, "alpha": 1e-3, "basis": basis, "warm_start": True}
    model = TensorMachineRegressor(**settings)
    objectives = [model.fit(X, y).objective_ for _ in range(12)]
    assert objectives[-1] < 0.5 * objectives[0]
    assert max(objectives) == objectives[0]
    assert (model.n_iter_, len(model.loss_curve_)) == (1, 1)


def test_a_warm_start_keeps_the_relevance_of_columns(rng, tmp_path):
    """Two of twelve columns matter, so that a race weighs them; the same goes for a model from a file."""
    X = rng.uniform(-1, 1, (1500, 12))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(1500)
    model = TensorMachineRegressor(random_state=0, max_iter=8, warm_start=True).fit(X, y)
    assert model._relevance[:2].min() > 2 * model._relevance[2:].max()
    model.save(tmp_path / "model.tm")
    again = load(tmp_path / "model.tm")
    relevance, before = model._relevance, model.objective_
    assert model.set_params(max_iter=16).fit(X, y).objective_ < before
    assert len(model.loss_curve_) == model.n_iter_ == 16
    np.testing.assert_allclose(model._relevance, relevance)
    np.testing.assert_array_equal(again.set_params(max_iter=16).fit(X, y).predict(X), model.predict(X))


# ---- without noise


@pytest.mark.parametrize("load", [load_diabetes, load_iris])
def test_what_hardly_matters_is_zero_and_does_not_matter(load, monkeypatch):
    X, y = load(return_X_y=True)
    settings = {"degree": 2, "rank": 3, "shared_factors": False, "trend": False, "random_state": 0}
    kind = TensorMachineRegressor if load is load_diabetes else TensorMachineClassifier
    model = kind(**settings).fit(X, y)
    monkeypatch.setattr("tensormachines._fit.pruning.NEGLIGIBLE", 0.0)
    whole = kind(**settings).fit(X, y)
    zeros, before = ((each._machine.params == 0).mean() for each in (model, whole))
    assert zeros > before + 0.1
    outputs, truth = model._outputs(X), whole._outputs(X)
    assert np.linalg.norm(outputs - truth) < 0.01 * np.linalg.norm(truth - truth.mean(axis=0))
    kept = model._machine.params != 0
    np.testing.assert_array_equal(model._machine.params[kept], whole._machine.params[kept])


def test_other_bases_keep_every_number(rng):
    X, y = teacher(rng, 200)
    assert (
        TensorMachineRegressor(**QUICK, alpha=1e-4, basis="standard").fit(X, y)._machine.params != 0
    ).all()


# ---- alpha="auto"


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize(
    ("rows", "classes", "alpha"),
    [
        (1000, 0, 5e-3),
        (100, 0, 1e-2),
        (1000, 2, 5e-3),
        (1000, 4, 5 / 2000),
        (10**7, 0, 5e-7),
        (10**10, 0, 1e-8),
    ],
)
def test_alpha_is_some_rows_of_each_class(rng, monkeypatch, rows, classes, alpha):
    """At most 0.01, at least 1e-8."""
    X = rng.standard_normal((1000, 2))
    y = np.arange(1000) % classes if classes else X[:, 0]
    kind = TensorMachineClassifier if classes else TensorMachineRegressor
    n = min(rows, 1000)
    settings = {
        "alpha": "rows",
        "degree": 2,
        "rank": 1,
        "basis": "standard",
        "max_iter": 1,
        "random_state": 0,
    }
    seen = []
    penalty = Settings.penalty

    def noted(self, problem, n_rows=None):
        many = replace(problem, n_rows=rows)  # as if there were so many
        seen.append(penalty(self, many, n_rows))
        return seen[-1]

    monkeypatch.setattr(Settings, "penalty", noted)
    kind(**settings).fit(X[:n], y[:n])
    assert seen == pytest.approx([alpha] * len(seen))
    assert seen


def test_alpha_of_rows_is_that_alpha(rng):
    X, y = teacher(rng, 1000)
    auto, same = (TensorMachineRegressor(**QUICK, alpha=alpha).fit(X, y) for alpha in ("rows", 5 / 1000))
    np.testing.assert_array_equal(auto.predict(X), same.predict(X))


# ---- single rows


@pytest.mark.parametrize("basis", ["auto", "standard", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_short_way_to_a_prediction_ends_where_the_long_one_does(rng, basis, dtype, monkeypatch):
    X, y = teacher(rng, 200, dtype)
    model = TensorMachineRegressor(**QUICK, basis=basis).fit(X, y)
    assert model._is_plain(X)
    short = model.predict(X)
    one_by_one = np.concatenate([model.predict(X[n : n + 1]) for n in range(20)])
    monkeypatch.setattr(TensorMachineRegressor, "_is_plain", lambda self, X: False)
    np.testing.assert_array_equal(short, model.predict(X))
    assert short.dtype == model.predict(X).dtype == dtype
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(one_by_one, short[:20], rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_what_may_be_wrong_goes_the_long_way(rng):
    pd = pytest.importorskip("pandas")
    X, y = teacher(rng, 200)
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    missing, infinite = X.copy(), X.copy()
    missing[0, 0], infinite[0, 0] = np.nan, np.inf
    frame = pd.DataFrame(X, columns=list("abcde"))
    for rows in (
        infinite,
        frame,
        X.tolist(),
        X[:, :4],
        X[0],
        X[:0],
        sparse.csr_array(X),
        X.astype(int),
        np.asfortranarray(X),
    ):
        assert not model._is_plain(rows)
    assert model._is_plain(missing)
    assert not TensorMachineRegressor(**QUICK, basis="standard").fit(X, y)._is_plain(missing)
    assert not TensorMachineRegressor(**QUICK).fit(frame, y)._is_plain(X)  # names of columns are compared
    categories = TensorMachineRegressor(**QUICK).fit(
        np.array([["a", 1.0], ["b", 2.0]] * 20, dtype=object), np.arange(40.0)
    )
    assert not categories._is_plain(X[:, :2])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(infinite)
    assert np.isfinite(model.predict(missing)).all()


@pytest.mark.parametrize(("n_jobs", "limit"), [(1, 2), (2, 2), (2, 1)])
def test_blas_has_no_more_threads_than_n_jobs_or_the_user_allows(rng, monkeypatch, n_jobs, limit):
    X, y = teacher(rng, 200)
    seen = []
    penalty = Settings.penalty

    def noted(self, problem, n_rows=None):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return penalty(self, problem, n_rows)

    monkeypatch.setattr(Settings, "penalty", noted)
    with threadpool_limits(limit, user_api="blas"):
        before = threadpool_info()
        TensorMachineRegressor(**QUICK, n_jobs=n_jobs).fit(X, y)
        assert threadpool_info() == before
    assert seen
    assert max(seen) <= min(n_jobs, limit)


def test_fits_that_overlap_in_threads_give_blas_its_threads_back(rng):
    X, y = teacher(rng, 200)

    def most():
        return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"), fit_scope(TensorMachineRegressor(n_jobs=2)):
        assert most() == 2
        first, second = (fit_scope(TensorMachineRegressor(n_jobs=1)) for _ in range(2))
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # before the one that it began with
        assert most() == 1
        second.__exit__(None, None, None)
        assert most() == 2
        TensorMachineRegressor(**QUICK, n_jobs=1).fit(X, y)
        assert most() == 2


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "kfac"])
def test_a_fit_that_ends_early_and_worse_than_a_constant_says_so(rng, solver):
    X = rng.standard_normal((60, 3))
    y = X[:, 0] * X[:, 1]
    settings = {
        "degree": 2,
        "rank": 2,
        "basis": "standard",
        "alpha": 1e-3,
        "init_scale": 1.0,
        "random_state": 0,
    }
    model = TensorMachineRegressor(**settings, solver=solver, max_iter=1)
    with pytest.warns(
        ConvergenceWarning, match="ended at max_iter=1 or before, and fits its own training rows"
    ):
        model.fit(X, y)
    assert model.score(X, y) < 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.set_params(max_iter=None).fit(X, y).score(X, y) > 0.5
