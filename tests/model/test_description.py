"""The description of a model, evaluated slowly, is the model."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from fitted_models import N_ROWS, NAN, QUICK, fitted, frame, numbers, strange_rows, targets
from reference_description import evaluate, is_missing, lift, predictions, probabilities
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines._data.frame import level_name
from tensormachines._model.affine_basis import AffineBasis
from tensormachines._model.description import describe
from tensormachines._model.linear_forms import linear_forms
from tensormachines._model.spline_basis import SplineBasis
from tensormachines.peers import (
    AppleRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    GreedyTensorMachineRegressor,
)


@pytest.fixture(autouse=True)
def _fits_need_not_converge():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        yield


def assert_describes(model, rows, rtol=1e-9):
    """The description predicts what the model does."""
    description = describe(model)
    outputs = evaluate(description, rows)
    assert outputs.dtype == np.float64
    expected = model.predict(rows) if description.kind == "regressor" else model.decision_function(rows)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(
        outputs.reshape(expected.shape), expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )
    if description.kind == "regressor":
        assert predictions(description, outputs).shape == expected.shape
    else:
        np.testing.assert_allclose(
            probabilities(description, outputs), model.predict_proba(rows), rtol=10 * rtol, atol=10 * rtol
        )
        labels = predictions(description, outputs)
        assert labels.dtype == model.classes_.dtype
        if rtol < 1e-6:
            np.testing.assert_array_equal(labels, model.predict(rows))
    return description


@pytest.mark.parametrize("task", ["single", "several", "binary", "multiclass"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("basis", [None, "unit", "standard", "scaled", "sphere", "spline"])
def test_arrays(rng, basis, shared, task):
    X = numbers(np.random.default_rng(1))
    model = fitted(rng, task, X, basis=basis, shared_factors=shared)
    rows = np.vstack([X[:20], rng.uniform(-1000, 1000, (20, 4)), np.zeros(4), np.full(4, 1e4)])
    description = assert_describes(model, rows)
    assert_describes(model, sparse.csr_array(rows))
    assert description.basis_name == basis
    assert [column.kind for column in description.columns] == ["number"] * 4
    assert description.feature_names is None
    assert description.names == ["x0", "x1", "x2", "x3"]
    assert description.link == {"binary": "logistic", "multiclass": "softmax"}.get(task, "identity")
    assert description.layout.n_outputs == {"single": 1, "several": 2, "binary": 1, "multiclass": 4}[task]
    assert linear_forms(description).width == description.coef.shape[1] == len(model.basis_features_)
    assert description.squeeze == (task == "single")
    for p, factors in model.factors_.items():
        np.testing.assert_array_equal(description.factors[p], factors)


def test_sparse_rows_are_scaled(rng):
    X = sparse.csr_array(np.where(rng.random((N_ROWS, 4)) < 0.3, rng.random((N_ROWS, 4)), 0))
    description = assert_describes(fitted(rng, "single", X), X)
    assert description.basis_name == "scaled"


def test_float32(rng):
    X = numbers(np.random.default_rng(1)).astype(np.float32)
    for basis in ("standard", "spline"):
        description = assert_describes(fitted(rng, "multiclass", X, basis=basis), X, rtol=1e-4)
        assert_describes(fitted(rng, "multiclass", X, basis=basis), X.astype(np.float64))
        assert (
            description.intercept.dtype
            == description.coef.dtype
            == description.factors[2].dtype
            == np.float32
        )


@pytest.mark.parametrize("task", ["single", "several", "binary", "multiclass"])
def test_raw_tables(rng, task):
    table = frame(rng)
    model = fitted(rng, task, table)
    description = assert_describes(model, table)
    assert_describes(model, strange_rows(table))
    assert isinstance(description.machine.basis, SplineBasis)
    assert description.names == list(table)
    by_name = dict(zip(table, description.columns, strict=True))
    splines = dict(zip(table, description.machine.basis.columns, strict=True))
    assert [by_name[name].levels for name in ("gaps", "flag", "plain")] == [None] * 3
    assert splines["gaps"].missing
    assert splines["flag"].reference >= 0
    assert splines["plain"].reference < 0
    assert not splines["flag"].missing
    assert not splines["plain"].missing
    assert by_name["graded"].levels == ("low", "mid", "high")
    assert by_name["code"].levels == ("3", "10", "200")
    assert by_name["mostly"].levels == ("x", "y")
    assert by_name["mostly"].pooled
    assert by_name["text"].levels == ("", "blue, dark", "green", 'quo"te', "red")
    for name, column in by_name.items():
        assert column.kind == "number" or len(splines[name].knots) == column.n_codes


def test_other_tables(rng):
    pl = pytest.importorskip("polars")
    table = frame(rng)[["plain", "gaps", "flag", "text", "sparse text"]]
    model = fitted(rng, "binary", table)
    expected = evaluate(describe(model), table)
    polar = pl.DataFrame(
        {
            name: pl.Series(name, [None if is_missing(entry) else entry for entry in table[name]])
            for name in table
        }
    )
    np.testing.assert_array_equal(evaluate(describe(model), polar), expected)
    assert_describes(fitted(rng, "binary", polar), polar)
    objects = table.astype(object).to_numpy()
    by_number = fitted(rng, "binary", objects)
    assert assert_describes(by_number, objects).feature_names is None


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "c"],
        [3, -1, 7],
        [5.0, 2.0, -1.0],
        [True, False, True],
        np.array(["x", "y", "z"], dtype=object),
    ],
)
def test_classes_keep_their_type(rng, labels):
    X = numbers(rng)
    y = np.asarray(labels)[np.arange(N_ROWS) % 3]
    description = assert_describes(TensorMachineClassifier(basis="standard", **QUICK).fit(X, y), X)
    assert description.classes.dtype == y.dtype
    assert set(description.classes) == set(labels)


def test_rare_shapes_of_models(rng):
    X = numbers(rng)
    y = targets(rng, X)["single"]
    linear = assert_describes(TensorMachineRegressor(degree=1, basis="standard", random_state=0).fit(X, y), X)
    assert linear.factors == {}
    members = assert_describes(TensorMachineRegressor(basis="spline", n_members=3, **QUICK).fit(X, y), X)
    assert members.layout.rank == 6
    assert members.factors[3].shape[:3] == (1, 6, 3)
    column = assert_describes(TensorMachineRegressor(**QUICK).fit(X, y[:, None]), X)
    assert not column.squeeze


def test_quantiles_are_the_outputs_in_order(rng):
    X = numbers(rng)
    levels = [0.1, 0.45, 0.5, 0.9]
    model = fitted(rng, "single", X, loss="quantile", quantile=levels)
    description = describe(model)
    outputs = evaluate(description, X)
    assert (np.diff(outputs, axis=1) < 0).any()  # these cross
    np.testing.assert_allclose(predictions(description, outputs), model.predict(X), rtol=1e-9)
    assert description.link == "sorted"
    assert description.quantiles.tolist() == levels


def test_searches_are_their_best(rng):
    X = numbers(rng)
    few = {
        "degrees": (2,),
        "ranks": (2,),
        "alphas": (1e-3,),
        "relevances": (0,),
        "trends": (False,),
        "max_iters": (2,),
        "n_members": 2,
        "random_state": 0,
    }
    for search, task in ((TensorMachineRegressorCV, "single"), (TensorMachineClassifierCV, "binary")):
        model = search(**few, cv=2).fit(X, targets(rng, X)[task])
        description = assert_describes(model, X)
        np.testing.assert_array_equal(evaluate(description, X), evaluate(describe(model.best_estimator_), X))


def test_peers(rng):
    X = numbers(rng)
    y = targets(rng, X)
    quick = {"degree": 3, "rank": 2, "max_iter": 5, "random_state": 0}
    for basis in (None, "standard", "sphere"):
        machine = FactorizationMachineRegressor(basis=basis, **quick).fit(X, y["several"])
        assert assert_describes(machine, X).terms == "anova"
    assert_describes(FactorizationMachineClassifier(**quick).fit(sparse.csr_array(X), y["multiclass"]), X)
    assert assert_describes(GreedyTensorMachineRegressor(**quick).fit(X, y["single"]), X).terms == "products"


def test_terms_by_hand():
    """The terms of a factorization machine, by its definition."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    model = FactorizationMachineRegressor(degree=3, rank=1, basis=None, random_state=0, max_iter=3).fit(
        X, X[:, 0]
    )
    description = describe(model)
    a, b, c = description.factors[2][0, 0] * X[7]
    d, e, f = description.factors[3][0, 0] * X[7]
    expected = description.intercept[0] + description.coef[0] @ X[7] + a * b + a * c + b * c + d * e * f
    np.testing.assert_allclose(evaluate(description, X[7:8]), [[expected]], rtol=1e-12)


def test_a_row_of_zeros_has_no_norm():
    basis = AffineBasis(2, np.zeros(2), np.ones(2), unit_rows=True)
    np.testing.assert_array_equal(lift(basis, np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]])


def test_level_names():
    pd = pytest.importorskip("pandas")
    assert [level_name(entry) for entry in (3, 3.0, "3", np.float32(3), np.int8(3))] == ["3"] * 5
    assert [level_name(entry) for entry in (True, np.True_, 0.5, "a", float("inf"))] == [
        "True",
        "True",
        "0.5",
        "a",
        "inf",
    ]
    assert [is_missing(entry) for entry in (None, NAN, pd.NA, pd.NaT, np.float32(NAN), "", 0, False)] == [
        True
    ] * 5 + [False] * 3


def test_what_cannot_be_described(rng):
    X = numbers(rng)
    for model in (LinearRegression(), AppleRegressor(), TensorMachineFeatures()):
        with pytest.raises(TypeError, match=rf"TensorMachineRegressor, .*got {type(model).__name__}"):
            describe(model)
    with pytest.raises(NotFittedError):
        describe(TensorMachineRegressor())
    description = describe(TensorMachineRegressor(**QUICK).fit(X, X[:, 0]))
    with pytest.raises(
        NotImplementedError, match=r"all booleans can be exported, got classes of type int, str"
    ):
        _ = linear_forms(replace(description, classes=np.array([1, "a"], dtype=object))).labels
    machine = replace(description.machine, params=np.full_like(description.machine.params, NAN))
    with pytest.raises(ValueError, match="parameters that are not finite"):
        linear_forms(replace(description, machine=machine))
