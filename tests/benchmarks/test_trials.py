"""Trials of other settings: ratios are what they are called."""

import pytest

import trials


def line(trial, table, loss, classes=0):
    return {
        "trial": trial,
        "table": table,
        "seed": 0,
        "classes": classes,
        "error": loss,
        "loss": loss,
        "seconds": 1.0,
        "bytes": 100,
    }


def test_ratios_are_geometric_means_over_the_tables_of_a_half():
    first = [name for name in trials.names() if trials.half_of(name) == "first"]
    lines = [line("usual", name, 1.0) for name in trials.names()]
    lines += [line("rank-20", name, ratio) for name, ratio in zip(first, (0.5, 2.0, 0.25), strict=False)]
    found = trials.means(lines)
    row = dict(zip(trials.HEAD, trials.compare(found, "rank-20", "first"), strict=True))
    assert row["tables"] == "3"
    assert float(row["loss"]) == pytest.approx(0.25 ** (1 / 3), abs=1e-3)
    assert row["better : worse"] == "2 : 1"
    assert trials.compare(found, "rank-20", "second") is None


def test_trials_that_can_be_run_have_settings_of_an_estimator():
    for name, trial in trials.TRIALS.items():
        assert trial.why, name
        trials.TensorMachineRegressor(**(trial.settings or {}))
    assert trials.TRIALS[trials.KEPT].settings == {}, "what was kept are the default settings"
