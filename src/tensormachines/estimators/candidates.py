"""Candidates as the places of a grid: where a search begins, and where it may go from there."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import product
from typing import Any


class Grid:
    """Candidates by their places in a grid: which step of each parameter they have."""

    def __init__(self, candidates: Sequence[dict[str, Any]], usual_alpha: float):
        self.candidates = candidates
        self.usual_alpha = usual_alpha
        self.steps = {
            name: _in_order({candidate[name] for candidate in candidates}) for name in candidates[0]
        }
        self.places = [
            tuple(steps.index(candidate[name]) for name, steps in self.steps.items())
            for candidate in candidates
        ]

    def usual(self) -> int:
        """The candidate that is nearest to the defaults of a Tensor Machine, with the fewest iterations."""

        def distance(candidate: dict[str, Any]) -> tuple[float, ...]:
            near = abs(math.log(max(float(candidate["alpha"]), 1e-300) / self.usual_alpha))
            return (
                abs(candidate["degree"] - 3),
                near,
                abs(candidate["rank"] - 10),
                candidate["relevance"],
                candidate["max_iter"],
            )

        return min(range(len(self.candidates)), key=lambda number: distance(self.candidates[number]))

    def longest_untried(self, candidate: int, tried: Container[int]) -> int:
        """The same with the most iterations, unless longer fits have been tried, and were no better."""
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
        """Every second step of every parameter."""
        return [number for number, place in enumerate(self.places) if all(step % 2 == 0 for step in place)]

    def neighbours(self) -> dict[int, list[int]]:
        """For each candidate those that differ by one step in one parameter; first what few rows have no use
        for, but more may have.
        """
        numbers = {place: number for number, place in enumerate(self.places)}
        moves = [(list(self.steps).index(name), step) for name, step in product(self.steps, (-1, 1))]
        first = [
            (list(self.steps).index(name), step)
            for name, step in (("alpha", -1), ("degree", 1), ("relevance", 1))
        ]
        longer = (list(self.steps).index("max_iter"), 1)  # makes all that follow dearer: last
        moves.sort(key=lambda move: (move == longer, first.index(move) if move in first else len(first)))

        def around(place: tuple[int, ...]) -> list[int]:
            places = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for axis, step in moves]
            return [numbers[moved] for moved in places if moved in numbers]

        return {number: around(place) for number, place in enumerate(self.places)}


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(
        values, key=lambda value: (isinstance(value, str), value is None, value if value is not None else 0)
    )
