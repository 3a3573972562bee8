"""Successive halving, of candidates whose scores are known."""

import math
import time

import numpy as np
import pytest

from tensormachines.estimators.halving import (
    LONGER_THAN_EXPECTED,
    PATIENCE,
    Budget,
    Rung,
    Trial,
    best,
    has_fallen_behind,
    ladder,
    search,
)


def run(scores, rungs, groups=None, budget=None, seconds=0.0, n_splits=1, neighbours=None, lines=None):
    """``scores[rung][candidate]``; returns the trials and the groups as they were evaluated.

    What is reported is added to ``lines``."""
    calls = []

    def evaluate(group, rung, deadline, leader):
        calls.append((rung, list(group), deadline))
        time.sleep(seconds)
        spent = np.full(n_splits, seconds / n_splits / len(group))
        return [
            Trial(candidate, rung, np.full(n_splits, scores[rung][candidate]), spent, 0 * spent)
            for candidate in group
        ]

    groups = groups or list(range(len(scores[0])))
    budget = budget or Budget(None, [1.0] * len(groups), 1)

    def report(line, kept=False):
        if lines is not None:
            lines.append((line, kept))

    return search(rungs, groups, n_splits, evaluate, budget, report, neighbours=neighbours or {}), calls


def rungs_of(*counts):
    return [Rung(1.0, math.inf, 1.0, 1.0, count) for count in counts]


def test_ladder_gives_more_to_fewer():
    first, last = ladder(90_000, 40, halving=True)
    assert (first.n_candidates, last.n_candidates) == (40, 1)
    assert (first.rows, last.rows) == (1 / 9, 1)
    assert (first.n_splits(10), last.n_splits(10)) == (3, 3)
    assert ladder(1000, 40, halving=True)[1].n_splits(10) == 5
    assert first.n_splits(1) == last.n_splits(1) == 1
    assert first.tolerance > last.tolerance


def test_ladder_with_few_rows_leaves_none_out():
    assert [rung.rows for rung in ladder(1000, 24, halving=True)] == [1, 1]
    assert [rung.rows for rung in ladder(4000, 24, halving=True)] == [0.5, 1]


def test_ladder_without_halving_or_choice_is_one_full_fit():
    for rungs in (ladder(90_000, 24, halving=False), ladder(90_000, 1, halving=True)):
        (rung,) = rungs
        assert (rung.rows, rung.n_splits(10), rung.iterations, rung.tolerance) == (1, 10, 1, 1)


def test_the_better_ones_go_on_and_the_last_rung_decides():
    scores = [[0.0, 3.0, 2.0, 1.0], [9.0, 5.0, 6.0, 9.0], [9.0, 1.0, 0.0, 9.0]]
    trials, _ = run(scores, rungs_of(4, 2, 2))
    assert [(trial.rung, trial.candidate) for trial in trials] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 1),
        (1, 2),
        (2, 2),
        (2, 1),
    ]
    assert trials[best(trials)].candidate == 1


def test_groups_are_fitted_together_the_most_promising_first():
    _, calls = run([[0.0, 3.0, 2.0, 1.0], [0.0] * 4], rungs_of(4, 3), groups=["a", "b", "a", "b"])
    assert [(rung, group) for rung, group, _ in calls] == [(0, [0, 2]), (0, [1, 3]), (1, [1, 3]), (1, [2])]


def test_of_equals_the_first_is_best_and_a_failure_is_worst():
    trials, _ = run([[math.nan, 1.0, 1.0, -math.inf]], rungs_of(4))
    assert trials[best(trials)].candidate == 1
    trials, _ = run([[math.nan, -5.0], [math.nan, -7.0]], rungs_of(2, 1))
    assert trials[best(trials)].candidate == 1


def test_no_time_still_tries_the_first_group():
    trials, _ = run([[1.0, 2.0, 3.0]] * 2, rungs_of(3, 2), budget=Budget(1e-9, [1.0] * 3, 1))
    assert [trial.candidate for trial in trials] == [0]


def test_a_short_time_leaves_some_of_it_for_the_last_fit(monkeypatch):
    """Fits of 0.02 s in 0.2 s, by a clock that only they move: some eight, of which the last rung gets its
    share only if there is time.
    """
    clock = [0.0]
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    budget = Budget(0.2, [1.0] * 50, 1, lambda: clock[0])
    trials, calls = run([[float(k) for k in range(50)]] * 2, rungs_of(50, 5), budget=budget, seconds=0.02)
    assert clock[0] < budget.end
    assert 2 <= len(trials) <= 9
    assert all(deadline <= budget.end for _, _, deadline in calls)
    assert calls[-1][2] < budget.end - 0.015  # the time of a fit


def test_a_rung_that_ends_early_does_not_say_that_the_time_is_over(monkeypatch):
    """The last rung still has time for a candidate."""
    clock = [0.0]
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    budget, lines = Budget(0.21, [1.0] * 50, 1, lambda: clock[0]), []
    scores = [[float(k) for k in range(50)]] * 2
    trials, _ = run(scores, rungs_of(50, 5), budget=budget, seconds=0.02, lines=lines)
    tried = [sum(trial.rung == rung for trial in trials) for rung in (0, 1)]
    assert tried[1] == 1
    (of_first, of_last) = [line for line, kept in lines if kept]
    score = f"best score {tried[0] - 1}"
    assert of_first == f"rung 1/2: time_budget leaves no time for {50 - tried[0]} candidates, {score}"
    assert of_last == f"rung 2/2: time_budget leaves no time for 4 candidates, {score}"
    assert lines.index((of_first, True)) < max(k for k, (line, kept) in enumerate(lines) if not kept)


def test_cost_of_a_fit_is_told_from_those_before():
    budget = Budget(100.0, [1.0, 4.0], 1)
    assert budget.expected([1], Rung(1.0, 10, 1.0, 1.0, 1), 10) == 0
    half = Rung(0.5, 10, 1.0, 1.0, 2)
    budget.note([Trial(0, 0, np.zeros(2), np.full(2, 1.0), np.zeros(2))], half)  # 2 seconds for a cost of 1
    assert budget.expected([0, 1], Rung(1.0, 3, 0.5, 1.0, 2), 10) == 2 * 5 * 3 * 0.5
    assert budget.end - budget.deadline([0, 1]) == LONGER_THAN_EXPECTED * 2 * 4


def test_time_is_left_for_all_members():
    one = LONGER_THAN_EXPECTED * 2
    for n_fits, left in ((0, 0), (1, one), (3, 3 * one), (40, 100 / 3)):
        budget = Budget(100.0, [1.0], n_fits)
        budget.note([Trial(0, 0, np.zeros(2), np.ones(2), np.zeros(2))], Rung(0.5, 10, 1.0, 1.0, 1))
        assert budget.end - budget.deadline([0]) == pytest.approx(left)


def test_candidates_that_fall_behind_are_given_up():
    leader = Trial(0, 1, np.array([-1.0, -3.0]), np.ones(2), np.ones(2))
    assert not has_fallen_behind(np.array([-1.01]), leader)
    assert has_fallen_behind(np.array([-1.03]), leader)
    assert not has_fallen_behind(np.array([-1.03, -2.9]), leader)
    assert not has_fallen_behind(np.array([np.nan]), leader)  # a fit that failed
    assert not has_fallen_behind(np.array([-9.0]), None)
    given_up = Trial(0, 1, np.array([-9.0, np.nan]), np.array([2.0, np.nan]), np.array([1.0, np.nan]))
    assert given_up.score == -math.inf
    assert given_up.seconds == 3.0
    budget = Budget(100.0, [1.0], 1)
    budget.note([given_up], Rung(1.0, 10, 1.0, 1.0, 1))
    assert budget.expected([0], Rung(1.0, 2, 1.0, 1.0, 1), 2) == 6.0  # one split took 3 seconds


def test_neighbours_of_the_best_are_tried_then_those_of_the_next_best():
    scores = [[9.0, 8.0, 7.0, 6.0, 5.0], [1.0, 2.0, 3.0, 2.5, 9.0]]
    neighbours = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2, 4]}
    trials, calls = run(scores, rungs_of(5, 1), groups=["a"] * 5, neighbours=neighbours)
    assert [(rung, group) for rung, group, _ in calls] == [
        (0, [0, 1, 2, 3, 4]),
        (1, [0]),
        (1, [1]),
        (1, [2]),
        (1, [3]),
        (1, [4]),  # no neighbour of the best is left: those of the next best
    ]
    assert trials[best(trials)].candidate == 4
    _, calls = run(scores, rungs_of(5), groups=["a"] * 5, neighbours=neighbours)
    assert len(calls) == 1  # without halving all have been tried


def test_a_search_ends_when_many_trials_have_been_in_vain():
    n = 3 * PATIENCE
    neighbours = {number: [number + 1] for number in range(n - 1)}
    for better, tried in ((0, PATIENCE + 1), (5, PATIENCE + 6)):
        scores = [[1.0] * n, [float(number == better) for number in range(n)]]
        trials, _ = run(scores, rungs_of(n, 1), groups=["a"] * n, neighbours=neighbours)
        assert sum(trial.rung == 1 for trial in trials) == tried
        assert trials[best(trials)].candidate == better


def test_a_search_goes_on_while_there_is_time():
    n = 3 * PATIENCE
    neighbours = {number: [number + 1] for number in range(n - 1)}
    budget = Budget(1e9, [1.0] * n, 1)
    trials, _ = run([[1.0] * n] * 2, rungs_of(n, 1), ["a"] * n, budget, neighbours=neighbours)
    assert sum(trial.rung == 1 for trial in trials) == n
