"""Candidates of a search: all combinations of settings, as points of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from numbers import Real
from typing import Any

from .._fit.settings import USUAL_DEGREE
from .._fit.solver_table import SOLVERS
from .._model.basis import RAW_BASES
from .._model.spline_column import USUAL_SHAPE
from .column_parameters import highest_degree, require_terms
from .halving import Rung
from .polynomial_model import PolynomialModel

ALPHA_POWER = 0.5  # the best alpha falls with about this power of the number of rows


def all_candidates(
    search: Any, usual_rank: int, fewest_terms: int = 1, sparse: bool = False
) -> list[dict[str, Any]]:
    """Return the candidates of a search in order of size; among equally good ones the first is chosen.

    ``sparse`` rows have no splines."""
    longest = SOLVERS[search.solver].max_iter
    usual = (longest // 3, longest, 3 * longest) if search.solver == "adam" else (longest,)
    values = {
        "bases": search.bases,
        "roughnesses": search.roughnesses,
        "relevances": search.relevances,
        "trends": search.trends,
        "degrees": search.degrees,
        "ranks": (usual_rank, 2 * usual_rank) if isinstance(search.ranks, str) else search.ranks,
        "alphas": search.alphas,
        "max_iters": usual if search.max_iters is None else search.max_iters,
    }
    for name, given in values.items():
        if len(given) == 0:
            raise ValueError(f"{name} must hold at least one value, got {given!r}.")
        if name in ("alphas", "max_iters", "roughnesses") and not all(
            isinstance(value, Real) for value in given
        ):
            raise ValueError(f"{name} must hold numbers, which the search can put in order, got {given!r}.")
    require_terms("ranks", min(values["ranks"]), search.ranks, fewest_terms)
    names = ("basis", "roughness", "relevance", "trend", "degree", "rank", "alpha", "max_iter")
    candidates = [dict(zip(names, each, strict=True)) for each in product(*values.values())]
    # A linear model has no rank, only splines have a roughness, and only they, with some losses, a trend:
    # elsewhere, one value is enough.
    with_splines = () if sparse else RAW_BASES
    trend = search.loss in ("squared_error", "log_loss") and search.monotonic_cst is None
    most = highest_degree(search.interaction_cst) or max(values["degrees"])
    if min(values["degrees"]) > most:
        raise ValueError(
            f"interaction_cst={search.interaction_cst!r} allows degrees up to {most}, but degrees is "
            f"{search.degrees!r}."
        )
    return [
        each
        for each in candidates
        if each["degree"] <= most
        and (each["degree"] > 1 or each["rank"] == min(values["ranks"]))
        and (each["basis"] in with_splines or each["roughness"] == min(values["roughnesses"]))
        and ((trend and each["basis"] in with_splines) or each["trend"] == min(values["trends"]))
    ]


class Grid:
    """Candidates as points of a grid: for each candidate, the index of its value for every parameter."""

    def __init__(self, candidates: Sequence[dict[str, Any]], usual_rank: int, usual_alpha: float):
        self.candidates = candidates
        self.usual_rank = usual_rank
        self.usual_alpha = usual_alpha
        self.steps = {
            name: _in_order({candidate[name] for candidate in candidates}) for name in candidates[0]
        }
        self.places = [
            tuple(steps.index(candidate[name]) for name, steps in self.steps.items())
            for candidate in candidates
        ]

    def usual(self) -> int:
        """Return the candidate nearest to the defaults of a Tensor Machine, with the fewest iterations."""

        def distance(candidate: dict[str, Any]) -> tuple[float, ...]:
            near = abs(math.log(max(float(candidate["alpha"]), 1e-300) / self.usual_alpha))
            return (
                abs(candidate["degree"] - USUAL_DEGREE),
                near,
                abs(candidate["rank"] - self.usual_rank),
                abs(candidate["roughness"] - USUAL_SHAPE.roughness),
                candidate["relevance"],
                candidate["trend"],
                candidate["max_iter"],
            )

        return min(range(len(self.candidates)), key=lambda number: distance(self.candidates[number]))

    def coarse(self) -> list[int]:
        """Return every second step of every parameter, with the fewest iterations."""
        fewest = self.steps["max_iter"][0]
        return [
            number
            for number, place in enumerate(self.places)
            if all(step % 2 == 0 for step in place) and self.candidates[number]["max_iter"] == fewest
        ]

    def neighbours(self) -> dict[int, list[int]]:
        """Return for each candidate the ones that differ by one step in one parameter.

        Steps that do not help on few rows, but may help on more rows, come first.
        """
        numbers = {place: number for number, place in enumerate(self.places)}
        moves = [(list(self.steps).index(name), step) for name, step in product(self.steps, (-1, 1))]
        first = [
            (list(self.steps).index(name), step)
            for name, step in (("alpha", -1), ("degree", 1), ("relevance", 1), ("roughness", 1), ("trend", 1))
        ]
        longer = (list(self.steps).index("max_iter"), 1)  # last: makes later candidates more expensive
        moves.sort(key=lambda move: (move == longer, first.index(move) if move in first else len(first)))

        def around(place: tuple[int, ...]) -> list[int]:
            places = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for axis, step in moves]
            return [numbers[moved] for moved in places if moved in numbers]

        return {number: around(place) for number, place in enumerate(self.places)}


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(
        values, key=lambda value: (isinstance(value, str), value is None, value if value is not None else 0)
    )


def group_of(estimator: PolynomialModel) -> tuple[Any, ...]:
    """Return the settings that candidates must have in common to be fitted together."""
    of_rows = estimator.basis, estimator.roughness, estimator.relevance, estimator.trend
    return *of_rows, estimator.degree, estimator.rank, estimator._max_iter()


def cost_of(estimator: PolynomialModel) -> float:
    """Return the cost of a fit: the number of projections times the number of iterations."""
    return (1 + int(estimator.rank) * sum(range(2, int(estimator.degree) + 1))) * estimator._max_iter()


def on_rung(estimator: PolynomialModel, rung: Rung) -> PolynomialModel:
    """Return the estimator with the penalty and the number of iterations for a rung."""
    settings = estimator.get_params(deep=False)
    settings |= {
        "alpha": estimator.alpha / rung.rows**ALPHA_POWER,
        "max_iter": math.ceil(estimator._max_iter() * rung.iterations),
        "tol": estimator.tol * rung.tolerance,
    }
    return type(estimator)(**settings)


def for_more_rows(estimator: PolynomialModel, growth: float) -> PolynomialModel:
    """Return the estimator with a smaller penalty, for ``growth`` times as many rows as it was tried on."""
    if isinstance(estimator.alpha, str) or growth == 1:
        return estimator
    return type(estimator)(
        **estimator.get_params(deep=False) | {"alpha": float(estimator.alpha) / growth**ALPHA_POWER}
    )
