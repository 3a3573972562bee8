"""Units in which a user's own loss behaves like squared error of a standardised target.

The loss of a constant output has its minimum at the center c. There, the root mean square of the slopes is G,
and the derivative of their mean is H. With outputs c + (G / H) z and losses divided by G^2 / H, both become 1
at z = 0. For squared error, c is the mean and G / H the standard deviation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import bisect

from .._model.losses import Loss

MOST_ROWS = 10_000
SMALLEST_STEP, MOST_DOUBLINGS = 2.0**-30, 130
ACCURACY: dict[str, Any] = {"xtol": 1e-300, "rtol": 1e-14, "maxiter": 60, "disp": False}
NEAR = 1e-4  # in deviations: distance of the outputs whose losses are compared with a slope
WRONG = 1e-2  # relative error that most slopes may have
NEGATIVE = 1e-6  # share of the largest loss that may be rounding error


class Units(NamedTuple):
    center: float
    deviation: float
    size: float


def own_units(loss: Loss, y: np.ndarray, weight: np.ndarray) -> Units:
    """Return the units of one output, given some targets (n,) and their weights; refuse impossible losses."""
    some = slice(None, None, -(-len(y) // MOST_ROWS))
    y, weight = y[some], weight[some]
    columns = y[:, None]

    def at(z: float) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = loss.pointwise(columns, np.full_like(columns, z))
        return values, slopes[:, 0]

    def mean_slope(z: float) -> float:
        values, slopes = at(z)
        mean = float(np.average(slopes, weights=weight))
        if np.isnan(mean):
            _require_finite(y, z, values, slopes)
        return mean

    _require_finite(y, 0.0, *at(0.0))
    center = _center(mean_slope)
    values, slopes = at(center)
    _require_finite(y, center, values, slopes)
    _refuse_negative(y, center, values)
    spread = float(np.sqrt(np.average(slopes**2, weights=weight)))
    if not spread > 0:
        return Units(center, 1.0, 1.0)
    deviation = _deviation(mean_slope, center, spread)
    for z in (center - 0.7 * deviation, center + 0.3 * deviation):
        _compare_slopes(y, z, at, NEAR * deviation)
    return Units(center, deviation, spread * deviation)


def _center(mean_slope: Callable[[float], float]) -> float:
    """Return the constant output at which the mean slope changes sign."""
    first = mean_slope(0.0)
    if first == 0:
        return 0.0
    before, z = 0.0, -np.sign(first) * SMALLEST_STEP
    for _ in range(MOST_DOUBLINGS):
        if not mean_slope(z) * first > 0:
            break
        before, z = z, 2 * z
    else:
        raise ValueError(
            "loss has no minimum: the mean of its derivatives has the same sign for all constant outputs z. "
            "Check that loss(y, z) returns the losses, and then their derivatives with respect to z."
        )
    return float(bisect(mean_slope, before, z, **ACCURACY))


def _deviation(mean_slope: Callable[[float], float], center: float, spread: float) -> float:
    """Return G / H.

    Losses may have kinks, so H is measured over the distance at which the mean slope reaches half of G, or,
    if it never does, over the distance at which it is largest."""

    def change(distance: float) -> float:
        return 0.5 * abs(mean_slope(center + distance) - mean_slope(center - distance))

    distances = SMALLEST_STEP * 2.0 ** np.arange(MOST_DOUBLINGS)
    largest, best = 0.0, 1.0
    for distance in distances.tolist():
        found = change(distance)
        if not found < 0.5 * spread:
            half = bisect(lambda d: change(d) - 0.5 * spread, 0.0, distance, **ACCURACY)
            return float(spread * half / change(half))
        largest, best = max((largest, best), (found, distance))
    return spread * best / largest if largest > 0 else 1.0


def _require_finite(y: np.ndarray, z: float, values: np.ndarray, slopes: np.ndarray) -> None:
    bad = ~(np.isfinite(values) & np.isfinite(slopes))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"loss(y, z) must be finite for every y of the fit, and for outputs z of any sign: for y = "
            f"{y[row]:g}, z = {z:g} it returned {values[row]:g}, with the derivative {slopes[row]:g}."
        )


def _refuse_negative(y: np.ndarray, z: float, values: np.ndarray) -> None:
    row = int(np.argmin(values))
    if values[row] < -NEGATIVE * np.abs(values).max():
        raise ValueError(
            f"loss(y, z) must not be negative: for y = {y[row]:g}, z = {z:g} it returned {values[row]:g}. "
            "Add a term that depends on y alone, so that the smallest loss over z is 0."
        )


def _compare_slopes(
    y: np.ndarray, z: float, at: Callable[[float], tuple[np.ndarray, np.ndarray]], near: float
) -> None:
    """Refuse slopes that do not match the losses in most rows; in a few rows a loss may have a kink."""
    (above, _), (below, _), (_, slopes) = at(z + near), at(z - near), at(z)
    differences = (above - below) / (2 * near)
    errors = np.abs(differences - slopes)
    if not np.median(errors) > WRONG * np.median(np.abs(differences)):
        return
    row = int(np.argmin(np.abs(errors - np.median(errors))))
    raise ValueError(
        "loss(y, z) must return the losses and their derivatives with respect to z, but these do not agree: "
        f"for y = {y[row]:g}, z = {z:g} the derivative is {slopes[row]:g}, and nearby losses differ by "
        f"{differences[row]:g} times the difference of z."
    )
