"""Verdicts on all claims at once."""

from __future__ import annotations

import json
import math
import random

from claim_lines import METHODS, Line, about, bounded, compared, fit, ranked, scaled
from tensormachines.experiments.report import judge


def test_no_lines_say_what_is_missing() -> None:
    claims = judge([])
    assert len(claims) == 16
    assert [claim.aim for claim in claims] == [False] * 12 + [True] * 4
    assert {claim.verdict for claim in claims} == {"not testable here"}
    assert all("Missing: finished fits of " in claim.figures for claim in claims)
    assert len({claim.statement for claim in claims}) == 16


def test_reasons_of_what_is_missing_are_told() -> None:
    failed = {
        "key": "t",
        "experiment": "compare",
        "set": "indoor",
        "method": "tm-sfo",
        "trial": 0,
        "status": "timeout",
        "reason": "900 s",
    }
    again = {**failed, "key": "u", "set": "adult"}
    skipped = {
        "key": "l",
        "experiment": "load",
        "set": "indoor",
        "status": "skipped",
        "reason": "indoor: no network.",
    }
    figures = about([failed, again, skipped], "Our errors reach the printed ones on Indoor").figures
    assert "; TM-SFO timed out on Indoor (900 s); not available: Indoor (see Table 1)." in figures
    assert "Indoor" not in about([failed, skipped], "Our errors reach the printed ones on Adult").figures
    figures = about(
        [failed, again, skipped], "TM-Batch and TM-SFO have the lowest"
    ).figures  # about any sets: missing ones do not matter
    assert figures.endswith('"compare"; TM-SFO timed out on Indoor and Adult (900 s).')
    ended = {**failed, "status": "skipped", "reason": "about 90 s a fit expected"}
    assert "expected" not in about([ended], "TM-Batch and TM-SFO have the lowest").figures


def full_run() -> list[Line]:
    lines = compared({method: (1.0, 1.1, 0.9) for method in METHODS}) + bounded(-0.5, -0.5)
    lines += [
        fit(name, method, 0.1, trial=trial)
        for name in ("forest", "adult", "indoor")
        for method in METHODS
        for trial in range(3)
    ]
    lines += ranked("census", "tm-sfo", [0.3, 0.2, 0.1, 0.1]) + scaled(
        "tm-sfo", 1, {100_000: 0.2, 200_000: 0.1, 400_000: 0.1}
    )
    return lines


def test_order_of_the_lines_does_not_matter() -> None:
    lines = full_run()
    shuffled = random.Random(0).sample(lines, len(lines))
    assert [claim.verdict for claim in judge(shuffled)] == [claim.verdict for claim in judge(lines)]


def test_repeated_fits_replace_those_before() -> None:
    before = [{**line, "error": 7.0} for line in full_run()]
    assert judge(before + full_run()) == judge(full_run())


def test_a_diverged_fit_counts_as_one_that_was_never_done() -> None:
    lines = full_run()
    kept = [line for number, line in enumerate(lines) if number % 3]
    diverged = [line if number % 3 else {**line, "error": math.nan} for number, line in enumerate(lines)]
    bounds = [line for line in lines[::3] if line["experiment"] == "bound"]  # they need no error
    assert judge(diverged) == judge(json.loads(json.dumps(diverged))) == judge([*kept, *bounds])


def test_zeros_and_missing_results_are_judged() -> None:
    lines = full_run()
    for line in lines[1::7]:
        line |= {"parameters": None, "error": 0.0, "seconds": 0.0, "bound": None}
    claims = judge(lines)
    assert [claim.statement for claim in claims] == [claim.statement for claim in judge([])]
    assert not any("nan" in claim.figures or "inf" in claim.figures for claim in claims)
