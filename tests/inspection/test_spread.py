"""The spread of coefficients over the members of a model."""

from __future__ import annotations

import numpy as np
import pytest

from random_machines import X, machine, y
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines.estimators.halving import Budget
from tensormachines.inspection import coefficient_spread, polynomial


@pytest.mark.parametrize("basis", [None, "standard"])
def test_spread_is_that_of_the_members(basis):
    settings = {"degree": 3, "rank": 2, "basis": basis, "max_iter": 3}
    together = TensorMachineRegressor(n_members=3, random_state=0, **settings).fit(X, y)
    keys = [("x0", "x1"), ("x0", "x1", "x1")]
    layout = together._machine.layout.with_rank(2)
    alone = []
    for member in range(3):
        model = TensorMachineRegressor(random_state=0, **settings).fit(X, y)
        params = np.zeros(layout.size)
        for (p, ours), (_, all_of_them) in zip(
            layout.degrees(), together._machine.layout.degrees(), strict=True
        ):
            terms = together._machine.layout.terms(together._machine.params)[:, 0, all_of_them].reshape(
                -1, p, 6
            )
            layout.terms(params)[:, 0, ours] = (
                terms[:, :, 2 * member : 2 * member + 2] * 3 ** (1 / p)
            ).reshape(len(terms), -1)
        model._machine = type(together._machine)(together._machine.basis, layout, params)
        alone.append([polynomial(model, keys)[key] for key in keys])
    found = coefficient_spread(together, keys)
    for key, mean, deviation in zip(keys, np.mean(alone, axis=0), np.std(alone, axis=0, ddof=1), strict=True):
        assert found[key] == (pytest.approx(mean, rel=1e-9), pytest.approx(deviation, rel=1e-9))
        assert polynomial(together, keys)[key] == pytest.approx(mean, rel=1e-9)
        assert deviation > 0


def test_spread_of_a_search_that_had_time_for_fewer_members(monkeypatch):
    monkeypatch.setattr(Budget, "fits_left", lambda *_: 2)
    few = {
        "degrees": (2,),
        "ranks": (2,),
        "alphas": (1e-3,),
        "bases": ("standard",),
        "relevances": (0,),
        "trends": (False,),
        "max_iters": (3,),
    }
    search = TensorMachineRegressorCV(**few, cv=2, n_members=3, random_state=0).fit(X, y)
    assert search.factors_[2].shape[1] == 2 * 2
    assert coefficient_spread(search, [("x0", "x1")]) == coefficient_spread(
        search.best_estimator_, [("x0", "x1")]
    )


def test_spread_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match="n_members=5"):
        coefficient_spread(machine(None, 2), [("x0", "x1")])
    with pytest.raises(ValueError, match="degree 2 and more"):
        coefficient_spread(machine(None, 2, n_members=2), ["x0"])


def test_spread_is_refused_after_blocks_that_make_the_members_one_model():
    model = machine(None, 2, n_members=2)
    assert len(coefficient_spread(model, [("x0", "x1")])) == 1
    with pytest.raises(ValueError, match="n_members=5"):
        coefficient_spread(model.partial_fit(X, y), [("x0", "x1")])
