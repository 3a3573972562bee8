"""A reader of the JSON that knows nothing but the documentation gets the numbers of the model."""

import json
import math

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
    named_model,
    number_rows,
    numbers_model,
    strange_table,
    table_model,
)
from tensormachines.export import to_json

N_ROWS = 60


def read(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def encode(column, entry):
    if entry is None or entry != entry:
        return None
    if column["kind"] == "number":
        return entry
    if str(entry) in column["levels"]:
        return column["levels"].index(str(entry))
    return len(column["levels"]) if column["rare"] else None


def functions(spline, x):
    if "n_levels" in spline:
        state = x if x is not None else spline["n_levels"] if spline["missing"] else None
        return [spline["size"] * (level == state) - center for level, center in enumerate(spline["center"])]
    if x is None:
        return spline["at_missing"]
    return [
        float(np.interp(x, spline["knots"], of_function)) for of_function in np.transpose(spline["values"])
    ]


def lift(basis, row):
    if basis["name"] == "spline":
        return [
            value for spline, x in zip(basis["columns"], row, strict=True) for value in functions(spline, x)
        ] + [basis["constant"]]
    clip = math.inf if basis["clip"] is None else basis["clip"]
    t = [
        min(max((x - c) * s, -clip), clip)
        for x, c, s in zip(row, basis["center"], basis["scale"], strict=True)
    ]
    t += [basis["constant"]] if basis["constant"] else []
    norm = math.hypot(*t) if basis["unit_rows"] else 1.0
    return [entry / (norm or 1.0) for entry in t]


def outputs(model, row):
    t = lift(
        model["basis"], [encode(column, entry) for column, entry in zip(model["columns"], row, strict=True)]
    )

    def dot(factor):
        return math.fsum(a * b for a, b in zip(factor, t, strict=True))

    result = [
        intercept + dot(coef) for intercept, coef in zip(model["intercept"], model["coef"], strict=True)
    ]
    for p, factors in model["factors"].items():
        for k, of_set in enumerate(factors):
            assert len(of_set) == model["rank"]
            assert all(len(term) == int(p) for term in of_set)
            terms = [math.prod(map(dot, term)) for term in of_set]
            if model["term_weights"] is None:
                result[k] += math.fsum(terms)
                continue
            for output, weights in enumerate(model["term_weights"][p]):
                result[output] += math.fsum(w * term for w, term in zip(weights, terms, strict=True))
    return result


def assert_is_the_model(model, rows):
    described = read(to_json(model))
    array = rows if isinstance(rows, np.ndarray) else rows.to_numpy(dtype=object)
    found = np.array([outputs(described, row) for row in array.tolist()])
    expected = model.decision_function(rows) if described["kind"] == "classifier" else model.predict(rows)
    assert described["format"] in {"log": [3], "sigmoid": [4], "sorted": [5]}.get(described["link"], [1, 2])
    if described["link"] == "log":
        found = np.exp(np.minimum(found, described["largest_outputs"]))
    if described["link"] == "sorted":
        assert described["quantiles"] == LEVELS
        found.sort(axis=1)
    assert_close(found, expected)
    if described["link"] == "sigmoid":
        assert described["kind"] == "classifier"
        assert described["classes"] is None
    elif described["kind"] == "classifier":
        assert described["classes"] == model.classes_.tolist()
        assert described["link"] == ("logistic" if len(described["classes"]) == 2 else "softmax")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("basis", [*AFFINE, "spline"])
def test_numbers(basis, task):
    assert_is_the_model(numbers_model(task, basis), number_rows(N_ROWS))


@pytest.mark.parametrize("task", TASKS)
def test_tables(task):
    assert_is_the_model(table_model(task), strange_table(N_ROWS))


@pytest.mark.parametrize("task", LINK_TASKS)
def test_other_links(task):
    assert_is_the_model(numbers_model(task, "standard"), number_rows(N_ROWS))
    assert_is_the_model(table_model(task), strange_table(N_ROWS))


def test_numbers_have_all_their_digits():
    for dtype in (np.float64, np.float32):
        model = numbers_model("multiclass", "standard", dtype)
        described = read(to_json(model, indent=1))
        np.testing.assert_array_equal(np.array(described["factors"]["3"], dtype), model.factors_[3])
        np.testing.assert_array_equal(np.array(described["coef"], dtype), model.linear_)


def test_factorization_machines():
    model = factorization_model("single")
    described = read(to_json(model))
    assert described["terms"] == "anova"
    np.testing.assert_array_equal(described["factors"]["3"], model.factors_[3])


def test_names_of_targets():
    for task in NAMED_TASKS:
        assert read(to_json(named_model(task)[0]))["targets"] == HOSTILE[:3]
    assert read(to_json(numbers_model("several", None)))["targets"] is None
    assert read(to_json(table_model("binary")))["targets"] is None


def test_fields():
    described = read(to_json(table_model("binary")))
    assert set(described) == {
        *("format", "kind", "link", "classes", "targets", "columns", "basis", "terms"),
        *("degree", "rank", "intercept", "coef", "factors", "term_weights"),
        *("squeeze", "largest_outputs", "quantiles"),
    }
    assert described["columns"][0] == {
        "name": "plain",
        "kind": "number",
        "levels": None,
        "rare": False,
        "missing": "zero",
    }
    assert described["columns"][5] == {
        "name": HOSTILE[4],
        "kind": "category",
        "levels": ["x", "y"],
        "rare": True,
        "missing": "zero",
    }
    assert read(to_json(numbers_model("single", None)))["basis"]["clip"] is None
