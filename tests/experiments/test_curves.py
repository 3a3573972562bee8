"""Lines to curves and facts: every expected value is worked out by hand."""

from math import sqrt

import pytest

from record_lines import line
from tensormachines.experiments.report.curves import (
    best_points,
    cheapest,
    counted,
    curves,
    finished,
    log_slope,
    over_sets,
    own_or_relative,
    printed_relatives,
    quartiles,
    relatives,
    spread,
)
from tensormachines.experiments.report.run_facts import elapsed, run_facts, tunings, unfinished, used_sets


def test_spread():
    found = spread([1.0, 2.0, 6.0])
    assert (found.mean, found.low, found.high, found.count) == (3.0, 1.0, 6.0, 3)
    assert found.deviation == pytest.approx(sqrt(7))  # (4 + 1 + 9) / 2
    assert spread([4.0]).deviation == 0


def test_quartiles():
    found = quartiles([4.0, 1.0, 3.0, 2.0])
    assert (found.first, found.median, found.third, found.worst, found.count) == (1.75, 2.5, 3.25, 4.0, 4)
    assert found.width == 1.5


def test_the_major_value_of_the_lowest_mean_error_is_selected():
    errors = {
        10: (0.4, 0.2),
        40: (0.1, 0.41),
        20: (0.25, 0.25),
    }  # means 0.3, 0.255, 0.25; 40 has the lowest single trial
    lines = [
        line(major=major, trial=t, error=e, seconds=major / 10)
        for major, pair in errors.items()
        for t, e in enumerate(pair)
    ]
    curve = curves(lines, "compare", "major")[("indoor", "tm-batch")]
    assert [point.at for point in curve.points] == [10, 20, 40]
    assert curve.best.at == 20
    assert curve.best.seconds.mean == 2.0
    assert cheapest(curve.points).at == 10
    assert cheapest([]) is None


def test_a_fit_of_which_a_trial_failed_is_its_other_trials():
    lines = [
        line(trial=0, error=0.3),
        line(trial=1, status="timeout"),
        line(method="apple", status="crashed"),
    ]
    assert {pair: str(point.error) for pair, point in best_points(curves(lines)).items()} == {
        ("indoor", "tm-batch"): "0.300"
    }


def test_of_equal_errors_the_smaller_model_is_selected():
    curve = curves([line(major=20), line(major=10)], "compare", "major")[("indoor", "tm-batch")]
    assert curve.best.at == 10


def test_fits_of_an_older_tuning_do_not_count():
    old, new = line(param_alpha=1.0, error=0.1, key="old"), line(param_alpha=2.0, error=0.3, key="new")
    curve = curves([old, new], "compare", "major")[("indoor", "tm-batch")]
    assert [point.error.mean for point in curve.points] == [0.3]


def test_a_seed_among_the_parameters_does_not_part_the_trials():
    lines = [line(trial=trial, param_random_state=trial, error=0.1 * (trial + 1)) for trial in range(3)]
    (point,) = curves(lines, "compare", "major")[("indoor", "tm-batch")].points
    assert point.error.mean == pytest.approx(0.2)
    assert point.error.count == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "timeout"},
        {"error": None},
        {"error": float("nan")},
        {"seconds": None},
        {"error": True},
        {"status": "skipped"},
    ],
)
def test_what_has_no_figures_is_not_finished(fields):
    assert finished(line())
    assert not finished(line(**fields))


def test_each_experiment_needs_its_own_figures():
    assert finished({"status": "ok", "experiment": "select", "error": 0.1})
    assert finished(
        {"status": "ok", "experiment": "bound", "bound": 3.0, "train_risk": 0.1, "test_risk": 0.2}
    )
    assert not finished({"status": "ok", "experiment": "bound", "error": 0.1, "seconds": 1.0})


def test_relative_to_kernel_ridge_regression():
    lines = [
        line(method="krr", major=None, error=0.2, seconds=100.0),
        line(error=0.25, seconds=10.0),
        line(set="adult", error=0.1),
    ]
    found = relatives(curves(lines, "compare", "major"))
    assert set(found) == {
        ("indoor", "tm-batch")
    }  # Adult has no baseline, and the baseline is not compared with itself
    assert found[("indoor", "tm-batch")].error == pytest.approx(0.25)
    assert found[("indoor", "tm-batch")].time == pytest.approx(0.1)


def test_the_paper_s_own_quartiles():
    errors, times = over_sets(printed_relatives())["tm-batch"]
    # In order: -0.1655, -0.0148, -0.0067, 0, 0, 0.0157, 0.1604, 0.1649, 0.2432, 0.9407.
    assert errors.median == pytest.approx((0 + 0.0007 / 0.0446) / 2)
    assert errors.first == pytest.approx(-0.75 * 0.001 / 0.150)
    assert errors.third == pytest.approx(0.25 * 0.0107 / 0.0667 + 0.75 * 0.0008 / 0.00485)
    assert errors.worst == pytest.approx(0.0111 / 0.0118)
    assert errors.count == times.count == 10
    assert times.worst == pytest.approx(16 / 6.6)


def test_the_same_rows_count_once_over_sets():
    lines = [
        line(set=name, method=method, major=None)
        for name in ("indoor", "indoor_heard", "adult")
        for method in ("krr", "fm")
    ]
    found = relatives(curves(lines))
    assert len(found) == 3
    assert over_sets(found)["fm"][0].count == 2
    assert [point.set for point in counted(best_points(curves(lines)))] == [
        "indoor",
        "indoor",
        "adult",
        "adult",
    ]


@pytest.mark.parametrize("power", [1.0, -0.5])
def test_slope_on_logarithmic_axes(power):
    sizes = (100, 1000, 5000)
    assert log_slope(sizes, [3e-4 * size**power for size in sizes]) == pytest.approx(power)
    assert log_slope(
        (50, *sizes), [-1.0, *(3e-4 * size**power for size in sizes)], fewest=3
    ) == pytest.approx(power)
    assert log_slope(sizes, [1.0, 2.0, 0.0], fewest=3) is None
    assert log_slope((100, 100), (1.0, 2.0)) is None  # one size has no slope


def test_the_paper_s_set_itself_or_else_its_relative():
    lines = [line(set=name) for name in ("census_house_16H", "slice", "slice_first_rows")] + [
        line(set="census", status="timeout")
    ]
    assert own_or_relative(curves(lines), "slice", "census", "forest") == ["slice", "census_house_16H"]


def test_a_run_lasts_as_long_as_its_parts_and_not_their_pauses():
    moments = [
        ("2026-01-01T10:05:00+00:00", 300.0),
        ("2026-01-01T10:10:00+00:00", 600.0),
        ("2026-01-01T11:02:00+00:00", 720.0),
    ]
    assert elapsed([{"when": when, "elapsed": seconds} for when, seconds in moments]) == 720.0
    assert elapsed([]) == 0.0


def test_facts_of_the_run():
    lines = [
        line(limit_seconds=300.0, machine="two cores", when="2026-01-01T10:05:00", elapsed=300.0),
        line(trial=1, status="timeout"),
        line(trial=2, error=None),
        {"experiment": "load", "set": "gisette", "status": "skipped", "reason": "no network"},
    ]
    found = run_facts(lines)
    assert found.statuses == {"ok": 1, "timeout": 1, "failed": 1}  # the load line is not a fit
    assert (found.profiles, found.limits, found.computers, found.elapsed) == (
        ("quick",),
        (300.0,),
        ("two cores",),
        300.0,
    )
    assert found.first == found.last


def test_what_did_not_finish_is_counted_by_its_reason():
    lines = [line(trial=trial, status="timeout", reason="over 3 s") for trial in range(3)] + [
        line(trial=3, error=None)
    ]
    assert unfinished(lines) == {
        ("compare", "indoor", "tm-batch", "timeout", "over 3 s"): 3,
        ("compare", "indoor", "tm-batch", "failed", "no results in the line"): 1,
    }


def test_data_sets_in_the_paper_s_order_each_with_its_relative():
    lines = [
        line(method="krr", rows=1000),
        line(rows=2000),
        line(set="cod_rna", faithful=False),
        line(set="year_msd_subset", faithful=False),
        line(set="indoor_heard", faithful=False),
        line(set="zoo"),
        {"experiment": "load", "set": "gisette", "status": "skipped", "reason": "no network"},
    ]
    found = {data_set.name: data_set for data_set in used_sets(lines)}
    assert list(found)[:5] == ["indoor", "indoor_heard", "year", "year_msd_subset", "census"]
    assert list(found)[-1] == "zoo"
    assert found["indoor"].rows == 2000  # not the baseline's
    assert found["indoor"].faithful
    assert found["indoor"].capped
    assert not found["cod_rna"].faithful
    assert not found["zoo"].faithful  # the paper prints nothing for it
    assert found["gisette"].reason == "no network"
    assert not found["gisette"].used


def test_tuning():
    lines = [
        line(experiment="select", param_alpha=alpha, error=error, folds=5, key=str(alpha))
        for alpha, error in ((1, 0.3), (2, 0.2), (3, 0.4))
    ]
    found = tunings(lines)[("indoor", "tm-batch")]
    assert (found.candidates, found.folds, found.rows, found.error) == (3, 5, 19_937, 0.2)


def test_a_set_whose_comparison_failed_keeps_its_own_number_of_rows():
    lines = [
        line(status="failed", error=None),
        line(experiment="bound", rows=500, bound=1.0, train_risk=0.1, test_risk=0.2),
    ]
    indoor = used_sets(lines)[0]
    assert (indoor.rows, indoor.capped) == (19_937, False)
