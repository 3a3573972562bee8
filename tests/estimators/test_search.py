import io
import re
import sys
import types
from inspect import signature
from itertools import chain, count, repeat

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines._fit.settings import Deadline
from tensormachines.estimators import halving as search_module
from tensormachines.estimators.candidates import ALPHA_POWER, Grid, all_candidates, on_rung
from tensormachines.estimators.halving import Rung
from tensormachines.estimators.polynomial_model import PolynomialModel
from tensormachines.estimators.search import Search
from tensormachines.export import to_json
from tensormachines.inspection import polynomial

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FEW = {
    "degrees": (1, 2),
    "ranks": (2,),
    "alphas": (1e-4, 1e-1),
    "relevances": (0,),
    "trends": (False,),
    "roughnesses": (3.0,),
    "max_iters": (30,),
    "n_members": 1,
    "random_state": 0,
}
BY_LBFGS = {**FEW, "bases": ("standard",), "solver": "lbfgs", "max_iters": (100,)}


@pytest.fixture
def regression(rng):
    """A product of two columns: degree 2 finds it, degree 1 cannot."""
    X = rng.normal(size=(300, 4))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300)


@pytest.fixture
def classes():
    return make_classification(
        300, 5, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )


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


@pytest.mark.parametrize(
    ("solver", "basis"), [("lbfgs", "standard"), ("sfo", "standard"), ("adam", "standard"), ("adam", "auto")]
)
def test_rows_held_out_never_leak(monkeypatch, rng, solver, basis):
    """Whatever the held-out rows of a split are, the params fitted for that split are the same to the bit."""
    monkeypatch.setattr("tensormachines.estimators.halving.FEWEST_ROWS", 50)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=400)
    (train, test), *_ = KFold(4).split(X)
    fitted = []

    def keep(machine, X, y):
        fitted.append(machine._machine)
        return -float(len(fitted))

    for factor in (1, 1000):
        X_changed, y_changed = X.copy(), y.copy()
        X_changed[test] *= factor
        y_changed[test] -= factor
        settings = {
            **FEW,
            "alphas": (1e-4, 1e-2, 1e-1),
            "bases": (basis,),
            "relevances": (0, 1),
            "max_iters": (9,),
        }
        TensorMachineRegressorCV(
            **settings, cv=[(train, test)], solver=solver, scoring=keep, refit=False
        ).fit(X_changed, y_changed)
    half = len(fitted) // 2
    assert half > 4
    for one, other in zip(fitted[:half], fitted[half:], strict=True):
        np.testing.assert_array_equal(one.params, other.params)
        if basis == "auto":
            np.testing.assert_array_equal(one.basis.center, other.basis.center)
            np.testing.assert_array_equal(
                one.basis.columns[0].knots[[0, -1]], [X[train, 0].min(), X[train, 0].max()]
            )
        else:
            np.testing.assert_array_equal(one.basis.shift, other.basis.shift)
            np.testing.assert_allclose(
                one.basis.shift, X[train].mean(axis=0)
            )  # of all training rows, on every rung


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


def test_which_rows_are_held_out(rng):
    y = rng.integers(0, 2, size=10_000)
    for model in (TensorMachineRegressorCV(), TensorMachineClassifierCV()):
        assert [len(test) for _, test in model._splitter(y, 0).split(y[:, None], y)] == [2000]
        assert model._splitter(y[1:], 0).get_n_splits() == 5
    share = [y[test].mean() for _, test in TensorMachineClassifierCV()._splitter(y, 0).split(y[:, None], y)]
    assert share[0] == pytest.approx(y.mean(), abs=1e-3)
    y[0] = 2  # a class of one row cannot be shared out
    assert (
        sum(len(test) for _, test in TensorMachineClassifierCV()._splitter(y, 0).split(y[:, None], y)) == 2000
    )


def test_a_class_that_a_split_has_not_seen_is_a_bad_score_and_no_error(rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    y[3] = 2
    model = TensorMachineClassifierCV(**FEW).fit(X, y)
    assert np.isfinite(model.best_score_)
    assert list(model.classes_) == [0, 1, 2]


def test_splits_that_cannot_be_used_are_left_out(rng):
    X = rng.normal(size=(50, 2))
    y = np.where(np.arange(50) == 7, "rare", "usual")
    model = TensorMachineClassifierCV(**FEW).fit(X, y)
    assert model.n_splits_ == 4  # not the one that would hold out the only row of a class
    assert np.isfinite(model.best_score_)
    weight = np.repeat([0.0, 1.0], [10, 40])
    model = TensorMachineRegressorCV(**FEW, cv=5).fit(X, X[:, 0], sample_weight=weight)
    assert model.n_splits_ == 4
    with pytest.raises(ValueError, match="cv has no usable split: each needs rows of positive weight"):
        TensorMachineRegressorCV(**FEW, cv=5).fit(
            X, X[:, 0], sample_weight=1 - np.repeat([0.0, 1.0], [10, 40])
        )


def test_the_only_row_of_a_class_is_not_held_out(rng):
    y = np.arange(10_000) == 7
    for seed in range(5):
        splits = TensorMachineClassifierCV()._splits(np.zeros((10_000, 1)), y, None, seed)
        assert all(y[training].any() for training, _ in splits)


def test_masks_are_splits_too(regression):
    training = np.arange(300) < 200
    of_masks, of_numbers = (
        TensorMachineRegressorCV(**FEW, cv=[split]).fit(*regression)
        for split in ((training, ~training), (np.flatnonzero(training), np.flatnonzero(~training)))
    )
    assert of_masks.best_score_ == of_numbers.best_score_
    assert of_masks.cv_results_["n_resources"].tolist() == of_numbers.cv_results_["n_resources"].tolist()


def test_few_rows_have_fewer_folds(regression):
    X, y = regression
    assert TensorMachineRegressorCV(**FEW).fit(X[:3], y[:3]).n_splits_ == 3


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


def test_without_refit_there_are_results_and_no_model(regression):
    model = TensorMachineRegressorCV(**FEW).fit(*regression)
    model.set_params(refit=False).fit(*regression)
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


def test_a_linear_model_has_no_rank():
    one = {"relevances": (0,), "trends": (False,), "roughnesses": (3.0,), "max_iters": (30,)}
    single = {"alphas": (1e-3,), **one}
    found = candidates(degrees=(1, 2), ranks=(2, 5), **single)
    assert [(c["degree"], c["rank"]) for c in found] == [(1, 2), (2, 2), (2, 5)]


def test_the_order_of_ranks_does_not_matter(regression):
    up, down = (
        TensorMachineRegressorCV(**{**FEW, "ranks": ranks}).fit(*regression) for ranks in ((2, 3), (3, 2))
    )
    assert up.best_params_ == down.best_params_


def test_a_column_is_of_one_kind_in_all_splits():
    """Numbers with one string among them are a category, in the splits without it too: the same as if all
    were strings.
    """
    column = np.array([[float(number % 7)] for number in range(100)], dtype=object)
    column[0] = "?"
    strings = np.array([[entry if entry == "?" else str(int(entry))] for entry in column[:, 0]], dtype=object)
    y = np.arange(100) % 7 * 1.0
    settings = {
        "degrees": (1,),
        "ranks": (1,),
        "relevances": (0,),
        "trends": (False,),
        "max_iters": (3,),
        "n_members": 1,
        "random_state": 0,
    }
    scores = [
        TensorMachineRegressorCV(**settings).fit(X, y).cv_results_["mean_test_score"]
        for X in (column, strings)
    ]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("bases", [("standard",), ("auto", "unit")])
def test_a_raw_table_for_bases_of_numbers_is_refused_in_words(rng, bases):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"number": rng.normal(size=30), "word": list("abc" * 10)})
    with pytest.raises(
        ValueError, match=r"bases=.* needs numbers: column 'word' holds strings. Use bases=\(\"auto\",\)"
    ):
        TensorMachineRegressorCV(**FEW, bases=bases).fit(X, X["number"])


def test_progress_lines(regression, capsys):
    TensorMachineRegressorCV(**FEW, verbose=1).fit(*regression)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[TensorMachineRegressorCV] rung 1/2: 1 candidate left")
    assert any("rung 2/2" in line and "about" in line for line in lines)
    assert any("best score -" in line for line in lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_one_line_is_updated_on_a_terminal_and_nowhere_else(regression, capsys, monkeypatch):
    search = TensorMachineRegressorCV(**FEW)
    assert search.verbose == "auto"
    search.fit(*regression)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search.fit(*regression)
    shown = terminal.getvalue()
    assert "\n" not in shown
    assert "best score -" in shown
    assert shown.endswith("\r\x1b[K")  # the line is gone
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search.set_params(verbose=0).fit(*regression)
    assert terminal.getvalue() == ""
    assert capsys.readouterr().out == ""


class Cell:
    """An output of a cell as IPython displays it: every update replaces all of it."""

    def __init__(self, outputs, number):
        self.outputs, self.number = outputs, number

    def update(self, data, raw):
        assert raw
        self.outputs[self.number] = data["text/plain"]


def notebook(monkeypatch):
    """Make standard output one of ipykernel, and return the outputs of a cell."""
    outputs = []

    def display(data, raw, display_id):
        assert raw
        assert display_id is True
        outputs.append(data["text/plain"])
        return Cell(outputs, len(outputs) - 1)

    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["IPython.display"].display = display
    of_kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(sys, "stdout", stream := of_kernel())
    return outputs, stream


def test_one_output_of_a_notebook_is_updated(regression, monkeypatch):
    outputs, stream = notebook(monkeypatch)
    TensorMachineRegressorCV(**FEW).fit(*regression)
    assert len(outputs) == 1
    assert re.fullmatch(r"\[TensorMachineRegressorCV\] done in [\d.]+ s", outputs[0])
    search = TensorMachineRegressorCV(random_state=0, time_budget=30)
    search._clock = count().__next__
    search.fit(*regression)
    assert len(outputs) == 2
    *kept, last = outputs[1].splitlines()
    assert kept
    assert all("time_budget leaves no time for " in line for line in kept)
    assert "done in" in last
    assert stream.getvalue() == ""


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


def test_it_says_what_there_was_no_time_for(regression, monkeypatch):
    """By a clock that goes on by a second whenever it is read; what matters stays on the terminal."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search = TensorMachineRegressorCV(random_state=0, time_budget=30)
    search._clock = count().__next__
    search.fit(*regression)
    kept = [line.rpartition("\x1b[K")[2] for line in terminal.getvalue().split("\n")[:-1]]
    assert kept
    assert all("time_budget leaves no time for " in line for line in kept)


def test_alpha_is_larger_on_fewer_rows():
    machine = TensorMachineRegressor(alpha=1e-3)
    rung = Rung(rows=1 / 9, most_splits=1, iterations=1 / 3, tolerance=1.0, n_candidates=1)
    assert on_rung(machine, rung).alpha == pytest.approx(1e-3 * 9**ALPHA_POWER)
    assert machine.alpha == 1e-3


# ---- which candidates are tried


def candidates(usual_rank=10, **settings):
    return all_candidates(TensorMachineRegressorCV(**settings), usual_rank)


def test_ranks_are_the_usual_one_and_twice_as_many():
    assert {candidate["rank"] for candidate in candidates()} == {10, 20}
    assert {candidate["rank"] for candidate in candidates(39)} == {39, 78}
    assert {candidate["rank"] for candidate in candidates(39, ranks=(3, 5))} == {3, 5}


def test_a_coarse_grid_is_every_second_step():
    all_of_them = candidates(
        degrees=(4, 2, 3, 6), ranks=(5,), alphas=(1e-2, 1e-3, 1e-4), relevances=(0, 2), max_iters=(10, 30)
    )
    coarse = [all_of_them[number] for number in Grid(all_of_them, 10, 1e-3).coarse()]
    assert {(c["degree"], c["alpha"]) for c in coarse} == {
        (degree, alpha) for degree in (2, 4) for alpha in (1e-4, 1e-2)
    }
    assert {(c["rank"], c["relevance"], c["max_iter"]) for c in coarse} == {(5, 0, 10)}
    assert len(coarse) == 4


def test_neighbours_differ_by_one_step_in_one_parameter():
    all_of_them = candidates(
        degrees=(2, 3, 6), ranks=(2, 5), alphas=(1e-4, 1e-3, 1e-2), relevances=(0, 2), bases=("auto", None),
        roughnesses=(3.0,),
    )  # fmt: skip
    neighbours = Grid(all_of_them, 10, 1e-3).neighbours()
    steps = {
        name: sorted({c[name] for c in all_of_them}, key=str) for name in all_of_them[0] if name != "basis"
    }
    for number, around in neighbours.items():
        for other in around:
            assert number in neighbours[other]
            here, there = all_of_them[number], all_of_them[other]
            (name,) = (name for name in here if here[name] != there[name])
            if name != "basis":
                values = sorted(steps[name])
                assert abs(values.index(here[name]) - values.index(there[name])) == 1
    both = {"basis": "auto", "roughness": 3.0, "relevance": 0, "trend": False, "rank": 2, "max_iter": 10}
    corner = all_of_them.index({**both, "degree": 2, "alpha": 1e-4})
    assert len(neighbours[corner]) == 7  # one way in each parameter
    middle = all_of_them.index({**both, "degree": 3, "alpha": 1e-3})
    first, second, *_ = (all_of_them[number] for number in neighbours[middle])
    assert (first["alpha"], second["degree"]) == (
        1e-4,
        6,
    )  # few rows favour large penalties and simple models: those first


def test_the_usual_candidate_is_nearest_to_the_defaults():
    all_of_them = candidates()
    usual = all_of_them[Grid(all_of_them, 10, 4e-4).usual()]
    assert usual == {
        "basis": "auto",
        "roughness": 3.0,
        "relevance": 0,
        "trend": False,
        "degree": 3,
        "rank": 10,
        "alpha": 3e-4,
        "max_iter": 10,
    }
    assert all_of_them[Grid(all_of_them, 20, 4e-4).usual()] == {**usual, "rank": 20}


def test_neighbours_lead_from_everywhere_to_everywhere():
    all_of_them = candidates()
    neighbours = Grid(all_of_them, 10, 1e-3).neighbours()
    reached, new = {0}, [0]
    while new:
        new = list({other for number in new for other in neighbours[number]} - reached)
        reached.update(new)
    assert len(reached) == len(all_of_them)


# ---- members


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


# ---- the default settings as a candidate


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
        for split in search._splits(X, y, None, 0)
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


# ---- parameters


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
