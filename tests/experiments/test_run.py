import json
import multiprocessing
import os
import signal
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tensormachines.datasets import SETS
from tensormachines.experiments.methods import METHODS
from tensormachines.experiments.profiles import PROFILES
from tensormachines.experiments.recorder import FitFailedError
from tensormachines.experiments.records import latest, read
from tensormachines.experiments.report.curves import best_points, curves
from tensormachines.experiments.report.run_facts import elapsed
from tensormachines.experiments.run import EXPERIMENTS, Run
from tensormachines.experiments.worker import Outcome, attempt

TINY = replace(
    PROFILES["quick"],
    name="tiny",
    folds=2,
    trials=2,
    select_rows=40,
    rows=50,
    generated_rows=50,
    test_rows=30,
    kernel_rows=40,
    rungs=2,
    grids="short",
    ranks=(1, 2),
    rank_trials=1,
    scaling_rows=(30, 60),
    scaling_epochs=2,
    scaling_features=20,
    bound_rows=(20, 40),
    starts=2,
)


@pytest.fixture
def folder(tmp_path, rng, monkeypatch):
    """A folder with small sets under names of the paper: regression of degree 2, and two classes."""
    for name, task in (("census", "regression"), ("forest", "binary")):
        known = replace(SETS[name], rows=60, test_rows=30, columns=4, degree=2, task=task, sha256=None)
        monkeypatch.setitem(SETS, name, known)
        X = rng.uniform(1, 2, size=(90, 4))
        y = 100 + X[:, 0] * X[:, 1] + X[:, 2]
        y = y if task == "regression" else np.where(y > np.median(y), 1, -1)
        np.savez(tmp_path / f"{name}.npz", X_train=X[:60], y_train=y[:60], X_test=X[60:], y_test=y[60:])
    monkeypatch.delenv("TENSORMACHINES_DATA", raising=False)
    monkeypatch.setenv("TENSORMACHINES_CACHE", str(tmp_path / "cache"))
    return tmp_path


def with_small_grid(method):
    grid = {key: values[-2:] if key == "alpha" else values[:1] for key, values in method.short_grid.items()}
    few = 20 if method.major in ("max_iter", "width") else method.select_at
    return replace(method, short_grid=grid, select_at=few)


SMALL_METHODS = {name: with_small_grid(method) for name, method in METHODS.items()}


def crash(work, seconds, tick):
    return Outcome("crashed", "killed by signal 9")


@pytest.mark.slow
def test_every_method_and_experiment_leaves_its_lines(folder):
    run = Run(replace(TINY, trials=1, rungs=1), folder / "out", folder, methods=SMALL_METHODS)
    run.all(["census", "forest", "gisette"], list(METHODS), EXPERIMENTS)
    run.all(["ebay"], list(METHODS), ["scaling"])
    lines = read(folder / "out" / "lines.jsonl")
    assert {(line["status"], line["reason"]) for line in lines if line["status"] != "skipped"} == {("ok", "")}
    skipped = [line["set"] for line in lines if line["status"] == "skipped"]
    assert skipped == ["gisette", "ebay"]  # a relative replaces ebay
    found = {(line["experiment"], line["set"], line["method"]) for line in lines if line["status"] == "ok"}
    assert {("compare", name, method) for name in ("census", "forest") for method in METHODS} <= found
    assert {method for experiment, _, method in found if experiment == "rank"} == {"tm-batch", "tm-sfo", "fm"}
    assert {method for experiment, _, method in found if experiment == "scaling"} == {"tm-sfo", "craftmaps"}
    assert {("starts", "census", "tm-batch"), ("bound", "forest", "tm-batch")} <= found
    for line in lines:
        assert all(value is None or isinstance(value, str | int | float | bool) for value in line.values())
    fits = [line for line in lines if line["status"] == "ok" and line["experiment"] != "select"]
    assert all(
        line["seconds"] >= 0 and line["parameters"] > 0 and line["peak_megabytes"] > 1 for line in fits
    )
    assert len({line["key"] for line in lines}) == len(lines)


def run_tm(folder, profile=TINY, methods=SMALL_METHODS, **options):
    run = Run(profile, folder / "out", folder, methods=methods, **options)
    run.all(["census"], ["krr", "tm-batch"], ["compare"])
    return read(folder / "out" / "lines.jsonl")


def test_the_error_is_that_of_a_fit_by_hand(folder):
    lines = run_tm(folder)
    line = next(line for line in lines if line["experiment"] == "compare" and line["method"] == "krr")
    assert line["rows"] == 40
    assert line["error"] == pytest.approx(error_by_hand(folder, line, keep_mean=False), rel=1e-3)


def test_a_run_that_was_stopped_continues_and_repeats_nothing(folder):
    whole = run_tm(folder)
    path = folder / "out" / "lines.jsonl"
    texts = path.read_text().splitlines()
    path.write_text("\n".join(texts[:7]) + "\n" + texts[7][:20])  # killed while it wrote the eighth
    again = run_tm(folder)
    assert [line["key"] for line in again] == [line["key"] for line in whole]
    assert [line.get("error") for line in again] == [line.get("error") for line in whole]
    (folder / "census.npz").unlink()  # nothing is left to do: the data are not even read
    assert run_tm(folder) == again


def _run_that_is_killed(folder, number):
    calls = []

    def die_during_a_fit(work, seconds, tick):
        calls.append(work)
        kill_this_run = partial(os.kill, os.getpid(), signal.SIGKILL)  # in the process of the fit
        return attempt(work if len(calls) < number else kill_this_run, seconds, tick)

    run_tm(folder, attempt=die_during_a_fit)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked, and end with their parent")
def test_a_run_that_is_killed_during_a_fit_repeats_that_fit_alone(folder):
    for number in (4, 1):
        process = multiprocessing.get_context("fork").Process(
            target=_run_that_is_killed, args=(folder, number)
        )
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    kept = read(folder / "out" / "lines.jsonl")
    resumed = run_tm(folder)
    assert kept
    assert resumed[: len(kept)] == kept
    (folder / "out" / "lines.jsonl").unlink()
    whole = run_tm(folder)
    assert [(line["key"], line.get("error")) for line in resumed] == [
        (line["key"], line.get("error")) for line in whole
    ]


def test_the_seconds_of_a_run_add_up_when_it_continues(folder):
    lines = run_tm(folder)
    path = folder / "out" / "lines.jsonl"
    before = {**lines[0], "elapsed": 1000.0, "when": "2026-01-01T10:00:00+00:00"}  # long ago
    path.write_text(json.dumps(before) + "\n")
    assert 1000 <= elapsed(run_tm(folder)) < 2000  # those of before counted once; however slow the machine is


def test_failures_are_lines_and_the_rest_goes_on_until_they_are_tried_again(folder):
    def krr_times_out(work, seconds, tick):
        failing = work.method.name == "krr" and hasattr(work, "seed")
        return Outcome("timeout", "not done after 30 s") if failing else attempt(work, seconds, tick)

    lines = run_tm(folder, attempt=krr_times_out)
    compared = {(line["method"], line["status"]) for line in lines if line["experiment"] == "compare"}
    assert compared == {("krr", "timeout"), ("tm-batch", "ok")}
    assert len(run_tm(folder)) == len(lines)  # what failed is not repeated
    repaired = run_tm(folder, retry=True)
    assert len(repaired) == len(lines) + 1
    assert ("census", "krr") in best_points(curves(latest(repaired)))


def test_a_search_that_fails_is_told_where_the_method_would_stand(folder):
    lines = run_tm(folder, attempt=crash)
    assert [(line["experiment"], line["status"]) for line in lines] == [
        ("select", "crashed"),
        ("compare", "failed"),
    ] * 2
    assert "no parameters could be chosen: killed by signal 9" in lines[1]["reason"]
    with pytest.raises(FitFailedError, match="killed by signal 9"):
        Run(TINY, folder / "other", folder, fail_fast=True, attempt=crash).all(
            ["census"], ["krr"], ["compare"]
        )


def test_a_search_that_works_the_second_time_leaves_no_failure(folder):
    run_tm(folder, attempt=crash)
    lines = latest(run_tm(folder, retry=True))
    assert {line["status"] for line in lines if line["experiment"] == "compare"} == {"ok"}


def test_a_search_that_fails_without_centring_leaves_the_comparison(folder):
    run_tm(folder)
    run = Run(TINY, folder / "out", folder, methods=SMALL_METHODS, attempt=crash)
    run._run_part("uncentred", SETS["census"], SMALL_METHODS["krr"])
    lines = [line for line in latest(read(folder / "out" / "lines.jsonl")) if line["method"] == "krr"]
    found = {(line["experiment"], line["status"]) for line in lines if line["experiment"] != "select"}
    assert found == {("compare", "ok"), ("uncentred", "failed")}


def test_kernel_ridge_comes_first_because_curves_end_at_a_share_of_its_error(folder):
    run = Run(TINY, folder / "out", folder, methods=SMALL_METHODS)
    parts = run._parts(["census"], ["tm-batch", "apple", "krr"], ["compare"])
    assert [method for _, _, method in parts] == ["krr", "tm-batch", "apple"]


def test_lines_of_two_profiles_do_not_mix(folder):
    ledger = Run(TINY, folder / "out", folder).recorder.ledger
    ledger.append({"key": "tiny/load/ebay", "profile": "tiny"})
    with pytest.raises(ValueError, match="has lines of the profile tiny: give another --output for quick"):
        Run(PROFILES["quick"], folder / "out", folder)
    assert Run(TINY, folder / "out", folder).recorder.ledger.by_key == ledger.by_key


def first_candidate(search):
    return Outcome("ok", value=[({name: values[0] for name, values in search.grid.items()}, 0.1, 0.0)])


def test_a_curve_that_ends_for_its_time_says_so_and_continues_with_more(folder):
    def made_up(work, seconds, tick):
        if not hasattr(work, "seed"):
            return first_candidate(work)
        return Outcome("ok", value={"error": 1 / (work.major or 2), "seconds": float(work.major or 1)})

    for seconds, reason in (
        (30, "about 40 s a fit expected, more than the 30 s of this profile"),
        (35, "more than the 35 s"),
        (50, ""),
    ):
        profile = replace(TINY, rungs=4, rung_seconds=seconds)
        last = latest(run_tm(folder, profile, attempt=made_up))[-1]
        assert (last["major"], last["status"]) == (40, "skipped" if reason else "ok")
        assert reason in last["reason"]


def test_a_search_without_a_finite_error_has_failed(folder):
    lines = run_tm(folder, attempt=lambda work, seconds, tick: Outcome("ok", value=[]))
    assert {line["status"] for line in lines} == {"failed"}


def test_a_grid_is_written_whole_or_not_at_all(folder, monkeypatch):
    """Otherwise a run that continues would take the candidates that were written for all of them."""
    found = [({"alpha": alpha}, 0.1, 0.0) for alpha in (1.0, 2.0, 3.0)]
    run = Run(TINY, folder / "out", folder, attempt=lambda work, seconds, tick: Outcome("ok", value=found))
    written = []
    monkeypatch.setattr(
        run.recorder.ledger, "append", lambda *lines: written.append([line["experiment"] for line in lines])
    )
    run._select(SETS["census"], METHODS["krr"])
    assert written == [["select"] * 3]


@pytest.mark.parametrize(
    ("errors", "n_rungs"),
    [
        ([0.5, 0.4, 0.3, 0.2, 0.1, 0.05], 6),  # always better
        ([0.5, 0.4, 0.399, 0.398, 0.3], 4),  # two steps together gain less than 0.02 * 0.2
        ([0.5, 0.5, 0.5, 0.1], 3),  # a plateau of three
        ([0.5, 0.5, 0.3, 0.299, 0.2985, 0.1], 5),
    ],
)
def test_the_major_parameter_is_raised_until_the_error_no_longer_falls(folder, errors, n_rungs):
    majors = []

    def made_up(work, seconds, tick):
        if not hasattr(work, "seed"):
            return first_candidate(work)
        if work.method.name == "krr":
            return Outcome("ok", value={"error": 0.2, "seconds": 1.0})
        if work.seed == 0:
            majors.append(work.major)
        return Outcome("ok", value={"error": errors[len(majors) - 1], "seconds": 1.0})

    profile = replace(TINY, rungs=len(errors))
    whole = run_tm(folder, profile, attempt=made_up)
    assert majors == list(METHODS["tm-batch"].ladder[:n_rungs])
    path = folder / "out" / "lines.jsonl"
    # Killed before its last trial, which is still to be done.
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    again = run_tm(folder, profile, attempt=made_up)
    assert [line["key"] for line in again] == [line["key"] for line in whole]


def test_results_that_are_not_finite_are_failures(folder):
    def diverge(work, seconds, tick):
        if not hasattr(work, "seed"):
            return first_candidate(work)
        return Outcome("ok", value={"error": float("nan"), "seconds": 1.0})

    Run(TINY, folder / "out", folder, attempt=diverge).all(["census"], ["krr"], ["compare"])
    last = json.loads((folder / "out" / "lines.jsonl").read_text().splitlines()[-1])
    assert (last["status"], last["reason"]) == ("failed", "a result is not finite")


def test_a_penalty_chosen_on_fewer_rows_is_lowered():
    assert METHODS["tm-batch"].carried_over({"rank": 3, "alpha": 1e-3}, 500, 50_000) == {
        "rank": 3,
        "alpha": pytest.approx(1e-4),
    }
    assert METHODS["krr"].carried_over({"alpha": 1e-3}, 5000, 50_000) == {
        "alpha": 1e-3
    }  # added to a sum over rows


def test_lines_of_other_grids_are_refused(folder):
    """Fits of two versions would stand on the same curves."""
    run_tm(folder)
    other = replace(SMALL_METHODS["krr"], short_grid={"alpha": (1e-9,)})
    with pytest.raises(ValueError, match="candidates of KRR on census that this version does not try"):
        run_tm(folder, methods={**SMALL_METHODS, "krr": other})


def test_kernel_ridge_is_tuned_on_half_of_its_rows_and_few_rows_have_more_folds(folder):
    data = Run(replace(TINY, most_folds=7), folder / "out", folder).data
    assert (data.n_rows(SETS["census"], METHODS["krr"]), TINY.select_rows) == (40, 40)
    assert data.folds(SETS["census"], METHODS["krr"]) == 7  # all of its rows, which are few
    assert data.folds(SETS["census"], METHODS["apple"]) == TINY.folds  # 40 of 50 rows
    data = Run(replace(TINY, select_rows=30), folder / "other", folder).data
    assert data.select_rows(SETS["census"], METHODS["krr"]) == 40
    assert data.folds(SETS["census"], METHODS["krr"]) == 1
    data = Run(replace(TINY, select_rows=None, folds=10), folder / "paper", folder).data
    assert data.folds(SETS["census"], METHODS["krr"]) == 10


def test_an_uncentred_target_has_its_own_search_and_is_only_divided(folder, monkeypatch):
    """Against kernel ridge by hand, with a target that is divided by its root mean square."""
    monkeypatch.setitem(EXPERIMENTS, "uncentred", replace(EXPERIMENTS["uncentred"], sets=("census",)))
    run_tm(folder)
    Run(TINY, folder / "out", folder, methods=SMALL_METHODS).all(["census"], ["krr"], ["uncentred"])
    lines = read(folder / "out" / "lines.jsonl")
    assert len({line["key"] for line in lines}) == len(lines)
    krr = [line for line in lines if line["method"] == "krr"]
    searched = [line["centred"] for line in krr if line["experiment"] == "select"]
    assert searched.count(True) == searched.count(False) == 2
    centred, uncentred = (line for line in krr if line["experiment"] != "select")
    assert (centred["centred"], uncentred["centred"]) == (True, False)
    assert [line["error"] for line in (centred, uncentred)] == [
        pytest.approx(error_by_hand(folder, line, keep_mean), rel=1e-3)
        for line, keep_mean in ((centred, False), (uncentred, True))
    ]
    assert uncentred["error"] > 1.01 * centred["error"]  # not the same fit


def error_by_hand(folder, line, keep_mean):
    data = np.load(folder / "census.npz")
    order = np.random.default_rng(0).permutation(60)[:50]  # as datasets.py shuffles
    norms = np.linalg.norm(data["X_train"][order], axis=0)
    X, X_test = (part / norms for part in (data["X_train"][order], data["X_test"]))
    X, X_test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (X[:40], X_test))
    y = data["y_train"][order][:40]
    center = 0.0 if keep_mean else y.mean()
    kernel = (1 + X @ X.T) ** 2 + line["param_alpha"] * np.eye(40)
    predicted = (1 + X_test @ X.T) ** 2 @ np.linalg.solve(kernel, y - center) + center
    return np.linalg.norm(predicted - data["y_test"]) / np.linalg.norm(data["y_test"])
