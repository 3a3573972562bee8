"""The trials of a fit put together, and the fit that stands for a set and a method."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tensormachines.bench.summary import cells, latest, path, selected


def line(method: str, major: float | None, trial: int, error: float | None, seconds: float = 1.0, **others: Any) -> dict[str, Any]:
    key = f"{others.get('experiment', 'compare')}/forest/{method}/{major}/{trial}"
    found = {"key": key, "experiment": "compare", "set": "forest", "method": method, "major": major, "trial": trial, "error": error}
    return {**found, "seconds": seconds, "parameters": 10, "status": "ok", "reason": "", **others}


def test_last_line_of_a_key_counts_and_keeps_its_place() -> None:
    old, other, new = line("fm", 1, 0, 0.5), line("fm", 2, 0, 0.4), line("fm", 1, 0, 0.1)
    assert latest([old, other, new]) == [new, other]


def test_cell_holds_the_trials_in_order() -> None:
    cell = cells([line("fm", 1, 2, 0.6, 3.0, parameters=12), line("fm", 1, 0, 0.2, 1.0), line("fm", 1, 1, 0.4, 5.0)])["forest", "fm", 1]
    assert cell.errors == (0.2, 0.4, 0.6)
    assert cell.seconds == (1.0, 5.0, 3.0)
    assert cell.mean_error == pytest.approx(0.4)
    assert cell.spread == pytest.approx(0.2)
    assert cell.mean_seconds == 3.0
    assert cell.parameters == 12


def test_unfinished_fits_and_other_experiments_are_left_out() -> None:
    timeout = {"key": "t", "experiment": "compare", "set": "forest", "method": "fm", "trial": 0, "status": "timeout", "reason": "600 s"}
    lines = [timeout, line("fm", 1, 0, 0.3, experiment="select"), line("apple", 1, 0, None)]
    assert cells(lines) == {}
    assert selected(lines) == {}


def test_a_fit_that_timed_out_when_repeated_is_gone() -> None:
    again = {**line("fm", 1, 0, None), "status": "timeout"}
    assert cells([line("fm", 1, 0, 0.3), again]) == {}


def test_lowest_mean_error_is_selected_not_the_lowest_error() -> None:
    lines = [line("fm", 1, 0, 0.1), line("fm", 1, 1, 0.9), line("fm", 2, 0, 0.3), line("fm", 2, 1, 0.3), line("krr", None, 0, 0.2)]
    best = selected(lines)
    assert best["forest", "fm"].major == 2
    assert best["forest", "krr"].major is None


def test_of_equal_errors_the_smallest_major_is_selected() -> None:
    assert selected([line("fm", 20, 0, 0.3), line("fm", 5, 0, 0.3)])["forest", "fm"].major == 5


def test_error_that_is_not_a_number_is_never_selected() -> None:
    lines = [line("fm", 1, 0, math.nan), line("fm", 1, 1, 0.1), line("fm", 2, 0, 0.8)]
    assert selected(lines)["forest", "fm"].major == 2
    assert cells(lines)["forest", "fm", 1].mean_error == math.inf
    assert cells(lines)["forest", "fm", 1].spread == 0


def test_relative_to_the_baseline() -> None:
    best = selected([line("fm", 1, 0, 0.3, 2.0), line("krr", None, 0, 0.2, 8.0), line("apple", 1, 0, 0.0, 0.0)])
    assert best["forest", "fm"].relative_error(best["forest", "krr"]) == pytest.approx(0.5)
    assert best["forest", "fm"].relative_time(best["forest", "krr"]) == 0.25
    assert best["forest", "fm"].relative_error(best["forest", "apple"]) == math.inf
    assert best["forest", "apple"].relative_time(best["forest", "apple"]) == 0


def test_path_is_in_order_of_what_is_varied() -> None:
    lines = [line("fm", major, 0, 1 / major) for major in (100, 5, 20)]
    assert [cell.major for cell in path(lines, "forest", "fm")] == [5, 20, 100]
    ranks = [line("fm", rank, 0, 0.1, experiment="rank", param_rank=rank) for rank in (3, 1)]
    assert [cell.major for cell in path(ranks, "forest", "fm", "rank", by="param_rank")] == [1, 3]
