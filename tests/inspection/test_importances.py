"""Importances are never negative, add up to 1, and rank columns as permutation importance does."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance

from random_machines import X, machine
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import (
    column_variance_shares,
    contributions,
    explain_row,
    importance,
    importances,
    interaction_strength,
    part_importance,
)
from tensormachines.inspection.importances import column_importances

LABELS = np.arange(len(X)) % 3
BASES = [None, "unit", "standard", "sphere", "spline"]


def houses(n_rows, seed):
    """Prices of houses: three grades of quality that go along with the size, and counteract each other."""
    random = np.random.default_rng(seed)
    size = random.standard_normal(n_rows)
    grades = 0.9 * size[:, None] + np.sqrt(1 - 0.9**2) * random.standard_normal((n_rows, 3))
    noise = random.standard_normal((n_rows, 2))
    table = np.column_stack([size, grades, noise])
    price = (
        4 * size - 1.5 * grades[:, 0] - grades[:, 1] + 0.7 * grades[:, 2] * noise[:, 0] + 0.3 * noise[:, 0]
    )
    return table, price + 0.1 * random.standard_normal(n_rows)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_correlated_columns_rank_as_by_permutation(degree):
    table, price = houses(2000, 0)
    new, new_price = houses(1000, 1)
    model = TensorMachineRegressor(degree=degree, random_state=0).fit(table, price)
    signed = np.array(list(column_variance_shares(model, new).values()))
    assert (signed[[1, 2]] < -0.05).all()  # although the model needs both
    found = np.array(list(importance(model, new).values()))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    permuted = permutation_importance(
        model, new, new_price, scoring="neg_mean_squared_error", n_repeats=10, random_state=0
    ).importances_mean
    assert np.argsort(-found)[:3].tolist() == np.argsort(-permuted)[:3].tolist() == [0, 1, 2]
    assert spearmanr(found, permuted)[0] >= 0.94
    np.testing.assert_allclose(found, permuted / permuted.sum(), atol=0.05)
    np.testing.assert_allclose(model.feature_importances_, found, atol=0.05)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("output", [None, 1])
def test_shares_add_up_to_one(basis, output):
    model = (
        machine(basis, 3) if output is None else machine(basis, 2, target=LABELS, cls=TensorMachineClassifier)
    )
    for found in (importance(model, X, output=output), part_importance(model, X, output=output)):
        assert min(found.values()) >= 0
        assert sum(found.values()) == pytest.approx(1, rel=1e-9)


def test_parts_have_their_variance():
    model = machine("standard", 3)
    split, found = contributions(model, X, reference=X), part_importance(model, X)
    variances = {key: split[key].var() for key in split.parts if key} | {
        ("remainder",): split.remainder.var()
    }
    assert dict(found) == pytest.approx(
        {key: value / sum(variances.values()) for key, value in variances.items()}
    )
    assert dict(interaction_strength(model, X)) == {
        key: share for key, share in found.items() if len(key) == 2
    }


def test_a_column_may_be_called_remainder():
    frame = pytest.importorskip("pandas").DataFrame(X[:, :3], columns=["remainder", "b", "c"])
    model = machine("standard", 3, data=frame, target=frame["b"] * frame["c"] * frame["remainder"])
    found, split = part_importance(model, frame, order=1), contributions(model, frame, order=1)
    assert list(found) == [("remainder",), ("b",), ("c",), ("remainder (2)",)]
    assert list(explain_row(model, frame[:1], order=1)) == [(), *found]
    assert split.to_frame().columns.tolist() == ["constant", "remainder", "b", "c", "remainder (2)"]
    assert found["b"] == found[("b",)]
    with pytest.raises(KeyError):
        found["d"]


def test_independent_columns_have_total_sobol_indices():
    """On a large sample of a grid: 3 a + 2 a b + c has total variances 13, 4, 1."""
    grid = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 3))
    model = machine(None, 2, 1, data=grid[:10], target=grid[:10, 0])
    model._machine.params[...] = 0
    factors = model._machine.layout.factors(model._machine.params)
    factors[0, 0], factors[2, 0], factors[0, 1], factors[1, 2] = 3, 1, 2, 1
    assert list(importance(model, grid).values()) == pytest.approx([13 / 18, 4 / 18, 1 / 18], abs=0.01)


def test_pieces_of_many_rows(monkeypatch):
    table, price = houses(1000, 0)
    model = TensorMachineRegressor(degree=2, basis="standard", random_state=0).fit(table, price)
    at_once = column_importances(model._machine, table)
    np.testing.assert_allclose(
        column_importances(model._machine, sparse.csr_array(table)), at_once, rtol=1e-6
    )
    monkeypatch.setattr(importances, "ENTRIES_AT_ONCE", 6 * 300)
    np.testing.assert_allclose(column_importances(model._machine, table), at_once, atol=0.05)


def test_no_variance_is_an_error():
    for function in (importance, part_importance):
        with pytest.raises(ValueError, match=r"does not vary.*different, rows"):
            function(machine(None), X[:1])
