"""Some candidates on few rows and iterations, the best of them on all rows, and then their neighbours.

The first is successive halving (Jamieson & Talwalkar 2016), the second hill climbing. Candidates are numbers
here: what they are, and how they are fitted and scored, is the business of the `Evaluate` that the search is
given."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

FEWEST_ROWS = 2000  # on which candidates are compared, if there are as many
FIRST = {"rows": 1 / 9, "splits": 3, "iterations": 0.6, "tolerance": 100.0}
LAST = {"iterations": 1.0, "tolerance": 10.0}
MANY_ROWS, SPLITS_OF_MANY, SPLITS_OF_FEW = 5000, 3, 5  # on the last rung
LONGER_THAN_EXPECTED = (
    1.5  # a fit to all rows, for those that were held out, the weighing of columns, and safety
)
GO_ON = 1  # candidate to all rows, beside the usual one
# of its score by which the leader has to be beaten: validation is noisy, and the usual candidate a good one
MARGIN = 0.002


@dataclass(frozen=True)
class Rung:
    """What a candidate gets, as shares of the rows and iterations of a full fit, on some splits; and how many
    candidates get it.

    ``tolerance`` multiplies the progress at which a solver may end: those that end by themselves do not use
    all of their iterations."""

    rows: float
    most_splits: float
    iterations: float
    tolerance: float
    n_candidates: int

    def n_splits(self, all_splits: int) -> int:
        return int(min(all_splits, self.most_splits))


FULL = Rung(rows=1.0, most_splits=math.inf, iterations=1.0, tolerance=1.0, n_candidates=1)


def ladder(n_rows: int, n_candidates: int, halving: bool) -> list[Rung]:
    """The candidates to begin with on few rows for few iterations, then the best of them on all rows."""
    if not halving or n_candidates == 1:
        return [replace(FULL, n_candidates=n_candidates)]
    some_rows = min(1.0, max(FIRST["rows"], FEWEST_ROWS / max(n_rows, 1)))
    return [
        Rung(some_rows, FIRST["splits"], FIRST["iterations"], FIRST["tolerance"], n_candidates),
        Rung(
            1.0,
            SPLITS_OF_FEW if n_rows < MANY_ROWS else SPLITS_OF_MANY,
            LAST["iterations"],
            LAST["tolerance"],
            min(n_candidates, GO_ON),
        ),
    ]


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate on a rung: its score (the higher, the better; not finite where it failed) and seconds on
    each split it was tried on.
    """

    candidate: int
    rung: int
    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray

    @property
    def score(self) -> float:
        mean = float(np.mean(self.scores))
        return mean if math.isfinite(mean) else -math.inf


# Candidates that can be fitted together, the rung, and the time of time.monotonic() at which their fits are
# to stop.
Evaluate = Callable[[Sequence[int], int, float], list[Trial]]
Report = Callable[[str], None]


class Budget:
    """Wall-clock seconds for a search and the fit that follows it.

    What a fit will take is told from those before: seconds per unit of cost, which is that of a full fit of
    the candidate, times the shares of rows and iterations."""

    def __init__(self, seconds: float | None, costs: Sequence[float], refit: bool):
        self.began = time.monotonic()
        self.end = math.inf if seconds is None else self.began + seconds
        self.costs = costs
        self.refit = refit
        self.seconds = 0.0
        self.cost = 0.0
        self.share = 0.0  # of the rows, in the fits that these are of

    def note(self, trials: Sequence[Trial], rung: Rung) -> None:
        if (
            rung.rows > self.share
        ):  # few rows take longer than their share: what was learnt from fewer is no guide any more
            self.seconds, self.cost, self.share = 0.0, 0.0, rung.rows
        self.seconds += sum(float(trial.fit_seconds.sum() + trial.score_seconds.sum()) for trial in trials)
        self.cost += (
            sum(self.costs[trial.candidate] * len(trial.scores) for trial in trials)
            * rung.rows
            * rung.iterations
        )

    def expected(self, candidates: Sequence[int], rung: Rung, n_splits: int) -> float:
        """Seconds; 0 before the first fit."""
        cost = (
            sum(self.costs[candidate] for candidate in candidates)
            * rung.rows
            * rung.iterations
            * rung.n_splits(n_splits)
        )
        return self.seconds / self.cost * cost if self.cost else 0.0

    def deadline(self, candidates: Sequence[int]) -> float:
        """When the search must end, to leave time for a full fit of the dearest of these candidates, at most
        half of all time.
        """
        if self.end == math.inf or not self.refit:
            return self.end
        half = (self.end - self.began) / 2
        refit = (
            LONGER_THAN_EXPECTED * self.expected([max(candidates, key=self.costs.__getitem__)], FULL, 1)
            if self.cost
            else half
        )
        return self.end - min(refit, half)


def search(
    rungs: Sequence[Rung],
    groups: Sequence[Hashable],
    n_splits: int,
    evaluate: Evaluate,
    budget: Budget,
    report: Report = lambda line: None,
    first: Sequence[int] | None = None,
    usual: Sequence[int] = (),
    neighbours: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> list[Trial]:
    """The trials, rung by rung; the best candidate is the best of those on the last rung.

    ``groups`` has one for each candidate: those of the same group are fitted together. When the time is over,
    those that have no trial yet on the rung are left out; the first group of all is always tried.

    ``first`` are the candidates to begin with, if it is not with all of them, and ``usual`` those to begin a
    last rung above others with. ``neighbours`` of a candidate are those that are worth a trial where it leads
    there: few rows favour simple models and large penalties. They are tried, and those of the new leader
    among them, as long as that helps."""
    trials: list[Trial] = []
    candidates = list(range(len(groups)) if first is None else first)
    for number, rung in enumerate(rungs):
        candidates = candidates[: rung.n_candidates]
        if number and number == len(rungs) - 1:
            candidates = list(dict.fromkeys([*usual, *candidates]))
        of_rung: list[Trial] = []
        together = _together(candidates, groups)
        for done, group in enumerate(together):
            deadline = budget.deadline(candidates)
            left = [candidate for other in together[done:] for candidate in other]
            expected = (
                budget.expected(group, rung, n_splits) if of_rung or not number else 0.0
            )  # a first guess would be far too high
            if trials and time.monotonic() + expected > deadline:
                report(f"rung {number + 1}/{len(rungs)}: no time for {len(left)} candidates")
                break
            seconds = budget.expected(left, rung, n_splits)
            report(
                f"rung {number + 1}/{len(rungs)}: {len(left)} candidates left"
                + (f", about {seconds:.1f} s" if budget.cost else "")
            )
            tried = evaluate(group, number, deadline)
            budget.note(tried, rung)
            of_rung += tried
            trials += tried
        if not of_rung:
            break
        candidates = [trial.candidate for trial in sorted(of_rung, key=lambda trial: -trial.score)]
    return trials + (
        _climb(rungs, trials, neighbours, n_splits, evaluate, budget, report) if len(rungs) > 1 else []
    )


def _climb(
    rungs: Sequence[Rung],
    trials: Sequence[Trial],
    neighbours: Mapping[int, Sequence[int]],
    n_splits: int,
    evaluate: Evaluate,
    budget: Budget,
    report: Report,
) -> list[Trial]:
    """Trials of neighbours of the best candidate on the last rung, until none of them is better, or the time
    is over.
    """
    last = len(rungs) - 1
    of_rung = {trial.candidate: trial for trial in trials if trial.rung == last}
    more: list[Trial] = []
    while of_rung:
        leader = _leader(list(of_rung.values()))
        untried = [
            candidate for candidate in neighbours.get(leader.candidate, ()) if candidate not in of_rung
        ]
        if not untried or time.monotonic() + budget.expected(
            untried[:1], rungs[last], n_splits
        ) > budget.deadline(untried[:1]):
            break
        report(f"rung {last + 1}/{last + 1}: {len(untried)} neighbours of the best candidate")
        (trial,) = evaluate(untried[:1], last, budget.deadline(untried[:1]))
        budget.note([trial], rungs[last])
        of_rung[trial.candidate] = trial
        more.append(trial)
    return more


def best(trials: Sequence[Trial]) -> int:
    """The number of the best trial on the last rung: the first of equals, or of nearly equals if it is not
    the only rung.
    """
    last = max(trial.rung for trial in trials)
    of_rung = [trial for trial in trials if trial.rung == last]
    return trials.index(_leader(of_rung) if last else max(of_rung, key=lambda trial: trial.score))


def _leader(trials: Sequence[Trial]) -> Trial:
    leader = trials[0]
    for trial in trials[1:]:
        if trial.score > leader.score + (MARGIN * abs(leader.score) if math.isfinite(leader.score) else 0.0):
            leader = trial
    return leader


def _together(candidates: Sequence[int], groups: Sequence[Hashable]) -> list[list[int]]:
    """Candidates by group, in the order in which the groups come first: the group of the best candidate
    first.
    """
    by_group: dict[Hashable, list[int]] = {}
    for candidate in candidates:
        by_group.setdefault(groups[candidate], []).append(candidate)
    return list(by_group.values())
