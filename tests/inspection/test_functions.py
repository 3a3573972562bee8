"""Models as sums of functions of one and two columns, and as small polynomials."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from sklearn.metrics import r2_score

from random_machines import X as NUMBERS
from random_machines import machine
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import (
    contributions,
    distil,
    distillation,
    formula,
    functions,
    polynomial,
    to_sympy,
)

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def flats():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "area": random.uniform(30, 150, 1500),
            "district": random.choice(["north", "south", "harbour"], 1500),
            "lift": random.random(1500) < 0.5,
            "noise": random.normal(size=1500),
        }
    )
    rent = 4 * table["area"] + np.where(table["district"] == "harbour", 2, 0) * table["area"]
    rent += 80 * table["lift"] + 30
    table.loc[::9, "district"] = None
    model = TensorMachineRegressor(random_state=0, degree=2).fit(table, rent.rename("rent"))
    return model, table, rent


def test_functions_are_those_of_the_data(flats):
    model, table, _ = flats
    found = formula(model, table)
    assert {function.columns for function in found.functions[:4]} == {
        ("area",),
        ("district",),
        ("lift",),
        ("area", "district"),
    }
    by_columns = {function.columns: function for function in found.functions}
    lift = by_columns["lift",].to_frame()
    assert list(lift.index) == ["false", "true"]
    assert lift["true"] - lift["false"] == pytest.approx(80, abs=8)
    pair = by_columns["area", "district"].to_frame()
    assert list(pair.columns) == ["harbour", "north", "south", "missing"]
    high, low = float(pair.index[-1]), float(pair.index[0])
    slopes = (pair.iloc[-1] - pair.iloc[0]) / (high - low)
    assert slopes["harbour"] - slopes["north"] == pytest.approx(2, abs=0.3)
    shares = [function.share for function in found.functions]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1


def test_fidelity_is_that_of_the_printed_values(flats):
    """It is R2 of the tables against the outputs; a few functions less are less of the model."""
    model, table, _ = flats
    found = formula(model, table, fidelity=0.999)
    outputs = model.predict(table)
    assert found.fidelity == pytest.approx(r2_score(outputs, found(table)), abs=1e-9)
    assert found.constant == pytest.approx(outputs.mean(), rel=1e-5)  # these are the training rows
    assert found(table).mean() == pytest.approx(outputs.mean(), abs=0.02 * outputs.std())
    some = table[table["area"] > 90]
    assert formula(model, some).constant == found.constant
    one = formula(model, table, max_functions=1)
    assert one.fidelity == pytest.approx(r2_score(outputs, one(table)), abs=1e-9)
    assert one.fidelity < found.fidelity
    assert found.fidelity > 0.99
    text = str(found)
    assert text.startswith(f"rent = {outputs.mean():.5g} + {len(found.functions)} functions: they are")
    for label in ("harbour", "true", "missing", "area & district"):
        assert label in text


def test_functions_of_an_exact_polynomial_go_through_its_parts():
    model = machine(None, 2)
    found = formula(model, NUMBERS, fidelity=1.1)
    split = contributions(model, NUMBERS, reference=NUMBERS)
    (flag,) = (each for each in found.functions if each.columns == ("x2",))
    assert flag.axes[0].labels == ["0", "1"]
    np.testing.assert_allclose(flag.at([NUMBERS[:, 2]]), split["x2"], atol=1e-9)
    assert found.constant == pytest.approx(split[()][0])
    assert len(found.functions) == 4 + 6


def test_straight_lines_are_near_the_curve(flats):
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, size=(1000, 1))
    model = TensorMachineRegressor(random_state=0, alpha=1e-6).fit(X, np.sin(X[:, 0]))
    found = formula(model, X)
    (function,) = found.functions
    assert len(function.axes[0].points) <= 8
    assert found.fidelity > 0.98
    beyond = function.at([np.array([-100.0, 100.0])])
    np.testing.assert_array_equal(beyond, function.values[[0, -1]])


def test_a_class_of_several():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    labels = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = TensorMachineClassifier(random_state=0).fit(X, labels)
    found = formula(model, X, output="low")
    assert str(found).startswith("score of low = ")
    assert found.functions[0].columns == ("x0",)
    scores = model.decision_function(X)[:, list(model.classes_).index("low")]
    assert found.fidelity == pytest.approx(r2_score(scores, found(X)), abs=1e-6)
    two = TensorMachineClassifier(degree=1, random_state=0).fit(X, X[:, 0] > 0)
    assert str(formula(two, X)).startswith("log-odds of True = ")


def test_a_distilled_polynomial_is_the_truth_where_that_is_one(flats):
    model, table, _ = flats
    small = distil(model, table.dropna(), terms=3)
    assert set(small) == {(), ("area",), ("lift",), ("area", "district = harbour")}
    assert small["area"] == pytest.approx(4, abs=0.2)
    assert small["lift"] == pytest.approx(80, abs=8)
    assert small["area", "district = harbour"] == pytest.approx(2, abs=0.2)
    outputs = model.predict(table.dropna())
    assert small.fidelity == pytest.approx(r2_score(outputs, small.predict(table.dropna())), abs=1e-6)
    assert small.fidelity > 0.99
    title = repr(small).splitlines()[:2]
    assert title[0].endswith("a missing number its mean.")
    assert title[1].startswith(f"It is {100 * small.fidelity:.1f} % of the model (R2 against")
    assert np.isfinite(small.predict(table)).all()


def test_more_terms_are_more_of_the_model(flats):
    model, table, _ = flats
    fidelities = [distil(model, table, terms=terms).fidelity for terms in (1, 3, 6)]
    assert fidelities == sorted(fidelities)


def test_distil_chooses_among_fewer_columns_if_categories_have_many_levels(rng):
    codes = rng.integers(12, size=(1500, 22))
    table = pd.DataFrame({f"c{j}": np.array([*"abcdefghijkl"])[column] for j, column in enumerate(codes.T)})
    y = 3.0 * (table["c20"] == "b") + 2.0 * (table["c3"] == "f") + 0.1 * rng.standard_normal(len(table))
    model = TensorMachineRegressor(degree=1, random_state=0).fit(table, y)
    small = distil(model, table, terms=2)
    assert set(small) == {(), ("c20 = b",), ("c3 = f",)}
    assert len({name.split(" = ")[0] for name in small.names}) == 10
    with pytest.raises(ValueError, match="more than 5,000 monomials of degree 3"):
        distil(model, table, degree=3)


def test_polynomials_of_splines_point_to_what_can_be_read(flats):
    model, *_ = flats
    for expand in (polynomial, to_sympy):
        with pytest.raises(ValueError, match=r"use formula\(model, X\).*or distil\(model, X\)"):
            expand(model, max_terms=100)


def test_refusals(flats):
    model, table, _ = flats
    with pytest.raises(ValueError, match="max_functions must be 1 or more, got 0"):
        formula(model, table, max_functions=0)
    with pytest.raises(ValueError, match="terms and degree must be 1 or more"):
        distil(model, table, terms=0)
    with pytest.raises(ValueError, match="more than 5,000 monomials of degree 25"):
        distil(model, table, degree=25)
    with pytest.raises(ValueError, match="divided by their norm"):
        formula(machine("sphere"), NUMBERS)
    for function in (formula, distil):
        with pytest.raises(ValueError, match="does not vary"):
            function(model, table[:1])


def test_examples_run():
    for module in (functions, distillation):
        assert doctest.testmod(module).failed == 0


def test_missing_values_of_the_fit_have_a_point_though_no_row_lacks_them(rng):
    frame = pd.DataFrame({"a": rng.standard_normal(600), "b": rng.standard_normal(600)})
    frame.loc[::10, "a"] = np.nan
    y = np.where(frame["a"].isna(), 5.0, frame["a"])
    model = TensorMachineRegressor(random_state=0, degree=1).fit(frame, y)
    found = formula(model, frame.dropna())
    lacking = frame[frame["a"].isna()]
    np.testing.assert_allclose(found(lacking), model.predict(lacking), atol=0.1)
    assert found.functions[0].axes[0].labels[-1] == "missing"
