"""Packed rows of shares: the same as the unpacked ones, and evaluated as these are."""

import pickle

import numpy as np
import pytest

from losses import LOSSES, make_targets
from tensormachines._model import kernel, native, numpy_kernel
from tensormachines._model.block import Block, appendable_arrays, rows_of_arrays
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.packed_shares import MOST_STATES, PIECE, STEPS, PackedShares
from tensormachines._model.spline_learning import learn_splines

CODES = (None, None, None, None, 3, 400)


def table(rng, n_rows):
    """Numbers: usual, mostly 0, two values, constant; categories of 3 and of 400 levels; gaps in all of them
    but the constant."""
    X = np.column_stack(
        [
            rng.standard_normal(n_rows),
            np.where(rng.random(n_rows) < 0.7, 0, rng.exponential(size=n_rows)),
            rng.integers(0, 2, n_rows),
            np.full(n_rows, 7.0),
            rng.integers(0, 2, n_rows) * 2,
            rng.integers(0, 400, n_rows),
        ]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = 7.0
    return X


def bases(rng, n_rows):
    X = table(rng, n_rows)
    return X, learn_splines(X, np.ones(n_rows), CODES, np.dtype(np.float32))


def packed_in_numpy(basis, X, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(native, "compiled", lambda: False)
        return basis.rows(X, packed=True)


@pytest.mark.parametrize("n_rows", [1, 5, PIECE, 3 * PIECE + 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_packing_is_that_of_numpy(rng, n_rows, dtype, monkeypatch):
    _, basis = bases(rng, 700)
    X = table(rng, n_rows).astype(dtype)
    compiled, in_numpy = basis.rows(X, packed=True), packed_in_numpy(basis, X, monkeypatch)
    for name, array in compiled.arrays.items():
        np.testing.assert_array_equal(array, in_numpy.arrays[name], err_msg=name)
        assert array.dtype == in_numpy.arrays[name].dtype


def test_packed_rows_are_the_shares_up_to_rounding(rng):
    X, basis = bases(rng, 1300)
    packed, exact = basis.rows(X, packed=True), basis.rows(X)
    assert isinstance(packed, PackedShares)
    assert packed.shape == exact.shape
    in_basis, true = (basis.lift(rows).explicit() for rows in (packed, exact))
    np.testing.assert_allclose(in_basis, true, atol=2 / STEPS)


def test_numbers_beyond_the_knots_and_unknown_levels_are_packed(rng):
    X, basis = bases(rng, 300)
    odd = X[:6].copy()
    odd[0] = 1e300
    odd[1] = -1e300
    odd[2] = np.nan
    odd[3, 4:] = 1000
    odd[4, 0] = np.nextafter(basis.columns[0].knots[5], -np.inf)  # whose share rounds to 1
    in_basis, true = (basis.lift(basis.rows(odd, packed)).explicit() for packed in (True, False))
    np.testing.assert_allclose(in_basis, true, atol=2 / STEPS)


@pytest.mark.parametrize(
    "selected", [slice(3, None, 7), slice(0), np.array([5, 900, 5, 2]), np.arange(1200)[::-1]]
)
def test_rows_are_selected(rng, selected):
    X, basis = bases(rng, 1200)
    packed = basis.rows(X, packed=True)
    expected = packed.tocsr()[selected].toarray()
    np.testing.assert_array_equal(packed[selected].tocsr().toarray(), expected)
    again = pickle.loads(pickle.dumps(packed))
    np.testing.assert_array_equal(again.tocsr().toarray(), packed.tocsr().toarray())


def test_only_float32_is_packed(rng):
    X, basis = bases(rng, 100)
    assert not isinstance(basis.astype(np.dtype(np.float64)).rows(X, packed=True), PackedShares)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_rows", "degree", "rank", "models"), [(9, 2, 2, 1), (300, 3, 10, 1), (6 * PIECE + 5, 3, 3, 2)]
)
def test_evaluations_are_those_of_numpy(rng, shared, loss, n_rows, degree, rank, models):
    """NumPy's kernel evaluates the same rows unpacked. Several pieces add up in float64."""
    loss, outputs = LOSSES[loss]
    X, basis = bases(rng, n_rows)
    y, weight = make_targets(rng, loss, n_rows, outputs), rng.integers(0, 3, n_rows).astype(float)
    block = Block(basis.rows(X, packed=True), basis, y, weight)
    layout = Layout(basis.width, degree, rank, outputs, shared=shared)
    params = (0.5 * rng.standard_normal((models, layout.size))).astype(np.float32)
    values, gradients = kernel.value_and_gradient(block, layout, params, loss)
    true_values, true_gradients = numpy_kernel.value_and_gradient(block, layout, params, loss)
    np.testing.assert_allclose(values, true_values, rtol=1e-4)
    scale = np.abs(true_gradients).max()
    np.testing.assert_allclose(gradients, true_gradients, rtol=1e-3, atol=1e-5 * scale)
    for name in ("outputs", "terms"):
        ours, theirs = (getattr(module, name)(block, layout, params) for module in (kernel, numpy_kernel))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("n_rows", [200, 2000, 5 * PIECE + 3])
def test_threads_do_not_change_a_bit(rng, n_rows, threads):
    loss, outputs = LOSSES["squared"]
    X, basis = bases(rng, n_rows)
    block = Block(basis.rows(X, packed=True), basis, make_targets(rng, loss, n_rows, outputs))
    layout = Layout(basis.width, 3, 5, outputs)
    params = rng.standard_normal((1, layout.size)).astype(np.float32)
    alone, together = (
        kernel.value_and_gradient(block, layout, params, loss, threads=count) for count in (1, threads)
    )
    for one, many in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, many)


def test_a_factorization_machine_refuses_packed_rows(rng):
    loss, outputs = LOSSES["squared"]
    X, basis = bases(rng, 50)
    block = Block(basis.rows(X, packed=True), basis, make_targets(rng, loss, 50, outputs))
    layout = AnovaLayout(basis.width, 2, 2, outputs)
    with pytest.raises(ValueError, match="unpacked"):
        kernel.value_and_gradient(block, layout, np.zeros((1, layout.size), dtype=np.float32), loss)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_category_of_more_levels_than_a_packed_column_has(rng, compiled, monkeypatch):
    n_levels, n_rows = 150_000, 500
    X = np.column_stack([rng.standard_normal(n_rows), rng.integers(0, n_levels, n_rows)])
    X[:4, 1] = 0, MOST_STATES - 2, MOST_STATES - 1, n_levels - 1
    X[4:40, 1] = np.nan
    basis = learn_splines(X, np.ones(n_rows), (None, n_levels), np.dtype(np.float32))
    packed = basis.rows(X, packed=True) if compiled else packed_in_numpy(basis, X, monkeypatch)
    assert isinstance(packed, PackedShares)
    assert packed.n_entries.shape == (1, 4)  # three stretches of levels
    np.testing.assert_allclose(packed.tocsr().toarray(), basis.rows(X).toarray(), atol=1 / STEPS)
    again = rows_of_arrays(appendable_arrays(Block(packed, basis)), basis)
    np.testing.assert_array_equal(again.tocsr().toarray(), packed.tocsr().toarray())
