"""Searches for settings by cross-validation."""

from inspect import signature
from itertools import chain, repeat

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from searches import BY_LBFGS, FEW
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
)
from tensormachines._fit.settings import Deadline
from tensormachines.estimators import halving as search_module
from tensormachines.estimators.polynomial_model import PolynomialModel
from tensormachines.estimators.search import Search
from tensormachines.export import to_json
from tensormachines.inspection import polynomial

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(("settings", "basis", "error"), [(FEW, "auto", 0.05), (BY_LBFGS, "standard", 0.02)])
def test_finds_the_degree(regression, settings, basis, error):
    model = TensorMachineRegressorCV(**settings).fit(*regression)
    (max_iter,) = settings["max_iters"]
    assert model.best_params_ == {
        "basis": basis,
        "roughness": 3.0,
        "relevance": 0,
        "trend": False,
        "jumps": False,
        "degree": 2,
        "rank": 2,
        "alpha": 1e-4,
        "max_iter": max_iter,
    }
    assert model.score(*regression) > 0.95
    assert (
        -error < model.best_score_ < -0.005
    )  # minus the variance of the noise, or a little worse; splines have more to learn


def test_prefers_a_linear_model_where_there_is_nothing_else(rng):
    X = rng.normal(size=(80, 6))
    y = X @ rng.normal(size=6) + 3 * rng.normal(size=80)
    assert TensorMachineRegressorCV(**{**FEW, "alphas": (1e-4,)}).fit(X, y).best_params_["degree"] == 1


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_without_halving_it_is_an_exhaustive_search(regression, solver):
    cv = KFold(3, shuffle=True, random_state=1)
    max_iter = 30 if solver == "adam" else 100
    model = TensorMachineRegressorCV(
        **{**BY_LBFGS, "solver": solver, "max_iters": (max_iter,)}, cv=cv, halving=False
    ).fit(*regression)
    grid = {"degree": [1, 2], "rank": [2], "alpha": [1e-4, 1e-1]}
    machine = TensorMachineRegressor(basis="standard", solver=solver, max_iter=max_iter, random_state=0)
    exhaustive = GridSearchCV(machine, grid, cv=cv, scoring="neg_mean_squared_error").fit(*regression)
    ours = {
        (p["degree"], p["alpha"]): s
        for p, s in zip(model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True)
    }
    truth = exhaustive.cv_results_
    for params, score in zip(truth["params"], truth["mean_test_score"], strict=True):
        assert ours[params["degree"], params["alpha"]] == pytest.approx(score, rel=1e-3)
    assert {
        **exhaustive.best_params_,
        "basis": "standard",
        "roughness": 3.0,
        "relevance": 0,
        "trend": False,
        "jumps": False,
        "max_iter": max_iter,
    } == model.best_params_
    np.testing.assert_allclose(model.predict(regression[0]), exhaustive.predict(regression[0]), atol=1e-6)


def test_default_score_of_classes_is_log_loss(classes):
    X, y = classes
    cv = StratifiedKFold(3)
    model = TensorMachineClassifierCV(**BY_LBFGS, cv=cv, halving=False).fit(X, y)
    machine = TensorMachineClassifier(**model.best_params_, solver="lbfgs", random_state=0)
    losses = [
        log_loss(y[test], machine.fit(X[train], y[train]).predict_proba(X[test]))
        for train, test in cv.split(X, y)
    ]
    np.testing.assert_allclose(
        [-model.cv_results_[f"split{k}_test_score"][model.best_index_] for k in range(3)], losses, rtol=1e-3
    )


def test_named_scores_are_scikit_learns(classes):
    X, y = classes
    model = TensorMachineClassifierCV(**FEW, cv=3, halving=False, scoring="accuracy").fit(X, y)
    machine = TensorMachineClassifier(**model.best_params_, random_state=0)
    assert model.best_score_ == pytest.approx(cross_val_score(machine, X, y, cv=3).mean(), abs=0.02)
    by_callable = TensorMachineClassifierCV(
        **FEW, cv=3, halving=False, scoring=lambda m, X, y: (m.predict(X) == y).mean()
    ).fit(X, y)
    assert by_callable.best_score_ == model.best_score_


def test_every_trial_begins_anew(regression):
    """With rungs of equal rows, a trial is the fit that a machine by itself has in its iterations: the more
    of them, the lower it gets.
    """
    X, y = regression
    objectives = {}

    def keep(machine, X, y):
        objectives.setdefault((machine.degree, machine.alpha), []).append(machine.objective_)
        return -machine.objective_

    settings = {**BY_LBFGS, "max_iters": (5,), "tol": 0.0}
    TensorMachineRegressorCV(**settings, cv=[(np.arange(200), np.arange(200, 300))], scoring=keep).fit(X, y)
    paths = {candidate: path for candidate, path in objectives.items() if len(path) == 2}
    assert paths
    for (degree, alpha), path in paths.items():
        alone = {
            "degree": degree,
            "rank": 2,
            "alpha": alpha,
            "basis": "standard",
            "solver": "lbfgs",
            "tol": 0.0,
            "random_state": 0,
        }
        fits = [
            TensorMachineRegressor(**alone, max_iter=iterations).fit(X[:200], y[:200])
            for iterations in (3, 5)
        ]
        assert path == pytest.approx([fit.objective_ for fit in fits])
        assert path[0] > path[1]


def test_fits_that_share_their_passes_are_the_same_as_alone(classes, regression):
    for search, machine, (X, y) in (
        (TensorMachineClassifierCV, TensorMachineClassifier, classes),
        (TensorMachineRegressorCV, TensorMachineRegressor, regression),
    ):
        for solver in ("adam", "lbfgs", "sfo"):
            settings = {"solver": solver, "tol": 0.0, "random_state": 0, "n_restarts": 2}
            params = []
            search(
                degrees=(3,), ranks=(2,), alphas=(1e-3, 1e-1), bases=("standard",), relevances=(0,),
                max_iters=(2,), roughnesses=(3.0,),
                cv=[(np.arange(200), np.arange(200, 300))], refit=False, halving=False,
                scoring=lambda m, X, y, params=params: params.append(m._machine.params) or 0.0, **settings,
            ).fit(X, y)  # fmt: skip
            for alpha, found in zip((1e-3, 1e-1), params, strict=True):
                alone = machine(3, 2, alpha, basis="standard", max_iter=2, **settings).fit(X[:200], y[:200])
                np.testing.assert_allclose(found, alone._machine.params, rtol=1e-5, atol=1e-7)


def test_result_has_what_a_tensor_machine_has(classes):
    pd = pytest.importorskip("pandas")
    X, y = classes
    names = np.array(["low", "middle", "top"])[y]
    model = TensorMachineClassifierCV(**FEW, cv=3).fit(pd.DataFrame(X, columns=list("abcde")), names)
    best = model.best_estimator_
    assert isinstance(best, TensorMachineClassifier)
    frame = pd.DataFrame(X, columns=list("abcde"))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(model, method)(frame), getattr(best, method)(frame))
    for name in (
        "linear_",
        "feature_importances_",
        "intercept_",
        "n_parameters_",
        "jumps_",
        "n_iter_",
        "objective_",
        "classes_",
        "feature_names_in_",
        "n_features_in_",
    ):
        np.testing.assert_array_equal(getattr(model, name), getattr(best, name))
    assert model.factors_.keys() == best.factors_.keys()
    assert not hasattr(model, "partial_fit")
    alone = TensorMachineClassifier(**model.best_params_, random_state=0).fit(frame, names)
    np.testing.assert_array_equal(alone.predict_proba(frame), model.predict_proba(frame))


def test_cv_results(regression):
    pd = pytest.importorskip("pandas")
    model = TensorMachineRegressorCV(**{**FEW, "alphas": (1e-4, 1e-2, 1e-1)}, cv=4).fit(*regression)
    results = model.cv_results_
    assert model.n_splits_ == 4
    assert len({len(values) for values in results.values()}) == 1
    table = pd.DataFrame(results)
    assert table["iter"].tolist() == sorted(table["iter"])
    assert (table["iter"] == 0).sum() == 2  # every second degree and alpha
    assert (table["iter"] == 1).sum() >= 3  # the neighbours of the best too
    last = table[table["iter"] == table["iter"].max()]
    assert table.loc[model.best_index_, "params"] == model.best_params_
    assert model.best_score_ == table.loc[model.best_index_, "mean_test_score"]
    highest = last["mean_test_score"].max()  # which may be too little above that of one tried before
    assert highest - search_module.MARGIN * abs(model.best_score_) <= model.best_score_ <= highest
    assert table.loc[last["mean_test_score"].idxmax(), "rank_test_score"] == 1
    given_up = ~np.isfinite(table["mean_test_score"])
    assert (table.loc[given_up, "split0_test_score"] < last.loc[model.best_index_, "split0_test_score"]).all()
    ranks = table.loc[last.index, "rank_test_score"]
    n_left = int((~given_up[last.index]).sum())
    assert sorted(ranks[~given_up[last.index]]) == list(range(1, n_left + 1))
    assert (ranks[given_up[last.index]] == n_left + 1).all()
    assert last["rank_test_score"].max() < table[table["iter"] == 0]["rank_test_score"].min()
    scores = last[[f"split{k}_test_score" for k in range(4)]]
    np.testing.assert_allclose(scores.mean(axis=1)[~given_up], last["mean_test_score"][~given_up])
    np.testing.assert_allclose(scores.std(axis=1, ddof=0)[~given_up], last["std_test_score"][~given_up])
    assert table["param_degree"].tolist() == [params["degree"] for params in table["params"]]
    assert (table["mean_fit_time"] > 0).all()
    assert model.refit_time_ > 0


def test_deterministic_for_a_seed_and_any_number_of_threads(regression):
    first, again, threads = (
        TensorMachineRegressorCV(**FEW, n_jobs=n_jobs).fit(*regression) for n_jobs in (1, 1, 2)
    )
    for other in (again, threads):
        assert other.best_score_ == first.best_score_
        np.testing.assert_array_equal(other.predict(regression[0]), first.predict(regression[0]))


def test_sparse_rows_and_several_outputs(rng):
    X = sparse.random_array((200, 30), density=0.2, format="csr", random_state=rng)
    y = np.column_stack([X @ rng.normal(size=30), X @ rng.normal(size=30)])
    dense, few = (TensorMachineRegressorCV(**BY_LBFGS, cv=3).fit(rows, y) for rows in (X.toarray(), X))
    assert few.predict(X).shape == (200, 2)
    assert few.best_params_ == dense.best_params_
    assert few.best_score_ == pytest.approx(dense.best_score_, rel=0.05)


def test_weights_count_in_the_fit_and_in_the_score(regression, rng):
    X, y = regression
    weight = rng.integers(0, 3, size=len(y))
    groups = np.arange(len(y)) % 3
    splits = list(LeaveOneGroupOut().split(X, groups=groups))
    repeated = np.repeat(np.arange(len(y)), weight)
    of_repeated = list(LeaveOneGroupOut().split(repeated, groups=groups[repeated]))
    for scoring in (None, "r2"):
        weighted = TensorMachineRegressorCV(**FEW, cv=splits, scoring=scoring).fit(X, y, sample_weight=weight)
        plain = TensorMachineRegressorCV(**FEW, cv=of_repeated, scoring=scoring).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(
            weighted.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-6
        )


def test_time_budget(rng):
    """Far too little time for 288 candidates: some are tried all the same, and the last fit, a short one, is
    a whole one.
    """
    X = rng.normal(size=(6000, 10))
    y = X[:, 0] * X[:, 1] * X[:, 2] + rng.normal(size=6000)
    model = TensorMachineRegressorCV(time_budget=1e-3, tol=0.0, random_state=0)
    # The time is over when the clock is read again, and stands still then: the last fit is never late.
    model._clock = chain([0.0], repeat(1.0)).__next__
    model.fit(X, y)
    assert len(model.cv_results_["params"]) <= 5  # those that are fitted together
    assert model.n_iter_ == model.best_params_["max_iter"] == 10
    assert model.best_estimator_.n_members == 1
    assert np.isfinite(model.predict(X)).all()
    enough = TensorMachineRegressorCV(**FEW, time_budget=1e6).fit(X[:500], y[:500])
    assert enough.best_score_ == TensorMachineRegressorCV(**FEW).fit(X[:500], y[:500]).best_score_


def test_time_budget_includes_the_weighing_of_columns(rng, monkeypatch):
    epochs = []
    monkeypatch.setattr(Deadline, "watch", lambda self, solver, iterate: epochs.append(self.end) or True)
    X = rng.normal(size=(200, 3))
    settings = {**FEW, "degrees": (2,), "alphas": (1e-3,), "relevances": (2,)}
    TensorMachineRegressorCV(**settings, cv=2, time_budget=1e3).fit(X, X[:, 0])
    assert len(epochs) == 3 * (2 + 1)  # two rounds and the fit itself, on each split and on all rows
    assert np.isfinite(epochs).all()


def test_a_seed_of_numpy_is_a_number(regression):
    scores = [
        TensorMachineRegressorCV(**{**FEW, "random_state": seed}).fit(*regression).best_score_
        for seed in (0, np.int64(0))
    ]
    assert scores[0] == scores[1]


def test_degrees_that_a_constraint_excludes_are_refused(regression):
    search = TensorMachineRegressorCV(degrees=(3, 4), interaction_cst="pairwise")
    with pytest.raises(ValueError, match="'pairwise' allows degrees up to 2, but degrees is"):
        search.fit(*regression)


def test_a_scorer_sees_the_columns_as_they_were_given(rng):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": rng.normal(size=200), "group": rng.choice(["a", "b"], 200)})

    def score(model, X, y):
        some = X["group"] == "a"
        return -np.mean((model.predict(X[some]) - y[some]) ** 2)

    search = TensorMachineRegressorCV(**FEW, cv=2, scoring=score).fit(table, table["x"].to_numpy())
    assert np.isfinite(search.best_score_)


def test_without_refit_there_are_results_and_no_model(regression):
    model = TensorMachineRegressorCV(**FEW).fit(*regression)
    model.set_params(refit=False).fit(*regression)
    assert not hasattr(model, "members_")
    assert not hasattr(model, "refit_time_")
    assert model.best_params_["degree"] == 2
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model, "coef_")
    fit_it = r"fit TensorMachineRegressor\(\*\*best_params_\) to all rows"
    reason = f"refit=False leaves no model: set refit=True, or {fit_it}"
    for use in (
        lambda: model.predict(regression[0]),
        lambda: model.save("never"),
        lambda: polynomial(model),
        lambda: to_json(model),
    ):
        with pytest.raises(NotFittedError, match=reason):
            use()
    with pytest.raises(AttributeError, match=f"has no coef_: {reason}"):
        _ = model.coef_
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(model).predict(regression[0])


def test_inside_scikit_learns_tools(regression):
    X, y = regression
    model = TensorMachineRegressorCV(**BY_LBFGS, cv=3)
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=2).min() > 0.9
    search = GridSearchCV(model, {"ranks": [(1,), (2,)]}, cv=2).fit(X, y)
    assert search.best_estimator_.best_params_["degree"] == 2
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degrees": (0,)}, "degree"),
        ({"ranks": ()}, "ranks must hold at least one value"),
        ({"max_iters": ()}, "max_iters must hold at least one value"),
        ({"alphas": 1.0}, "alphas"),
        ({"alphas": ("auto", 1e-3)}, "alphas must hold numbers"),
        ({"max_iters": (None,)}, "max_iters must hold numbers"),
        ({"bases": ("wavelet",)}, "basis"),
        ({"scoring": "speed"}, "scoring"),
        ({"time_budget": 0}, "time_budget"),
        ({"cv": 1}, "cv|splits"),
    ],
)
def test_refuses_what_it_cannot_do(regression, settings, message):
    model = TensorMachineRegressorCV(**FEW).fit(*regression)
    before = model.predict(regression[0])
    with pytest.raises(ValueError, match=message):
        model.set_params(**settings).fit(*regression)
    np.testing.assert_array_equal(model.predict(regression[0]), before)  # what failed leaves what was


def test_scores_that_all_fail_are_an_error(regression):
    with pytest.raises(ValueError, match="All candidates failed"):
        TensorMachineRegressorCV(**FEW, scoring=lambda machine, X, y: np.nan).fit(*regression)


@pytest.mark.parametrize("bases", [("standard",), ("auto", "unit")])
def test_a_raw_table_for_bases_of_numbers_is_refused_in_words(rng, bases):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"number": rng.normal(size=30), "word": list("abc" * 10)})
    with pytest.raises(
        ValueError, match=r"bases=.* needs numbers: column 'word' holds strings. Use bases=\(\"auto\",\)"
    ):
        TensorMachineRegressorCV(**FEW, bases=bases).fit(X, X["number"])


def test_the_result_is_the_mean_of_members(regression):
    X, y = regression
    model = TensorMachineRegressorCV(**{**FEW, "n_members": 3}, scoring="r2").fit(X, y)
    assert model.best_estimator_.n_members == 3
    assert model.factors_[2].shape[1] == 3 * model.best_params_["rank"]
    alone = TensorMachineRegressor(**model.best_params_, n_members=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_members_are_as_many_as_there_is_time_for(regression):
    settings = {**FEW, "scoring": "r2"}
    enough = TensorMachineRegressorCV(**{**settings, "n_members": 3}, time_budget=1e6).fit(*regression)
    assert enough.best_estimator_.n_members == 3
    short = TensorMachineRegressorCV(**{**settings, "n_members": 1000}, time_budget=2.0)
    short.fit(*regression)
    assert 1 <= short.best_estimator_.n_members < 1000
    assert np.isfinite(short.predict(regression[0])).all()


def test_both_searches_and_both_machines_have_the_parameters_of_their_base():
    for base, kinds in (
        (Search, (TensorMachineRegressorCV, TensorMachineClassifierCV)),
        (PolynomialModel, (TensorMachineRegressor, TensorMachineClassifier)),
    ):
        expected = signature(base.__init__).parameters
        for kind in kinds:
            found = signature(kind.__init__).parameters
            for name, parameter in expected.items():
                assert found[name].default == parameter.default, (kind, name)


@pytest.mark.parametrize("weight", [None, "uneven"])
def test_scores_are_by_the_scoring_of_the_search(rng, weight):
    """As those of GridSearchCV, so that they can be compared with best_score_."""
    X = rng.normal(size=(200, 2))
    y, weight = X[:, 0] + rng.normal(size=200), None if weight is None else rng.random(200)
    search = TensorMachineRegressorCV(**FEW, scoring="neg_mean_absolute_error").fit(X, y)
    expected = -mean_absolute_error(y, search.predict(X), sample_weight=weight)
    assert search.score(X, y, weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="scoring='neg_mean_absolute_error' needs X and y in memory"):
        search.score(blocks.iterable([(X, y)]))
    with pytest.raises(ValueError, match="cannot be combined with exposure or offset"):
        search.score(X, y, offset=y)
    search = TensorMachineClassifierCV(**FEW, scoring="roc_auc").fit(X, y > 0)
    expected = roc_auc_score(y > 0, search.predict_proba(X)[:, 1], sample_weight=weight)
    assert search.score(X, y > 0, weight) == pytest.approx(expected)
    assert search.set_params(scoring=None).score(X, y > 0) == np.mean(search.predict(X) == (y > 0))
