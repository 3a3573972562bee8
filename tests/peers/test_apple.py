"""Apple on targets whose monomials are known, and in streams."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines.peers import AppleClassifier, AppleRegressor
from tensormachines.peers.online_polynomial import OnlinePolynomial


@parametrize_with_checks(
    [AppleRegressor(), AppleClassifier(), AppleClassifier(degree=1), AppleRegressor(alpha=0.1, shuffle=True)]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- the monomials that are found


@pytest.mark.parametrize("model", [AppleRegressor, AppleClassifier])
def test_cubic_term_is_found_among_decoys(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, size=(4000, 12))
    y = X[:, 0] * X[:, 1] * X[:, 2] + 0.01 * rng.normal(size=4000)
    if model is AppleClassifier:
        y = y > np.median(y)
    fitted = model(degree=3, expansion=0.5, n_expansions=3, random_state=0).fit(X, y)
    polynomial = fitted._learner.polynomial
    assert (0, 1, 2) in fitted.monomials_
    assert any(
        pair in [polynomial.columns(m) for m in polynomial.parents] for pair in [(0, 1), (0, 2), (1, 2)]
    )
    assert fitted.score(X, y) > 0.95
    assert len(fitted.monomials_) < 120  # of 454
    linear = model(degree=1, random_state=0).fit(X, y)
    assert linear.monomials_ == [(c,) for c in range(12)]
    assert fitted.score(X, y) > linear.score(X, y) + 0.02


def test_xor():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1000, 6))
    y = np.where(X[:, 2] * X[:, 4] > 0, "same", "other")
    assert AppleClassifier(degree=1, random_state=0).fit(X, y).score(X, y) < 0.6
    assert AppleClassifier(degree=2, expansion=1.0, random_state=0).fit(X, y).score(X, y) > 0.93


# ---- the estimators


def test_blocks_of_a_stream_make_no_difference_and_one_epoch_is_a_stream():
    X, y = np.random.default_rng(0).normal(size=(700, 5)), np.random.default_rng(1).integers(0, 3, size=700)
    weight = np.random.default_rng(2).uniform(0.5, 2, size=700)
    settings = {"n_expansions": 0, "shuffle": False, "max_iter": 1}
    whole = AppleClassifier(**settings).fit(X, y, weight)
    parts = AppleClassifier(**settings)
    for start, stop in [(0, 1), (1, 300), (300, 700)]:
        parts.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2], sample_weight=weight[start:stop])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)
    one = AppleClassifier(expand_after=100).partial_fit(X, y, classes=[0, 1, 2])
    many = AppleClassifier(expand_after=100)
    for rows in np.array_split(np.arange(700), 13):
        many.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert one._learner.n_expansions == 3  # after 100, 200 and 400 rows
    assert many.monomials_ == one.monomials_
    assert len(one.monomials_) > 5
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-9)


@pytest.mark.parametrize("model", [AppleRegressor, AppleClassifier])
def test_units_of_the_columns_make_no_difference(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    y = y > 0 if model is AppleClassifier else y
    units = np.array([1e-9, 3.0, 1e6, 0.7])
    one, other = model(random_state=0).fit(X, y), model(random_state=0).fit(X * units, y)
    assert one.monomials_ == other.monomials_
    predict = "decision_function" if model is AppleClassifier else "predict"
    np.testing.assert_allclose(
        getattr(other, predict)(X * units), getattr(one, predict)(X), rtol=1e-6, atol=1e-8
    )
    scaled = other.coef_.ravel() * [np.prod(units[list(monomial)]) for monomial in other.monomials_]
    np.testing.assert_allclose(scaled, one.coef_.ravel(), rtol=1e-6, atol=1e-9)


def test_units_of_the_target_make_no_difference():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] * X[:, 1]
    one, other = (
        AppleRegressor(random_state=0).fit(X, y),
        AppleRegressor(random_state=0).fit(X, 1e7 + 1e5 * y),
    )
    np.testing.assert_allclose((other.predict(X) - 1e7) / 1e5, one.predict(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_the_polynomial_that_is_shown(dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(500, 4)) * [1, 20, 0.1, 1]).astype(dtype)
    Y = np.column_stack([X[:, 0] * X[:, 1] + 3, X[:, 2] - 7])
    model = AppleRegressor(random_state=0).fit(X, Y)
    values = np.array(
        [[np.prod([x[c] for c in monomial]) for monomial in model.monomials_] for x in X.astype(float)]
    )
    assert model.predict(X).dtype == dtype
    np.testing.assert_allclose(
        model.predict(X),
        values @ model.coef_.T + model.intercept_,
        rtol=1e-3 if dtype == np.float32 else 1e-9,
    )
    assert model.score(X, Y) > 0.9


def test_sparse_is_dense():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((800, 10)) < 0.5, rng.normal(size=(800, 10)), 0)
    y = rng.integers(0, 3, size=800)
    dense = AppleClassifier(random_state=0).fit(X, y)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        model = AppleClassifier(random_state=0).fit(form(X), y)
        assert model.monomials_ == dense.monomials_
        np.testing.assert_allclose(model.predict_proba(form(X)), dense.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(dense.predict_proba(X).sum(axis=1), 1)


def test_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["age", "size"])
    model = AppleRegressor(degree=3, expansion=1, random_state=0).fit(X, X["age"])
    assert model.monomials_[:2] == [(0,), (1,)]
    assert dict(zip(model.monomials_, model.monomial_names_, strict=True))[(0, 0, 1)] == "age^2 size"


def test_weight_is_repetition():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 3)), rng.integers(0, 4, size=80)
    y = X[:, 0] * X[:, 1]
    repeated = np.repeat(np.arange(80), weight)
    weighted = AppleRegressor(random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(
        weighted.predict(X),
        AppleRegressor(random_state=0).fit(X[repeated], y[repeated]).predict(X),
        rtol=1e-10,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_badly_scaled_columns_give_finite_predictions(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 7))
    y = np.exp(X[:, 0]) * 1e6
    X[:, 1], X[:, 2] = 0, 1e5  # a zero column and a constant one
    X[:, 3] = X[:, 4]  # and two that are equal
    X[:, 5] *= np.sqrt(np.finfo(dtype).max) * 1e3  # whose squares overflow
    X[:, 6] *= np.finfo(dtype).tiny
    X[7] = 0
    X = X.astype(dtype)
    for data in (X, sparse.csr_array(X)):
        model = AppleRegressor(degree=4, random_state=0).fit(data, y)
        assert np.isfinite(model.predict(data)).all()
        assert model.score(data, y) > 0.5
        assert np.isfinite(
            AppleClassifier(degree=4, random_state=0).fit(data, y > 1e6).decision_function(data)
        ).all()


def test_tiny_data_and_one_column():
    X = np.linspace(-1, 1, 9)[:, None]
    assert AppleRegressor(max_iter=300, random_state=0).fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.9
    assert AppleRegressor().fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]]) == pytest.approx([3.0])
    constant = AppleRegressor(expansion=5, n_expansions=50).fit(X, np.full(9, 4.0))
    assert constant.predict(X) == pytest.approx(np.full(9, 4.0))
    everything = AppleClassifier(degree=4, expansion=3, n_expansions=9).fit(X, X[:, 0] > 0)
    assert everything.monomials_ == [(0,), (0, 0), (0, 0, 0), (0, 0, 0, 0)]


def test_penalty_shrinks():
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    norms = [
        np.linalg.norm(AppleRegressor(alpha=alpha, random_state=0).fit(X, y).coef_) for alpha in (0, 0.01, 1)
    ]
    assert norms[0] > norms[1] > norms[2]


def test_stream_goes_on_from_a_file_and_a_failed_call_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] * X[:, 1]
    model = AppleRegressor(expand_after=50).partial_fit(X[:200], y[:200])
    copy = pickle.loads(pickle.dumps(model))
    before = model.predict(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="outputs as before"):
        model.partial_fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(
        model.partial_fit(X[200:], y[200:]).predict(X), copy.partial_fit(X[200:], y[200:]).predict(X)
    )
    with pytest.raises(ValueError, match="degree"):
        clone(model).set_params(degree=0).fit(X, y)


@pytest.mark.parametrize("classifies", [False, True])
def test_block_that_fails_half_way_changes_nothing(classifies, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model, y, settings = (
        (AppleClassifier, X[:, 0] > 0, {"classes": [False, True]})
        if classifies
        else (AppleRegressor, X[:, 0], {})
    )

    def fail(self, count, degree):
        expand(self, count, degree)
        raise MemoryError

    expand = OnlinePolynomial.expand
    new, old = model(expand_after=20), model(expand_after=20).partial_fit(X[:30], y[:30], **settings)
    before, untouched = old.coef_.copy(), pickle.loads(pickle.dumps(old))
    with monkeypatch.context() as patched:
        patched.setattr(OnlinePolynomial, "expand", fail)
        for each in (new, old):
            with pytest.raises(MemoryError):
                each.partial_fit(X, y, **settings)
    with pytest.raises(NotFittedError):
        new.predict(X)
    np.testing.assert_array_equal(old.coef_, before)
    np.testing.assert_array_equal(old.partial_fit(X, y).coef_, untouched.partial_fit(X, y).coef_)


def test_stream_needs_and_keeps_its_classes():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.tile(["a", "b"], 10)
    with pytest.raises(ValueError, match="all classes in its first call"):
        AppleClassifier().partial_fit(X, y)
    model = AppleClassifier().partial_fit(X[:1], y[:1], classes=["a", "b"])
    with pytest.raises(ValueError, match="which is not among"):
        model.partial_fit(X, np.tile(["a", "c"], 10))
    with pytest.raises(ValueError, match="same in every call"):
        model.partial_fit(X, y, classes=["a", "c"])


PROGRAM = """
import sys, warnings
sys.modules["tensormachines._native"] = None
import numpy as np
from tensormachines.peers import AppleClassifier
X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = AppleClassifier(degree=2, expansion=1, max_iter=4, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
print(model.decision_function(X).sum(), len(caught))
"""


def test_without_the_extension_it_is_the_same():
    free = {name: value for name, value in os.environ.items() if name != "TENSORMACHINES_EXTENSION"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=free, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    total, warnings = run.stdout.split()
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    model = AppleClassifier(degree=2, expansion=1, max_iter=4, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert float(total) == pytest.approx(model.decision_function(X).sum(), rel=1e-6)
    assert warnings == "1"
