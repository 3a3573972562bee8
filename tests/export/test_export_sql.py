"""The exported query, run by a database, gives what the model predicts."""

import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from exported_models import (
    AFFINE,
    HOSTILE,
    LEVELS,
    LINK_TASKS,
    NAMED_TASKS,
    TASKS,
    assert_close,
    factorization_model,
    fit,
    machine,
    model_with_empty_terms,
    named_model,
    number_rows,
    numbers_model,
    strange_table,
    table_model,
)
from tensormachines import TensorMachineClassifier
from tensormachines.export import to_sql

pd = pytest.importorskip("pandas")

N_ROWS = 10_000
NAMES = ["x0", "x1", "x2", "x3"]


def in_sqlite(query, frame, table="rows"):
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT exp(1), sqrt(1)")
        except sqlite3.OperationalError:  # built without mathematical functions
            connection.create_function("exp", 1, lambda x: x if x is None else math.exp(x))
            connection.create_function("sqrt", 1, lambda x: x if x is None else math.sqrt(x))
        quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in frame]
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(quoted)})')
        rows = frame.astype(object).where(frame.notna(), None)
        connection.executemany(
            f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(quoted))})', rows.to_numpy().tolist()
        )
        cursor = connection.execute(query)
        return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])


def in_duckdb(query, frame, table="rows"):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register(table, frame)
        return connection.execute(query).df()


DATABASES = pytest.mark.parametrize("run", [in_sqlite, in_duckdb])


def assert_is_the_model(run, model, rows, frame):
    query = to_sql(model)
    found = run(query, frame)
    assert len(found) == len(rows)
    if model._link() == "sigmoid":
        names = [f"{what}_{k}" for what in ("prediction", "probability") for k in range(3)]
        assert list(found) == names
        np.testing.assert_array_equal(found.iloc[:, :3].to_numpy(), model.predict(rows))
        np.testing.assert_allclose(found.iloc[:, 3:], model.predict_proba(rows), rtol=1e-8, atol=1e-8)
    elif hasattr(model, "classes_"):
        assert list(found)[1:] == [f"probability_{label}" for label in model.classes_]
        np.testing.assert_allclose(
            found.iloc[:, 1:].to_numpy(), model.predict_proba(rows), rtol=1e-8, atol=1e-8
        )
        assert found["prediction"].tolist() == model.predict(rows).tolist()
    else:
        if hasattr(model, "quantiles_"):
            assert list(found) == [f"prediction_{level}" for level in LEVELS]
        assert_close(found.to_numpy(), model.predict(rows))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("basis", AFFINE)
def test_numbers(basis, task):
    rows = number_rows(1000)
    assert_is_the_model(in_sqlite, numbers_model(task, basis), rows, pd.DataFrame(rows, columns=NAMES))


@pytest.mark.parametrize(("basis", "task"), [*zip([*AFFINE, None], TASKS, strict=True)])
def test_numbers_in_duckdb(basis, task):
    rows = number_rows(N_ROWS)
    assert_is_the_model(in_duckdb, numbers_model(task, basis), rows, pd.DataFrame(rows, columns=NAMES))


@pytest.mark.parametrize(
    ("run", "task", "n_rows"),
    [
        *((in_sqlite, task, 1000) for task in TASKS[:3]),
        (in_sqlite, "multiclass", N_ROWS),
        (in_duckdb, "binary", N_ROWS),
        (in_duckdb, "several", 500),
    ],
)
def test_tables(run, task, n_rows):
    rows = strange_table(n_rows)
    assert_is_the_model(run, table_model(task), rows, rows)


@DATABASES
@pytest.mark.parametrize("task", LINK_TASKS)
def test_other_links(run, task):
    rows, strange = number_rows(500), strange_table(500)
    assert_is_the_model(run, numbers_model(task, "standard"), rows, pd.DataFrame(rows, columns=NAMES))
    assert_is_the_model(run, table_model(task), strange, strange)


def test_empty_terms_are_left_out():
    rows = number_rows(1000)
    assert_is_the_model(in_sqlite, model_with_empty_terms(), rows, pd.DataFrame(rows, columns=NAMES))
    assert "f24" in to_sql(model_with_empty_terms())
    assert "f25" not in to_sql(model_with_empty_terms())  # four, and three for each of seven terms


@DATABASES
def test_missing_numbers_that_must_not_be(run):
    rows = pd.DataFrame([[0.0, np.nan, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]], columns=NAMES)
    for task in ("single", "binary", "quantiles"):
        found = run(to_sql(numbers_model(task, "sphere")), rows)
        assert found.iloc[0].isna().all()
        assert found.iloc[1].notna().all()


@DATABASES
def test_columns_to_keep(run):
    rows = number_rows(5)
    frame = pd.DataFrame(rows, columns=NAMES).assign(**{HOSTILE[0]: list("dbace"), "unused": 0})
    table = '"; SELECT 1; --'.replace('"', "")
    model = numbers_model("single", "standard")
    found = run(to_sql(model, table, keep=[HOSTILE[0], "x1"]), frame, table)
    assert list(found) == [HOSTILE[0], "x1", "prediction"]
    assert found[HOSTILE[0]].tolist() == list("dbace")
    assert found["x1"].tolist() == rows[:, 1].tolist()
    np.testing.assert_allclose(found["prediction"], model.predict(rows), rtol=1e-9)
    assert '"a""b"' in to_sql(model, 'a"b')


@DATABASES
def test_levels_that_are_numbers(run):
    """3 and 3.0 are the same level, which a database writes in two ways."""
    frame = pd.DataFrame({"code": pd.Categorical([3, 10, 200] * 10), "x": np.arange(30.0)})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(30) % 3)
    for numbers in ([3, 10, 200, 4], [3.0, 10.0, 200.0, 0.5]):
        rows = pd.DataFrame({"code": numbers, "x": 5.0})
        np.testing.assert_allclose(run(to_sql(model), rows)["prediction"], model.predict(rows), rtol=1e-9)


@DATABASES
def test_levels_that_are_numbers_with_exponents_and_many_digits(run):
    values = [1e-5, 1 / 3, 0.5, 4111111111111111.0, 1e16]
    frame = pd.DataFrame({"code": pd.Categorical(values * 10), "x": np.arange(50.0) % 7})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(50) % 5)
    rows = pd.DataFrame({"code": values, "x": 5.0})
    expected = model.predict(rows)
    assert len(set(expected)) == 5
    np.testing.assert_allclose(run(to_sql(model), rows)["prediction"], expected, rtol=1e-9)


def test_nan_among_levels_that_are_numbers_is_missing():
    codes = [*[3.0, 10.0] * 20, *map(float, range(100, 110)), *[np.nan] * 10]  # rare levels are pooled
    frame = pd.DataFrame({"code": pd.Categorical(codes), "x": np.arange(60.0) % 7})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(60) % 3)
    rows = pd.DataFrame({"code": [3.0, np.nan, 7.5], "x": 5.0})
    np.testing.assert_allclose(in_duckdb(to_sql(model), rows)["prediction"], model.predict(rows), rtol=1e-9)
    name = pd.DataFrame({"code": ["nan", "b"] * 30, "x": np.arange(60.0) % 7})
    of_text = fit(machine("single", degree=2, rank=1), name, np.arange(60) % 2)
    np.testing.assert_allclose(
        in_sqlite(to_sql(of_text), name)["prediction"], of_text.predict(name), rtol=1e-9
    )


def test_levels_that_are_booleans():
    frame = pd.DataFrame({"flag": ["True", "False", "z"] * 10, "x": np.arange(30.0)})
    model = fit(machine("single", degree=2, rank=1), frame, np.arange(30) % 3)
    rows = pd.DataFrame({"flag": [True, False], "x": 5.0})
    np.testing.assert_allclose(in_duckdb(to_sql(model), rows)["prediction"], model.predict(rows), rtol=1e-9)


@DATABASES
@pytest.mark.parametrize("table", ["input", "Outputs", "forms", "states0", "scaled"])
def test_tables_with_names_of_steps(run, table):
    rows = number_rows(5)
    for model in (numbers_model("binary", "standard"), numbers_model("binary", "spline")):
        found = run(to_sql(model, table), pd.DataFrame(rows, columns=NAMES), table)
        assert found["prediction"].tolist() == model.predict(rows).tolist()


def test_a_table_in_a_schema():
    model, rows = numbers_model("single", "standard"), number_rows(5)
    found = in_sqlite(to_sql(model, ("main", "rows")), pd.DataFrame(rows, columns=NAMES))
    np.testing.assert_allclose(found["prediction"], model.predict(rows), rtol=1e-9)
    assert 'FROM "s.1"."a""b"' in to_sql(model, ["s.1", 'a"b'])


def test_many_columns(rng):
    """More than are joined or added at once, and than expressions may nest."""
    X = rng.standard_normal((30, 20))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
    for run in (in_sqlite, in_duckdb):
        assert_is_the_model(
            run, fit(machine("single", basis="spline", degree=2, rank=1), X, X[:, 0]), X, frame
        )
    X = rng.standard_normal((5, 1100))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(1100)])
    assert_is_the_model(
        in_sqlite, fit(machine("single", basis="unit", degree=2, rank=1), X, X[:, 0]), X, frame
    )


@DATABASES
@pytest.mark.parametrize("labels", [["a", "A"], [-(2**63), 2**63 - 1], [-1.0, 2.0], [False, True]])
def test_labels_keep_their_type(run, labels):
    X = np.random.default_rng(0).standard_normal((40, 2))
    model = TensorMachineClassifier(degree=1, basis=None, random_state=0).fit(
        X, np.array(sorted(labels))[(X[:, 0] > 0).astype(int)]
    )
    found = run(to_sql(model), pd.DataFrame(X, columns=["x0", "x1"]))
    assert found["prediction"].tolist() == model.predict(X).tolist()
    kinds = {type(label) for label in found["prediction"].tolist()}
    assert kinds == (
        {int} if run is in_sqlite and labels[0] is False else {type(labels[0])}
    )  # in SQLite TRUE is 1
    names = (
        ["probability_0", "probability_1"]
        if labels[0] == "a"
        else [f"probability_{label}" for label in labels]
    )
    assert list(found)[1:] == names


@DATABASES
@pytest.mark.parametrize("task", NAMED_TASKS)
def test_names_of_targets(run, task):
    model, X = named_model(task)
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    kinds = ["prediction", "probability"] if task == "labels" else ["prediction"]
    found = run(to_sql(model), frame)
    assert list(found) == [f"{kind}_{name}" for kind in kinds for name in HOSTILE[:3]]
    assert_close(found.iloc[:, :3].to_numpy(), model.predict(X))
    with pytest.raises(ValueError, match="which is a column of the result"):
        to_sql(model, keep=[f"Prediction_{HOSTILE[1]}"])
    for names in (("a", "A", "b"), ("a", "b", "c\0")):  # which SQL would confuse or refuse
        numbered = run(to_sql(named_model(task, names)[0]), frame)
        assert list(numbered) == [f"{kind}_{k}" for kind in kinds for k in range(3)]


def test_a_missing_column_is_an_error():
    """SQLite would read quoted names that it does not know as text."""
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        in_sqlite(to_sql(numbers_model("single", None)), pd.DataFrame({"x0": [1.0]}))


def test_case_counts_in_levels():
    frame = pd.DataFrame({"letter": ["a", "A"] * 20, "x": np.arange(40.0)})
    model = fit(machine("single", degree=1), frame, np.arange(40) % 2)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE rows (letter TEXT COLLATE NOCASE, x REAL)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", frame.to_numpy().tolist())
        found = np.ravel(connection.execute(to_sql(model)).fetchall())
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)


def test_refusals():
    with pytest.raises(NotImplementedError, match="to_python or to_c"):
        to_sql(factorization_model("single"))
    model = numbers_model("single", None)
    with pytest.raises(TypeError, match=r"such as \['x1'\]"):
        to_sql(model, keep="x1")
    with pytest.raises(ValueError, match="keep names 'Prediction'"):
        to_sql(model, keep=["Prediction"])
    with pytest.raises(ValueError, match="column or table in SQL: it has a zero"):
        to_sql(model, "a\0")
    frame = pd.DataFrame(np.eye(4), columns=["a", "b", "c", "A"])
    with pytest.raises(ValueError, match="'a' and 'A' apart"):
        to_sql(fit(machine("single", basis="standard", degree=1), frame, np.arange(4)))
    frame = pd.DataFrame({"a": ["x\0", "y"] * 5})
    with pytest.raises(NotImplementedError, match="cannot write text with a zero"):
        to_sql(fit(machine("single", degree=1), frame, np.arange(10)))


def test_the_same_text_every_time():
    assert to_sql(table_model("binary")) == to_sql(table_model("binary"))
