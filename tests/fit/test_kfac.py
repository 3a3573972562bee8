"""Fits with solver="kfac": as low as L-BFGS gets, wherever the rows are and whatever they look like."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks
from tensormachines.peers import FactorizationMachineRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")

FORMS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran": np.asfortranarray,
    "csr": sparse.csr_array,
}


def pieces(*arrays, rows=1000):
    return blocks.iterable(
        [tuple(array[a : a + rows] for array in arrays) for a in range(0, len(arrays[-1]), rows)]
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("basis", ["standard", "sphere", "unit", None])
def test_no_higher_than_lbfgs(rng, form, basis):
    X, y = teacher(rng, 6000)
    settings = {"degree": 3, "rank": 2, "basis": basis, "alpha": 1e-5, "random_state": 0, "tol": 1e-6}
    kfac = TensorMachineRegressor(solver="kfac", **settings, max_iter=300).fit(FORMS[form](X), y)
    plain = TensorMachineRegressor(solver="lbfgs", **settings, max_iter=300).fit(FORMS[form](X), y)
    assert kfac.objective_ <= 1.02 * plain.objective_


@pytest.mark.parametrize("form", FORMS)
def test_degree_1_is_ridge(rng, form):
    X, weight = rng.standard_normal((6000, 8)), rng.integers(0, 3, 6000)
    X[:, 3] = 0
    y = X @ np.arange(8) + rng.standard_normal(6000) + 1
    model = TensorMachineRegressor(degree=1, alpha=0.01, basis=None, solver="kfac", tol=1e-10, random_state=0)
    model.fit(FORMS[form](X), y, sample_weight=weight)
    exact = Ridge(alpha=0.01 * weight.sum()).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.predict(FORMS[form](X)), exact.predict(X), atol=1e-2 if form == "float32" else 1e-4
    )


def test_degree_1_is_logistic_regression_on_many_sparse_columns(rng):
    """More of them than eigenvectors are computed of."""
    X = sparse.random_array((4000, 1500), density=0.01, format="csr", random_state=rng)
    X = X @ sparse.diags_array(np.exp(rng.standard_normal(1500)))
    y = X @ rng.standard_normal(1500) + 0.1 * rng.standard_normal(4000) > 0
    model = TensorMachineClassifier(
        degree=1, alpha=1e-3, basis=None, solver="kfac", tol=1e-10, random_state=0
    ).fit(X, y)
    exact = LogisticRegression(C=1 / (4000 * 1e-3), tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)


def test_products_on_many_sparse_columns(rng):
    X = sparse.random_array((5000, 1500), density=0.01, format="csr", random_state=rng)
    a, b = rng.standard_normal((2, 1500))
    y = (X @ a) * (X @ b)
    settings = {"degree": 2, "rank": 2, "alpha": 1e-5, "basis": None, "random_state": 0, "max_iter": 60}
    kfac = TensorMachineRegressor(solver="kfac", **settings).fit(X, y)
    plain = TensorMachineRegressor(solver="lbfgs", **settings).fit(X, y)
    assert kfac.objective_ < 1.05 * plain.objective_


def test_several_outputs_and_classes(rng):
    X, y = teacher(rng, 6000)
    Y = np.stack([y, X[:, 0] * X[:, 1], X[:, 2]], axis=1)
    settings = {
        "degree": 3,
        "rank": 2,
        "basis": "standard",
        "alpha": 1e-5,
        "random_state": 0,
        "solver": "kfac",
    }
    model = TensorMachineRegressor(**settings, tol=1e-6).fit(X, Y)
    assert (np.mean((model.predict(X) - Y) ** 2, axis=0) < 0.01 * Y.var(axis=0)).all()
    labels = np.digitize(y, [-2, 2, 5])
    classifier = TensorMachineClassifier(**settings).fit(X, labels)
    assert classifier.score(X, labels) > 0.95


def test_the_same_for_a_seed_and_for_any_number_of_threads(rng):
    X, y = teacher(rng, 6000)
    settings = {"degree": 3, "rank": 2, "basis": "standard", "solver": "kfac", "max_iter": 30}
    one, same = (TensorMachineRegressor(**settings, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    other = TensorMachineRegressor(**settings, random_state=1).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), same.predict(X))
    assert not np.array_equal(one.predict(X), other.predict(X))


def test_weights_are_repetitions(rng):
    """Of a small data set, whose equal rows are merged, to the bit."""
    X, y = teacher(rng, 300)
    times = rng.integers(0, 3, 300)
    settings = {
        "degree": 3,
        "rank": 2,
        "basis": "standard",
        "solver": "kfac",
        "random_state": 0,
        "max_iter": 40,
    }
    weighted = TensorMachineRegressor(**settings).fit(X, y, sample_weight=times)
    repeated = TensorMachineRegressor(**settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_on_disk(rng, form):
    """Their minibatches are other ones than in memory, their minimum is as low."""
    X, y = teacher(rng, 12_000)
    X = FORMS[form](X)
    settings = {
        "degree": 3,
        "rank": 2,
        "basis": "standard",
        "alpha": 1e-5,
        "random_state": 0,
        "solver": "kfac",
        "max_iter": 40,
    }
    on_disk = TensorMachineRegressor(**settings).fit(pieces(X, y))
    assert np.linalg.norm(on_disk.predict(X) - y) < 0.05 * np.linalg.norm(y - y.mean())


def test_rows_on_dask(rng):
    da = pytest.importorskip("dask.array")
    X, y = teacher(rng, 6000)
    X[5] *= 30  # an outlier, which the workers have to find
    y = y.clip(-20, 20)
    settings = {"degree": 2, "rank": 2, "basis": "standard", "random_state": 0, "solver": "kfac", "tol": 1e-6}
    on_dask = TensorMachineRegressor(**settings).fit(
        da.from_array(X, chunks=(2000, 5)), da.from_array(y, chunks=2000)
    )
    in_memory = TensorMachineRegressor(**settings).fit(X, y)
    assert on_dask.objective_ == pytest.approx(in_memory.objective_, rel=0.05)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_factorization_machines(rng, form):
    X = rng.standard_normal((6000, 6)) * (rng.random((6000, 6)) < 0.5)
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4]
    model = FactorizationMachineRegressor(degree=2, rank=3, alpha=1e-6, solver="kfac", random_state=0).fit(
        FORMS[form](X), y
    )
    assert model.score(X, y) > 0.99


def test_goes_on_from_the_last_fit(rng):
    """A warm start is not warmed up: that would lead away from it."""
    X, y = teacher(rng, 6000)
    settings = {
        "degree": 3,
        "rank": 2,
        "basis": "standard",
        "alpha": 1e-5,
        "random_state": 0,
        "solver": "kfac",
        "warm_start": True,
    }
    model = TensorMachineRegressor(**settings, tol=1e-6, max_iter=200).fit(X, y)
    before = model.objective_
    model.set_params(max_iter=1).fit(X, y)
    assert model.objective_ <= before


def test_other_starts_and_ends(rng):
    X, y = teacher(rng, 6000)
    settings = {
        "degree": 3,
        "rank": 2,
        "basis": "standard",
        "alpha": 1e-5,
        "random_state": 0,
        "solver": "kfac",
        "max_iter": 100,
    }
    for options in [
        {"n_restarts": 3},
        {"init": "greedy"},
        {"init_scale": 0.5},
        {"early_stopping": True, "n_iter_no_change": 30},
    ]:
        model = TensorMachineRegressor(**settings, **options).fit(X, y)
        assert model.score(X, y) > 0.99, options
    constrained = TensorMachineRegressor(**settings, max_norm=0.5).fit(X, y)
    assert np.linalg.norm(constrained.linear_) <= 0.5 * (1 + 1e-9)


def test_a_constant_target_and_few_rows(rng):
    X = rng.standard_normal((20, 3))
    settings = {"solver": "kfac", "random_state": 0}
    np.testing.assert_allclose(
        TensorMachineRegressor(**settings).fit(X, np.full(20, 7.0)).predict(X), 7, atol=1e-2
    )
    TensorMachineRegressor(**settings).fit(X[:1], [1.0])
    TensorMachineClassifier(**settings).fit(X[:2], [0, 1])


def test_xor(rng):
    X = rng.choice([-1.0, 1.0], (4000, 2))
    model = TensorMachineClassifier(degree=2, rank=1, solver="kfac", random_state=0).fit(
        X, X[:, 0] * X[:, 1] > 0
    )
    assert model.score(X, X[:, 0] * X[:, 1] > 0) == 1


@pytest.mark.parametrize("options", [{}, {"relevance": 1}], ids=str)
def test_splines(rng, options):
    X = rng.random((6000, 3))
    y = np.sin(8 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2] - 0.5)
    settings = {
        "degree": 2,
        "rank": 3,
        "alpha": 1e-5,
        "basis": "spline",
        "random_state": 0,
        "max_iter": 60,
        **options,
    }
    kfac = TensorMachineRegressor(solver="kfac", **settings).fit(X, y)
    plain = TensorMachineRegressor(solver="lbfgs", **settings).fit(X, y)
    assert kfac.objective_ < plain.objective_
    assert kfac.score(X, y) > 0.999


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter", "ignore:.*worse than a constant would")
@pytest.mark.parametrize("seed", range(4))
def test_directions_without_curvature_do_not_explode(seed):
    """Fewer rows than columns, one of them constant, and no penalty: rounding errors are no curvature."""
    X = sparse.csc_array([[3, -0.13210486], [3, 0.10490012]])
    y = np.array([1.0, 0.0])
    model = TensorMachineRegressor(
        solver="kfac", degree=2, rank=1, alpha=0, basis="standard", max_iter=1, random_state=seed
    ).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) <= 2.001 * y.var()
