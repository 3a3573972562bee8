"""The largest interactions, against loops over all sets of variables."""

from __future__ import annotations

import doctest
from itertools import combinations

import numpy as np
import pytest

from polynomial_loops import polynomial_by_loops
from random_machines import X, machine
from tensormachines.inspection import coefficient_tensor, interactions, top_interactions


def interactions_by_loops(model, order, units="basis"):
    groups = model._machine.basis.groups
    expected = polynomial_by_loops(model, units)
    sets = [key for key in expected if len(key) == order and len({int(groups[v]) for v in key}) == order]
    return sorted(((abs(expected[key]), key) for key in sets), reverse=True)


@pytest.mark.parametrize("k", [1, 3, 100])
@pytest.mark.parametrize(("order", "degree"), [(2, 2), (2, 3), (3, 3), (3, 4), (4, 4)])
@pytest.mark.parametrize("basis", [None, "standard", "sphere"])
def test_top_interactions_equal_loops(basis, order, degree, k, monkeypatch):
    monkeypatch.setattr(interactions, "ROWS_AT_ONCE", 2)
    model = machine(basis, degree)
    found = top_interactions(model, k, order)
    expected = interactions_by_loops(model, order)
    numbers = {name: number for number, name in enumerate(model.basis_features_)}
    assert [(abs(value), tuple(numbers[name] for name in key)) for key, value in found.items()] == [
        (pytest.approx(size, rel=1e-9), key) for size, key in expected[:k]
    ]
    assert found.complete
    if len(expected) > k:
        assert found.bound >= expected[k][0] * (1 - 1e-9)


def test_interactions_are_between_columns():
    model = machine("spline", 2, data=X[:, :2])
    found = top_interactions(model, 5)
    expected = interactions_by_loops(model, 2)
    numbers = {name: number for number, name in enumerate(model.basis_features_)}
    assert [tuple(numbers[name] for name in key) for key in found] == [key for _, key in expected[:5]]


def wide_machine(degree, columns, strength=3.0):
    """Return a machine in which few variables matter."""
    random = np.random.default_rng(0)
    data = random.normal(size=(20, columns))
    model = machine(None, degree, rank=3, data=data, target=data[:, 0])
    layout = model._machine.layout
    layout.factors(model._machine.params)[...] *= (
        np.arange(1, columns + 1)[random.permutation(columns)] ** -strength
    )[:, None]
    return model


def test_wide_pairs_are_exact_in_little_memory(monkeypatch):
    monkeypatch.setattr(interactions, "ENTRIES_AT_ONCE", 1 << 12)
    model = wide_machine(2, 600, strength=0.3)
    found = top_interactions(model, 20)
    matrix = 2 * coefficient_tensor(model, 2)
    sizes = np.sort(np.abs(matrix[np.triu_indices(600, 1)]))[::-1]
    np.testing.assert_allclose(np.abs(list(found.values())), sizes[:20], rtol=1e-10)
    for (a, b), value in found.items():
        assert value == pytest.approx(matrix[int(a[1:]), int(b[1:])], rel=1e-10)


def test_triples_are_found_without_looking_at_all():
    model = wide_machine(3, 60)
    found = top_interactions(model, 5, 3, max_steps=30)
    tensor = 6 * coefficient_tensor(model, 3)
    sizes = sorted((abs(tensor[key]) for key in combinations(range(60), 3)), reverse=True)
    np.testing.assert_allclose(np.abs(list(found.values())), sizes[:5], rtol=1e-10)
    assert found.complete  # after 30 of 60 first variables


def test_an_unfinished_search_says_so():
    model = wide_machine(3, 30, strength=0.0)
    found = top_interactions(model, 3, 3, max_steps=1)
    tensor = 6 * coefficient_tensor(model, 3)
    largest = max(abs(tensor[key]) for key in combinations(range(30), 3))
    assert not found.complete
    assert found.bound >= largest * (1 - 1e-12)
    assert "not proven" in repr(found)
    assert top_interactions(model, 3, 3).complete


def test_zeros_are_no_interactions():
    model = machine(None, 2)
    model._machine.layout.factors(model._machine.params)[2:] = 0
    assert list(top_interactions(model, 5)) == [("x0", "x1")]
    model._machine.layout.factors(model._machine.params)[...] = 0
    assert len(top_interactions(model, 5)) == 0


def test_invalid_orders_are_refused():
    for order in (1, 4):
        with pytest.raises(
            ValueError, match=f"order must be from 2 to the degree of the model, 3, got {order}"
        ):
            top_interactions(machine(None, 3), 3, order)
    with pytest.raises(ValueError, match="k and max_steps must be 1 or more"):
        top_interactions(machine(None, 3), 0)


def test_examples_run():
    assert doctest.testmod(interactions).failed == 0
