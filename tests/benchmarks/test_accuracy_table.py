"""benchmarks/accuracy.py: its search and its report, on cases that can be worked out by hand."""

import math
import time

import numpy as np
import pytest

from accuracy_report import average_ranks, of_common_seeds, report, report_of_tables, verdict_of
from accuracy_search import Fitted, OutOfTimeError, Rival, Trial, budget_seconds, cpu_limit, mean_of, search
from sets import Data, Sample


def data(rows=2000, columns=3, n_classes=0):
    y = np.arange(rows) % n_classes if n_classes else np.arange(float(rows))
    sample = Sample(np.zeros((rows, columns), dtype=np.float32), y)
    return Data(sample, sample, n_classes)


class Guess(Rival):
    """Candidates are numbers, and the best is the one closest to 3."""

    slow = 0.0

    def candidates(self):
        yield from ({"guess": guess} for guess in (1, 4, 3, 5))

    def trial(self, params, seconds):
        end = time.process_time() + self.slow
        while time.process_time() < end:
            pass
        return Trial(params, abs(params["guess"] - 3.0), rounds=10 * params["guess"])

    def refit(self, trial, seconds):
        return Fitted(lambda X: np.full(len(X), trial.params["guess"]), 1)


def test_search_refits_the_best_candidate():
    fitted, best, tried, _ = search(Guess(data(), 0, 3.0))
    assert (best.params, best.rounds, tried) == ({"guess": 3}, 30, 4)
    assert fitted.predict([0, 0]).tolist() == [3, 3]


def test_search_ends_at_two_thirds_of_the_budget():
    rival = Guess(data(), 0, 0.3)
    rival.slow = 0.08  # so the third would take more than what is left
    _, best, tried, _ = search(rival)
    assert (best.params, tried) == ({"guess": 4}, 3)


@pytest.mark.parametrize(("rows", "folds"), [(999, 5), (1000, 1)])
def test_each_fifth_is_held_out_of_small_sets(rows, folds):
    seen = []

    class Spy(Guess):
        def trial(self, params, seconds):
            learn, held_out = self.parts
            assert sorted([*learn.y, *held_out.y]) == sorted(self.data.train.y)
            seen.append(held_out.y)
            return super().trial(params, seconds)

    search(Spy(data(rows), 0, 3.0))
    assert len(np.unique(np.concatenate(seen))) == (rows if folds == 5 else 200)
    assert len(seen) == 4 * folds


def test_cpu_limit_holds_though_the_first_warning_is_swallowed():
    def stubborn():
        for _ in range(2):
            try:
                while True:
                    pass
            except OutOfTimeError:
                pass
        while True:
            pass

    with pytest.raises(OutOfTimeError), cpu_limit(0.05):
        stubborn()  # would never return


def test_rounds_of_folds_are_their_median():
    trials = [
        Trial({}, loss, rounds, reach)
        for loss, rounds, reach in [(1.0, 10, 1), (2.0, 20, 1), (6.0, 10_000, 8)]
    ]
    assert mean_of(trials) == Trial({}, 3.0, 20)
    assert mean_of(trials[2:]) == trials[2]


def test_budget():
    assert budget_seconds(data(30_000, 25)) == 30
    assert budget_seconds(data(3_000_000, 2)) == 60
    assert budget_seconds(data(10, 2)) == 3


def test_ranks_share_ties_and_put_missing_ones_last():
    assert average_ranks([[0.1, 0.3, 0.2]]) == [1, 3, 2]
    assert average_ranks([[0.1, 0.1, math.inf], [3.0, 1.0, 2.0]]) == [2.25, 1.25, 2.5]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([0.100], [0.1009], "level"),  # within 1 %
        ([0.100], [0.102], "win"),
        ([0.102], [0.100], "loss"),
        ([0.10, 0.14], [0.13, 0.15], "level"),  # differ by 0.02, pooled spread 0.022
        ([0.0, 0.0], [0.0, 0.0], "level"),
    ],
)
def test_verdicts(ours, theirs, verdict):
    assert verdict_of(ours, theirs) == verdict


def line(method, seed, error, **others):
    same = {
        "set": "a",
        "task": "regression",
        "rows": 10,
        "columns": 2,
        "status": "ok",
        "log_loss": None,
        "budget": 3.0,
    }
    costs = {"model_bytes": 100, "microseconds_one": 1.0, "microseconds_many": 0.5, "fit_seconds": 2.0}
    return {
        **same,
        **costs,
        "method": method,
        "seed": seed,
        "error": error,
        "versions": "Python 3",
        "machine": "abacus",
        **others,
    }


def test_report():
    lines = [
        line("lightgbm", 0, 0.9),
        line("lightgbm", 0, 0.25, model_bytes=1000),  # a repeated fit: the last line counts
        line("tensormachine-cv", 0, 0.10),
        line("tensormachine-cv", 1, 0.30),
        line("ebm", 0, None, status="ValueError: no"),
    ]
    text = report(lines)
    assert "| a (r) | **0.2000 ± 0.1414** | 0.2500 |" in text
    assert "| average rank | **1.00** | 2.00 |" in text
    assert "| a | 0.2000 | 0.2500 | lightgbm | 0.800 | level |" in text
    assert "0 wins, 1 level, 0 losses on 1 sets; geometric mean of the ratios 0.800" in text
    assert "| a | 100 (10x) | 1,000 |" in text
    assert "- a, ebm (seeds 0): ValueError: no" in text
    assert "abacus" in text
    assert "0.9" not in text


def test_report_of_nothing():
    assert report([]) == "No fits are recorded yet."


def test_seeds_that_some_methods_lack_do_not_count():
    lines = [
        {"set": name, "method": method, "seed": seed}
        for name, method, seed in (("a", "ours", 0), ("a", "ours", 1), ("a", "trees", 0), ("b", "ours", 1))
    ]
    assert of_common_seeds(lines) == [lines[0], lines[2], lines[3]]


def test_methods_with_fewer_seeds_are_compared_apart():
    lines = [
        line(method, seed, error)
        for method, error in (("lightgbm", 0.3), ("tensormachine", 0.2), ("tensormachine-cv", 0.1))
        for seed in (0, 1)
    ]
    alone = report_of_tables(lines)
    both = report_of_tables([*lines, line("ebm", 1, 0.15)])
    assert both.startswith(alone)
    assert "seeds: 1." in both
    assert "| a (r) | 0.2000 | **0.1000** | 0.1500 |" in both.removeprefix(alone)
