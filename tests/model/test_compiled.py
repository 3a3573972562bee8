"""Models as plain functions: the same numbers as the estimators give, from any array, and after pickling."""

import pickle
from functools import partial

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines._model import numpy_kernel
from tensormachines._model.block import Block
from tensormachines._model.compiled import NumpyModel
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor

pandas = pytest.importorskip("pandas")

BASES = ["spline", "standard", "scaled", "sphere", "unit", None]
QUICK = {"degree": 3, "rank": 3, "max_iter": 3, "random_state": 0}


def data(rng, n=300):
    X = rng.standard_normal((n, 6))
    X[:, 1] = np.round(X[:, 1])  # on knots
    X[:, 2] *= rng.random(n) < 0.3  # most often in one state
    return X, X[:, 0] * X[:, 1] - X[:, 2]


TARGETS = {
    "number": (TensorMachineRegressor, lambda y: y, "predict"),
    "numbers": (TensorMachineRegressor, lambda y: np.column_stack([y, -y]), "predict"),
    "count": (partial(TensorMachineRegressor, loss="poisson"), np.abs, "predict"),
    "costs": (
        partial(TensorMachineRegressor, loss="tweedie"),
        lambda y: np.column_stack([y, -y]).clip(min=0),
        "predict",
    ),
    "quantiles": (
        partial(TensorMachineRegressor, loss="quantile", quantile=[0.1, 0.48, 0.5, 0.9]),
        lambda y: y,
        "predict",
    ),
    "two classes": (TensorMachineClassifier, lambda y: np.where(y > 0, "b", "a"), "predict_proba"),
    "four classes": (TensorMachineClassifier, lambda y: np.digitize(y, [-1, 0, 1]), "predict_proba"),
    "three labels": (
        TensorMachineClassifier,
        lambda y: np.column_stack([y > 0, y > 1, y < -2]),
        "predict_proba",
    ),
    "factorization": (FactorizationMachineRegressor, lambda y: y, "predict"),
    "factorization, classes": (FactorizationMachineClassifier, lambda y: y > 0, "predict_proba"),
}


def fit(kind, X, y, basis):
    estimator, target, method = TARGETS[kind]
    if basis == "spline" and kind.startswith("factorization"):
        pytest.skip("factorization machines have no splines")
    model = estimator(**QUICK, basis=basis, solver="lbfgs").fit(X, target(y))
    return model, getattr(model, method)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("basis", BASES)
def test_it_returns_what_the_estimator_predicts(rng, kind, basis):
    X, y = data(rng)
    model, predict = fit(kind, X, y, basis)
    expected, function = predict(X), model.compiled()
    in_numpy = NumpyModel(model._machine, model._link(), bool(model._squeezed), model._largest_outputs)
    for compiled in (function, pickle.loads(pickle.dumps(function)), in_numpy):
        np.testing.assert_allclose(compiled(X), expected, rtol=1e-9, atol=1e-12)
        for i in range(3):
            row = compiled(X[i])
            assert np.shape(row) == expected.shape[1:]
            np.testing.assert_allclose(row, expected[i], rtol=1e-9, atol=1e-12)
        assert compiled(X[:0]).shape == (0, *expected.shape[1:])
    assert isinstance(function(X[0]), float) == (expected.ndim == 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("outputs", "shared"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_splines_as_the_kernel_in_numpy_has_them(rng, dtype, outputs, shared, degree):
    X, y = data(rng, 700)
    X[:50, 3] = np.nan
    targets = np.column_stack([y, -y, X[:, 0]])[:, :outputs]
    options = QUICK | {"degree": degree, "shared_factors": shared}
    machine = TensorMachineRegressor(**options).fit(X, targets)._machine
    machine.layout.factors(machine.params)[:, -1] = 0  # a term that is left out
    machine = machine._in(np.dtype(dtype))
    X[:9, 0], X[9:20] = [np.inf, -np.inf, 0, 1e300, -1e300, 5, -5, np.nan, 0.1], np.nan
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    basis, layout, params = machine._read
    expected = numpy_kernel.outputs(Block(machine.basis.rows(X), basis), layout, params)
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    for rows in (X, np.asfortranarray(X)):
        np.testing.assert_allclose(machine.outputs(rows), expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(machine.outputs(rows[:3]), machine.outputs(rows)[:3])
        np.testing.assert_array_equal(machine.outputs(rows, threads=2), machine.outputs(rows))


def test_one_row_is_the_same_to_the_bit_among_others(rng):
    X, y = data(rng, 2000)
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    function = model.compiled()
    np.testing.assert_array_equal([function(row) for row in X], model.predict(X))
    np.testing.assert_array_equal(model.set_params(n_jobs=2).predict(X), function(X))


def test_any_array_of_numbers(rng):
    X, y = data(rng)
    function = TensorMachineRegressor(**QUICK).fit(X, y).compiled()
    expected = function(X)
    fixed = X.copy()
    fixed.flags.writeable = False
    wide = np.zeros((300, 12))
    wide[:, ::2] = X
    for rows in (fixed, np.asfortranarray(X), wide[:, ::2], X.tolist(), X.astype(object)):
        np.testing.assert_array_equal(function(rows), expected)
        np.testing.assert_array_equal(function(rows[7]), expected[7])
    np.testing.assert_array_equal(function(X[::-2]), expected[::-2])
    single = X.astype(np.float32)
    np.testing.assert_array_equal(function(single), function(single.astype(np.float64)))
    np.testing.assert_array_equal(function(X.astype(int)), function(X.astype(int).astype(float)))


def test_missing_values_and_other_columns(rng):
    X, y = data(rng)
    X[:50, 3] = np.nan
    model = TensorMachineRegressor(**QUICK).fit(X, y)
    X[0] = np.nan
    np.testing.assert_array_equal(model.compiled()(X), model.predict(X))
    for compiled in (model.compiled(), NumpyModel(model._machine, "identity", True)):
        with pytest.raises(ValueError, match="X has 5 columns, in the fit there were 6"):
            compiled(X[:, :5])
        with pytest.raises(ValueError, match="one row, or a matrix"):
            compiled(X[None])
    with pytest.raises(ValueError, match="could not convert"):
        model.compiled()(["a"] * 6)


def test_categories_are_refused(rng):
    X, y = data(rng)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    TensorMachineRegressor(**QUICK).fit(frame, y).compiled()(X[0])
    frame["c"] = np.where(X[:, 0] > 0, "red", "blue")
    with pytest.raises(ValueError, match="column 'c' holds a category"):
        TensorMachineRegressor(**QUICK).fit(frame, y).compiled()


def test_a_search(rng):
    X, y = data(rng, 100)
    search = TensorMachineRegressorCV(degrees=(2,), ranks=(2,), alphas=(1e-3,), cv=2, random_state=0)
    np.testing.assert_array_equal(search.fit(X, y).compiled()(X), search.predict(X))
