"""The exported graph, run by onnxruntime, gives what the model predicts."""

import json
import sys

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from exported_models import (
    AFFINE,
    HOSTILE,
    LINK_TASKS,
    NAMED_TASKS,
    TASKS,
    factorization_model,
    fit,
    labelled_model,
    machine,
    model_with_empty_terms,
    named_model,
    number_rows,
    numbers_model,
    strange_table,
    table_model,
)
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.export import register_onnx_converters, to_onnx
from tensormachines.peers import FactorizationMachineRegressor

pd = pytest.importorskip("pandas")

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

N_ROWS = 10_000


def run(graph, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def columns_of(frame, graph, dtype):
    """An input a column, in their order."""
    inputs = {}
    for name, put in zip(frame, graph.graph.input, strict=True):
        if frame[name].dtype.kind == "f":
            inputs[put.name] = frame[[name]].to_numpy(dtype=dtype)
        else:
            inputs[put.name] = np.array(
                [["" if entry is None or entry != entry else entry] for entry in frame[name]], dtype=object
            )
    return inputs


def empty_is_missing(frame):
    """As a graph reads it: ONNX has no missing strings."""
    return frame.mask(frame == "", None)


def assert_is_the_model(model, rows, dtype=np.float64, digits=9):
    graph = to_onnx(model, dtype)
    found = run(
        graph, {"X": rows.astype(dtype)} if isinstance(rows, np.ndarray) else columns_of(rows, graph, dtype)
    )
    rtol = 10.0**-digits if dtype == np.float64 else 1e-5
    expected = model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)
    assert found[-1].dtype == dtype
    np.testing.assert_allclose(
        found[-1].reshape(expected.shape), expected, rtol=10 * rtol, atol=rtol * np.abs(expected).max()
    )
    if hasattr(model, "classes_"):
        same = found[0] == model.predict(rows)
        assert (
            same.all() if dtype == np.float64 else same.mean() > 0.999
        )  # two classes may be equally probable to float32


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("basis", [*AFFINE, "spline"])
def test_numbers(basis, task):
    assert_is_the_model(numbers_model(task, basis), number_rows(N_ROWS))


@pytest.mark.parametrize("task", TASKS)
def test_tables(task):
    assert_is_the_model(table_model(task), empty_is_missing(strange_table(N_ROWS)))


@pytest.mark.parametrize("task", TASKS)
def test_factorization_machines(task):
    assert_is_the_model(factorization_model(task), number_rows(1000, reach=10), digits=12)


@pytest.mark.parametrize("task", LINK_TASKS)
def test_other_links(task):
    assert_is_the_model(numbers_model(task, "standard"), number_rows(500))
    assert_is_the_model(table_model(task), empty_is_missing(strange_table(500)))


def test_factorization_machines_of_far_entries():
    """One entry of a row is far larger than the others: sums of their powers would have no digits left of
    these.
    """
    rows = number_rows(1000, reach=1e15)
    for task in ("single", "binary"):
        model = factorization_model(task)
        found = run(to_onnx(model, np.float64), {"X": rows})[-1]
        expected = model.predict_proba(rows) if task == "binary" else model.predict(rows)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9)


def test_factorization_machines_of_a_higher_degree(rng):
    X = rng.standard_normal((40, 6))
    for degree, rank in ((4, 1), (5, 2)):
        model = fit(
            FactorizationMachineRegressor(degree=degree, rank=rank, max_iter=2, random_state=0),
            X,
            X[:, 0] * X[:, 1],
        )
        assert_is_the_model(model, X, digits=12)


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize("basis", [*AFFINE, "spline"])
def test_a_single_column(basis, rng):
    X = 7 + 3 * rng.standard_normal((50, 1))
    assert_is_the_model(fit(machine("single", basis=basis), X, X[:, 0] ** 2), X, digits=12)


def test_empty_terms_are_left_out():
    assert_is_the_model(model_with_empty_terms(), number_rows(1000))


def test_the_empty_string_is_missing_unless_it_is_a_level(rng):
    frame = pd.DataFrame({"a": ["x", "y"] * 100 + ["rare"], "b": ["x", "", "y"] * 67})
    model = fit(machine("single", degree=1), frame, rng.standard_normal(201) + (frame["b"] == ""))
    graph = to_onnx(model, np.float64)
    given = np.array([["", ""], ["x", "x"], ["unknown", "y"]], dtype=object)
    read = pd.DataFrame({"a": [None, "x", "unknown"], "b": ["", "x", "y"]})
    found = run(graph, {name: given[:, [j]] for j, name in enumerate(frame)})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(read), rtol=1e-12)


@pytest.mark.parametrize("basis", [*AFFINE, "spline"])
def test_float32(basis):
    """To five digits, of rows that are numbers in float32."""
    rows = number_rows(1000, reach=100).astype(np.float32)
    for task in ("single", "multiclass"):
        assert_is_the_model(numbers_model(task, basis, np.float32), rows, np.float32)
    frame = empty_is_missing(strange_table(1000))
    numbers = frame.select_dtypes("float").clip(-1e6, 1e6)
    assert_is_the_model(
        table_model("binary"),
        frame.assign(**{name: numbers[name].astype(np.float32).astype(float) for name in numbers}),
        np.float32,
    )


@pytest.mark.parametrize("task", NAMED_TASKS)
def test_names_of_targets(task):
    model, X = named_model(task)
    graph = to_onnx(model)
    assert [(each.key, json.loads(each.value)) for each in graph.metadata_props] == [("targets", HOSTILE[:3])]
    np.testing.assert_allclose(run(graph, {"X": X})[0], model.predict(X), rtol=1e-9, atol=1e-9)
    assert not to_onnx(numbers_model(task, "standard")).metadata_props


@pytest.mark.parametrize("labels", [['a"', "ü"], [-(2**63), 2**63 - 1], [-1.0, 2.0], [False, True]])
def test_labels_keep_their_type(labels):
    model, X = labelled_model(labels)
    found = run(to_onnx(model, np.float64), {"X": X})[0]
    assert found.dtype.kind == {"U": "O", "b": "i"}.get(model.classes_.dtype.kind, model.classes_.dtype.kind)
    np.testing.assert_array_equal(found, model.predict(X))


def test_levels_that_are_numbers():
    frame = pd.DataFrame({"a b": pd.Categorical([3, 10, 200] * 10), "a_b": np.arange(30.0)})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(30) % 3)
    assert_is_the_model(
        model, pd.DataFrame({"a b": np.array(["3", "10", "7"], dtype=object), "a_b": [0.0, 1.0, 2.0]})
    )
    register_onnx_converters()
    kinds = skl2onnx.common.data_types
    expected = model.predict(pd.DataFrame({"a b": [3, 10, None], "a_b": [0.0, 1.0, 2.0]}))
    graph = skl2onnx.convert_sklearn(model, initial_types=[("X", kinds.DoubleTensorType([None, 2]))])
    np.testing.assert_allclose(
        run(graph, {"X": np.array([[3.0, 0.0], [10.0, 1.0], [np.nan, 2.0]])})[0].ravel(), expected, rtol=1e-9
    )


@pytest.mark.parametrize(
    ("kind", "dtype"), [("DoubleTensorType", np.float64), ("FloatTensorType", np.float32)]
)
def test_levels_that_are_numbers_with_fractions(kind, dtype):
    frame = pd.DataFrame({"code": pd.Categorical([0.3, 1234567.89, 3.0] * 10), "x": np.arange(30.0)})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(30) % 3)
    register_onnx_converters()
    made = getattr(skl2onnx.common.data_types, kind)([None, 2])
    graph = skl2onnx.convert_sklearn(model, initial_types=[("X", made)])
    rows = np.array([[0.3, 0.0], [1234567.89, 1.0], [3.0, 2.0], [7.5, 1.0]])
    expected = model.predict(pd.DataFrame({"code": rows[:, 0], "x": rows[:, 1]}))
    np.testing.assert_allclose(
        run(graph, {"X": rows.astype(dtype)})[0].ravel(), expected, rtol=1e-5, atol=1e-6
    )


def test_pipelines(rng):
    X = rng.standard_normal((60, 3)) * [1, 10, 100]
    register_onnx_converters()
    pipeline = make_pipeline(StandardScaler(), machine("binary", basis="standard", degree=2))
    fit(pipeline, X, np.where(X[:, 0] > 0, "yes", "no"))
    label, probabilities = run(skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False}), {"X": X})
    np.testing.assert_array_equal(label, pipeline.predict(X))
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), rtol=1e-8)
    by_label = run(skl2onnx.to_onnx(pipeline, X[:1].astype(np.float32)), {"X": X.astype(np.float32)})[1]
    np.testing.assert_allclose(
        [row["yes"] for row in by_label], pipeline.predict_proba(X)[:, 1], rtol=1e-4, atol=1e-5
    )


def test_columns_are_transformed_before(rng):
    frame = pd.DataFrame({"color": rng.choice(["red", "blue"], 60), "size": rng.standard_normal(60)})
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["color"]), ("passthrough", ["size"])
    )
    pipeline = fit(
        make_pipeline(encode, machine("single", basis="standard", degree=2)),
        frame,
        frame["size"] * (frame["color"] == "red"),
    )
    register_onnx_converters()
    kinds = skl2onnx.common.data_types
    types = [("color", kinds.StringTensorType([None, 1])), ("size", kinds.DoubleTensorType([None, 1]))]
    graph = skl2onnx.convert_sklearn(pipeline, initial_types=types)
    found = run(
        graph, {"color": frame[["color"]].to_numpy(dtype=object), "size": frame[["size"]].to_numpy()}
    )[0]
    np.testing.assert_allclose(found.ravel(), pipeline.predict(frame), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("basis", ["auto", "standard"])
def test_numbers_that_float32_cannot_tell_apart(rng, basis):
    seconds = 1.7e9 + 600 * rng.random(300)
    X = np.column_stack([seconds, rng.random(300)])
    y = np.sin((seconds - 1.7e9) / 60) + X[:, 1]
    model = TensorMachineRegressor(degree=2, basis=basis, random_state=0).fit(X, y)
    (found,) = run(to_onnx(model), {"X": X})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-6, atol=1e-6)
    with pytest.warns(UserWarning, match=r"float32 is too coarse for x0, .*Use dtype=np\.float64"):
        graph = to_onnx(model, np.float32)
    (coarse,) = run(graph, {"X": X.astype(np.float32)})
    assert np.abs(coarse.ravel() - model.predict(X)).max() > 0.1 * y.std()  # as the warning says


def test_the_same_bytes_every_time():
    model = numbers_model("single", "standard")
    assert to_onnx(model).SerializeToString() == to_onnx(model).SerializeToString()


def test_refusals(rng):
    model = numbers_model("single", None)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got 'int8'"):
        to_onnx(model, "int8")
    register_onnx_converters()
    kinds = skl2onnx.common.data_types
    with pytest.raises(ValueError, match="column 'x0' must be numbers, got strings"):
        skl2onnx.convert_sklearn(model, initial_types=[("X", kinds.StringTensorType([None, 4]))])
    with pytest.raises(ValueError, match="4 columns in all, as in the fit, got 2"):
        skl2onnx.convert_sklearn(
            model, initial_types=[(name, kinds.FloatTensorType([None, 1])) for name in "ab"]
        )
    X = rng.standard_normal((40, 2))
    large = TensorMachineClassifier(degree=1, basis=None, random_state=0).fit(
        X, np.array([0, 2**64 - 1], np.uint64)[(X[:, 0] > 0).astype(int)]
    )
    with pytest.raises(NotImplementedError, match="int64"):
        to_onnx(large)


def test_without_skl2onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"tensormachines\[onnx\]"):
        to_onnx(numbers_model("single", None))
