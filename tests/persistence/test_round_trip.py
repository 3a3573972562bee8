"""Saved models come back as they were: from files of every version, from pickles and from skops."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from documented import ESTIMATORS
from fitted_models import QUICK, fitted, frame, numbers, strange_rows, targets
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    load,
)
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor
from tensormachines.persistence import container

pd = pytest.importorskip("pandas")

GOLDEN = Path(__file__).parent / "golden"


def assert_same(one, other):
    """Equal to the bit, and of the same types."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(), other.get_state())
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tolist() == other.tolist() or (
            one.dtype.kind == "f" and np.array_equal(one, other, equal_nan=True)
        )
    else:
        assert one == other or one != one


def public(model):
    return {
        name: value
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and name != "best_estimator_"
    }


def saved(model, path):
    """The model after its way through a file, which changes nothing."""
    model.save(path)
    again = load(path)
    assert type(again) is type(model)
    assert_same(again.get_params(), model.get_params())
    assert_same(public(again), public(model))
    assert_same(
        [again.intercept_, again.linear_, again.factors_], [model.intercept_, model.linear_, model.factors_]
    )
    assert_same(again.basis_features_, model.basis_features_)
    assert again.__sklearn_is_fitted__()
    return again


@pytest.mark.parametrize("task", ["single", "several", "binary", "multiclass"])
@pytest.mark.parametrize("basis", [None, "unit", "standard", "sphere", "spline"])
def test_round_trip(rng, tmp_path, basis, task):
    X = numbers(np.random.default_rng(1))
    model = fitted(rng, task, X, basis=basis)
    again = saved(model, tmp_path / "model")
    for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
        assert_same(again.predict(rows), model.predict(rows))
    if task in ("binary", "multiclass"):
        assert_same(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("task", ["several", "multiclass"])
def test_round_trip_of_raw_tables(rng, tmp_path, task):
    table = frame(rng)
    model = fitted(rng, task, table)
    again = saved(model, tmp_path / "model")
    for rows in (table, strange_rows(table)):
        assert_same(again._outputs(rows), model._outputs(rows))
    assert again._columns == model._columns
    nullable = table[["nullable", "plain"]]
    model = fitted(rng, task, nullable)
    assert_same(saved(model, tmp_path / "model").predict(nullable), model.predict(nullable))


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
def test_float32_stays(rng, tmp_path, solver):
    X = numbers(np.random.default_rng(1)).astype(np.float32)
    for basis in ("standard", "spline"):
        model = fitted(rng, "single", X, basis=basis, solver=solver, n_members=2, max_iter=3)
        again = saved(model, tmp_path / "model")
        assert again.linear_.dtype == again.predict(X).dtype == np.float32
        assert_same(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "ü\ud800"],
        [3, -1, 7],
        [5.0, 2.0, -1.0],
        [True, False, True],
        np.array(["x", "y", "z"], dtype=object),
        [b"a", b"b", b"c"],
    ],
)
def test_labels_keep_their_type(rng, tmp_path, labels):
    X = numbers(rng)
    y = np.asarray(labels)[np.arange(len(X)) % 3]
    model = TensorMachineClassifier(basis="standard", **QUICK)
    again = saved(model.fit(X, y) if y.dtype.kind != "S" else model.fit(X, y.astype(str)), tmp_path / "model")
    assert_same(again.predict(X), model.predict(X))


def test_settings_keep_their_type(rng, tmp_path):
    X, state = numbers(rng), np.random.RandomState(3)
    settings = {
        "alpha": np.float64(0.1),
        "degree": np.int64(2),
        "tol": 0,
        "checkpoint": tmp_path / "c",
        "checkpoint_every": 10_000,
    }
    model = TensorMachineClassifier(
        **QUICK | settings | {"random_state": state, "class_weight": {1: 0.5, 0: 2}}
    )
    again = saved(model.fit(X, X[:, 0] > 0), tmp_path / "model")
    assert again.checkpoint == tmp_path / "c"
    assert again.random_state.randint(1 << 30) == state.randint(1 << 30)
    model.set_params(class_weight="balanced", random_state=None, init_scale=0.5)
    saved(model, tmp_path / "model")


def test_searches(rng, tmp_path):
    X = frame(rng)[["plain", "mostly"]]
    few = {
        "degrees": [2],
        "ranks": (2,),
        "alphas": np.array([1e-3, 1e-2]),
        "relevances": (0,),
        "trends": (False,),
        "max_iters": (2,),
        "random_state": 0,
    }
    for search, task in ((TensorMachineRegressorCV, "single"), (TensorMachineClassifierCV, "multiclass")):
        model = search(**few, cv=2).fit(X, targets(rng, numbers(np.random.default_rng(1)))[task])
        again = saved(model, tmp_path / "model")
        assert_same(again.predict(X), model.predict(X))
        assert_same(again.best_estimator_.get_params(), model.best_estimator_.get_params())
        assert_same(public(again.best_estimator_), public(model.best_estimator_))
        assert_same(again.best_estimator_.predict(X), model.predict(X))
    with pytest.raises(
        TypeError, match=r"TensorMachineClassifierCV cannot be saved with this cv: KFold.*use pickle"
    ):
        model.set_params(cv=KFold(2)).save(tmp_path / "model")
    again.best_estimator_.fit(X, X["mostly"])  # a search predicts as its best estimator does
    again.save(tmp_path / "model")
    assert_same(load(tmp_path / "model").predict(X), again.best_estimator_.predict(X))


def test_features_and_peers(rng, tmp_path):
    X = numbers(rng)
    features = (
        TensorMachineFeatures(**QUICK)
        .set_output(transform="pandas")
        .fit(X, targets(rng, X)["multiclass"].astype(int))
    )
    again = saved(features, tmp_path / "model")
    pd.testing.assert_frame_equal(again.transform(X), features.transform(X))
    quick = {"degree": 3, "rank": 2, "max_iter": 5, "random_state": 0}
    for machine, task in (
        (FactorizationMachineRegressor, "several"),
        (FactorizationMachineClassifier, "multiclass"),
    ):
        model = machine(**quick).fit(X, targets(rng, X)[task])
        assert_same(saved(model, tmp_path / "model").predict(X), model.predict(X))


def test_a_loaded_model_goes_on(rng, tmp_path):
    X = numbers(rng)
    y = targets(rng, X)["single"]
    model = TensorMachineRegressor(**QUICK, warm_start=True, basis="standard").fit(X, y)
    again = saved(model, tmp_path / "model")
    assert_same(again.fit(X, y).predict(X), model.fit(X, y).predict(X))
    again = saved(model, tmp_path / "model")
    assert_same(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))
    assert_same(saved(model, tmp_path / "model").predict(X), model.predict(X))  # in the middle of a stream


def test_pickle(model, rng, tmp_path):
    table = frame(rng)[["gaps", "flag", "mostly", "sparse text"]]
    assert_same(pickle.loads(pickle.dumps(model)).predict_proba(table), model.predict_proba(table))
    again = pickle.loads(pickle.dumps(saved(model, tmp_path / "model")))
    assert_same(again.predict_proba(table), model.predict_proba(table))


def through_skops(model):
    """The model after its way through skops, and the types that it asks to trust."""
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    return skops.loads(data, trusted=types), {name.removeprefix("tensormachines.") for name in types}


SPLINE_TYPES = {
    "_model.spline_basis.SplineBasis",
    *(f"_model.spline_column.Spline{part}" for part in ("Column", "Shape")),
}


def test_skops_of_every_basis(rng):
    X = numbers(rng)
    own = {
        "estimators.classification.TensorMachineClassifier",
        "_model.machine.Machine",
        "_model.layout.Layout",
    }
    for basis in (None, "unit", "standard", "sphere", "spline"):
        model = fitted(rng, "multiclass", X, basis=basis)
        again, types = through_skops(model)
        assert types == own | (SPLINE_TYPES if basis == "spline" else {"_model.affine_basis.AffineBasis"})
        assert_same([again.predict_proba(X), public(again)], [model.predict_proba(X), public(model)])
    table = frame(rng)
    model = fitted(rng, "several", table)
    again, types = through_skops(model)
    of_columns = {
        "_data.encoding.Columns",
        "_data.encoding.Column",
        "_model.spline_basis.SplineBasis",
        "_model.spline_column.SplineColumn",
        "_model.spline_column.SplineShape",
    }
    assert (
        types
        == {
            "estimators.regression.TensorMachineRegressor",
            "_model.machine.Machine",
            "_model.layout.Layout",
        }
        | of_columns
    )
    assert_same(again.predict(strange_rows(table)), model.predict(strange_rows(table)))
    pipeline = make_pipeline(StandardScaler(), TensorMachineRegressor(**QUICK)).fit(X, X[:, 0])
    assert_same(through_skops(pipeline)[0].predict(X), pipeline.predict(X))


def test_skops_goes_on_where_partial_fit_was(rng):
    X = numbers(rng)
    model = TensorMachineRegressor(**QUICK).partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0])
    again, _ = through_skops(model)
    assert_same(again.partial_fit(X, X[:, 1]).predict(X), model.partial_fit(X, X[:, 1]).predict(X))


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if not cls.__name__.startswith("VowpalWabbit")])
def test_skops_of_every_estimator(rng, cls):
    X = numbers(rng)
    quick = {"degree": 2, "rank": 1, "tol": 1e-2, "random_state": 0}
    few = {
        "degrees": (1, 2),
        "ranks": (1,),
        "alphas": (1e-2,),
        "relevances": (0,),
        "trends": (False,),
        "max_iters": (2,),
        "cv": 2,
    }
    model = cls(**{name: value for name, value in (quick | few).items() if name in cls().get_params()})
    model.fit(X, (X[:, 0] > 0).astype(float if is_regressor(model) else int))
    again, types = through_skops(model)
    assert len(types) < 8
    method = "predict" if hasattr(model, "predict") else "transform"
    # Not to the bit: where both factors of a product are the same array, BLAS multiplies them in another way.
    np.testing.assert_allclose(getattr(again, method)(X), getattr(model, method)(X), rtol=1e-9)


def test_files_are_smaller_than_pickles(rng, tmp_path):
    X = numbers(rng)
    for basis in ("standard", "spline"):
        model = fitted(rng, "multiclass", X, basis=basis)
        model.save(tmp_path / "model")
        assert (tmp_path / "model").stat().st_size < len(pickle.dumps(model))


# ---- older versions


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.tm")))
def test_golden_files(name):
    """Files of all versions load, and predict what they did."""
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    model = load(GOLDEN / f"{name}.tm")
    assert type(model).__name__ == expected["estimator"]
    rows = (
        expected["rows"]
        if model._columns is None
        else pd.DataFrame(expected["rows"], columns=expected["columns"], dtype=object)
    )
    outputs = model.predict(rows) if "classes" not in expected else model.predict_proba(rows)
    np.testing.assert_allclose(outputs, expected["outputs"], rtol=1e-10, atol=1e-12)
    if "classes" in expected:
        assert model.classes_.tolist() == expected["classes"]


def test_there_are_golden_files_of_this_version():
    assert {path.name for path in GOLDEN.glob(f"*_{container.VERSION}.tm")} == {
        f"classifier_spline_{container.VERSION}.tm",
        f"regressor_standard_{container.VERSION}.tm",
    }
