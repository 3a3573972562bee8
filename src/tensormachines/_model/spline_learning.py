"""Learning a spline basis: the knots, waves and means of each column, from training rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .spline_basis import SplineBasis
from .spline_column import USUAL_SHAPE, SplineColumn, SplineShape
from .spline_states import hats
from .threads import in_threads

MOST_KNOTS, FEWEST_KNOTS = 128, 16  # of a column
KNOTS_OF_WAVE = 4  # per shortest wave; more take time and change no error (benchmarks/NOTES.md)
MOST_STATES = 8192  # knots of all columns together, as long as each has the fewest
MOST_WAVES, FEWEST_WAVES = 64, 3  # of a column
MOST_WIDTH = 640  # waves of all columns together, as long as each has the fewest
MOST_RAMPS = 32
FEWEST_KNOTS_FOR_JUMPS = 4  # with fewer values, waves can represent any function
SMALLEST_GAP = np.finfo(np.float64).tiny
ROUNDING = 1e-6  # of a period, in float32
NO_PERIODS: Mapping[int, float] = {}
COMMON = 0.3  # a state of more than this share of the rows is left out of the rows of shares


def learn_splines(
    X: np.ndarray,
    weight: np.ndarray,
    n_codes: Sequence[int | None],
    dtype: np.dtype,
    shape: SplineShape = USUAL_SHAPE,
    threads: int = 1,
    thresholds: Sequence[np.ndarray] | None = None,
    ramps: Collection[int] = (),
    periods: Mapping[int, float] = NO_PERIODS,
) -> SplineBasis:
    """Return the basis for training rows of positive weight.

    ``n_codes`` has the number of codes of each category, None for a number. Threads share the columns.
    ``thresholds`` are the thresholds of each column where the target jumps, the most important ones first.
    Numbers in ``ramps`` have a ramp from each knot to the next, and no other functions. ``periods`` are the
    lengths of the periods of periodic numbers, which span no more than one period."""
    numbers = max(1, list(n_codes).count(None))
    most = min(MOST_WAVES, int(np.sqrt(len(X)) / 2))  # that this number of rows can distinguish
    waves = max(FEWEST_WAVES, min(most, MOST_WIDTH // numbers))
    most = max(FEWEST_KNOTS, min(MOST_KNOTS, MOST_STATES // numbers, KNOTS_OF_WAVE * waves))

    def learn(j: int) -> tuple[SplineColumn, np.ndarray]:
        codes, of_column = n_codes[j], 0 if j in ramps else waves
        jumps: tuple[int, ...] = ()
        if j in ramps:
            knots = _knots_of_ramps(X[:, j], weight)
            jumps = tuple(range(len(knots) - 1))
        elif j in periods:
            knots = _knots_of_period(X[:, j], weight, periods[j], most)
        else:
            knots = _knots(X[:, j], weight, codes, most)
            if thresholds is not None and len(thresholds[j]) and len(knots) > FEWEST_KNOTS_FOR_JUMPS:
                knots, jumps = _knots_at_jumps(knots, X[:, j], thresholds[j])
        column, masses = _learn_column(X[:, j], weight, knots, codes is not None, of_column, j in periods)
        column = replace(column, jumps=jumps)
        return column, masses if column.category else masses @ column.table(shape)

    learnt = in_threads(learn, range(len(n_codes)), threads)
    basis = SplineBasis(tuple(column for column, _ in learnt), np.zeros(0, dtype), shape)
    means = np.concatenate([np.zeros(0), *(mean for _, mean in learnt)])
    return replace(basis, center=(basis._size * means).astype(dtype))


def _knots(column: np.ndarray, weight: np.ndarray, n_codes: int | None, most: int) -> np.ndarray:
    """Return all different values if they are few, otherwise quantiles.

    Quantiles are values that occur, so that the most frequent values are among them."""
    if n_codes is not None:
        return np.arange(n_codes, dtype=np.float64)
    present = ~np.isnan(column)
    distinct, number = np.unique(column[present].astype(np.float64), return_inverse=True)
    if len(distinct) <= most:
        return _apart(distinct)
    reached = np.cumsum(np.bincount(number, weight[present]))
    chosen = np.searchsorted(reached, np.linspace(0, 1, most) * reached[-1] * (1 - 1e-12))
    return _apart(distinct[np.unique(chosen)])


def _knots_of_ramps(column: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return all different values if they are few, otherwise quantiles, and numbers at equal distances.

    Steep ends of a function have few rows, and therefore few quantiles."""
    quantiles = _knots(column, weight, None, MOST_RAMPS * 2 // 3)
    if len(quantiles) < MOST_RAMPS * 2 // 3:
        return quantiles
    with np.errstate(over="ignore", invalid="ignore"):
        equal = np.linspace(quantiles[0], quantiles[-1], MOST_RAMPS // 3)
    return _apart(np.union1d(quantiles, equal[np.isfinite(equal)]))


def _knots_of_period(column: np.ndarray, weight: np.ndarray, period: float, most: int) -> np.ndarray:
    """Return all different values if they are few, otherwise quantiles, and both ends of the period."""
    knots = _knots(column, weight, None, most)
    start = start_of_period(knots[0], knots[-1], period) if len(knots) else None
    if start is None:
        return knots
    few = len(np.unique(column[~np.isnan(column)])) <= most
    inner = np.clip(knots if few else knots[1:-1], start, start + period)
    return _apart(np.unique([start, *inner, start + period]))


def start_of_period(least: float, most: float, period: float) -> float | None:
    """Return the start of a period that contains these numbers: if possible, a multiple of the period or of
    half a period. Return None if the numbers span more than a period, except for rounding."""
    for start in (np.floor(least / period) * period, np.floor(2 * least / period) * period / 2, least):
        if most <= start + period * (1 + ROUNDING):
            return float(start)
    return None


def _apart(knots: np.ndarray) -> np.ndarray:
    """Return the knots whose halves, from which shares are computed, differ by a non-zero number in compiled
    code, which treats the smallest numbers as 0."""
    return knots[np.diff(0.5 * knots, prepend=-np.inf) >= SMALLEST_GAP]


def _knots_at_jumps(
    knots: np.ndarray, column: np.ndarray, thresholds: np.ndarray
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the knots with the two around each threshold moved next to it, and the lower of each pair.

    So ranks remain equally spaced. Thresholds are left out if their knots have already been moved or are the
    outermost ones."""
    values = np.unique(column[~np.isnan(column)].astype(np.float64))
    every_value = len(values) == len(knots)
    knots, moved = knots.copy(), np.zeros(len(knots), dtype=bool)
    jumps = set()
    for threshold in thresholds:
        below = int(np.searchsorted(knots, threshold, side="right")) - 1
        pair = slice(below, below + 2)
        if not every_value:
            place = int(np.searchsorted(values, threshold, side="right"))
            around = values[max(0, place - 1) : place + 1]
            inner = 0 < below < len(knots) - 2 and len(_apart(around)) == 2
            if not inner or moved[pair].any():
                continue
            knots[pair], moved[pair] = around, True
        if 0 <= below < len(knots) - 1:
            jumps.add(below)
    return knots, tuple(sorted(jumps))


def _learn_column(
    column: np.ndarray, weight: np.ndarray, knots: np.ndarray, category: bool, waves: int, periodic: bool
) -> tuple[SplineColumn, np.ndarray]:
    """Return the column, and the share of the weight in each of its states."""
    present = ~np.isnan(column)
    missing = not bool(present.all())
    masses = _masses(column[present].astype(np.float64), weight[present], knots, category)
    masses = np.append(masses, weight[~present].sum()) if missing else masses
    masses = masses / weight.sum()
    if periodic:
        waves += waves % 2  # a cosine and a sine for each cycle
    waves = 0 if category else max(0, min(waves, len(knots) - 1 - periodic))
    mean, deviation = (0.0, 0.0)
    if waves > 1 and not periodic:
        mean, deviation = _moments(knots, masses[: len(knots)])
    common = not category and len(masses) > 0 and masses.max() > COMMON
    reference = int(masses.argmax()) if common else -1
    facts = category, missing, reference, waves, mean, deviation
    return SplineColumn(knots, *facts, periodic=periodic), masses


def _masses(values: np.ndarray, weight: np.ndarray, knots: np.ndarray, category: bool) -> np.ndarray:
    """Return the weight of each knot or level."""
    if category or len(knots) < 2:
        states = values.astype(np.int64) if category else np.zeros(len(values), dtype=np.int64)
        return np.bincount(states, weight, len(knots))
    below, above = hats(values, knots)
    n = len(knots)
    return np.bincount(below, weight * (1 - above), n) + np.bincount(below + 1, weight * above, n)


def _moments(knots: np.ndarray, masses: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation; zeros, which mean no line, if the deviation is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = masses / masses.sum()
        mean = float(share @ knots)
        deviation = float(np.sqrt(share @ (knots - mean) ** 2))
    return (mean, deviation) if np.isfinite(deviation) else (0.0, 0.0)
