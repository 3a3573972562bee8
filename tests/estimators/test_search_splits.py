"""Which rows a search trains on and scores on."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from searches import FEW
from tensormachines import (
    TensorMachineClassifierCV,
    TensorMachineRegressorCV,
    blocks,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
        splits = TensorMachineClassifierCV()._splits(np.zeros((10_000, 1)), y, None, None, seed)
        assert all(y[training].any() for training, _ in splits)


@pytest.mark.parametrize("search", [TensorMachineRegressorCV, TensorMachineClassifierCV])
@pytest.mark.parametrize(("cv", "n_splits"), [(None, 5), (GroupKFold(3), 3)])
def test_rows_of_a_group_stay_together(rng, search, cv, n_splits):
    X, shop = rng.normal(size=(300, 2)), rng.choice(["a", "b", "c", "d", "e", "f"], 300)
    y, noted = rng.integers(0, 2, 300), []

    def score(model, X_test, y_test):
        noted.append(set(shop[np.isin(X[:, 0], X_test[:, 0])]))
        return model.score(X_test, y_test)

    model = search(**FEW, cv=cv, scoring=score).fit(X, y, groups=shop)
    assert model.n_splits_ == n_splits
    held_out = {frozenset(each) for each in noted}
    assert sum(map(len, held_out)) == 6  # each shop in one split
    assert len(held_out) == n_splits


def test_groups_that_cannot_be_used(rng):
    X = rng.normal(size=(30, 2))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TensorMachineRegressorCV(**FEW).fit(X, X[:, 0], groups=[1, 2])
    with pytest.raises(ValueError, match="greater than the number of groups: 1"):
        TensorMachineRegressorCV(**FEW).fit(X, X[:, 0], groups=np.ones(30))
    with pytest.raises(ValueError, match="groups needs X and y in memory"):
        TensorMachineRegressorCV(**FEW).fit(blocks.iterable([(X, X[:, 0])]), groups=np.arange(30))


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
