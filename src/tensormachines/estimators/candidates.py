"""The candidates of a search: all combinations of settings, as places of a grid."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import product
from numbers import Real
from typing import Any

from .._fit.solver_table import SOLVERS


def all_candidates(search: Any, usual_rank: int) -> list[dict[str, Any]]:
    """Return the candidates of a search in order of their size: of equally good ones the first is chosen."""
    longest = SOLVERS[search.solver].max_iter
    usual = (longest // 3, longest) if search.solver == "adam" else (longest,)
    values = {
        "bases": search.bases,
        "relevances": search.relevances,
        "degrees": search.degrees,
        "ranks": (usual_rank, 2 * usual_rank) if isinstance(search.ranks, str) else search.ranks,
        "alphas": search.alphas,
        "max_iters": usual if search.max_iters is None else search.max_iters,
    }
    for name, given in values.items():
        if len(given) == 0:
            raise ValueError(f"{name} must hold at least one value, got {given!r}.")
        if name in ("alphas", "max_iters") and not all(isinstance(value, Real) for value in given):
            raise ValueError(f"{name} must hold numbers, which the search can put in order, got {given!r}.")
    names = ("basis", "relevance", "degree", "rank", "alpha", "max_iter")
    candidates = [dict(zip(names, each, strict=True)) for each in product(*values.values())]
    # A linear model has no rank: once is enough.
    return [each for each in candidates if each["degree"] > 1 or each["rank"] == min(values["ranks"])]


class Grid:
    """Candidates by their places in a grid: the step of each parameter that they have."""

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
                abs(candidate["degree"] - 3),
                near,
                abs(candidate["rank"] - self.usual_rank),
                candidate["relevance"],
                candidate["max_iter"],
            )

        return min(range(len(self.candidates)), key=lambda number: distance(self.candidates[number]))

    def longest_untried(self, candidate: int, tried: Container[int]) -> int:
        """Return the same candidate with the most iterations, unless longer fits have been tried already."""
        same = [
            k
            for k, other in enumerate(self.candidates)
            if {**other, "max_iter": 0} == {**self.candidates[candidate], "max_iter": 0}
        ]
        longer = [k for k in same if self.candidates[k]["max_iter"] > self.candidates[candidate]["max_iter"]]
        return (
            candidate
            if not longer or any(k in tried for k in longer)
            else max(longer, key=lambda k: self.candidates[k]["max_iter"])
        )

    def coarse(self) -> list[int]:
        """Return every second step of every parameter."""
        return [number for number, place in enumerate(self.places) if all(step % 2 == 0 for step in place)]

    def neighbours(self) -> dict[int, list[int]]:
        """Return for each candidate those that differ by one step in one parameter.

        First come the steps that few rows have no use for, but more rows may have.
        """
        numbers = {place: number for number, place in enumerate(self.places)}
        moves = [(list(self.steps).index(name), step) for name, step in product(self.steps, (-1, 1))]
        first = [
            (list(self.steps).index(name), step)
            for name, step in (("alpha", -1), ("degree", 1), ("relevance", 1))
        ]
        longer = (list(self.steps).index("max_iter"), 1)  # last: makes all that follow more expensive
        moves.sort(key=lambda move: (move == longer, first.index(move) if move in first else len(first)))

        def around(place: tuple[int, ...]) -> list[int]:
            places = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for axis, step in moves]
            return [numbers[moved] for moved in places if moved in numbers]

        return {number: around(place) for number, place in enumerate(self.places)}


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(
        values, key=lambda value: (isinstance(value, str), value is None, value if value is not None else 0)
    )
