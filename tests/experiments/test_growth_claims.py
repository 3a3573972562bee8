"""Verdicts on the claims about random starts, rows and ranks."""

from __future__ import annotations

import pytest

from claim_lines import about, bounded, fit, ranked, scaled


@pytest.mark.parametrize(
    ("step", "trial_step", "verdict"),
    [(0.001, 0.001, "confirmed"), (0.01, 0.001, "mixed"), (0.01, 0.1, "refuted")],
)
def test_starts(step: float, trial_step: float, verdict: str) -> None:
    """Ten errors 0.2, 0.2 + step, ...: standard deviation 3.03 step, mean 0.2 + 4.5 step."""
    lines = [fit("adult", "tm-batch", 0.2 + step * k, trial=k, experiment="starts") for k in range(10)]
    lines += [fit("forest", "tm-sfo", 0.2 + trial_step * k, trial=k) for k in range(3)]
    found = about(lines, "The nonconvex fit is robust")
    assert found.verdict == verdict
    assert f"{100 * 3.0277 * step / (0.2 + 4.5 * step):.2g} % of the mean" in found.figures
    assert about(lines[10:], "The nonconvex fit is robust").verdict == "not testable here"


@pytest.mark.parametrize(
    ("power", "rival_power", "verdict"),
    [
        (1.0, 1.4, "confirmed"),
        (0.8, 1.4, "confirmed"),
        (1.0, 1.0, "mixed"),
        (1.3, 1.4, "mixed"),
        (1.3, 1.0, "refuted"),
    ],
)
def test_seconds_with_rows(power: float, rival_power: float, verdict: str) -> None:
    errors = {10_000: 0.3, 40_000: 0.3, 100_000: 0.3}
    lines = scaled("tm-sfo", power, errors) + scaled("craftmaps", rival_power, errors)
    found = about(lines, "The time of TM-SFO grows")
    assert found.verdict == verdict
    assert f"n^{power:.2f} (10,000 to 100,000 rows)" in found.figures
    assert f"CRAFTMaps as n^{rival_power:.2f}" in found.figures
    two = [line for line in lines if line["rows"] != 40_000]
    assert about(two, "The time of TM-SFO grows").verdict == "not testable here"


@pytest.mark.parametrize(
    ("last", "rival_last", "verdict"),
    [(0.19, 0.298, "confirmed"), (0.199, 0.298, "mixed"), (0.19, 0.29, "mixed"), (0.199, 0.15, "refuted")],
)
def test_error_with_rows(last: float, rival_last: float, verdict: str) -> None:
    ours, theirs = (
        {50_000: 0.4, 100_000: 0.2, 400_000: last},
        {50_000: 0.9, 100_000: 0.3, 400_000: rival_last},
    )
    lines = scaled("tm-sfo", 1, ours) + scaled("craftmaps", 1, theirs)
    assert about(lines, "Beyond 100,000 rows").verdict == verdict
    few = [line for line in lines if line["rows"] <= 100_000]
    assert about(few, "Beyond 100,000 rows").verdict == "not testable here"


@pytest.mark.parametrize(
    ("census", "falls", "enough"),
    [
        ([0.5, 0.4, 0.3, 0.299], "confirmed", "confirmed"),
        ([0.5, 0.4, 0.3, 0.25], "confirmed", "refuted"),
        ([0.5, 0.4, 0.3, 0.55], "mixed", "confirmed"),
        ([0.5, 0.4], "confirmed", "not testable here"),
    ],
)
def test_rank(census: list[float], falls: str, enough: str) -> None:
    lines = ranked("census_house_16H", "tm-batch", census) + ranked(
        "slice_first_rows", "tm-sfo", [0.2, 0.1, 0.05]
    )
    assert about(lines, "The error falls as the rank grows").verdict == falls
    assert about(lines, "On Census no rank above 3").verdict == enough


def test_rank_on_one_set_is_not_all_of_the_claim() -> None:
    found = about(ranked("slice", "tm-sfo", [0.2, 0.1]), "The error falls as the rank grows")
    assert found.verdict == "mixed"
    assert "Not tested: Census or census_house_16H." in found.figures


@pytest.mark.parametrize(
    ("power", "gap_power", "verdict"),
    [
        (-0.5, -0.5, "confirmed"),
        (-0.4, -1.0, "confirmed"),
        (-0.2, -0.5, "mixed"),
        (-0.5, -0.2, "mixed"),
        (0.1, 0.0, "refuted"),
    ],
)
def test_bound_with_rows(power: float, gap_power: float, verdict: str) -> None:
    found = about(bounded(power, gap_power), "Theorem 1")
    assert found.verdict == verdict
    assert f"n^{power:.2f}, the difference as n^{gap_power:.2f}" in found.figures.replace("n^-0.00", "n^0.00")


@pytest.mark.parametrize(("gap_power", "verdict"), [(-0.5, "confirmed"), (-0.2, "refuted")])
def test_a_bound_whose_norms_are_held_falls_by_its_formula(gap_power: float, verdict: str) -> None:
    found = about([{**line, "bound_norm": 3.0} for line in bounded(-0.5, gap_power)], "Theorem 1")
    assert found.verdict == verdict
    assert (
        "n^-0.50 (with B = 3.00 throughout, this follows from its formula and is not judged), the difference"
        in found.figures
    )


def test_bound_without_a_gap_is_no_evidence() -> None:
    assert about(bounded(-0.5, -0.5, sign=-1), "Theorem 1").verdict == "not testable here"
    lines = bounded(-0.5, -0.5)
    lines[1]["test_risk"] = 0.1
    found = about(lines, "Theorem 1")
    assert found.verdict == "confirmed"
    assert "without 1 of 4 row counts" in found.figures
