"""Which candidates a search tries."""

import pytest

from searches import FEW
from tensormachines import (
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines.estimators.candidates import ALPHA_POWER, Grid, all_candidates, on_rung
from tensormachines.estimators.halving import Rung

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def candidates(usual_rank=10, **settings):
    return all_candidates(TensorMachineRegressorCV(**settings), usual_rank)


def test_a_linear_model_has_no_rank():
    one = {"relevances": (0,), "trends": (False,), "roughnesses": (3.0,), "max_iters": (30,)}
    single = {"alphas": (1e-3,), **one}
    found = candidates(degrees=(1, 2), ranks=(2, 5), **single)
    assert [(c["degree"], c["rank"]) for c in found] == [(1, 2), (2, 2), (2, 5)]


def test_only_splines_have_a_roughness():
    one = {"degrees": (2,), "ranks": (2,), "alphas": (1e-3,), "relevances": (0,), "max_iters": (30,)}
    found = candidates(bases=("auto", "standard", None), trends=(False,), roughnesses=(20.0, 3.0), **one)
    assert [(c["basis"], c["roughness"]) for c in found] == [
        ("auto", 20.0),
        ("auto", 3.0),
        ("standard", 3.0),
        (None, 3.0),
    ]


def test_sparse_rows_have_no_splines():
    found = all_candidates(TensorMachineRegressorCV(), 10, sparse=True)
    assert {(c["basis"], c["roughness"], c["trend"]) for c in found} == {("auto", 3.0, False)}
    assert len(candidates()) == 4 * len(found)


def test_the_order_of_ranks_does_not_matter(regression):
    up, down = (
        TensorMachineRegressorCV(**{**FEW, "ranks": ranks}).fit(*regression) for ranks in ((2, 3), (3, 2))
    )
    assert up.best_params_ == down.best_params_


def test_alpha_is_larger_on_fewer_rows():
    machine = TensorMachineRegressor(alpha=1e-3)
    rung = Rung(rows=1 / 9, most_splits=1, iterations=1 / 3, tolerance=1.0, n_candidates=1)
    assert on_rung(machine, rung).alpha == pytest.approx(1e-3 * 9**ALPHA_POWER)
    assert machine.alpha == 1e-3


def test_ranks_are_the_usual_one_and_twice_as_many():
    assert {candidate["rank"] for candidate in candidates()} == {10, 20}
    assert {candidate["rank"] for candidate in candidates(39)} == {39, 78}
    assert {candidate["rank"] for candidate in candidates(39, ranks=(3, 5))} == {3, 5}


def test_a_coarse_grid_is_every_second_step():
    all_of_them = candidates(
        degrees=(4, 2, 3, 6), ranks=(5,), alphas=(1e-2, 1e-3, 1e-4), relevances=(0, 2), max_iters=(10, 30)
    )
    coarse = [all_of_them[number] for number in Grid(all_of_them, 10, 1e-3).coarse()]
    assert {(c["degree"], c["alpha"]) for c in coarse} == {
        (degree, alpha) for degree in (2, 4) for alpha in (1e-4, 1e-2)
    }
    assert {(c["rank"], c["relevance"], c["max_iter"]) for c in coarse} == {(5, 0, 10)}
    assert len(coarse) == 4


def test_neighbours_differ_by_one_step_in_one_parameter():
    all_of_them = candidates(
        degrees=(2, 3, 6), ranks=(2, 5), alphas=(1e-4, 1e-3, 1e-2), relevances=(0, 2), bases=("auto", None),
        roughnesses=(3.0,),
    )  # fmt: skip
    neighbours = Grid(all_of_them, 10, 1e-3).neighbours()
    steps = {
        name: sorted({c[name] for c in all_of_them}, key=str) for name in all_of_them[0] if name != "basis"
    }
    for number, around in neighbours.items():
        for other in around:
            assert number in neighbours[other]
            here, there = all_of_them[number], all_of_them[other]
            (name,) = (name for name in here if here[name] != there[name])
            if name != "basis":
                values = sorted(steps[name])
                assert abs(values.index(here[name]) - values.index(there[name])) == 1
    both = {"basis": "auto", "roughness": 3.0, "relevance": 0, "trend": False, "rank": 2, "max_iter": 10}
    corner = all_of_them.index({**both, "degree": 2, "alpha": 1e-4})
    assert len(neighbours[corner]) == 7  # one way in each parameter
    middle = all_of_them.index({**both, "degree": 3, "alpha": 1e-3})
    first, second, *_ = (all_of_them[number] for number in neighbours[middle])
    assert (first["alpha"], second["degree"]) == (
        1e-4,
        6,
    )  # few rows favour large penalties and simple models: those first


def test_the_usual_candidate_is_nearest_to_the_defaults():
    all_of_them = candidates()
    usual = all_of_them[Grid(all_of_them, 10, 4e-4).usual()]
    assert usual == {
        "basis": "auto",
        "roughness": 3.0,
        "relevance": 0,
        "trend": False,
        "degree": 3,
        "rank": 10,
        "alpha": 3e-4,
        "max_iter": 10,
    }
    assert all_of_them[Grid(all_of_them, 20, 4e-4).usual()] == {**usual, "rank": 20}


def test_neighbours_lead_from_everywhere_to_everywhere():
    all_of_them = candidates()
    neighbours = Grid(all_of_them, 10, 1e-3).neighbours()
    reached, new = {0}, [0]
    while new:
        new = list({other for number in new for other in neighbours[number]} - reached)
        reached.update(new)
    assert len(reached) == len(all_of_them)
