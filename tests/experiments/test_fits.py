from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from tensormachines.datasets import Data
from tensormachines.experiments.fits import Fit, ScaledSet, Search, Units
from tensormachines.experiments.methods import METHODS

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are short on purpose


@pytest.fixture
def regression(rng):
    X = rng.standard_normal((50, 3)).astype(np.float32)
    y = 1000 + X[:, 0].astype(float) * X[:, 1]
    return ScaledSet(Data("made", X[:40], y[:40], X[40:], y[40:], True, "folder"), "regression", 2)


@pytest.fixture
def binary(rng):
    X = rng.standard_normal((80, 3)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    return ScaledSet(Data("made", X[:60], y[:60], X[60:], y[60:], True, "folder"), "binary", 2)


def test_parts_of_the_rows_follow_each_other_and_begin_again(regression):
    y = regression.data.y_train
    assert np.array_equal(regression.training_rows(15)[1], y[:15])
    assert np.array_equal(regression.training_rows(15, part=1)[1], y[15:30])
    assert np.array_equal(regression.training_rows(15, part=2)[1], np.concatenate([y[30:], y[:5]]))
    X, _ = regression.training_rows(15, part=2)
    assert np.array_equal(X[10:], regression.data.X_train[:5])


def test_units_are_undone_and_leave_labels_alone(regression, binary):
    y = regression.data.y_train
    units = regression.units(y)
    assert np.allclose([units.of(y).mean(), units.of(y).std()], [0, 1])
    assert np.allclose(units.undone(units.of(y)), y)
    assert regression.units(np.full(5, 7.0)) == Units(7.0, 1.0)  # a constant target is not divided by 0
    labels = binary.data.y_train
    assert binary.units(labels).of(labels) is labels


def test_errors(regression, binary):
    assert regression.error(np.array([3.0, 4.0]), np.array([3.0, 0.0])) == pytest.approx(4 / 3)
    assert binary.error(np.array([1, -1, 1, 1]), np.array([1, 1, 1, -1])) == 0.5


def test_kernel_ridge_trials_have_rows_of_their_own(regression):
    lines = [
        Fit(METHODS["krr"], regression, 20, {"alpha": 1e-3}, None, trial, part=trial)() for trial in (0, 1)
    ]
    again = Fit(METHODS["krr"], regression, 20, {"alpha": 1e-3}, None, seed=5)()
    assert lines[0]["error"] == again["error"] != lines[1]["error"]


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_risks_of_a_bounded_fit_are_mean_losses(kind, request):
    rows = request.getfixturevalue(kind)
    params = {"rank": 2, "alpha": 0.0, "max_norm": 2.0}
    line = Fit(METHODS["tm-batch"], rows, 30, params, 30, 0, with_bound=True)()
    X, y = rows.training_rows(30)
    model = METHODS["tm-batch"].estimator(rows.task, 2, 0, params, 30).fit(X, rows.units(y).of(y))
    if kind == "regression":
        expected = np.mean((model.predict(X) - rows.units(y).of(y)) ** 2) / 2
    else:
        expected = np.mean(np.log(1 + np.exp(-y * model.decision_function(X))))
    assert line["train_risk"] == pytest.approx(expected, rel=1e-4)
    assert line["bound_norm"] <= 2.0 * (1 + 1e-5)
    assert line["bound_row_norm"] == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-5)


@pytest.mark.parametrize("method", ["krr", "tm-batch"])
def test_a_search_gives_every_candidate_the_error_that_cross_validation_by_hand_gives(method, binary):
    grid = (
        {"alpha": (1e-3, 1.0)}
        if method == "krr"
        else {"rank": (1,), "alpha": (1e-3, 1.0), "init_scale": (0.5,)}
    )
    found = Search(METHODS[method], binary, 60, grid, folds=3)()
    assert [params["alpha"] for params, _, _ in found] == [1e-3, 1.0]
    X, y = binary.training_rows(60)
    for params, error, spread in found:
        errors = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
            model = METHODS[method].estimator("binary", 2, 0, params, None)
            errors.append(
                np.mean(
                    model.fit(X[train].astype(METHODS[method].dtype), y[train]).predict(X[test]) != y[test]
                )
            )
        assert error == pytest.approx(
            np.mean(errors), abs=0.02
        )  # the search shares passes: another order of sums
        assert spread == pytest.approx(np.std(errors), abs=0.02)


def test_tm_free_chooses_its_degree_and_relevance(rng):
    X = rng.standard_normal((300, 3)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] * X[:, 2]).astype(float)  # which no degree of 2 can fit
    scaled = ScaledSet(Data("made", X[:250], y[:250], X[250:], y[250:], True, "folder"), "regression", 2)
    method = METHODS["tm-free"]
    grid = {"rank": (2,), "alpha": (1e-6,), "init_scale": (1.0,), "degree": (2, 3), "relevance": (0, 1)}
    found = Search(method, scaled, 250, grid, 2)()
    assert {(params["degree"], params["relevance"]) for params, *_ in found} == {
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    }
    best, *_ = min(found, key=lambda candidate: candidate[1])
    assert best["degree"] == 3
    model = method.estimator("regression", 2, 0, best, 40)
    assert (model.degree, model.relevance) == (3, best["relevance"])


def test_rows_of_one_target_stay_together(regression):
    y = np.repeat(np.arange(8.0), 5)
    splits = replace(regression, whole_targets=True).splits(y, 4)
    assert len(splits) == 4
    for fitted, others in splits:
        assert set(y[fitted]) & set(y[others]) == set()
        assert sorted([*fitted, *others]) == list(range(40))
    assert sorted(np.concatenate([others for _, others in splits])) == list(range(40))


def test_one_fold_is_one_half_against_the_other(regression, binary):
    for scaled in (regression, binary, replace(regression, whole_targets=True)):
        ((fitted, others),) = scaled.splits(scaled.data.y_train, 1)
        assert len(fitted) == len(others) == len(scaled.data.y_train) / 2
        assert set(fitted) & set(others) == set()


def test_an_uncentred_target_is_only_divided(regression):
    y = np.array([3.0, 5.0])
    assert replace(regression, centred=False).units(y) == Units(0.0, np.sqrt(17.0))


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_resampled_errors_are_those_of_rows_drawn_again(kind, request):
    """Their spread is the standard error: here, that of many draws by hand."""
    scaled = request.getfixturevalue(kind)
    rng = np.random.default_rng(1)
    y = rng.choice([-1.0, 1.0], 400)
    predicted = np.where(rng.random(400) < 0.2, -y, y)
    by_hand = []
    for _ in range(500):
        rows = rng.integers(400, size=400)
        by_hand.append(scaled.error(predicted[rows], y[rows]))
    resampled = scaled.resampled_errors(predicted, y)
    assert resampled.shape == (25,)
    assert resampled.std() == pytest.approx(np.std(by_hand), rel=0.5)
    assert resampled.mean() == pytest.approx(np.mean(by_hand), rel=0.1)
    assert np.array_equal(resampled, scaled.resampled_errors(predicted, y))
