"""Kernel ridge against scikit-learn's, whose kernel matrix is formed and factored whole."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines.peers import PolynomialKernelRidge, PolynomialKernelRidgeClassifier, kernel_ridge
from tensormachines.peers.kernel_ridge import TiledCholesky, polynomial_kernel
from tensormachines.peers.memory import available_memory


def table(rng, n_rows=200, n_features=5, n_targets=1):
    X = rng.standard_normal((n_rows, n_features))
    X[3], X[:, 2] = 0, 0
    y = (X[:, 0] * X[:, 1])[:, None] + rng.standard_normal((n_rows, n_targets))
    return X, y[:, 0] if n_targets == 1 else y


@pytest.mark.filterwarnings("ignore:The kernel matrix plus")
@parametrize_with_checks([PolynomialKernelRidge(), PolynomialKernelRidgeClassifier()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("size", [7, 64, 100, 1024])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_of_any_size_solve_the_system(rng, size, n_targets, dtype):
    X, y = (values.astype(dtype) for values in table(rng, n_targets=n_targets))
    y = y.reshape(len(X), n_targets)
    A = polynomial_kernel(X, X, 0.2, 1.0, 3) + 2 * np.eye(len(X), dtype=dtype)

    def tile(rows, columns):
        return np.array(A[rows, columns], order="F")

    cholesky = TiledCholesky(len(X), tile, size)
    stored = sum(piece.size for row in cholesky.tiles for piece in row)
    assert cholesky.factor()
    assert stored == TiledCholesky.n_stored(len(X), size)
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(A @ cholesky.solve(y), y, atol=tolerance)
    A[100, 100] = -1
    assert not TiledCholesky(len(X), tile, size).factor()


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_equals_scikit_learn(rng, degree, n_targets, weighted, storage):
    X, y = table(rng, 1100 if degree == 3 else 200, n_targets=n_targets)  # in several tiles, and in one
    weight = rng.integers(0, 4, len(X)).astype(float) if weighted else None
    settings = {"degree": degree, "alpha": 0.3, "gamma": None if degree % 2 else 0.4, "coef0": 0.7}
    ours = PolynomialKernelRidge(**settings).fit(storage(X), y, weight)
    theirs = KernelRidge(kernel="polynomial", **settings).fit(storage(X), y, weight)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        ours.predict(storage(X[:50])), theirs.predict(storage(X[:50])), rtol=1e-8, atol=1e-8
    )


def test_float32(rng):
    X, y = table(rng)
    ours = PolynomialKernelRidge(alpha=0.5).fit(X.astype(np.float32), y)
    assert ours.dual_coef_.dtype == ours.predict(X.astype(np.float32)).dtype == np.float32
    theirs = KernelRidge(kernel="polynomial", alpha=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_two_classes_are_the_sign_of_regression(rng):
    X, y = table(rng)
    names = np.where(y > 0, "yes", "no")
    theirs = KernelRidge(kernel="polynomial").fit(X, np.where(y > 0, 1, -1)).predict(X)
    ours = PolynomialKernelRidgeClassifier().fit(X, names)
    np.testing.assert_allclose(ours.decision_function(X), theirs, rtol=1e-8)
    assert (ours.predict(X) == np.where(theirs > 0, "yes", "no")).all()


def test_several_classes_are_a_column_each(rng):
    X, y = table(rng)
    numbers = np.digitize(y, [-0.5, 0.5])
    theirs = (
        KernelRidge(kernel="polynomial").fit(X, np.where(numbers[:, None] == np.arange(3), 1, -1)).predict(X)
    )
    ours = PolynomialKernelRidgeClassifier().fit(X, numbers)
    np.testing.assert_allclose(ours.decision_function(X), theirs, rtol=1e-8, atol=1e-10)
    assert (ours.predict(X) == theirs.argmax(axis=1)).all()


def test_weight_is_repetition(rng):
    X, y = table(rng, n_rows=40)
    weight = rng.integers(1, 4, len(X))
    weighted = PolynomialKernelRidge().fit(X, y, weight)
    repeated = PolynomialKernelRidge().fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


def test_rows_are_drawn_where_there_are_too_many(rng):
    X, y = table(rng)
    model = PolynomialKernelRidge(max_rows=30, random_state=0).fit(X, y)
    assert model.X_fit_.shape == (30, 5)
    assert len(model.dual_coef_) == 30
    rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in model.X_fit_]
    assert len(set(rows)) == 30
    np.testing.assert_allclose(model.predict(X), PolynomialKernelRidge().fit(X[rows], y[rows]).predict(X))
    np.testing.assert_array_equal(
        model.predict(X), PolynomialKernelRidge(max_rows=30, random_state=0).fit(X, y).predict(X)
    )
    assert len(PolynomialKernelRidge(max_rows=None).fit(X, y).dual_coef_) == 200


def test_singular_kernel_gives_the_least_squares_predictions(rng):
    X, y = table(rng)  # 10 monomials, 200 rows
    with pytest.warns(UserWarning, match=r"alpha=0 is singular in float64: alpha=.* is used instead"):
        ours = PolynomialKernelRidge(degree=2, alpha=0.0).fit(X, y)
    theirs = KernelRidge(kernel="polynomial", degree=2, alpha=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_a_few_large_rows_do_not_drown_the_others(rng):
    X, _ = table(rng)
    X[:60] *= 1e3
    y = X[:, 0] * X[:, 1]
    with pytest.warns(UserWarning, match="is used instead") as caught:
        model = PolynomialKernelRidge(degree=3, alpha=1e-9).fit(X, y)
    assert caught[0].filename == __file__
    assert model.score(X[60:], y[60:]) > 0.99


def test_duplicate_columns_and_rows_one_column_one_row(rng):
    X, y = table(rng, n_rows=20)
    for rows, targets in (
        (np.hstack([X, X]), y),
        (np.vstack([X, X]), np.hstack([y, y])),
        (X[:, :1], y),
        (X[:1], y[:1]),
        (0 * X, y),
    ):
        assert np.isfinite(PolynomialKernelRidge().fit(rows, targets).predict(rows)).all()


def test_too_little_memory_is_said_before_it_is_taken(rng, monkeypatch):
    monkeypatch.setattr(kernel_ridge, "available_memory", lambda: 150_000)
    X, y = table(rng)
    model = PolynomialKernelRidge()
    with pytest.raises(
        MemoryError,
        match=r"200 rows takes 320,000 bytes, but only 150,000 are available. Lower max_rows, now 40000",
    ):
        model.fit(X, y)
    assert not hasattr(model, "n_features_in_")
    PolynomialKernelRidge(max_rows=100).fit(X, y)
    monkeypatch.setattr(kernel_ridge, "available_memory", lambda: None)
    model.fit(X, y)
    assert len(model.dual_coef_) == 200


@pytest.mark.parametrize(
    ("files", "cache"),
    [
        (("memory.max", "memory.current", "memory.stat"), "inactive_file"),
        (
            ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
            "total_inactive_file",
        ),
    ],
    ids=["cgroups 2", "cgroups 1"],
)
def test_memory_of_machine_and_container(tmp_path, files, cache):
    available = available_memory()
    assert available is None or available > 0
    assert available_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:   4 kB\n")
    assert available_memory(tmp_path) == 4096  # there is no container
    (tmp_path / "sys" / "fs" / "cgroup" / "memory").mkdir(parents=True)
    limit, use, statistics = (tmp_path / "sys" / "fs" / "cgroup" / name for name in files)
    limit.write_text("800\n")
    use.write_text("500\n")
    statistics.write_text(f"anon 3\n{cache} 70\nfile 9\n")
    assert available_memory(tmp_path) == 800 - 500 + 70
    limit.write_text("max\n")
    assert available_memory(tmp_path) == 4096


def test_overflow_is_said(rng):
    X, y = table(rng)
    with pytest.raises(ValueError, match="overflows float64: scale the rows of X"):
        PolynomialKernelRidge(degree=5).fit(1e80 * X, y)
    with pytest.warns(UserWarning, match="singular"):
        assert np.isfinite(PolynomialKernelRidge(degree=4).fit(1e20 * X, y).predict(1e20 * X)).all()


def test_half_the_kernel_matrix_is_all_that_is_kept(rng):
    X, y = rng.standard_normal((3000, 5)).astype(np.float32), rng.standard_normal(3000)
    tracemalloc.start()
    model = PolynomialKernelRidge().fit(X, y)
    fitting = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    model.predict(X)
    predicting = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fitting < 1.05 * 4 * TiledCholesky.n_stored(3000) + 2 * 4 * kernel_ridge.TILE**2
    assert TiledCholesky.n_stored(3000) == 3 * 1024**2 + 952 * 3000
    assert predicting < 3 * 4 * kernel_ridge.PREDICTED_AT_ONCE
