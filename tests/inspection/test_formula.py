"""The explicit polynomial, against loops over all tuples of variables."""

from __future__ import annotations

import doctest
import math
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polynomial_loops import polynomial_by_loops
from random_machines import BASES, LABELS, X, machine, y
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineFeatures,
    TensorMachineRegressor,
)
from tensormachines.inspection import (
    coefficient_tensor,
    monomials,
    polynomial,
    to_sympy,
    variables,
)
from tensormachines.peers import FactorizationMachineRegressor

pd = pytest.importorskip("pandas")


def assert_same_coefficients(found, expected):
    """``found`` by names, ``expected`` by numbers."""
    numbers = {name: number for number, name in enumerate(found.names)}
    by_number = {tuple(numbers[name] for name in key): value for key, value in found.items()}
    scale = max(map(abs, expected.values()))
    for key, value in expected.items():
        assert by_number.get(key, 0.0) == pytest.approx(value, rel=1e-10, abs=1e-12 * scale), key
    assert set(by_number) <= set(expected)


@pytest.mark.parametrize("units", ["original", "basis"])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("basis", BASES[:-1])
def test_all_coefficients_equal_loops(basis, degree, units):
    model = machine(basis, degree)
    assert_same_coefficients(polynomial(model, units=units), polynomial_by_loops(model, units))


def test_all_coefficients_of_splines_equal_loops():
    model = machine("spline", 2, data=X[:, :2])
    width = len(model.basis_features_)
    model_constant = model._machine.basis.always[-1]
    assert model_constant == 0.5
    found = polynomial(model)
    assert len(found.names) == width - 1
    assert "splines" in found.of_what
    assert_same_coefficients(found, polynomial_by_loops(model))


@pytest.mark.parametrize("units", ["original", "basis"])
@pytest.mark.parametrize("basis", BASES)
def test_formula_evaluates_to_the_prediction(basis, units):
    data = X[:, :2] if basis == "spline" else X
    model = machine(basis, 3, data=data)
    found = polynomial(model, units=units, max_terms=20_000)
    np.testing.assert_allclose(
        found(variables(model, data, units)), model.predict(data), rtol=1e-10, atol=1e-10
    )


def test_variables_in_original_units_are_the_columns():
    for basis in (None, "standard"):
        np.testing.assert_array_equal(variables(machine(basis), X), X)


def test_chosen_monomials_by_name_and_number():
    model = machine("standard", 3)
    everything = polynomial(model)
    some = polynomial(model, [("x3", "x0"), (1, 1, 2), "x2", 0, ()])
    assert len(some) == 5
    assert list(some) == [("x0", "x3"), ("x1", "x1", "x2"), ("x2",), ("x0",), ()]
    for key, value in some.items():
        assert value == pytest.approx(everything[key], rel=1e-12)
    assert some["x1", "x2", "x1"] == some["x2", "x1", "x1"]


def test_lower_degree_is_a_part_of_all():
    model = machine("standard", 3)
    lower, everything = polynomial(model, degree=1), polynomial(model)
    assert set(lower) == {key for key in everything if len(key) <= 1}
    assert all(lower[key] == everything[key] for key in lower)


def test_pieces_change_nothing(monkeypatch):
    model = machine("standard", 3)
    expected = polynomial(model)
    monkeypatch.setattr(monomials, "ENTRIES_AT_ONCE", 40)
    assert polynomial(model).entries == expected.entries


def test_classes_and_outputs_have_polynomials_of_their_own():
    labels = np.array(["a", "b", "c"])[LABELS]
    model = machine("standard", 2, target=labels, cls=TensorMachineClassifier)
    outputs = model.decision_function(X)
    for number, label in enumerate(model.classes_):
        np.testing.assert_allclose(
            polynomial(model, output=label)(X), outputs[:, number], rtol=1e-9, atol=1e-9
        )
    with pytest.raises(ValueError, match=r"3 outputs: output must be one of \['a', 'b', 'c'\], got None"):
        polynomial(model)
    two = machine("standard", 2, target=labels == "a", cls=TensorMachineClassifier)
    np.testing.assert_allclose(polynomial(two)(X), two.decision_function(X), rtol=1e-9, atol=1e-9)
    both = machine(None, 2, target=np.column_stack([y, -y]))
    np.testing.assert_allclose(polynomial(both, output=1)(X), both.predict(X)[:, 1], rtol=1e-10)
    with pytest.raises(ValueError, match="output must be None for a model of one output, got 'a'"):
        polynomial(two, output="a")
    assert len(polynomial(machine(None, 2, cls=TensorMachineFeatures, task="regression"))) == 15


def test_float32_model():
    model = TensorMachineRegressor(degree=2, rank=2, basis="standard", random_state=0).fit(
        X.astype(np.float32), y
    )
    np.testing.assert_allclose(polynomial(model)(X), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"relevance": 2}, {"n_members": 3}, {"max_norm": 2.0, "solver": "lbfgs", "tol": 0.1}, {"degree": 1}],
)
def test_fits_of_other_kinds(settings):
    model = TensorMachineRegressor(
        **{"degree": 2, "rank": 2, "basis": "standard", "random_state": 0, **settings}
    ).fit(X, y)
    np.testing.assert_allclose(polynomial(model)(X), model.predict(X), rtol=1e-10)


def test_known_polynomial_is_found():
    data = np.random.default_rng(0).normal(size=(300, 3)) * [1, 10, 0.1] + [5, 0, 0]
    target = 4 + 2 * data[:, 0] - data[:, 0] * data[:, 1] + 30 * data[:, 2] ** 2
    model = TensorMachineRegressor(
        degree=2, rank=3, alpha=1e-10, basis="standard", solver="kfac", random_state=0
    ).fit(data, target)
    found = polynomial(model)
    expected = {(): 4, ("x0",): 2, ("x0", "x1"): -1, ("x2", "x2"): 30}
    scales = dict(zip(found.names, data.std(axis=0), strict=True))
    for key, value in found.items():
        assert value == pytest.approx(
            expected.get(key, 0), abs=1e-3 * target.std() / math.prod(scales[name] for name in key)
        )


def test_text_has_the_largest_first():
    found = monomials.Polynomial({(): 0.5, ("a", "a"): -20.0, ("a", "b"): 3.0}, ("a", "b"), "columns of X")
    assert found.formula() == "-20 a^2 + 3 a b + 0.5"
    assert found.formula(2) == "-20 a^2 + 3 a b + ..."
    lines = repr(found).splitlines()
    assert lines[0] == "polynomial of columns of X:"
    assert [line.split()[0] for line in lines[1:]] == ["a^2", "a", "constant"]
    many = monomials.Polynomial(
        {(f"x{j}",): 1.0 for j in range(30)}, tuple(f"x{j}" for j in range(30)), "columns"
    )
    assert repr(many).endswith("and 10 smaller")
    assert monomials.Polynomial({}, (), "columns").formula() == "0"


def test_names_that_are_no_words_stand_in_brackets():
    found = monomials.Polynomial({("a b", "a b"): 2.0, ("a b", "c"): 1.0}, ("a b", "c"), "columns")
    assert found.formula() == "2 [a b]^2 + 1 [a b] c"


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize(
    "table",
    [
        {"c": ["rare levels", "x", "y", "z"] * 50 + ["once"]},  # two of them are the rare levels
        {"a": ["b = c", "d", "e"] * 67, "a = b": ["c", "d", "e"] * 67},
    ],
)
def test_functions_of_the_same_name(table):
    frame = pd.DataFrame(table)
    target = np.random.default_rng(0).normal(size=201) + (frame.iloc[:, 0] == frame.iloc[0, 0])
    model = TensorMachineRegressor(degree=2, rank=2, max_iter=2, random_state=0).fit(frame, target)
    assert len(set(model.basis_features_)) == len(model.basis_features_)
    np.testing.assert_allclose(polynomial(model)(variables(model, frame)), model.predict(frame), rtol=1e-9)


def test_refuses_too_many_monomials():
    model = machine(None, 3)
    with pytest.raises(ValueError, match=r"35 monomials, max_terms is 20. Set degree=2.*top_interactions"):
        polynomial(model, max_terms=20)
    assert len(polynomial(model, degree=2, max_terms=20)) == 15
    with pytest.raises(ValueError, match="5 monomials, max_terms is 4"):
        polynomial(model, [(0,), (1,), (2,), (3,), ()], max_terms=4)


def test_refuses_what_is_not_there():
    model = machine(None, 2)
    with pytest.raises(ValueError, match=r"no variable 'z': the variables are 'x0', 'x1'"):
        polynomial(model, ["z"])
    with pytest.raises(ValueError, match="number from 0 to 3, got 4"):
        polynomial(model, [(0, 4)])
    with pytest.raises(ValueError, match="units must be one of"):
        polynomial(model, units="metres")
    with pytest.raises(ValueError, match="degree must be 0 or more"):
        polynomial(model, degree=-1)
    with pytest.raises(ValueError, match=r"shape \(rows, 4\)"):
        polynomial(model)(X[:, :2])
    with pytest.raises(NotFittedError):
        polynomial(TensorMachineRegressor())
    with pytest.raises(TypeError, match="must be a Tensor Machine"):
        polynomial(FactorizationMachineRegressor())


# ---- tensors and symbols


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("basis", [None, "standard"])
def test_tensor_holds_the_monomials_of_its_order(basis, order):
    model = machine(basis, 3)
    tensor = coefficient_tensor(model, order)
    expected = polynomial_by_loops(model)
    total = {}
    for places in product(range(4), repeat=order):
        key = tuple(sorted(places))
        total[key] = total.get(key, 0.0) + tensor[places]
        assert tensor[places] == pytest.approx(tensor[key], rel=1e-12)
    assert total == {
        key: pytest.approx(value, rel=1e-9, abs=1e-9) for key, value in expected.items() if len(key) == order
    }


def test_tensor_is_refused_where_too_large_or_not_there():
    with pytest.raises(ValueError, match="64 entries, max_entries is 63"):
        coefficient_tensor(machine(None, 3), 3, max_entries=63)
    with pytest.raises(ValueError, match="from 1 to the degree of the model, 3, got 4"):
        coefficient_tensor(machine(None, 3), 4)


@pytest.mark.parametrize("expanded", [True, False])
def test_sympy_evaluates_to_the_prediction(expanded):
    sympy = pytest.importorskip("sympy")
    model = machine("standard", 2)
    expression = to_sympy(model, expanded=expanded)
    names = [f"x{j}" for j in range(4)]
    values = [float(expression.subs(dict(zip(map(sympy.Symbol, names), row, strict=True)))) for row in X[:3]]
    np.testing.assert_allclose(values, model.predict(X[:3]), rtol=1e-9)
    if expanded:
        assert len(expression.as_ordered_terms()) == 15
        with pytest.raises(ValueError, match="15 monomials, max_terms is 3"):
            to_sympy(model, max_terms=3)


def test_examples_run():
    assert doctest.testmod(monomials).failed == 0
