"""Parts of predictions and shares of variance, against the definition: inclusion and exclusion over all sets
of columns.
"""

from __future__ import annotations

import doctest
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import sparse

from random_machines import BASES, LABELS, X, machine, y
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.blocks import iterable
from tensormachines.inspection import (
    column_contributions,
    column_variance_shares,
    contributions,
    displacements,
    effect,
    explain_row,
    formula,
    part_importance,
    polynomial,
    variables,
    variance,
    variance_shares,
)
from tensormachines.inspection import decomposition as parts


def lifted(model, data):
    basis = model._machine.basis
    rows = basis.lift(basis.rows(data)).explicit()
    return rows.toarray() if sparse.issparse(rows) else rows


def output_of(model, row):
    """f of one row of the basis, from linear_ and factors_."""
    total = float(model.intercept_) + row @ model.linear_
    for factors in model.factors_.values():
        total += sum(np.prod([v @ row for v in term]) for term in factors[0])
    return total


def parts_by_loops(model, row, reference):
    """{columns: part} of all sets of columns, from outputs at rows of which some columns are at the
    reference.
    """
    basis = model._machine.basis
    groups = np.where(basis.groups < 0, basis.n_columns, basis.groups)
    columns = sorted(set(groups.tolist())) if basis.unit_rows else list(range(basis.n_columns))
    outputs, found = {}, {}
    for size in range(len(columns) + 1):
        for chosen in combinations(columns, size):
            mixed = np.where(np.isin(groups, chosen), row, reference)
            outputs[chosen] = output_of(model, mixed)
            subsets = [subset for p in range(size + 1) for subset in combinations(chosen, p)]
            found[chosen] = sum((-1) ** (size - len(subset)) * outputs[subset] for subset in subsets)
    return found


def mean_parts_by_paths(model, rows, reference):
    """For each column, the mean over rows of the integral along the straight path from the reference of the
    derivative of the output in the direction of that column, from polynomials through outputs.
    """
    basis = model._machine.basis
    groups = np.where(basis.groups < 0, basis.n_columns, basis.groups)
    steps, (points, weights) = np.linspace(-1, 1, 6), np.polynomial.legendre.leggauss(5)
    found = np.zeros(basis.n_columns + basis.unit_rows)
    for column in range(len(found)):
        for row in rows:
            ahead = np.where(groups == column, row - reference, 0)
            for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
                here = reference + point * (row - reference)
                outputs = [output_of(model, here + step * ahead) for step in steps]
                found[column] += weight * np.polyfit(steps, outputs, 5)[-2] / len(rows)
    return found


def shapley_by_orders(found, n_columns):
    """The mean over all orders in which columns can join of what each adds."""
    values = np.zeros(n_columns)
    orders = list(permutations(range(n_columns)))
    for order in orders:
        joined = set()
        for column in order:
            joined.add(column)
            values[column] += sum(part for key, part in found.items() if column in key and set(key) <= joined)
    return values / len(orders)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("basis", BASES)
def test_parts_equal_inclusion_and_exclusion(basis, order):
    """From the mean output of the reference, of which the part of each column has its share."""
    model = machine(basis, 3)
    others = X[20:30]
    split = contributions(model, X[:3], order=order, reference=others)
    center, rows = lifted(model, others).mean(axis=0), lifted(model, X[:3])
    means = mean_parts_by_paths(model, lifted(model, others), center)
    names = [f"x{j}" for j in range(4)] + ["1 / norm"]
    for number, row in enumerate(rows):
        expected = parts_by_loops(model, row, center)
        expected[()] = model.predict(others).mean()
        for (column,) in [key for key in expected if len(key) == 1]:
            expected[column,] -= means[column]
        scale = max(map(abs, expected.values()))
        listed = {tuple(names[g] for g in key): part for key, part in expected.items() if len(key) <= order}
        assert set(split.parts) == set(listed)
        for place, key in enumerate(split.parts):
            assert split.values[number, place] == pytest.approx(listed[key], rel=1e-9, abs=1e-11 * scale)
        assert split.remainder[number] == pytest.approx(
            sum(expected.values()) - sum(listed.values()), abs=1e-11 * scale
        )


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("basis", BASES)
def test_parts_add_up_to_the_prediction(basis, degree):
    model = machine(basis, degree)
    split = contributions(model, X, reference=X[:30])
    predicted = model.predict(X)
    np.testing.assert_allclose(split.outputs, predicted, rtol=1e-10, atol=1e-11 * np.abs(split.values).max())
    columns, values, constant = column_contributions(model, X, reference=X[:30])
    np.testing.assert_allclose(
        constant + values.sum(axis=1), predicted, rtol=1e-10, atol=1e-11 * np.abs(split.values).max()
    )
    assert constant == pytest.approx(split[()][0])
    assert columns[:4] == ["x0", "x1", "x2", "x3"]
    if degree <= 2:
        np.testing.assert_allclose(split.remainder, 0, atol=1e-11 * np.abs(split.values).max())


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("basis", [None, "standard", "spline"])
def test_column_contributions_are_shapley_values(basis, degree):
    model = machine(basis, degree)
    others = X[20:30]
    center = lifted(model, others).mean(axis=0)
    means = mean_parts_by_paths(model, lifted(model, others), center)
    _, values, constant = column_contributions(model, X[:2], reference=others)
    assert constant == pytest.approx(model.predict(others).mean(), rel=1e-9)
    for row, value in zip(lifted(model, X[:2]), values, strict=True):
        expected = shapley_by_orders(parts_by_loops(model, row, center), 4) - means
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("basis", ["standard", "spline"])
@pytest.mark.parametrize("target", [y, LABELS])
def test_without_a_reference_it_is_the_mean_of_the_training_rows(basis, target):
    """Also for classes, which share their factors or do not, and with weights."""
    estimator = TensorMachineRegressor if target is y else TensorMachineClassifier
    model = estimator(degree=3, rank=2, basis=basis, alpha=1e-3, random_state=0)
    times = np.random.default_rng(3).integers(0, 3, len(X))
    for shared in (True, False):
        model.set_params(shared_factors=shared).fit(X, target, sample_weight=times)
        for output in [None] if target is y else range(3):
            np.testing.assert_allclose(
                contributions(model, X[:5], output=output).values,
                contributions(model, X[:5], reference=np.repeat(X, times, axis=0), output=output).values,
                rtol=1e-5,
                atol=1e-5,
            )


def test_parts_of_a_sum_of_functions_have_mean_zero_on_the_training_rows():
    """So do all parts together, and Shapley values of any model."""
    model = TensorMachineRegressor(degree=1, alpha=1e-3, random_state=0).fit(X, y)
    np.testing.assert_allclose(contributions(model, X).values[:, 1:].mean(axis=0), 0, atol=1e-6)
    model = TensorMachineRegressor(degree=3, rank=2, alpha=1e-3, random_state=0).fit(X, y)
    split = contributions(model, X, order=3)
    assert np.abs(split[()] - model.predict(X).mean()).max() < 1e-5
    assert split.values[:, 1:].sum(axis=1).mean() == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(split.outputs, model.predict(X), rtol=1e-12)


def test_mean_parts_of_a_sample_add_up_to_the_mean_of_all_rows():
    """A fit knows the mean output of all rows, and mean parts from a sample of them."""
    rng = np.random.default_rng(0)
    many = rng.normal(size=(6000, 3))
    many[:, 1] += many[:, 0]
    model = TensorMachineRegressor(degree=3, alpha=1e-4, max_iter=5, random_state=0)
    model.fit(many, many[:, 0] * many[:, 1] + many[:, 2])
    split = contributions(model, many[:9])
    assert split[()][0] == pytest.approx(model.predict(many).mean(), abs=1e-5)
    np.testing.assert_allclose(split.outputs, model.predict(many[:9]), rtol=1e-9, atol=1e-9)
    exact = contributions(model, many[:9], reference=many)
    np.testing.assert_allclose(split.values[:, :4], exact.values[:, :4], atol=0.1 * many[:, 0].std())


@pytest.mark.parametrize("basis", [None, "unit", "sphere"])
def test_other_bases_need_one(basis):
    with pytest.raises(ValueError, match="give reference=X_train"):
        contributions(machine(basis), X)


def test_a_row_at_the_reference_has_no_parts():
    split = contributions(machine(None, 3), X[:1], reference=X[:1])
    np.testing.assert_allclose(split.values[0, 1:], 0, atol=1e-12)
    assert split[()] == pytest.approx(split.outputs)


def test_explained_row_adds_up():
    model = machine("standard", 3)
    row = explain_row(model, X[3])
    assert row[()] == contributions(model, X)[()][0]
    assert sum(row.values()) == pytest.approx(model.predict(X[3:4])[0], rel=1e-12)
    assert len(row) == 1 + 4 + 6 + 1
    assert row["x0", "x1"] == pytest.approx(contributions(model, X[3:4])["x1", "x0"][0])
    assert ("remainder",) in row
    assert row["remainder"] == row[("remainder",)]
    assert "remainder" not in explain_row(model, X[3:4], order=3, reference=X)
    assert repr(row).startswith("parts of the output")
    with pytest.raises(ValueError, match="x must be one row, got 2"):
        explain_row(model, X[:2])


def test_parts_of_some_columns():
    model = machine("standard", 3)
    everything, some = contributions(model, X), contributions(model, X, columns=["x3", 1])
    assert some.parts == [(), ("x1",), ("x3",), ("x1", "x3")]
    for part in some.parts:
        np.testing.assert_allclose(some[part], everything[part], rtol=1e-12)
    np.testing.assert_allclose(some.outputs, model.predict(X), rtol=1e-10, atol=1e-10)
    with pytest.raises(KeyError, match=r"no part of 'x0', 'x1': see .parts"):
        some["x1", "x0"]
    variance = variance_shares(model, X, order=3, columns=[1])
    assert set(variance) == {("x1",), ("remainder",)}
    assert sum(variance.values()) == pytest.approx(1)


def test_row_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 2] > 0, "yes", "no"), "c": X[:, 1] > 3})
    for table in (frame, frame[["a"]]):
        model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(table, y)
        expected = pytest.approx(dict(explain_row(model, table[4:5])))
        assert dict(explain_row(model, table.iloc[4])) == expected
    values = frame.iloc[4].tolist()  # a number, a string and a boolean, of which NumPy would make strings
    without_names = frame.to_numpy(dtype=object)
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(without_names, y)
    for row in (values, tuple(values), [values]):
        assert dict(explain_row(model, row)) == pytest.approx(dict(explain_row(model, without_names[4:5])))
    with pytest.raises(TypeError, match=r"got a mapping: give pd.DataFrame\(\[x\]\)"):
        explain_row(model, dict(frame.iloc[4]))


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 2] > 0, "yes", "no")})
    frame.loc[3, "a"] = np.nan
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(frame, y)
    split = contributions(model, frame)
    assert split.parts == [(), ("a",), ("b",), ("a", "b")]
    np.testing.assert_allclose(split.outputs, model.predict(frame), rtol=1e-9)
    assert len(set(split["b"].round(9))) == 2
    assert sum(explain_row(model, frame[3:4]).values()) == pytest.approx(model.predict(frame[3:4])[0])


def test_sparse_rows_and_small_blocks(monkeypatch):
    model = machine("standard", 3)
    expected = contributions(model, X)
    shapley, of_columns, of_parts = (
        column_contributions(model, X)[1],
        column_variance_shares(model, X),
        variance_shares(model, X),
    )
    monkeypatch.setattr(displacements, "ENTRIES_AT_ONCE", 300)
    np.testing.assert_allclose(
        contributions(model, sparse.csr_array(X)).values, expected.values, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(column_contributions(model, X)[1], shapley, rtol=1e-12)
    assert dict(column_variance_shares(model, X)) == pytest.approx(dict(of_columns), rel=1e-9, abs=1e-12)
    assert dict(variance_shares(model, X)) == pytest.approx(dict(of_parts), rel=1e-9, abs=1e-12)


def test_classes_have_parts_of_their_own():
    model = machine("standard", 2, target=LABELS, cls=TensorMachineClassifier)
    for label in range(3):
        np.testing.assert_allclose(
            contributions(model, X, output=label).outputs,
            model.decision_function(X)[:, label],
            rtol=1e-9,
            atol=1e-9,
        )
    with pytest.raises(ValueError, match="3 outputs"):
        contributions(model, X)


def test_contributions_as_a_frame():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X))[::-1])
    model = TensorMachineRegressor(degree=3, rank=2, alpha=1e-3, random_state=0).fit(table, y)
    split = contributions(model, table)
    frame = split.to_frame()
    assert frame.index.equals(table.index)
    assert list(frame.columns[:6]) == ["constant", "a", "b", "c", "d", "a & b"]
    np.testing.assert_array_equal(frame["a & b"], split["a", "b"])
    np.testing.assert_allclose(frame.sum(axis=1), model.predict(table), rtol=1e-9)
    shown = "constant, a, b, c, d, a & b, a & c, a & d, ..."
    assert repr(split) == f"Contributions of 60 rows in 11 parts: {shown}; .to_frame() has all"
    assert "<th>a &amp; b</th>" in split._repr_html_()


def test_frames_give_frames():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X))[::-1])
    model = TensorMachineRegressor(degree=2, rank=2, alpha=1e-3, random_state=0).fit(table, y)
    columns, values, constant = column_contributions(model, table)
    assert list(values.columns) == columns == list("abcd")
    np.testing.assert_allclose(constant + values.sum(axis=1), model.predict(table), rtol=1e-9)
    curve, pair = effect(model, "a", table), effect(model, ("b", "a"), table)
    assert (curve.name, pair.name) == ("a", "b & a")
    np.testing.assert_array_equal(curve, contributions(model, table)["a"])
    found = variables(model, table)
    assert list(found.columns) == list(model.basis_features_[:-1])
    np.testing.assert_allclose(polynomial(model, max_terms=10**6)(found), model.predict(table), rtol=1e-6)
    for of in (values, curve, pair, found):
        assert of.index.equals(table.index)
    shares = part_importance(model, table)
    assert list(shares.to_frame().index[:2]) == [", ".join(key) for key in shares.largest(2)]
    np.testing.assert_array_equal(shares.to_frame()["value"], list(shares.largest().values()))


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("basis", ["standard", "spline"])
def test_the_constant_of_a_row_is_the_mean_prediction_of_the_training_rows(degree, basis):
    model = TensorMachineRegressor(degree=degree, rank=2, basis=basis, alpha=1e-3, random_state=0).fit(X, y)
    for order in (1, 2, 3):
        found = explain_row(model, X[3:4], order=order)
        assert found[()] == pytest.approx(model.predict(X).mean(), rel=1e-5)
        assert sum(found.values()) == pytest.approx(model.predict(X[3:4])[0], rel=1e-9)
    labels = TensorMachineClassifier(degree=2, basis=basis, alpha=1e-3, random_state=0).fit(X, LABELS)
    for k in range(3):
        constant = explain_row(labels, X[3:4], output=k)[()]
        assert constant == pytest.approx(labels.decision_function(X)[:, k].mean(), abs=1e-5)


def test_refuses_too_many_parts_and_odd_orders():
    with pytest.raises(ValueError, match=r"11 parts of up to 2 columns, max_parts is 10.*choose columns"):
        contributions(machine("standard", 2), X, max_parts=10)
    with pytest.raises(ValueError, match="order must be 0 or more, got -1"):
        contributions(machine("standard", 2), X, order=-1)


def test_refuses_rows_that_are_not_in_memory():
    with pytest.raises(TypeError, match="source of blocks"):
        contributions(machine("standard", 2), iterable(lambda: [(X, y)]))


@pytest.mark.parametrize("basis", ["standard", "spline"])
def test_effects_do_not_see_other_columns(basis):
    model = machine(basis, 3)
    split = contributions(model, X)
    changed = X.copy()
    changed[:, [1, 3]] = X[::-1][:, [1, 3]]
    np.testing.assert_allclose(effect(model, "x0", changed), split["x0"], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(effect(model, (2, "x0"), changed), split["x0", "x2"], rtol=1e-9, atol=1e-10)
    with pytest.raises(ValueError, match="no column 'z'"):
        effect(model, "z", X)
    for column in (7, 1.9, None):
        with pytest.raises(ValueError, match=f"number from 0 to 3, got {column}"):
            effect(model, column, X)


def test_rows_of_unit_norm_have_no_effects():
    with pytest.raises(ValueError, match="divided by their norm"):
        effect(machine("unit"), "x0", X, reference=X)


# ---- shares


@pytest.mark.parametrize("basis", BASES)
def test_shares_add_up_to_one(basis):
    model = machine(basis, 3)
    assert sum(column_variance_shares(model, X).values()) == pytest.approx(1, rel=1e-9)
    assert sum(variance_shares(model, X).values()) == pytest.approx(1, rel=1e-9)


def test_shares_are_covariances_over_the_variance():
    model = machine("standard", 3)
    split, outputs = contributions(model, X, reference=X), model.predict(X)
    found = variance_shares(model, X)
    for key in [("x0",), ("x1", "x3")]:
        assert found[key] == pytest.approx(
            np.cov(split[key], outputs)[0, 1] / np.var(outputs, ddof=1), rel=1e-8
        )
    assert found["remainder"] == pytest.approx(
        np.cov(split.remainder, outputs)[0, 1] / np.var(outputs, ddof=1), rel=1e-8
    )


def test_shares_of_independent_columns_are_sobol_indices():
    """On all of a grid: 3 a + 2 a b + c has variances 9, 4, 1."""
    grid = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])
    model = machine(None, 2, 1, data=grid, target=grid[:, 0])
    params = model._machine.params
    params[...] = 0
    factors = model._machine.layout.factors(params)
    factors[0, 0], factors[2, 0], factors[0, 1], factors[1, 2] = 3, 1, 2, 1
    expected = {
        ("x0",): 9 / 14,
        ("x0", "x1"): 4 / 14,
        ("x2",): 1 / 14,
        ("x1",): 0,
        ("x0", "x2"): 0,
        ("x1", "x2"): 0,
    }
    assert dict(variance_shares(model, grid)) == {
        key: pytest.approx(share, abs=1e-12) for key, share in expected.items()
    }
    assert dict(part_importance(model, grid)) == {
        key: pytest.approx(share, abs=1e-12) for key, share in expected.items()
    }
    assert dict(column_variance_shares(model, grid)) == {
        "x0": pytest.approx(11 / 14),
        "x1": pytest.approx(2 / 14),
        "x2": pytest.approx(1 / 14),
    }


def test_no_variance_is_an_error():
    with pytest.raises(ValueError, match="does not vary"):
        column_variance_shares(machine(None), X[:1])


def test_examples_run():
    for module in (parts, variance):
        assert doctest.testmod(module).failed == 0


def test_quantiles_are_named_by_their_levels():
    levels = (0.1, 0.5, 0.9)
    settings = {"loss": "quantile", "degree": 2, "rank": 2, "max_iter": 3, "random_state": 0}
    model = TensorMachineRegressor(quantile=levels, **settings).fit(X, y)
    for level in levels:
        alone = TensorMachineRegressor(quantile=level, **settings).fit(X, y)
        split = contributions(model, X, output=level)
        np.testing.assert_allclose(split.values, contributions(alone, X).values, atol=1e-9)
        assert formula(model, X, output=level).name == f"quantile {level} of output"
    with pytest.raises(ValueError, match=r"output must be one of \['0.1', '0.5', '0.9'\], got 0"):
        contributions(model, X, output=0)
