"""Differences and their noise, from lines whose noise is known by hand."""

from math import sqrt

import numpy as np
import pytest

from record_lines import line
from tensormachines.experiments.report.claims import claim
from tensormachines.experiments.report.curves import curves
from tensormachines.experiments.report.noise import lower, majority, noise, noise_of_difference, row_noise


def point(errors=(0.2,), resampled=None, **fields):
    lines = [
        line(error=error, trial=trial, **fields, **({"resampled_errors": resampled} if resampled else {}))
        for trial, error in enumerate(errors)
    ]
    (curve,) = curves(lines).values()
    return curve.best


def test_trials_give_the_standard_error_of_their_mean():
    assert noise(point((0.1, 0.2, 0.3))) == pytest.approx(0.1 / sqrt(3))
    assert noise(point()) == 0.0  # one trial, regression, no resampled errors: not known


def test_classes_have_the_binomial_deviation():
    assert row_noise(point(task="binary", test_rows=1600)) == pytest.approx(sqrt(0.2 * 0.8 / 1600))


def test_resampled_errors_are_compared_pair_by_pair():
    """Two methods that rise and fall together: their difference is certain, each error is not."""
    ours, theirs = point((0.2,), "0.1 0.2 0.3"), point((0.21,), "0.11 0.21 0.31", method="apple")
    assert row_noise(ours) == pytest.approx(np.std([0.1, 0.2, 0.3], ddof=1))
    assert noise_of_difference(ours, theirs) == pytest.approx(0.0, abs=1e-12)
    assert lower(ours, theirs) is True
    crossed = point((0.21,), "0.31 0.21 0.11", method="apple")
    assert lower(ours, crossed) is None


@pytest.mark.parametrize(("other", "outcome"), [(0.21, None), (0.23, True), (0.17, False), (0.19, None)])
def test_a_difference_counts_beyond_two_standard_errors(other, outcome):
    """Each has 0.2 * 0.8 / 2500, or nearly, so that the difference has a standard error of 0.0113."""
    first, second = (point((error,), task="binary", test_rows=2500) for error in (0.2, other))
    assert lower(first, second) is outcome


def test_majority():
    assert majority([True, None, True, False]) is True
    assert majority([True, False, None]) is False
    assert majority([None, None]) is None


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([True, True], "confirmed"),
        ([True, None], "mixed"),
        ([False, None], "mixed"),
        ([None, None], "too close to call"),
        ([False, False], "refuted"),
        ([], "not testable here"),
    ],
)
def test_what_may_be_chance_neither_confirms_nor_refutes(parts, verdict):
    found = claim("It is so.", parts, "Figures.", "Table 2")
    assert found.verdict == verdict
    assert ("Too close to call: " in found.figures) == (None in parts)
