"""Verdicts on the claims that compare methods."""

from __future__ import annotations

import pytest

from claim_lines import METHODS, Line, about, compared, fit
from tensormachines.experiments.printed import PRINTED
from tensormachines.experiments.report.labels import span, times


@pytest.mark.parametrize(
    ("rank", "parameters", "features", "rival_error", "verdict"),
    [
        (5, 720, 4000, 0.3, "confirmed"),
        (5, 721, 4000, 0.3, "mixed"),  # more than 72 d
        (6, 100, 4000, 0.3, "mixed"),
        (5, 720, 3990, 0.3, "mixed"),  # CRAFTMaps makes do with 399 d
        (5, 720, 4000, 0.1, "mixed"),  # and errs less
        (6, 100, 3990, 0.1, "refuted"),
        (5, 720, 3990, 0.1, "refuted"),  # a small model that errs more shows nothing
    ],
)
def test_parsimony(rank: int, parameters: int, features: int, rival_error: float, verdict: str) -> None:
    lines = [
        fit("adult", "tm-batch", 0.2, parameters=90, param_rank=2),
        fit("adult", "tm-sfo", 0.25, parameters=parameters, param_rank=rank),
        fit("adult", "craftmaps", rival_error, major=400, parameters=features),
        fit("adult", "tm-sfo", 0.3, experiment="select", param_rank=8),
    ]
    found = about(lines, "Tensor Machines are parsimonious")
    assert found.verdict == verdict
    assert (
        f"rank 2 to {rank} (the largest tried was 8), 9 to {span([parameters / 10])} times d" in found.figures
    )
    better = 2 if rival_error > 0.25 else 0
    told = "In 2 comparisons of a Tensor Machine with CRAFTMaps on a set, the Tensor Machine is clearly more "
    assert f"{told}accurate in {better}, clearly less in {2 - better}." in found.figures


def test_parsimony_counts_the_selected_fits_alone() -> None:
    large = fit("adult", "tm-batch", 0.5, major=20, parameters=10_000)
    lines = [large, fit("adult", "tm-batch", 0.2), fit("adult", "craftmaps", 0.3, parameters=5000)]
    found = about(lines, "Tensor Machines are parsimonious")
    assert found.verdict == "mixed"
    assert found.figures.endswith("Not tested: a rank above 5.")
    tried = fit("adult", "tm-batch", 0.3, experiment="select", param_rank=8)
    assert about([*lines, tried], "Tensor Machines are parsimonious").verdict == "confirmed"


@pytest.mark.parametrize(
    ("batch", "sfo", "verdict"),
    [
        ((0.9, 1.0, 1.4), (1.0, 1.0, 1.3), "confirmed"),
        ((0.9, 1.0, 1.4), (1.0, 1.0, 1.5), "mixed"),
        ((2, 1, 1), (1, 1, 1.6), "refuted"),
    ],
)
def test_worst_case(batch: tuple[float, ...], sfo: tuple[float, ...], verdict: str) -> None:
    rivals = {"craftmaps": (1.5, 0.5, 0.5), "basis-learner": (0.5, 1.6, 0.5), "apple": (1, 1, 1.7)}
    errors = {"krr": (1.0, 1.0, 1.0), "tm-batch": batch, "tm-sfo": sfo, **rivals}
    found = about(compared(errors), "TM-Batch and TM-SFO have the lowest worst-case")
    assert found.verdict == verdict
    for figure in ("CRAFTMaps +50.0 % (a)", "Basis Learner +60.0 % (b)", "Apple +70.0 % (c)"):
        assert figure in found.figures


def test_worst_case_needs_all_methods_on_three_sets() -> None:
    errors = {method: (1.0, 1.0, 1.0, 1.0) for method in METHODS}
    lines = [line for line in compared(errors) if (line["set"], line["method"]) != ("d", "apple")]
    assert (
        "(3 sets; not all methods finished on d)"
        in about(lines, "TM-Batch and TM-SFO have the lowest").figures
    )
    again = [
        {**line, "set": "indoor_heard", "key": line["key"] + "again"} for line in lines if line["set"] == "a"
    ]  # Indoor's rows
    assert about(lines + again, "TM-Batch and TM-SFO have the lowest") == about(
        lines, "TM-Batch and TM-SFO have the lowest"
    )
    fewer = [line for line in lines if (line["set"], line["method"]) != ("c", "krr")]
    assert about(fewer, "TM-Batch and TM-SFO have the lowest").verdict == "not testable here"


@pytest.mark.parametrize(
    ("seconds", "errors", "verdict"),
    [
        ((1, 2, 3), (2, 2, 2), "confirmed"),  # medians 2 against 3, between the quartiles 1 against 2
        ((1, 2, 9), (2, 2, 2), "mixed"),  # more variable: 4
        ((1, 2, 3), (1, 1, 1), "mixed"),  # as accurate
        ((4, 5, 12), (1, 1, 1), "refuted"),
    ],
)
def test_solvers(seconds: tuple[float, ...], errors: tuple[float, ...], verdict: str) -> None:
    lines = compared(
        {"krr": (1, 1, 1), "tm-batch": (1, 1, 1), "tm-sfo": errors},
        {"tm-batch": (1, 3, 5), "tm-sfo": seconds},
    )
    assert about(lines, "TM-SFO is faster than TM-Batch").verdict == verdict


@pytest.mark.parametrize(
    ("rivals", "apple", "verdict"),
    [(4.0, 0.5, "mixed"), (1.1, 0.95, "too close to call"), (0.5, 2.0, "refuted")],
)
def test_rival_times(rivals: float, apple: float, verdict: str) -> None:
    """What would be confirmed is mixed, as the paper prints the seconds of another program for Apple."""
    seconds = {"craftmaps": rivals, "basis-learner": rivals, "apple": apple}
    lines = compared(
        {method: (1, 1, 1) for method in METHODS}, {method: (s, s, s) for method, s in seconds.items()}
    )
    found = about(lines, "CRAFTMaps and Basis Learner take more time")
    assert found.verdict == verdict
    assert "Not tested: Vowpal Wabbit" in found.figures
    fewer = [line for line in lines if (line["set"], line["method"]) != ("c", "apple")]
    assert about(fewer, "CRAFTMaps and Basis Learner take more time").verdict == "not testable here"


def path_of(name: str, method: str, *fits: tuple[float, float]) -> list[Line]:
    return [fit(name, method, error, seconds, major=k) for k, (error, seconds) in enumerate(fits)]


@pytest.mark.parametrize(
    ("machine", "alone", "with_slice"),
    [
        ([(0.5, 0.1), (0.31, 1.5)], "mixed", "confirmed"),  # within 5 % of 0.3, sooner than 2 s; no Slice
        ([(0.5, 0.1), (0.31, 1.9)], "too close to call", "mixed"),  # as soon
        ([(0.5, 0.1), (0.31, 2.5)], "refuted", "mixed"),  # later
        ([(0.5, 0.1), (0.32, 0.5)], "refuted", "mixed"),  # never
        ([(0.5, 0.1), (0.20, 9.0)], "refuted", "mixed"),  # much lower, but late
    ],
)
def test_time_and_error(machine: list[tuple[float, float]], alone: str, with_slice: str) -> None:
    rivals = path_of("forest", "apple", (0.9, 0.01), (0.31, 2.0), (0.30, 8.0))
    rivals += [fit("forest", method, 0.4) for method in ("craftmaps", "basis-learner")]
    forest = rivals + path_of("forest", "tm-sfo", *machine)
    found = about(forest, "Tensor Machines reach a much lower error")
    assert found.verdict == alone
    assert found.figures.endswith("Not tested: Slice or slice_first_rows.")
    errors = {"apple": 0.3, "craftmaps": 0.4, "basis-learner": 0.4, "tm-batch": 0.1}
    slice_rows = [fit("slice_first_rows", method, error) for method, error in errors.items()]
    assert about(forest + slice_rows, "Tensor Machines reach a much lower error").verdict == with_slice
    assert "0.300 (Apple)" in found.figures
    without = [line for line in forest + slice_rows if (line["set"], line["method"]) != ("forest", "apple")]
    found = about(without, "Tensor Machines reach a much lower error")
    assert found.figures.endswith("Not tested: Apple on Forest.")


@pytest.mark.parametrize(
    ("batch", "sfo", "verdict"), [(0.1, 0.1, "confirmed"), (0.1, 0.2, "mixed"), (0.2, 0.3, "refuted")]
)
def test_factorization_machines(batch: float, sfo: float, verdict: str) -> None:
    sets = ("census_house_16H", "year_msd_subset")
    lines = [
        fit(name, method, error)
        for name in sets
        for method, error in (("tm-batch", batch), ("tm-sfo", sfo), ("fm", 0.2))
    ]
    assert about(lines, "Tensor Machines are more accurate than factorization").verdict == verdict


@pytest.mark.parametrize(
    ("batch", "sfo", "verdict"),
    [
        (0.0024, 0.0181, "mixed"),
        (0.008024, 0.0182, "mixed"),
        (0.00803, 0.0182, "mixed"),
        (0.009, 0.019, "refuted"),
    ],
)
def test_printed_errors_of_indoor(batch: float, sfo: float, verdict: str) -> None:
    """0.00802 and 0.0182 are printed, so that 0.008024 is as good; but for targets that keep their mean."""
    lines = [fit("indoor", "tm-batch", batch), fit("indoor", "tm-sfo", sfo)]
    found = about(lines, "Our errors reach the printed ones on Indoor")
    assert found.verdict == verdict
    assert f"0.00241 (Basis Learner), is {'beaten' if batch < 0.00241 else 'not beaten'}." in found.figures
    with_another = about(
        [*lines, fit("indoor", "tm-kfac", 0.002)], "Our errors reach the printed ones on Indoor"
    )
    assert with_another.verdict == verdict  # the paper's claims are about the paper's methods
    assert (
        " TM-kfac, which is not in the paper: 0.00200. Not tested: a target that keeps"
        in with_another.figures
    )
    kernel = [fit("indoor", "krr", 0.004), fit("indoor", "krr", 0.009, experiment="uncentred")]
    figures = about([*lines, *kernel], "Our errors reach the printed ones on Indoor").figures
    assert "That alone takes KRR from 0.00900 to 0.00400 (printed: 0.00961)." in figures


def test_printed_errors_of_a_missing_solver_or_other_rows() -> None:
    alone = about(
        [fit("adult", "tm-batch", 0.1, task="binary", test_rows=900)],
        "Our errors reach the printed ones on Adult",
    )
    assert alone.verdict == "mixed"
    assert alone.figures.endswith("Not tested: TM-SFO.")
    assert "900 test rows, which give a standard error of 0.01" in alone.figures
    others = about(
        [fit("adult", "tm-batch", 0.1, faithful=False)], "Our errors reach the printed ones on Adult"
    )
    assert others.verdict == "not testable here"


@pytest.mark.parametrize(
    ("gain", "early_gain", "verdict"), [(20, 40, "confirmed"), (5, 20, "mixed"), (5, 9, "refuted")]
)
def test_printed_time(gain: float, early_gain: float, verdict: str) -> None:
    """A first fit just reaches the printed error, a second one beats it and takes longer; KRR takes 100 s."""
    lines = []
    for name in ("indoor", "adult", "forest"):
        krr = PRINTED[name]["krr"]
        lines.append(fit(name, "krr", 0.1, 100.0, rows=40_000))
        for method in ("tm-batch", "tm-sfo"):
            printed = PRINTED[name][method]
            seconds = 100 * printed.seconds / krr.seconds
            task = "regression" if name == "indoor" else "binary"
            lines.append(fit(name, method, printed.error, seconds / early_gain, major=10, task=task))
            lines.append(fit(name, method, printed.error / 2, seconds / gain, major=20, task=task))
    found = about(lines, "Relative to KRR, our Tensor Machines take at most 1 / 10 of the printed time")
    assert found.verdict == verdict
    assert (
        f"a gain of {times(gain)}, {times(early_gain)} where the printed error is first reached"
        in found.figures
    )
    assert "KRR on 40,000 rows" in found.figures
    assert found.figures.count("(not judged: our target is centred)") == 2  # both machines on Indoor


def test_printed_time_without_the_printed_error() -> None:
    fast = fit("adult", "tm-batch", 0.2, 1e-3, task="binary")
    found = about([fit("adult", "krr", 0.1, 100.0), fast], "Relative to KRR")
    assert found.verdict == "mixed"
    assert "the printed error is not reached" in found.figures
