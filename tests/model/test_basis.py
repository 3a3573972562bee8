import numpy as np
import pytest
from scipy import sparse

import reference
from reference import learn_basis
from tensormachines._model.basis import BASES


def rows(rng):
    X = rng.standard_normal((40, 5)) * [1, 10, 1e-3, 0, 1] + [0, 5, 1, 0, 7]
    X[rng.random(X.shape) < 0.3] = 0
    X[:, 4] = 7
    X[0, 0] = 50
    X[3] = 0
    return X


def with_stored_zeros(X):
    columns = np.tile(np.arange(X.shape[1]), len(X))
    return sparse.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, X.shape[1])), shape=X.shape)


@pytest.mark.parametrize("name", [None, *BASES])
def test_lift_is_the_loop_dense_and_sparse(rng, name):
    X, weight = rows(rng), rng.random(40)
    basis = learn_basis(name, X, weight)
    truth = reference.lift(X, basis)
    np.testing.assert_allclose(basis.lift(X).matrix, truth, rtol=1e-12, atol=1e-12)
    lifted = basis.lift(sparse.csr_array(X))
    np.testing.assert_allclose(lifted.times(np.eye(basis.width)), truth, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lifted.transposed_times(np.eye(40)), truth.T, rtol=1e-12, atol=1e-12)
    assert lifted.matrix.nnz <= np.count_nonzero(X)


@pytest.mark.parametrize("name", BASES)
def test_sparse_and_dense_learn_the_same(rng, name):
    X, weight = rows(rng), rng.integers(0, 3, 40).astype(float)
    dense, from_sparse = learn_basis(name, X, weight), learn_basis(name, sparse.csr_matrix(X), weight)
    repeated = learn_basis(name, np.repeat(X, weight.astype(int), axis=0), np.ones(int(weight.sum())))
    for other in (from_sparse, repeated):
        np.testing.assert_allclose(other.shift, dense.shift, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(other.scale, dense.scale, rtol=1e-9)


def test_standard_standardises_and_a_constant_column_is_harmless(rng):
    X = rows(rng)
    X[3, 4] = 7
    lifted = learn_basis("standard", X, np.ones(40)).lift(X).matrix * np.sqrt(5)
    np.testing.assert_allclose(lifted[:, :3].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(lifted[:, :3].std(axis=0), 1)
    np.testing.assert_allclose(lifted[:, 4], 0, atol=1e-12)
    np.testing.assert_allclose(lifted[:, 5], 1)


@pytest.mark.parametrize("storage", [np.asarray, with_stored_zeros])
def test_scaled_divides_by_the_size_of_entries(rng, storage):
    X, weight = rows(rng), rng.random(40)
    basis = learn_basis("scaled", storage(X), weight)
    there, mean = X != 0, weight @ X / weight.sum()
    unit = np.sqrt(weight.sum() / (weight @ there.sum(axis=1)))
    for column, entries in enumerate(there.T):
        size = np.sqrt(np.average(X[entries, column] ** 2, weights=weight[entries])) if entries.any() else 1
        moved = (X[:, column] - mean[column]) / size
        np.testing.assert_allclose(basis.lift(X).matrix[:, column], unit * np.clip(moved, -4, 4), atol=1e-12)


def test_scaled_does_not_centre_rare_columns(rng):
    X = np.zeros((1024, 3))
    X[:1, 0] = X[:2, 1] = 2.0  # one row of 1,024, and two
    X[:, 2] = rng.random(1024)
    basis = learn_basis("scaled", sparse.csr_array(X), np.ones(1024))
    np.testing.assert_allclose(basis.shift, [0, 4 / 1024, X[:, 2].mean()])
    assert basis.zero_row is basis.zero_row  # all blocks share it


def test_unit_is_the_papers(rng):
    X = rows(rng)
    lifted = learn_basis("unit", X, np.ones(40)).lift(X).matrix
    columns = X / np.where(np.linalg.norm(X, axis=0) > 0, np.linalg.norm(X, axis=0), 1)
    norms = np.linalg.norm(columns, axis=1)
    assert norms[3] == 0
    np.testing.assert_allclose(lifted, columns / np.where(norms > 0, norms, 1)[:, None])


def test_sphere_has_unit_rows(rng):
    X = rows(rng)
    np.testing.assert_allclose(
        np.linalg.norm(learn_basis("sphere", X, np.ones(40)).lift(X).matrix, axis=1), 1
    )


def test_large_offsets_keep_their_digits_in_float32(rng):
    X = (rng.standard_normal((1000, 2)) + 1e5).astype(np.float32)
    lifted = learn_basis("standard", X, np.ones(1000)).lift(X).matrix
    np.testing.assert_allclose(lifted[:, :2].std(axis=0) * np.sqrt(2), 1, rtol=1e-3)


def test_values_too_large_to_square_are_refused():
    with pytest.raises(ValueError, match="too large"):
        learn_basis("standard", np.array([[1e200], [-1e200]]), np.ones(2))
