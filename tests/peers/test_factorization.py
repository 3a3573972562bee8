"""Factorization machines: against the classical formula, enumeration, planted models and MovieLens."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder

import reference
from tensormachines import blocks
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor


def planted(rng, rows, columns, degree, rank=1, density=1.0):
    """Rows, and the ANOVA terms of that degree alone, of variance 1."""
    X = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)
    factors = rng.standard_normal((rank, columns))
    y = np.array([sum(reference.sum_over_sets(x, factor, degree) for factor in factors) for x in X])
    return X, y / y.std()


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", ["lbfgs", "sfo"])
@pytest.mark.parametrize("degree", [2, 3])
def test_finds_a_planted_model(rng, storage, solver, degree):
    X, y = planted(rng, 600, 5, degree, density=0.8)
    model = FactorizationMachineRegressor(
        degree=degree, rank=3, alpha=1e-7, basis=None, solver=solver, max_iter=300, tol=1e-7, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(storage(X[:400]), y[:400])
    assert model.score(storage(X[400:]), y[400:]) > 0.999


def test_prediction_is_the_enumeration_of_the_fitted_attributes(rng):
    X, y = planted(rng, 80, 6, 3)
    model = FactorizationMachineRegressor(degree=4, rank=2, basis=None, max_iter=5, tol=0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    truth = [
        reference.output(x, model.intercept_, model.linear_, {p: f[0] for p, f in model.factors_.items()})
        for x in X
    ]
    np.testing.assert_allclose(model.predict(X), truth, rtol=1e-10)
    assert {p: f.shape for p, f in model.factors_.items()} == {p: (1, 2, 6) for p in (2, 3, 4)}
    assert model.n_parameters_ == 1 + 6 * (1 + 3 * 2)


def test_no_feature_meets_itself(rng):
    """A factorization machine has no squares: on one column it is a straight line."""
    X = rng.standard_normal((300, 1))
    model = FactorizationMachineRegressor(degree=3, basis=None, alpha=0, random_state=0).fit(X, X[:, 0] ** 2)
    predicted = model.predict(np.array([[0.0], [1.0], [2.0]]))
    assert predicted[2] - predicted[1] == pytest.approx(predicted[1] - predicted[0])


def test_xor(rng):
    X = rng.choice([-1.0, 1.0], size=(400, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    assert FactorizationMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y).score(X, y) == 1.0
    assert FactorizationMachineClassifier(degree=1, random_state=0).fit(X, y).score(X, y) < 0.7


def test_parity_of_three_needs_degree_three(rng):
    X = rng.choice([-1.0, 1.0], size=(600, 4))
    y = X[:, 0] * X[:, 1] * X[:, 2] > 0
    scores = [
        FactorizationMachineClassifier(degree=q, rank=4, basis=None, random_state=1).fit(X, y).score(X, y)
        for q in (2, 3)
    ]
    assert scores[0] < 0.8  # three of four rows can be had by pairs
    assert scores[1] == 1.0


def test_auto_basis_leaves_sparse_rows_alone_and_standardises_dense_ones(rng):
    X, y = planted(rng, 200, 4, 2)
    dense, wide, thin = (
        FactorizationMachineRegressor(basis=basis, random_state=0).fit(storage(X), y)
        for basis, storage in [("auto", np.asarray), ("standard", np.asarray), ("auto", sparse.csr_array)]
    )
    np.testing.assert_array_equal(dense.predict(X), wide.predict(X))
    assert thin.linear_.shape == (4,)
    by_hand = FactorizationMachineRegressor(basis=None, random_state=0).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(thin.predict(X), by_hand.predict(X))


def test_raw_columns_of_very_different_scales(rng):
    X, y = planted(rng, 500, 4, 2)
    raw = X * [1e-6, 1.0, 1e5, 30.0] + [0, 5.0, 1e5, -7.0]
    model = FactorizationMachineRegressor(alpha=1e-6, random_state=0).fit(raw, y)
    assert model.score(raw, y) > 0.99


def test_several_classes_outputs_and_float32(rng):
    X = rng.standard_normal((300, 4)).astype(np.float32)
    labels = np.array(["a", "b", "c"])[(X[:, :3] * X[:, 1:]).argmax(axis=1)]
    model = FactorizationMachineClassifier(alpha=1e-5, random_state=0).fit(X, labels)
    assert model.score(X, labels) > 0.95
    assert model.predict_proba(X).dtype == np.float32
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] * X[:, 3]])
    regressor = FactorizationMachineRegressor(alpha=1e-6, random_state=0).fit(X, Y)
    assert regressor.predict(X).shape == (300, 2)
    assert regressor.score(X, Y) > 0.99


def test_rows_from_a_source_give_the_same_model(rng, tmp_path):
    X, y = planted(rng, 900, 5, 2)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=200)
    there, here = (
        FactorizationMachineRegressor(rank=2, random_state=0).fit(*rows) for rows in [(source,), (X, y)]
    )
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-2, atol=1e-2)


def test_partial_fit_learns(rng):
    X, y = planted(rng, 4000, 4, 2)
    model = FactorizationMachineRegressor(rank=2, alpha=1e-6, random_state=0)
    for start in range(0, 3600, 200):
        model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert model.score(X[3600:], y[3600:]) > 0.95


def movielens():
    path = Path(os.environ.get("TENSORMACHINES_DATA", "../shared/data")) / "movielens100k_user_item.npz"
    if not path.exists():
        pytest.skip("MovieLens is not here")
    return np.load(path)


def test_movielens():
    """The settings that a validation part chooses: benchmarks/factorization.py."""
    data = movielens()
    encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32).fit(data["X_train"])
    model = FactorizationMachineRegressor(rank=4, alpha=8e-5, random_state=0, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(encoder.transform(data["X_train"]), data["y_train"].astype(float))
    predicted = model.predict(encoder.transform(data["X_test"])).clip(1, 5)
    assert np.sqrt(np.mean((predicted - data["y_test"]) ** 2)) < 0.923


def test_a_time_beside_categories(rng):
    """A sparse X is taken as it is, also with seconds since 1970 in one of its columns."""
    codes = rng.integers(0, 20, size=(2000, 2))
    seconds = 1.7e9 + 1e7 * rng.random((2000, 1))
    y = np.cos(codes[:, 0]) * np.cos(codes[:, 1])
    X = sparse.hstack([OneHotEncoder().fit_transform(codes), seconds], format="csr")
    assert FactorizationMachineRegressor(rank=2, random_state=0).fit(X, y).score(X, y) > 0.99
