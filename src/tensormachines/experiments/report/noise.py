"""How far errors may differ by chance: over trials, and over the test rows.

A fit leaves its errors on bootstrap samples of the test rows, the same samples in every fit on a set, so that
their differences between two methods show how much a difference owes to the rows. Lines of earlier versions,
without them, have the binomial deviation of two independent sets of test rows, which is larger, and nothing
in regression. Trials add the standard error of their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt

import numpy as np

from .curves import Point

CLEAR = 2.0  # times the standard error of a difference: beyond it, a difference is not put down to chance


def row_noise(point: Point) -> float:
    """Return the standard error of an error because of the test rows; 0 if it is not known."""
    resampled = _resampled(point)
    if resampled is not None:
        return float(resampled.std(ddof=1))
    return _binomial(point)


def noise(point: Point) -> float:
    """Return the standard error of a mean error, over trials and test rows."""
    return hypot(row_noise(point), _over_trials(point))


def noise_of_difference(first: Point, second: Point) -> float:
    """Return the standard error of the difference of two mean errors on one set; 0 if it is not known."""
    one, other = _resampled(first), _resampled(second)
    if one is not None and other is not None and len(one) == len(other):
        rows = float((one - other).std(ddof=1))
    else:
        rows = hypot(row_noise(first), row_noise(second))
    return hypot(rows, _over_trials(first), _over_trials(second))


def lower(first: Point, second: Point) -> bool | None:
    """Return whether the first mean error is below the second; None if the difference may be chance."""
    difference = second.error.mean - first.error.mean
    return clearly_positive(difference, noise_of_difference(first, second))


def clearly_positive(difference: float, standard_error: float) -> bool | None:
    """Return whether a difference is positive; None if it is within CLEAR standard errors of 0."""
    if standard_error > 0 and abs(difference) <= CLEAR * standard_error:
        return None
    return difference > 0


def majority(outcomes: Sequence[bool | None]) -> bool | None:
    """Return whether more outcomes are true than false; None if all of them may be chance."""
    held, failed = outcomes.count(True), outcomes.count(False)
    return None if held == failed == 0 else held > failed


def _over_trials(point: Point) -> float:
    return point.error.deviation / sqrt(point.error.count)


def _resampled(point: Point) -> np.ndarray | None:
    """Return the errors on samples of the test rows, the mean over trials, if all trials have them."""
    found = [str(line.get("resampled_errors") or "").split() for line in point.lines]
    if not all(found) or len({len(errors) for errors in found}) > 1 or len(found[0]) < 2:
        return None
    return np.mean(np.array(found, dtype=np.float64), axis=0)


def _binomial(point: Point) -> float:
    error, test_rows = point.error.mean, point.value("test_rows")
    if point.value("task") != "binary" or not test_rows or not 0 <= error <= 1:
        return 0.0
    return sqrt(error * (1 - error) / test_rows)
