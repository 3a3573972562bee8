"""The results behind the sections of the report, computed once from the lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..methods import METHODS
from ..printed import PRINTED
from ..profiles import PROFILES
from ..records import Line
from .claims import Claim
from .curves import Curves, Point, Relative, best_points, curves, lowest, relatives
from .labels import MACHINES, SAME_ROWS, duration, in_order, listing, whole
from .noise import lower
from .run_facts import RunFacts, Tuning, UsedSet, run_facts, tunings, used_sets


@dataclass(frozen=True)
class Results:
    """Everything that the sections use; `compared`, its best `points` and `relative` are of "compare"."""

    lines: list[Line]
    run: RunFacts
    sets: list[UsedSet]
    compared: Curves
    points: dict[tuple[str, str], Point]
    relative: dict[tuple[str, str], Relative]
    tuned: dict[tuple[str, str], Tuning]
    claims: list[Claim]

    @property
    def used(self) -> list[UsedSet]:
        """Sets with at least one fit of the comparison, finished or not."""
        names = {name for name, _ in self.compared}
        return [data_set for data_set in self.sets if data_set.name in names]

    @property
    def counted(self) -> list[UsedSet]:
        """Used sets that count in summaries over sets."""
        return [data_set for data_set in self.used if data_set.name not in SAME_ROWS]

    @property
    def faithful(self) -> list[UsedSet]:
        """Used sets whose results are comparable with the printed ones."""
        return [data_set for data_set in self.used if data_set.faithful]

    @property
    def methods(self) -> list[str]:
        return in_order({method for _, method in self.compared}, METHODS)

    @property
    def budget(self) -> str:
        """Profile, limit and duration, for every caption: an error is worth what was spent on it."""
        if not self.lines:
            return ""
        known = [PROFILES[name].rung_seconds for name in self.run.profiles if name in PROFILES]
        limits = listing([whole(limit) for limit in dict.fromkeys(known)])
        limit = f"; curves end where a fit would take more than {limits} s" if limits else ""
        profile = " + ".join(self.run.profiles) or "unknown"
        return f"Profile {profile}{limit}; {duration(self.run.elapsed)} in all."

    def best(self, name: str, method: str) -> Point | None:
        return self.points.get((name, method))

    @property
    def rivals(self) -> list[str]:
        """Methods other than Tensor Machines and KRR, which the paper does not count."""
        return [method for method in self.methods if method != "krr" and method not in MACHINES]

    @property
    def contested(self) -> list[str]:
        """Sets that count and have both a Tensor Machine and a rival."""
        names = [data_set.name for data_set in self.counted]
        return [name for name in names if self.best_of(name, MACHINES) and self.best_of(name, self.rivals)]

    def winner(self, name: str) -> str | None:
        """Return the method of the lowest mean error on a set, excluding KRR as in the paper."""
        best = self.best_of(name, [method for method in self.methods if method != "krr"])
        return best.method if best else None

    def best_of(self, name: str, methods: Iterable[str]) -> Point | None:
        """Return the point of the lowest mean error on a set."""
        return lowest(point for method in methods if (point := self.best(name, method)))

    def won(self, name: str, machines: Sequence[str] = MACHINES) -> bool | None:
        """Return whether the best of ``machines`` is clearly better than the best rival.

        None if the difference may be chance, or one of them is missing.
        """
        machine, rival = self.best_of(name, machines), self.best_of(name, self.rivals)
        return lower(machine, rival) if machine and rival else None

    def time_factor(self, name: str, method: str) -> float | None:
        """Return how many times smaller our time relative to KRR is than the printed one."""
        ours, printed = self.relative.get((name, method)), PRINTED[name].get(method)
        return None if ours is None or printed is None else printed.time_gain(PRINTED[name]["krr"], ours.time)


def results_of(lines: list[Line], claims: list[Claim]) -> Results:
    compared = curves(lines)
    return Results(
        lines,
        run_facts(lines),
        used_sets(lines),
        compared,
        best_points(compared),
        relatives(compared),
        tunings(lines),
        claims,
    )
