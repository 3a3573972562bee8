"""The exported module, run on its own, is the model."""

import ast
from decimal import Decimal

import numpy as np
import pytest

from exported_models import (
    AFFINE,
    HOSTILE,
    LINK_TASKS,
    NAMED_TASKS,
    TASKS,
    assert_close,
    factorization_model,
    labelled_model,
    model_with_empty_terms,
    named_model,
    number_rows,
    numbers_model,
    strange_table,
    table_model,
)
from tensormachines import TensorMachineFeatures, TensorMachineRegressor
from tensormachines.export import to_python

pd = pytest.importorskip("pandas")

N_ROWS = 10_000


def load(source):
    module = {}
    exec(compile(source, "exported", "exec"), module)
    return module


def assert_is_the_model(model, rows, others=(), rtol=1e-9):
    source = to_python(model)
    assert source == to_python(model)
    imported = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] == ["import numpy as np"]
    module = load(source)
    for given in (rows, *others):
        predicted = module["predict"](given)
        if not hasattr(model, "classes_"):
            assert_close(predicted, model.predict(rows), rtol)
            continue
        assert predicted.dtype == model.classes_.dtype
        np.testing.assert_array_equal(predicted, model.predict(rows))
        np.testing.assert_allclose(
            module["predict_proba"](given), model.predict_proba(rows), rtol=10 * rtol, atol=10 * rtol
        )
    return source


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("basis", [*AFFINE, "spline"])
def test_numbers(basis, task):
    rows = number_rows(N_ROWS)
    assert_is_the_model(
        numbers_model(task, basis),
        rows,
        [dict(zip(["x0", "x1", "x2", "x3"], rows.T, strict=True)), rows.tolist()],
    )


@pytest.mark.parametrize("task", TASKS)
def test_tables(task):
    rows = strange_table(N_ROWS)
    columns = {name: rows[name].tolist() for name in rows}
    assert_is_the_model(table_model(task), rows, [rows.to_numpy(dtype=object), columns])


@pytest.mark.parametrize("task", TASKS)
def test_factorization_machines(task):
    assert_is_the_model(factorization_model(task), number_rows(1000, reach=10))


@pytest.mark.parametrize("task", LINK_TASKS)
def test_other_links(task):
    assert_is_the_model(numbers_model(task, "standard"), number_rows(500))
    assert_is_the_model(table_model(task), strange_table(500))


@pytest.mark.parametrize("task", NAMED_TASKS)
def test_names_of_targets(task):
    source = assert_is_the_model(*named_model(task))
    assert load(source)["TARGETS"] == HOSTILE[:3]
    assert "TARGETS" not in load(to_python(numbers_model(task, "standard")))


def test_empty_terms_are_left_out():
    model = model_with_empty_terms()
    assert_is_the_model(model, number_rows(1000))
    assert "N_TERMS = {2: [0, 0, 0, 0], 3: [1, 2, 2, 2]}" in to_python(model)


def test_rare_models(rng):
    X = rng.standard_normal((60, 2))
    linear = TensorMachineRegressor(degree=1, basis="standard", random_state=0).fit(X, X[:, :1])
    assert_is_the_model(linear, X)
    single = numbers_model("single", "standard", np.float32)
    assert_is_the_model(single, number_rows(100).astype(np.float32), rtol=1e-4)


@pytest.mark.parametrize(
    "labels",
    [np.array([3, 5], np.int8), np.array([-1.0, 2.0]), np.array([False, True]), np.array(["a", "b"], object)],
)
def test_labels_keep_their_type(labels):
    assert_is_the_model(*labelled_model(labels))


def test_levels_that_are_numbers(rng):
    """3, 3.0 and "3" are the same level."""
    X = np.array([["3", 1.0], ["10", 2.0], ["red", 0.0]] * 20, dtype=object)
    model = TensorMachineRegressor(degree=2, rank=1, random_state=0).fit(X, np.arange(60) % 3)
    module = load(to_python(model))
    rows = [[entry, 1.0] for entry in (3, 3.0, "3", np.float32(3), np.int64(3))]
    np.testing.assert_allclose(module["predict"](rows), np.repeat(model.predict(X[:1]), 5), rtol=1e-9)


def test_a_missing_column_is_named():
    predict = load(to_python(numbers_model("single", "standard")))["predict"]
    for rows in (
        {"x0": [1.0], "x1": [1.0], "x3": [1.0]},
        pd.DataFrame({"x0": [1.0], "x1": [1.0], "x3": [1.0]}),
    ):
        with pytest.raises(ValueError, match="no column 'x2'"):
            predict(rows)


def test_refusals(rng):
    X = rng.standard_normal((40, 2))
    model = TensorMachineRegressor(degree=1, basis="standard", random_state=0).fit(X, X[:, 0])
    module = load(to_python(model))
    with pytest.raises(ValueError, match="missing values, which this model does not take"):
        module["predict"]([[1.0, None]])
    with pytest.raises(ValueError, match=r"table of 2 columns, got an array of shape \(1, 3\)"):
        module["predict"]([[1.0, 2.0, 3.0]])
    with pytest.raises(TypeError, match="TensorMachineFeatures"):
        to_python(TensorMachineFeatures(random_state=0).fit(X, X[:, 0]))
    model._machine.params[0] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        to_python(model)
    mixed, _ = labelled_model([False, True])
    mixed.classes_ = np.array([(1,), (2,)], dtype=object)
    with pytest.raises(NotImplementedError, match="all strings"):
        to_python(mixed)


def test_levels_that_are_numbers_with_fractions():
    codes = np.array([0.1, 2.5, 3.0] * 20)
    frame = pd.DataFrame({"code": codes.astype(np.float32), "x": np.arange(60.0) % 7})
    model = TensorMachineRegressor(
        degree=2, rank=1, categorical_features=["code"], max_iter=5, random_state=0
    )
    module = load(to_python(model.fit(frame, codes)))
    expected = model.predict(frame[:3])
    np.testing.assert_allclose(module["predict"](frame[:3]), expected)
    exact = {"code": [Decimal("0.10"), Decimal("2.5"), Decimal(3)], "x": [0.0, 1.0, 2.0]}
    np.testing.assert_allclose(module["predict"](exact), expected)
