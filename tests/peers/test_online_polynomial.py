"""The online polynomial against a literal transcription of its algorithm and explicit products."""

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp

from tensormachines.peers.online_polynomial import (
    LOGISTIC,
    SQUARED,
    OnlinePolynomial,
    _travel,
    numpy_learn,
    numpy_outputs,
    readable,
)

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
            # See test_travel_solves_its_differential_equation.
            change = _travel(LOGISTIC, y[t], p, time * reach)
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
    # The norms of the columns are 3, 0, 3.2 and 0.1.
    polynomial.weights = np.array([[9, 3, 0, -2, 0], [0, 0, 0, 2.5, 0.1]])
    polynomial.expand(2, degree=2)
    assert [polynomial.columns(m) for m in polynomial.parents] == [(2,), (0,)]
    polynomial.expand(5, degree=2)
    # Neither those of weight 0, nor of degree 2.
    assert [polynomial.columns(m) for m in polynomial.parents] == [(2,), (0,), (3,)]
