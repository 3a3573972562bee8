"""The private names of scikit-learn do what they are used for, from the oldest version to the newest.

`constraints/oldest.txt` pins the oldest versions; every other run of the tests takes the newest.
"""

import tomllib
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from tensormachines.estimators import sklearn_private
from tensormachines.estimators.sklearn_private import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    callback_context,
    check_feature_names_in,
    check_sample_weight,
    fit_context,
    has_callbacks,
    safe_indexing,
)

ROOT = Path(__file__).parents[2]


class Checked(CallbackSupportMixin, BaseEstimator):
    _parameter_constraints = {  # noqa: RUF012
        "rank": [Interval(Integral, 1, None, closed="left")],
        "share": [Interval(Real, 0, 1, closed="neither"), None],
        "solver": [StrOptions({"a", "b"})],
        "shuffle": ["boolean"],
        "width": ["array-like", None],
        "weights": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self, rank=1, share=None, solver="a", shuffle=True, width=None, weights=None, random_state=None
    ):
        self.rank = rank
        self.share = share
        self.solver = solver
        self.shuffle = shuffle
        self.width = width
        self.weights = weights
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        self.n_features_in_ = len(X[0])
        return self


class Silent:
    """A callback of scikit-learn that does nothing."""

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass


def test_every_name_is_there():
    assert all(hasattr(sklearn_private, name) for name in sklearn_private.__all__)


@pytest.mark.parametrize(
    "good",
    [
        {"rank": np.int64(3), "share": 0.5},
        {"solver": "b", "shuffle": False, "width": [1, 2]},
        {"weights": {"a": 1}, "random_state": np.random.RandomState(0)},
    ],
)
def test_a_fit_takes_what_the_constraints_allow(good):
    model = Checked(**good)
    assert model.fit([[1.0, 2.0]]) is model
    assert model.n_features_in_ == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rank": 0}, r"The 'rank' parameter .* must be an int in the range \[1, inf\)\. Got 0"),
        ({"rank": 1.5}, "The 'rank' parameter"),
        ({"share": 1.0}, r"must be a float in the range \(0.*, 1.*\) or None\. Got 1\.0"),
        ({"solver": "c"}, r"must be a str among \{'[ab]', '[ab]'\}\. Got 'c'"),
        ({"shuffle": "yes"}, "The 'shuffle' parameter"),
        ({"width": 3}, "The 'width' parameter"),
        ({"weights": 2.0}, "The 'weights' parameter"),
        ({"random_state": "x"}, "The 'random_state' parameter"),
    ],
)
def test_a_fit_refuses_what_the_constraints_do_not_allow(wrong, message):
    with pytest.raises(ValueError, match=message):
        Checked(**wrong).fit([[1.0]])


def test_sample_weights():
    X = np.zeros((3, 2), dtype=np.float32)
    ones = check_sample_weight(None, X, dtype=np.float64)
    assert (ones.dtype, ones.tolist()) == (np.float64, [1, 1, 1])
    given = check_sample_weight([1, 0, 2], X, dtype=np.float64, ensure_non_negative=True)
    assert (given.dtype, given.tolist()) == (np.float64, [1, 0, 2])
    assert check_sample_weight(2, X, dtype=np.float64).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="Negative values"):
        check_sample_weight([1, -1, 2], X, dtype=np.float64, ensure_non_negative=True)
    with pytest.raises(ValueError, match=r"shape"):
        check_sample_weight([1, 2], X, dtype=np.float64)


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.csr_matrix])
def test_rows_of_any_kind_of_table(kind):
    X = np.arange(12.0).reshape(4, 3)
    rows = safe_indexing(kind(X), np.array([3, 1]))
    np.testing.assert_array_equal(rows.toarray() if sparse.issparse(rows) else rows, X[[3, 1]])


def test_names_of_features():
    model = Checked().fit([[1.0, 2.0]])
    assert check_feature_names_in(model, None).tolist() == ["x0", "x1"]
    assert check_feature_names_in(model, ["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="number of features"):
        check_feature_names_in(model, ["a"])
    model.feature_names_in_ = np.array(["p", "q"], dtype=object)
    assert check_feature_names_in(model, None).tolist() == ["p", "q"]
    with pytest.raises(ValueError, match="feature_names_in_"):
        check_feature_names_in(model, ["a", "b"])


def test_estimators_without_callbacks_are_told():
    assert not has_callbacks(Checked())


def test_a_callback_gets_a_context():
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    estimator = Checked().set_callbacks(Silent())
    assert has_callbacks(estimator)
    context = callback_context(estimator, 5)
    for method in ("subcontext", "call_on_fit_task_begin", "call_on_fit_task_end"):
        assert callable(getattr(context, method))


def version(text):
    return tuple(int(number) for number in text.split("."))


def test_the_oldest_versions_are_within_the_declared_range():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, minimum in (dependency.split(">=") for dependency in project["dependencies"]):
        assert version(oldest[name])[: len(version(minimum))] == version(minimum)
