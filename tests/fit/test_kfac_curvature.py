"""The approximate curvature against the exact Gauss-Newton matrix, where they must agree."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from losses import LOSSES, make_targets
from reference import learn_basis
from tensormachines._fit import curvature
from tensormachines._fit.curvature import Curvature
from tensormachines._fit.curvature_rows import curvature_rows, mean_squares
from tensormachines._model import numpy_kernel
from tensormachines._model.basis import AffineBasis
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import Layout
from tensormachines._model.losses import LOGISTIC, SQUARED


@pytest.fixture
def undamped(monkeypatch):
    monkeypatch.setattr(curvature, "DAMPING", 0.0)


def make_block(rng, rows=60, columns=4, weight=None):
    X = rng.standard_normal((rows, columns))
    return Block(X, AffineBasis(columns), rng.standard_normal((rows, 1)), weight)


def gauss_newton(block, layout, loss, params):
    """One output after the other, row by row: (n_outputs, factors of it, factors of it)."""
    weight = np.ones(block.n_rows) if block.weight is None else block.weight
    total = 0
    for n in range(block.n_rows):
        row = Block(block.X[n : n + 1], block.basis)
        rows = numpy_kernel.TensorRows(row.basis.lift(row.X), layout, params)
        second = loss.second(numpy_kernel.sum_up(rows, layout, params))[0]
        of_terms = np.ones((1, layout.n_sets, layout.n_terms))
        slopes = rows.gradient(np.ones((1, layout.n_outputs)), of_terms)  # (n_features, n_columns)
        flat = by_output(layout, slopes).transpose(1, 0, 2).reshape(layout.n_outputs, -1)
        total = total + weight[n] * second[:, None, None] * flat[:, :, None] * flat[:, None, :]
    return total / weight.sum()


def by_output(layout, columns):
    """(..., n_columns) as (..., n_outputs, 1 + set_columns): linear part and terms of each output."""
    return np.concatenate([columns[..., : layout.n_outputs, None], layout.by_set(columns)], axis=-1)


def as_matrices(solve, layout):
    """What ``solve`` multiplies the factors of each output by."""
    columns = np.array([solve(unit) for unit in np.eye(layout.size)])
    factors, places = layout.factors(columns), layout.factors(np.arange(layout.size))
    solved = by_output(layout, factors).transpose(2, 0, 1, 3).reshape(layout.n_outputs, layout.size, -1)
    numbers = by_output(layout, places).transpose(1, 0, 2).reshape(layout.n_outputs, -1)
    return np.array([solved[k][numbers[k]] for k in range(layout.n_outputs)])


def expected_second(loss, z):
    """The second derivative at y = exp(z), where that is the mean, because it is linear in y; otherwise its
    mean over standard normal numbers y about the quantile z.
    """
    step = 1e-5 if loss.log_link else 1e-3
    if loss.log_link:
        y, weight = np.exp(z)[:, None], np.ones(1)
    else:
        noise = np.linspace(-8, 8, 16001)
        weight = norm.pdf(noise) / norm.pdf(noise).sum()
        y = z[:, None] + noise - norm.ppf(loss.level)

    def slope(moved):
        return loss.pointwise(y.reshape(-1, 1), np.broadcast_to(moved[:, None], y.shape).reshape(-1, 1))[1]

    return ((slope(z + step) - slope(z - step)) / (2 * step)).reshape(y.shape) @ weight


@pytest.mark.parametrize("name", LOSSES)
def test_second_derivatives(rng, name):
    loss, outputs = LOSSES[name]
    z, y = 3 * rng.standard_normal((20, outputs)), make_targets(rng, loss, 20, outputs)
    for k in range(outputs):
        move = 1e-5 * np.eye(outputs)[k]
        difference = (loss.pointwise(y, z + move)[1] - loss.pointwise(y, z - move)[1])[:, k] / 2e-5
        if loss.kind_of_second == "exact":
            np.testing.assert_allclose(loss.second(z)[:, k], difference, rtol=1e-7, atol=1e-8)
        elif loss.kind_of_second == "bound":
            assert (loss.second(z)[:, k] >= difference - 1e-8).all()
        else:
            np.testing.assert_allclose(loss.second(z)[:, k], expected_second(loss, z[:, k]), rtol=1e-3)
    assert np.isfinite(loss.second(np.full((1, outputs), 1e4))).all()


@pytest.mark.parametrize("name", LOSSES)
def test_a_linear_model_has_its_own_hessian(rng, undamped, name):
    loss, outputs = LOSSES[name]
    if loss.log_link or loss == LOGISTIC:
        outputs = 1  # several would have eigenvectors in common
    layout, block = Layout(4, degree=1, rank=1, n_outputs=outputs), make_block(rng, weight=rng.random(60))
    params = 0.3 * rng.standard_normal(layout.size)
    inverse = as_matrices(Curvature(layout, loss, 0.1, block)(params), layout)
    if name == "multinomial":  # whose outputs share their eigenvectors
        inverse, exact = inverse.sum(axis=0), None
        np.testing.assert_allclose(inverse, inverse.T)
        return
    exact = gauss_newton(block, layout, loss, params) + 0.1 * np.eye(4)
    np.testing.assert_allclose(inverse, np.linalg.inv(exact))


@pytest.mark.parametrize("name", LOSSES)
def test_eigenvalues_are_the_curvatures_along_the_eigenvectors(rng, undamped, name):
    loss, outputs = LOSSES[name]
    layout, block = Layout(4, degree=3, rank=2, n_outputs=outputs), make_block(rng)
    params = 0.5 * rng.standard_normal(layout.size)
    inverse = as_matrices(Curvature(layout, loss, 1e-3, block)(params), layout)
    for mine, exact in zip(inverse, gauss_newton(block, layout, loss, params), strict=True):
        np.testing.assert_allclose(mine, mine.T, rtol=1e-6, atol=1e-6 * np.abs(mine).max())
        eigenvalues, eigenvectors = np.linalg.eigh(mine)
        along = np.einsum("ik,ij,jk->k", eigenvectors, exact, eigenvectors)
        np.testing.assert_allclose(1 / eigenvalues, along + 1e-3, rtol=1e-5)
        assert np.trace(np.linalg.inv(mine)) == pytest.approx(np.trace(exact) + 1e-3 * len(mine))


def test_the_bias(rng):
    layout, block = Layout(4, degree=2, rank=1), make_block(rng)
    params = rng.standard_normal(layout.size)
    z = numpy_kernel.outputs(block, layout, params[None])
    solve = Curvature(layout, LOGISTIC, 0.0, block)(params)
    assert solve(np.eye(layout.size)[0])[0] == pytest.approx(1 / LOGISTIC.second(z).mean())


def test_weights_are_repetitions_and_storage_plays_no_part(rng):
    layout, block = Layout(4, degree=3, rank=2), make_block(rng, weight=rng.integers(0, 3, 60).astype(float))
    params, vector = rng.standard_normal((2, layout.size))
    expected = Curvature(layout, LOGISTIC, 1e-4, block)(params)(vector)
    times = block.weight.astype(int)
    repeated = Block(np.repeat(block.X, times, axis=0), block.basis)
    np.testing.assert_allclose(
        Curvature(layout, LOGISTIC, 1e-4, repeated)(params)(vector), expected, rtol=1e-6, atol=1e-9
    )
    as_csr = Block(sparse.csr_array(block.X), block.basis, None, block.weight)
    np.testing.assert_allclose(
        Curvature(layout, LOGISTIC, 1e-4, as_csr)(params)(vector), expected, rtol=1e-6, atol=1e-9
    )


def test_a_diagonal_for_very_many_features(rng, undamped):
    layout, block = Layout(4, degree=2, rank=1), make_block(rng)
    params = rng.standard_normal(layout.size)
    squares = mean_squares(BlocksInMemory([block]), block)
    np.testing.assert_allclose(squares, (block.X**2).mean(axis=0))
    inverse = as_matrices(Curvature(layout, SQUARED, 0.5, block, squares)(params), layout)[0]
    P = block.X @ layout.factors(params)
    others = np.stack([np.ones(60), P[:, 2], P[:, 1]], axis=1)
    expected = np.kron(np.diag(squares), others.T @ others / 60) + 0.5 * np.eye(12)
    np.testing.assert_allclose(inverse, np.linalg.inv(expected), rtol=1e-6, atol=1e-9)


def test_shared_terms_have_the_curvature_of_all_outputs(rng, undamped):
    layout, alpha = Layout(4, degree=2, rank=2, n_outputs=3, shared=True), 0.5
    X, params = rng.standard_normal((60, 4)), rng.standard_normal(layout.size)
    block = Block(X, AffineBasis(4), rng.standard_normal((60, 3)))
    squares = mean_squares(BlocksInMemory([block]), block)
    solve = Curvature(layout, SQUARED, alpha, block, squares)(params)
    rows = np.array([solve(unit) for unit in np.eye(layout.size)])
    places = np.arange(layout.size)

    def inverse_of(chosen):
        return rows[np.ix_(chosen, chosen)]

    P, weights = X @ layout.terms(params)[:, 0], layout.weights(params)[:, 0]
    others = np.hstack([P[:, 2:], P[:, :2]])  # the other factor of each of two terms
    C = sum((others * np.tile(c, 2)).T @ (others * np.tile(c, 2)) for c in weights) / 60
    expected = np.kron(np.diag(squares), C) + alpha * np.eye(16)
    of_terms = inverse_of(layout.terms(places).ravel())
    np.testing.assert_allclose(of_terms, np.linalg.inv(expected), rtol=1e-6, atol=1e-9)
    linear = inverse_of(layout.linear(places).T.ravel())
    np.testing.assert_allclose(linear, np.diag(1 / (np.tile(squares, 3) + alpha)), rtol=1e-9)
    terms = np.stack([P[:, 0] * P[:, 2], P[:, 1] * P[:, 3]], axis=1)
    of_weights = inverse_of(layout.weights(places).ravel())
    np.testing.assert_allclose(of_weights, np.diag(1 / (np.tile((terms**2).mean(axis=0), 3) + alpha)))


def test_no_curvature_where_there_is_none(rng):
    """Terms and features that are 0 everywhere divide nothing by 0; what overflows gives None."""
    layout, block = Layout(4, degree=3, rank=1), make_block(rng)
    block.X[:, 2] = 0
    solve = Curvature(layout, SQUARED, 0.0, block)(np.zeros(layout.size))
    assert np.isfinite(solve(np.ones(layout.size))).all()
    with np.errstate(over="ignore", invalid="ignore"):
        assert Curvature(layout, SQUARED, 0.0, block)(np.full(layout.size, 1e160)) is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_sample_has_the_outliers_and_the_weight_of_all(rng, form):
    X = rng.standard_normal((20_000, 3))
    X[[7, 12_345, 19_000]] *= 1000
    weight = rng.random(20_000)
    weight[19_000] = 0  # a row of weight 0 is absent
    parts = [
        Block(form(X[a : a + 5000]), AffineBasis(3), None, weight[a : a + 5000])
        for a in range(0, 20_000, 5000)
    ]
    sample = BlocksInMemory([parts[0].rows(np.arange(0, 5000, 2)), parts[1].rows(np.arange(0, 5000, 2))])
    rows = curvature_rows(sample, BlocksInMemory(parts), AffineBasis(3))
    assert rows.n_rows < 2100
    assert rows.weight.sum() == pytest.approx(weight.sum())
    assert rows.weight.min() > 0
    norms = rows.basis.lift(rows.X).squared_norms()
    expected = weight @ (X**2).sum(axis=1)
    assert (norms > 1000).sum() == 2
    assert rows.weight @ norms == pytest.approx(expected, rel=0.05)


def test_a_small_table_is_its_own_sample(rng):
    block = make_block(rng)
    rows = curvature_rows(BlocksInMemory([block]), BlocksInMemory([block]), block.basis)
    np.testing.assert_array_equal(rows.X, block.X)


@pytest.mark.parametrize("basis", ["unit", "standard", "sphere", None])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_squares_of_rows_and_columns(rng, basis, form):
    X = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.5) + 0.0
    X[4] = 0
    weight = rng.random(30)
    lifted = learn_basis(basis, X, weight).lift(form(X))
    rows = lifted.explicit()
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    np.testing.assert_allclose(lifted.squared_norms(), (rows**2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(lifted.column_squares(weight), weight @ rows**2, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
def test_coefficients_of_different_sizes(rng, diagonal):
    """The same as columns multiplied by these sizes, for coefficients divided by them."""
    layout, block, sizes = Layout(4, degree=3, rank=2), make_block(rng), rng.random(4) + 0.5
    scaled = Block(block.X * sizes, block.basis)
    params, vector = rng.standard_normal((2, layout.size))
    inner, outer = params.copy(), vector.copy()
    layout.factors(inner)[...] = layout.factors(params) / sizes[:, None]
    layout.factors(outer)[...] = layout.factors(vector) * sizes[:, None]
    squares = [mean_squares(BlocksInMemory([each]), each) if diagonal else None for each in (block, scaled)]
    solved = Curvature(layout, LOGISTIC, 0.1, block, squares[0], sizes)(params)(vector)
    expected = Curvature(layout, LOGISTIC, 0.1, scaled, squares[1])(inner)(outer)
    layout.factors(expected)[...] *= sizes[:, None]
    np.testing.assert_allclose(solved, expected, rtol=1e-6, atol=1e-9)
