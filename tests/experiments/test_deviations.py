"""Deviations from the paper that the lines tell."""

import pytest

from record_lines import line, some_lines
from tensormachines.experiments.methods import METHODS
from tensormachines.experiments.report.deviations import deviations_of_run
from tensormachines.experiments.report.results import results_of


def test_fits_on_another_machine_than_that_of_kernel_ridge_are_told():
    lines = [
        line(method="krr", major=None, machine="A"),
        line(method="tm-batch", machine="A"),
        line(method="tm-sfo", machine="B"),
        line(set="adult", method="tm-sfo", machine="B"),
    ]
    (told,) = [text for text in deviations_of_run(results_of(lines, [])) if "another machine" in text]
    assert told.endswith("mix two machines: Indoor: TM-SFO.")
    alone = deviations_of_run(results_of([fields | {"machine": "A"} for fields in lines], []))
    assert not any("another machine" in text for text in alone)


def test_deviations_that_the_lines_tell():
    told = deviations_of_run(results_of(some_lines(), []))
    assert told[:3] == [
        "Not available: Gisette (see Table 1).",
        "Represented by relatives under their own names, which are never compared with the printed numbers: "
        "Slice by slice_first_rows.",
        "The constants of ebay_like were chosen to give errors near those that the paper prints for the "
        "private data: their agreement is no evidence.",
    ]
    assert "Figure 4 goes to 200 training rows (the paper: 1,100,000), with one fit each." in told
    few = [fields | {"rows": 500} if fields["experiment"] == "select" else fields for fields in some_lines()]
    assert any(
        "chosen on fewer training rows (the paper: on all): Indoor 500." in sentence
        for sentence in deviations_of_run(results_of(few, []))
    )
    assert not any("chosen on fewer" in sentence for sentence in told)  # on all of them
    assert deviations_of_run(results_of([], [])) == []


def test_rows_and_trials_that_are_fewer_than_the_paper_s_are_told():
    lines = [
        line(set="ebay_like", rows=50_000, test_rows=2000, trial=0),
        line(set="ebay_like", rows=50_000, test_rows=2000, trial=1),
        line(set="ebay_like", method="krr", major=None, rows=50_000, test_rows=2000),
        line(set="adult", rows=32_561, test_rows=16_281),
    ]
    told = deviations_of_run(results_of(lines, []))
    assert "Training rows were capped: ebay_like 50,000 of 500,000." in told
    assert "Test rows were capped: ebay_like 2,000 of 100,000." in told
    assert any(
        sentence.startswith("Trials per setting: 1 and 2 (the paper: 3). Only one for KRR, where")
        for sentence in told
    )
    assert not any("Figure 4" in sentence for sentence in told)


def test_choices_at_an_end_of_their_grid_are_named():
    """The middle of three penalties is none; of two values, each is an end, and says nothing."""
    lines = [
        line(experiment="select", param_alpha=alpha, param_rate=alpha > 1, error=error, key=f"s{alpha}")
        for alpha, error in ((0.1, 0.3), (1.0, 0.2), (10.0, 0.1))
    ]
    (found,) = [text for text in deviations_of_run(results_of(lines, [])) if text.startswith("Choices at")]
    assert found.startswith("Choices at an end of their grid")
    assert found.endswith(": Indoor, TM-Batch: alpha 10.")
    lines[1]["error"] = 0.05
    assert not any(text.startswith("Choices at") for text in deviations_of_run(results_of(lines, [])))


@pytest.mark.parametrize(("last_error", "named"), [(0.2, True), (0.299, False)])
def test_curves_that_end_with_the_ladder_are_named(last_error, named):
    *_, before, last = METHODS["tm-batch"].ladder
    lines = [line(method="krr", major=None, error=0.1)]
    lines += [line(major=major, error=e) for major, e in ((5, 0.3), (before, 0.3), (last, last_error))]
    found = [text for text in deviations_of_run(results_of(lines, [])) if "last value tried" in text]
    assert [text.endswith("Indoor, TM-Batch (1.0).") for text in found] == [True] * named


def test_one_fold_is_called_one_half():
    lines = [
        line(experiment="select", folds=folds, set=name) for name, folds in (("indoor", 1), ("adult", 5))
    ]
    results = results_of(lines, [])
    assert str(results.tuned["indoor", "tm-batch"]) == "1 on one half of the rows"
    assert str(results.tuned["adult", "tm-batch"]) == "1 in 5 folds"
    assert any("had 5 folds" in text for text in deviations_of_run(results))
