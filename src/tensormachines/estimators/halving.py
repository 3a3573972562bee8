"""Successive halving, then hill climbing, within a time budget.

Some candidates are tried with few rows and iterations, the best of them on all rows (Jamieson & Talwalkar
2016), and then their neighbours. Candidates are indices here: `Evaluate` fits and scores them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from .._fit.settings import NO_DEADLINE, Clock, Deadline

FEWEST_ROWS = 2000  # to compare candidates on, if there are as many
FIRST = {"rows": 1 / 9, "splits": 3, "iterations": 0.6, "tolerance": 100.0}
LAST = {"iterations": 1.0, "tolerance": 10.0}
MANY_ROWS, SPLITS_OF_MANY, SPLITS_OF_FEW = 10_000, 3, 5  # on the last rung
LONGER_THAN_EXPECTED = 1.5  # factor for a fit to all rows: covers held-out rows, column weighing, and safety
GO_ON = 1  # candidates that advance to all rows, besides the usual one
PATIENCE = 24  # in trials, if the time is not limited
GIVE_UP = 0.02  # abandon candidates that trail the leader by more than this share of the leader's score
NO_TIME = "time_budget leaves no time for"
MARGIN = 0.002  # share of the leader's score by which it must be beaten, because validation is noisy


@dataclass(frozen=True)
class Rung:
    """What a candidate gets: shares of the rows and iterations of a full fit, and a number of splits.

    ``n_candidates`` reach the rung. ``tolerance`` multiplies the tol of solvers that have a stopping rule.
    """

    rows: float
    most_splits: float
    iterations: float
    tolerance: float
    n_candidates: int

    def n_splits(self, all_splits: int) -> int:
        return int(min(all_splits, self.most_splits))


FULL = Rung(rows=1.0, most_splits=math.inf, iterations=1.0, tolerance=1.0, n_candidates=1)


def ladder(n_rows: int, n_candidates: int, halving: bool) -> list[Rung]:
    """Return the rungs: few rows and iterations for the first candidates, then all rows for the best."""
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
    """A candidate on a rung, with its scores and seconds on each split.

    Higher scores are better; the score of a failed fit is not finite. Splits that were skipped because the
    candidate had fallen behind have neither score nor seconds. ``outputs``, if kept, are the outputs of the
    models for the rows to score on, one array per split.
    """

    candidate: int
    rung: int
    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    outputs: Sequence[np.ndarray] = ()

    @property
    def score(self) -> float:
        mean = float(np.mean(self.scores))
        return mean if math.isfinite(mean) else -math.inf

    @property
    def tried(self) -> np.ndarray:
        """Return a mask of the splits that were not skipped."""
        return np.isfinite(self.fit_seconds)

    @property
    def seconds(self) -> float:
        return float(np.nansum(self.fit_seconds) + np.nansum(self.score_seconds))


# (candidates that are fitted together, index of the rung, time at which their fits should stop, leader or
# None) -> trials
Evaluate = Callable[[Sequence[int], int, float, Trial | None], list[Trial]]


def has_fallen_behind(scores: np.ndarray, leader: Trial | None) -> bool:
    """Tell from the scores of the first splits whether a candidate may be abandoned."""
    if leader is None:
        return False
    of_leader = float(np.mean(leader.scores[: len(scores)]))
    return of_leader - float(np.mean(scores)) > GIVE_UP * abs(of_leader)


class Report(Protocol):
    """Receive progress lines of a search; lines that are ``kept`` still matter at its end."""

    def __call__(self, line: str, kept: bool = False) -> None: ...


def _silent(line: str, kept: bool = False) -> None:
    pass


class Budget:
    """Seconds of ``clock`` for a search and the fit that follows it.

    The time of a fit is predicted from earlier fits: seconds per unit of cost, where the cost is that of a
    full fit of the candidate times the shares of rows and iterations. If possible, time is reserved at the
    end for ``n_fits`` fits to all rows. All rows may be ``growth`` times as many as candidates are tried on.
    """

    growth = 1.0

    def __init__(self, seconds: float | None, costs: list[float], n_fits: int, clock: Clock = time.monotonic):
        self.clock = clock
        self.began = clock()
        self.end = math.inf if seconds is None else self.began + seconds
        self.costs = costs
        self.n_fits = n_fits
        self.seconds = 0.0
        self.cost = 0.0
        self.share = 0.0  # share of the rows in the fits that were counted

    def note(self, trials: Sequence[Trial], rung: Rung) -> None:
        if rung.rows > self.share:  # few rows take more than their share of time: forget it
            self.seconds, self.cost, self.share = 0.0, 0.0, rung.rows
        self.seconds += sum(trial.seconds for trial in trials)
        cost = sum(self.costs[trial.candidate] * trial.tried.sum() for trial in trials)
        self.cost += cost * rung.rows * rung.iterations

    def expected(self, candidates: Sequence[int], rung: Rung, n_splits: int) -> float:
        """Return the expected seconds; 0 before the first fit."""
        cost = sum(self.costs[candidate] for candidate in candidates) * rung.rows * rung.iterations
        cost *= rung.n_splits(n_splits)
        return self.seconds / self.cost * cost if self.cost else 0.0

    def deadline(self, candidates: Sequence[int]) -> float:
        """Return when the search must end to leave time for full fits of the most expensive candidate.

        One full fit gets at most half of the total time, and all of them a third if this is more.
        """
        if self.end == math.inf or not self.n_fits:
            return self.end
        half = (self.end - self.began) / 2
        if not self.cost:
            return self.end - half
        largest = max(candidates, key=self.costs.__getitem__)
        one = LONGER_THAN_EXPECTED * self.last_fit(largest)
        return self.end - min(half, max(one, min(self.n_fits * one, 2 / 3 * half)))

    def last_fit(self, candidate: int) -> float:
        """Return the expected seconds of a fit to all rows."""
        return self.growth * self.expected([candidate], FULL, 1)

    def fits_left(self, candidate: int, otherwise: int) -> int:
        """Return how many fits to all rows the remaining time allows; ``otherwise`` if it is not limited."""
        left = self.end - self.clock()
        each = LONGER_THAN_EXPECTED * self.last_fit(candidate)
        return int(max(0.0, left) // each) if each > 0 and math.isfinite(left) else int(otherwise)

    def refit_deadline(self, candidate: int) -> Deadline:
        """Return when the last fit must end: maybe after the budget, as a truncated fit is worth little.

        The time for rows that are not in memory is unknown, so these fits are not truncated."""
        if self.growth > 1:
            return NO_DEADLINE
        late = self.clock() + 2 * LONGER_THAN_EXPECTED * self.last_fit(candidate)
        return Deadline(max(self.end, late), self.clock)


def search(
    rungs: Sequence[Rung],
    groups: Sequence[Hashable],
    n_splits: int,
    evaluate: Evaluate,
    budget: Budget,
    report: Report = _silent,
    first: Sequence[int] | None = None,
    usual: Sequence[int] = (),
    neighbours: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> list[Trial]:
    """Return the trials, rung by rung; the best candidate is the best of those on the last rung.

    Candidates of the same group (``groups`` has one per candidate) are fitted together. When time runs out,
    the remaining candidates of a rung are skipped; the very first group is always tried.

    The search begins with the candidates in ``first`` (all if None); ``usual`` are added on the last rung.
    There the ``neighbours`` of the leader and of each new leader are also tried, then the neighbours of the
    next best candidates, because few rows favour simple models and large penalties.
    """
    trials: list[Trial] = []
    candidates = list(range(len(groups)) if first is None else first)
    for number, rung in enumerate(rungs):
        candidates = candidates[: rung.n_candidates]
        if number and number == len(rungs) - 1:
            candidates = list(dict.fromkeys([*usual, *candidates]))
        of_rung: list[Trial] = []
        together = _together(candidates, groups)
        for done, group in enumerate(together):
            deadline = budget.deadline(group)
            left = [candidate for other in together[done:] for candidate in other]
            # The first guess on a rung would be far too high.
            expected = budget.expected(group, rung, n_splits) if of_rung or not number else 0.0
            if trials and budget.clock() + expected > deadline:
                # The next rung may still have time for a candidate, and its fits are more informative.
                report(
                    f"rung {number + 1}/{len(rungs)}: {NO_TIME} {_counted(len(left))}{_best_of(of_rung)}",
                    kept=True,
                )
                break
            seconds = budget.expected(left, rung, n_splits)
            report(
                f"rung {number + 1}/{len(rungs)}: {_counted(len(left))} left"
                + (f", about {seconds:.1f} s" if budget.cost else "")
                + _best_of(of_rung)
            )
            tried = evaluate(group, number, deadline, None)
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
    """Try neighbours of the leader on the last rung, then of the next best ones.

    The climb ends when time runs out or, without a time limit, when PATIENCE trials in a row have not changed
    the leader. A candidate that falls behind the leader is abandoned before its last split."""
    last = len(rungs) - 1
    of_rung = {trial.candidate: trial for trial in trials if trial.rung == last}
    more: list[Trial] = []
    leader, in_vain = None, 0
    while of_rung:
        before, leader = leader, _leader(list(of_rung.values()))
        in_vain = in_vain + 1 if leader is before else 0
        ranked = [leader, *sorted(of_rung.values(), key=lambda trial: -trial.score)]
        around = [number for trial in ranked for number in neighbours.get(trial.candidate, ())]
        untried = [candidate for candidate in around if candidate not in of_rung]
        if not untried or (in_vain == PATIENCE and budget.end == math.inf):
            break
        expected = budget.expected(untried[:1], rungs[last], n_splits)
        if budget.clock() + expected > budget.deadline(untried[:1]):
            untried_yet = _counted(len(set(untried)))
            report(f"{NO_TIME} {untried_yet} near the best{_best_of([leader])}", kept=True)
            break
        report(f"rung {last + 1}/{last + 1}: trial {len(of_rung) + 1}{_best_of([leader])}")
        (trial,) = evaluate(untried[:1], last, budget.deadline(untried[:1]), leader)
        budget.note([trial], rungs[last])
        of_rung[trial.candidate] = trial
        more.append(trial)
    return more


def _counted(candidates: int) -> str:
    return f"{candidates} candidate{'s' * (candidates != 1)}"


def _best_of(trials: Sequence[Trial]) -> str:
    scores = [trial.score for trial in trials if trial.score > -math.inf]
    return f", best score {max(scores):.6g}" if scores else ""


def best(trials: Sequence[Trial]) -> int:
    """Return the index of the best trial on the last rung.

    The first of several equal scores wins; with several rungs, also the first of nearly equal scores.
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
    """Return the candidates by group, in order of each group's first candidate: the best group first."""
    by_group: dict[Hashable, list[int]] = {}
    for candidate in candidates:
        by_group.setdefault(groups[candidate], []).append(candidate)
    return list(by_group.values())
