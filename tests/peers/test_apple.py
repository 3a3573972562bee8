"""Apple against a literal transcription of its algorithms, explicit products, and targets whose monomials are
known.
"""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines.peers import AppleClassifier, AppleRegressor
from tensormachines.peers.online_polynomial import (
    LOGISTIC,
    SQUARED,
    OnlinePolynomial,
    _travel,
    numpy_learn,
    numpy_outputs,
    readable,
)


@parametrize_with_checks(
    [AppleRegressor(), AppleClassifier(), AppleClassifier(degree=1), AppleRegressor(alpha=0.1, shuffle=True)]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- the pass over rows


def normalised_adaptive_gradient(Z, y, h, loss, learning_rate, alpha):
    """Algorithm 2 of Ross, Mineiro and Langford in the units of the values Z (rows, monomials), with steps
    along the loss of a row.

    Scale s, gradient sums G, w rescaled where the scale grows, and N for the mean squared norm.
    """
    n_monomials = Z.shape[1]
    w, s, G = np.zeros(n_monomials), np.zeros(n_monomials), np.zeros(n_monomials)
    N = total = 0.0
    for t in range(len(Z)):
        x = Z[t]
        for i in range(n_monomials):
            if abs(x[i]) > s[i]:
                w[i] *= s[i] / abs(x[i])
                s[i] = abs(x[i])
        used = [i for i in range(n_monomials) if s[i] > 0]
        N += h[t] * sum((x[i] / s[i]) ** 2 for i in used)
        total += h[t]
        p = sum(w[i] * x[i] for i in used)
        g = p - y[t] if loss == SQUARED else 1 / (1 + np.exp(-p)) - y[t]
        rate = np.zeros(n_monomials)
        for i in used:
            G[i] += h[t] * g**2 * x[i] ** 2
            if G[i] > 0:
                rate[i] = np.sqrt(total / N) / (s[i] * np.sqrt(G[i]))
        reach = sum(rate[i] * x[i] ** 2 for i in used)
        if reach == 0:
            continue
        time = learning_rate * h[t]
        change = (y[t] - p) * (1 - np.exp(-time * reach))
        if loss == LOGISTIC:
            change = _travel(
                LOGISTIC, y[t], p, time * reach
            )  # see test_travel_solves_its_differential_equation
        for i in used:
            w[i] += change / reach * rate[i] * x[i]
            if x[i] != 0:
                w[i] /= 1 + time * alpha * rate[i] * s[i] ** 2
    return w


def rows_and_targets(loss, seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * np.array([1, 100, 0.01, 1])
    X[rng.random(X.shape) < 0.3] = 0
    X[5], X[:, 3] = 0, np.where(np.arange(n) < 30, 0, X[:, 3])  # an empty row, and a column that comes late
    y = X[:, 0] * X[:, 1] / 50 + rng.normal(size=n)
    return X, (y > 0).astype(float) if loss == LOGISTIC else y, rng.uniform(0, 3, size=n)


def grown(dtype=np.float64, n_outputs=1):
    """Columns 0..3 with the products of 0, of 1 and of 0*1 with all columns."""
    polynomial = OnlinePolynomial(np.ones(4, dtype=dtype), n_outputs)
    for parent in [(0,), (1,), (0, 1)]:
        numbers = {polynomial.columns(m): m for m in range(polynomial.n_monomials)}
        polynomial.expand_these([numbers[parent]])
    return polynomial


def explicit_values(polynomial, X):
    return np.array(
        [[np.prod([x[c] for c in polynomial.columns(m)]) for m in range(polynomial.n_monomials)] for x in X]
    )


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("in_numpy", [False, True])
def test_pass_is_the_normalised_adaptive_gradient(loss, alpha, as_sparse, in_numpy):
    X, y, h = rows_and_targets(loss)
    order = np.random.default_rng(1).permutation(len(X))
    polynomial = grown()
    Z = explicit_values(polynomial, X)
    expected = normalised_adaptive_gradient(Z[order], y[order], h[order], loss, 0.7, alpha)
    rows = readable(sparse.csr_array(X)) if as_sparse else X
    learn = numpy_learn if in_numpy else OnlinePolynomial.learn
    learn(polynomial, rows, y[:, None], h, order, loss, 0.7, alpha)
    np.testing.assert_allclose(polynomial.coefficients()[0], expected, rtol=1e-9, atol=1e-13)
    outputs = numpy_outputs(polynomial, rows) if in_numpy else polynomial.outputs(rows)
    np.testing.assert_allclose(outputs[:, 0], Z @ expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_outputs_are_learnt_side_by_side(as_sparse):
    X, y, h = rows_and_targets(SQUARED)
    rows = readable(sparse.csr_array(X)) if as_sparse else X
    together, Y = grown(n_outputs=2), np.column_stack([y, -2 * y + X[:, 0]])
    together.learn(rows, Y, h, None, SQUARED, 0.5, 0.0)
    for k in range(2):
        alone = grown()
        alone.learn(rows, Y[:, [k]].copy(), h, None, SQUARED, 0.5, 0.0)
        np.testing.assert_allclose(together.weights[k], alone.weights[0], rtol=1e-12)


def test_float32_follows_float64():
    X, y, h = rows_and_targets(LOGISTIC)
    wide, narrow = grown(), grown(np.float32)
    wide.learn(X, y[:, None], h, None, LOGISTIC, 0.5, 0.01)
    single = [a.astype(np.float32) for a in (X, y[:, None], h)]
    narrow.learn(*single, None, LOGISTIC, 0.5, 0.01)
    assert narrow.weights.dtype == np.float32
    np.testing.assert_allclose(narrow.weights, wide.weights, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("margin", [-800.0, -20.0, -1.0, 0.0, 2.0, 30.0])
@pytest.mark.parametrize("time", [1e-9, 0.1, 3.0, 500.0])
def test_travel_solves_its_differential_equation(margin, time):
    path = solve_ivp(
        lambda t, m: 1 / (1 + np.exp(np.minimum(m, 700))),
        (0, time),
        [margin],
        rtol=1e-10,
        atol=1e-12,
        method="LSODA",
    )
    for y, sign in ((1, 1), (0, -1)):
        change = _travel(LOGISTIC, y, sign * margin, time)
        assert sign * change == pytest.approx(path.y[0, -1] - margin, rel=1e-6, abs=1e-9)


def test_steps_do_not_overshoot():
    X, y = np.ones((50, 1)), np.tile([0.0, 1.0], 25)
    for loss in (SQUARED, LOGISTIC):
        polynomial = OnlinePolynomial(np.ones(1), 1)
        polynomial.learn(X, y[:, None], np.full(50, 1e6), None, loss, 1e3, 0.0)
        assert np.isfinite(polynomial.weights).all()
    assert abs(OnlinePolynomial(np.ones(1), 1).outputs(X)).max() == 0


# ---- monomials and their growth


@pytest.mark.parametrize("as_sparse", [False, True])
def test_values_are_products(as_sparse):
    X = rows_and_targets(SQUARED)[0]
    polynomial = grown()
    polynomial.inverse[:] = 1
    rows = readable(sparse.csr_array(X)) if as_sparse else X
    expected = explicit_values(polynomial, X)
    for m in range(polynomial.n_monomials):
        polynomial.weights[:] = np.arange(polynomial.n_monomials) == m
        np.testing.assert_allclose(polynomial.outputs(rows)[:, 0], expected[:, m], rtol=1e-12)
        np.testing.assert_allclose(numpy_outputs(polynomial, rows)[:, 0], expected[:, m], rtol=1e-12)


def test_every_monomial_is_there_once():
    rng = np.random.default_rng(0)
    polynomial = OnlinePolynomial(np.ones(5), 1)
    for _ in range(8):
        polynomial.weights = rng.normal(size=polynomial.weights.shape)
        known = {polynomial.columns(m) for m in range(polynomial.n_monomials)}
        parents = [polynomial.columns(m) for m in polynomial.parents]
        polynomial.expand(7, degree=4)
        chosen = [polynomial.columns(m) for m in polynomial.parents[len(parents) :]]
        monomials = [polynomial.columns(m) for m in range(polynomial.n_monomials)]
        assert len(set(monomials)) == len(monomials)
        assert set(monomials) == known | {tuple(sorted((*p, c))) for p in chosen for c in range(5)}
        assert not set(chosen) & set(parents)


def test_heaviest_are_expanded():
    polynomial = OnlinePolynomial(np.ones(4), 2)
    polynomial.weights = np.array(
        [[9, 3, 0, -2, 0], [0, 0, 0, 2.5, 0.1]]
    )  # norms 3, 0, 3.2, 0.1 of the columns
    polynomial.expand(2, degree=2)
    assert [polynomial.columns(m) for m in polynomial.parents] == [(2,), (0,)]
    polynomial.expand(5, degree=2)
    assert [polynomial.columns(m) for m in polynomial.parents] == [
        (2,),
        (0,),
        (3,),
    ]  # neither those of weight 0, nor of degree 2


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
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    total, warnings = run.stdout.split()
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    model = AppleClassifier(degree=2, expansion=1, max_iter=4, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert float(total) == pytest.approx(model.decision_function(X).sum(), rel=1e-6)
    assert warnings == "1"
