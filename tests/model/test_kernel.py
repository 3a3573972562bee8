"""Both kernels against the slow loop, central differences and each other."""

import ctypes
import mmap
import pickle
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse

import reference
from kernels import KERNELS, MODELS
from losses import LOSSES, make_targets
from reference import learn_basis
from tensormachines._model import kernel as kernel_module
from tensormachines._model import numpy_kernel
from tensormachines._model.basis import AffineBasis
from tensormachines._model.block import Block, canonical
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.losses import LOGISTIC, MULTINOMIAL, SQUARED

# A loss sees nothing of the basis: some of them with every basis are enough.
LOSSES_AND_BASES = [
    *product(("squared", "logistic", "multinomial"), (None, "unit", "standard", "sphere")),
    *((loss, "standard") for loss in list(LOSSES)[3:]),
]


def make_rows(rng, rows, columns, density=1.0):
    """With an empty row and a zero column, where products by division would fail."""
    X = rng.standard_normal((rows, columns))
    X *= rng.random(X.shape) < density
    X[rows // 2] = 0
    X[:, columns // 2] = 0
    return X


def stored(X, storage, dtype=np.float64):
    X = X.astype(dtype)
    if storage == "C":
        return np.ascontiguousarray(X)
    if storage == "F":
        return np.asfortranarray(X)
    if storage == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    if storage == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    matrix = sparse.csr_array(X)
    if storage == "csr64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_offset_is_added_to_the_outputs(rng, kernel, model, loss):
    """The rows one at a time, with biases that differ by their offsets."""
    loss, outputs = LOSSES[loss]
    X, y, offset = (
        rng.standard_normal((21, 3)),
        make_targets(rng, loss, 21, outputs),
        rng.normal(size=(21, outputs)),
    )
    layout, basis = MODELS[model](3, 3, 2, outputs), AffineBasis(3)
    params = 0.7 * rng.standard_normal((2, layout.size))
    found = KERNELS[kernel][0](Block(X, basis, y, None, offset), layout, params, loss)
    expected = [0.0, 0.0]
    for row in range(21):
        moved = params.copy()
        layout.bias(moved)[...] += offset[row]
        one = slice(row, row + 1)
        of_row = KERNELS[kernel][0](Block(X[one], basis, y[one]), layout, moved, loss)
        expected = [a + b for a, b in zip(expected, of_row, strict=True)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("loss", "basis"), LOSSES_AND_BASES)
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_value_is_the_loop_and_gradient_its_differences(rng, model, basis, loss, degree):
    """With both kernels, dense and sparse: the loop is slow, so it runs once for all of them."""
    loss, outputs = LOSSES[loss]
    X, weight = make_rows(rng, 9, 4, density=0.7), rng.integers(0, 3, 9).astype(float)
    y = make_targets(rng, loss, 9, outputs)
    fitted = learn_basis(basis, X, weight)
    layout = MODELS[model](fitted.width, degree, 2, outputs)
    params = 0.7 * rng.standard_normal(layout.size)

    def truth(at):
        return reference.total_loss(loss, X, fitted, y, weight, layout, at)

    value, gradient = truth(params), reference.central_differences(truth, params)
    for (value_and_gradient, *_), storage in product(KERNELS.values(), ("C", "csr32")):
        block = Block(stored(X, storage), fitted, y, weight)
        values, gradients = value_and_gradient(block, layout, params[None], loss)
        assert values[0] == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(gradients[0], gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("storage", ["C", "csr32"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_that_of_numpy_in_every_type(rng, model, storage, dtype, tolerance, loss):
    loss, outputs = LOSSES[loss]
    X, weight = make_rows(rng, 60, 7), rng.random(60)
    y = make_targets(rng, loss, 60, outputs)
    layout = MODELS[model](7, 3, 2, outputs)
    params = 0.5 * rng.standard_normal((3, layout.size))
    basis = learn_basis(None, X.astype(dtype), weight)
    block = Block(stored(X, storage, dtype), basis, y, weight)
    values, gradients = kernel_module.value_and_gradient(block, layout, params.astype(dtype), loss)
    exact = Block(X, basis, y, weight)
    true_values, true_gradients = numpy_kernel.value_and_gradient(exact, layout, params, loss)
    np.testing.assert_allclose(values, true_values, rtol=tolerance)
    np.testing.assert_allclose(gradients, true_gradients, rtol=tolerance, atol=tolerance * 50)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("storage", ["C", "F", "strided", "reversed", "csr32", "csr64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("basis", [None, "unit", "standard", "sphere"])
@pytest.mark.parametrize(
    ("rows", "columns", "degree", "rank", "outputs", "models"),
    [
        (1, 1, 1, 1, 1, 1),
        (37, 5, 3, 2, 1, 1),
        (600, 17, 2, 1, 1, 3),
        (130, 40, 5, 3, 3, 1),
        (2100, 150, 3, 4, 1, 2),
        (50, 131, 8, 2, 2, 1),
        (40, 70, 4, 20, 3, 2),
        (45, 1100, 3, 2, 1, 2),
    ],
)
def test_native_equals_numpy(rng, model, storage, dtype, basis, rows, columns, degree, rank, outputs, models):
    X = make_rows(rng, rows, columns, density=0.5)
    loss = SQUARED if outputs == 2 else MULTINOMIAL if outputs == 3 else LOGISTIC
    y, weight = make_targets(rng, loss, rows, outputs), rng.random(rows) + 0.1
    fitted = learn_basis(basis, X.astype(dtype), weight)
    layout = MODELS[model](fitted.width, degree, rank, outputs)
    params = (rng.standard_normal((models, layout.size)) / np.sqrt(columns if basis is None else 2)).astype(
        dtype
    )
    block, truth = (Block(stored(X, how, dtype), fitted, y, weight) for how in (storage, "C"))
    wide = Block(truth.X.astype(np.float64), fitted.astype(np.float64), y, weight)
    tolerance = {"rtol": 1e-9, "atol": 1e-10} if dtype == np.float64 else {"rtol": 2e-4, "atol": 2e-5}

    values, gradients = kernel_module.value_and_gradient(block, layout, params, loss)
    true_values, true_gradients = numpy_kernel.value_and_gradient(
        wide, layout, params.astype(np.float64), loss
    )
    np.testing.assert_allclose(values, true_values, rtol=tolerance["rtol"])
    scale = np.abs(true_gradients).max() + 1
    np.testing.assert_allclose(gradients / scale, true_gradients / scale, **tolerance)
    for name in ("outputs", "terms"):
        found = getattr(kernel_module, name)(block, layout, params)
        expected = getattr(numpy_kernel, name)(wide, layout, params.astype(np.float64))
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found,
            expected,
            rtol=tolerance["rtol"],
            atol=tolerance["atol"] * max(1, np.abs(expected).max(initial=0)),
        )


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_no_number_of_columns_or_factors_is_cut_wrongly(rng, rank):
    """Tiles of rows, columns and factors, whole and not; the last register may repeat columns."""
    for columns in [*range(1, 27), *range(126, 179)]:
        X, y = rng.standard_normal((77, columns)), make_targets(rng, SQUARED, 77, 1)
        layout = Layout(columns, 2, rank)
        params = rng.standard_normal((1, layout.size)) / np.sqrt(columns)
        block = Block(X, learn_basis(None, X, np.ones(len(X))), y)
        values, gradients = kernel_module.value_and_gradient(block, layout, params, SQUARED)
        true_values, true_gradients = numpy_kernel.value_and_gradient(block, layout, params, SQUARED)
        np.testing.assert_allclose(values, true_values, rtol=1e-12)
        np.testing.assert_allclose(gradients, true_gradients, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("basis", [None, "sphere"])
@pytest.mark.parametrize("storage", ["C", "csr32"])
@pytest.mark.parametrize("columns", [9, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thread_count_changes_not_one_bit(rng, model, basis, storage, columns, dtype):
    X = make_rows(rng, 9000, columns, density=0.2)
    fitted = learn_basis(basis, X.astype(dtype), np.ones(len(X)))
    layout = MODELS[model](fitted.width, 3, 3, 1)
    block = Block(stored(X, storage, dtype), fitted, make_targets(rng, LOGISTIC, len(X), 1))
    params = (0.5 * rng.standard_normal((1, layout.size))).astype(dtype)
    once = kernel_module.value_and_gradient(block, layout, params, LOGISTIC, threads=1)
    for threads in (2, 3, 8):
        again = kernel_module.value_and_gradient(block, layout, params, LOGISTIC, threads=threads)
        np.testing.assert_array_equal(again[0], once[0])
        np.testing.assert_array_equal(again[1], once[1])
        np.testing.assert_array_equal(
            kernel_module.outputs(block, layout, params, threads=threads),
            kernel_module.outputs(block, layout, params, threads=1),
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
def test_weights_are_repetitions_and_row_order_does_not_matter(rng, kernel, model):
    X, weight = make_rows(rng, 70, 6), rng.integers(0, 4, 70)
    y, order = make_targets(rng, SQUARED, 70, 1), rng.permutation(70)
    fitted = learn_basis(None, X, weight)
    layout = MODELS[model](6, 3, 2)
    params = rng.standard_normal((1, layout.size))
    repeated = np.repeat(order, weight[order])
    results = [
        KERNELS[kernel][0](block, layout, params, SQUARED)
        for block in (Block(X, fitted, y, weight.astype(float)), Block(X[repeated], fitted, y[repeated]))
    ]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_factorization_machine_of_degree_2_is_the_classical_formula(rng, kernel):
    """Rendle (2010), equation 5."""
    X = make_rows(rng, 20, 7)
    layout = AnovaLayout(7, 2, 4)
    params = rng.standard_normal(layout.size)
    V = layout.factors_by_degree(params)[2][0].T
    classical = params[0] + X @ layout.linear(params)[:, 0] + 0.5 * ((X @ V) ** 2 - X**2 @ V**2).sum(axis=1)
    found = KERNELS[kernel][1](Block(X, learn_basis(None, X, np.ones(20))), layout, params[None])
    np.testing.assert_allclose(found[:, 0], classical, rtol=1e-11, atol=1e-11)


def test_factorization_machine_keeps_its_digits_beside_a_large_entry(rng):
    """The gradient of the large entry is made of the small ones alone: subtracting it from a sum would leave
    nothing of them.
    """
    X = np.array([[1e7, 1.0, 2.0, 3.0]], dtype=np.float32)
    layout = AnovaLayout(4, 3, 1)
    params = np.ones((1, layout.size), dtype=np.float32)
    _, gradient = kernel_module.value_and_gradient(
        Block(X, learn_basis(None, X, np.ones(1)), np.zeros((1, 1))), layout, params, SQUARED
    )
    slope = kernel_module.outputs(Block(X, learn_basis(None, X, np.ones(1))), layout, params)[0, 0]
    np.testing.assert_allclose(layout.factors(gradient[0])[0] / slope, np.array([1, 6, 11]) * 1e7, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_symmetries_of_the_model(rng, kernel):
    """c and 1/c on two factors of a term, exchanged factors, and two sign flips leave f as it is."""
    X = make_rows(rng, 20, 5)
    layout = Layout(5, 3, 2)
    params = rng.standard_normal(layout.size)
    changed = params.copy()
    factors = layout.factors(changed)  # linear, 2 x 2 of degree 2, 3 x 2 of degree 3
    factors[:, [1, 3]] = factors[:, [3, 1]] * [4.0, 0.25]
    factors[:, [5, 9]] *= -1
    block = Block(X, learn_basis(None, X, np.ones(20)))
    before, after = (KERNELS[kernel][1](block, layout, p[None]) for p in (params, changed))
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_a_column_of_all_rows_adds_up_in_float64(rng, model):
    """Also where it is the second entry of every row: a sample of every 66th entry would not see it."""
    rows, columns = 133_120, 40_000
    indices = np.column_stack([rng.integers(0, columns - 1, rows), np.full(rows, columns - 1)]).astype(
        np.int32
    )
    X = sparse.csr_array(
        (np.ones(2 * rows, np.float32), indices.ravel(), np.arange(0, 2 * rows + 1, 2, dtype=np.int32)),
        (rows, columns),
    )
    layout = MODELS[model](columns, 2, 1)
    block = Block(X, AffineBasis(columns), np.full((rows, 1), 0.1, np.float32))
    _, gradient = kernel_module.value_and_gradient(
        block, layout, np.zeros((1, layout.size), np.float32), SQUARED
    )
    assert layout.linear(gradient[0])[-1, 0] == pytest.approx(-0.1 * rows, rel=1e-4)


def before_a_forbidden_page(array):
    """The same numbers, behind which nothing can be read."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    forbidden = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + mmap.PAGESIZE
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(forbidden), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy = np.frombuffer(pages, array.dtype, array.size, mmap.PAGESIZE - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.skipif(sys.platform != "linux", reason="made with mprotect")
@pytest.mark.parametrize("storage", ["C", "csr32", "csr64"])
@pytest.mark.parametrize(("degree", "rank"), [(2, 1), (3, 2), (2, 5), (2, 17)])
def test_nothing_behind_the_params_is_read(rng, storage, degree, rank):
    X = make_rows(rng, 6, 5)
    layout = AnovaLayout(5, degree, rank)
    params = np.ones((1, layout.size), dtype=np.float32)
    block = Block(stored(X, storage, np.float32), learn_basis(None, X, np.ones(6)), np.zeros((6, 1)))
    expected = kernel_module.outputs(block, layout, params)
    np.testing.assert_array_equal(
        kernel_module.outputs(block, layout, before_a_forbidden_page(params)), expected
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
def test_many_rows_of_weight_zero(rng, kernel, model):
    X, weight = make_rows(rng, 5000, 3), np.zeros(5000)
    weight[-3:] = 1
    X[0] = 1e200
    fitted, y = learn_basis(None, np.eye(3), np.ones(3)), np.ones((5000, 1))
    layout = MODELS[model](3, 2, 2)
    params = rng.standard_normal((1, layout.size))
    all_rows, last = (
        KERNELS[kernel][0](Block(X[rows], fitted, y[rows], weight[rows]), layout, params, SQUARED)
        for rows in (slice(None), slice(-3, None))
    )
    np.testing.assert_allclose(all_rows[0], last[0], rtol=1e-12)
    np.testing.assert_allclose(all_rows[1], last[1], rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("storage", ["C", "csr32"])
def test_no_rows_at_all(kernel, model, storage):
    X = stored(np.empty((0, 3)), storage)
    layout = MODELS[model](3, 2, 1)
    block = Block(X, learn_basis(None, np.eye(3), np.ones(3)), np.empty((0, 1)))
    value_and_gradient, outputs, terms = KERNELS[kernel]
    values, gradients = value_and_gradient(block, layout, np.ones((1, layout.size)), SQUARED)
    assert values[0] == 0
    assert not gradients.any()
    assert outputs(block, layout, np.ones((1, layout.size))).shape == (0, 1)
    assert terms(block, layout, np.ones((1, layout.size))).shape == (0, 1)


def test_bad_shapes_are_refused(rng):
    X = rng.standard_normal((4, 3))
    layout = Layout(3, 2, 1)
    block = Block(X, learn_basis(None, X, np.ones(4)), np.zeros((5, 1)))
    with pytest.raises(ValueError, match="y has the wrong shape"):
        kernel_module.value_and_gradient(block, layout, np.zeros((1, layout.size)), SQUARED)


def test_a_loss_that_the_extension_does_not_know_is_refused(rng):
    X = rng.standard_normal((4, 3))
    layout = Layout(3, 2, 1)
    block = Block(X, learn_basis(None, X, np.ones(4)), np.zeros((4, 1)))
    with pytest.raises(ValueError, match="unknown loss"):
        kernel_module.value_and_gradient(block, layout, np.zeros((1, layout.size)), replace(SQUARED, code=99))


@pytest.mark.parametrize("storage", ["C", "csr32"])
def test_a_block_is_bound_once_and_pickled_without_it(rng, storage):
    X = rng.standard_normal((6, 3))
    layout = Layout(4, 2, 1)
    block = Block(stored(X, storage), learn_basis("standard", X, np.ones(6)), X[:, :1], np.arange(6.0))
    params = rng.standard_normal((1, layout.size))
    value, gradient = kernel_module.value_and_gradient(block, layout, params, SQUARED)
    assert block.native_block is block.native_block
    copy = pickle.loads(pickle.dumps(block))
    assert "native_block" not in vars(copy)
    for same in (block, copy):
        again = kernel_module.value_and_gradient(same, layout, params, SQUARED)
        np.testing.assert_array_equal(again[0], value)
        np.testing.assert_array_equal(again[1], gradient)


@pytest.mark.parametrize("index", [-1, 3])
def test_corrupt_csr_is_refused(index):
    X = sparse.csr_array(np.eye(3))
    X.indices[1] = index
    with pytest.raises(ValueError, match="corrupt CSR"):
        canonical(X)
