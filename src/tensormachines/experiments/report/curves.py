"""Learning curves: error and time of a method on a set against its major parameter, its rank or the rows.

Tables, figures, verdicts and the rule that stops a run all read the lines through this file, so that they
cannot differ in what they count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ..methods import METHODS
from ..printed import PRINTED
from ..records import Line
from .labels import SAME_ROWS, in_order, kin, number

# Results of a finished fit, by experiment.
NEEDED = {"select": ("error",), "bound": ("bound", "train_risk", "test_risk")}


@dataclass(frozen=True)
class Spread:
    """Mean over trials, standard deviation (n - 1; 0 for a single trial) and range."""

    mean: float
    deviation: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """Write mean and standard deviation, or the mean of a single trial."""
        return number(self.mean) if self.count < 2 else f"{number(self.mean)} ± {number(self.deviation, 1)}"


@dataclass(frozen=True)
class Point:
    """The trials of one setting; `at` is the value of the field that varies along the curve."""

    at: float | None
    error: Spread
    seconds: Spread
    lines: tuple[Line, ...]

    @property
    def set(self) -> str:
        return str(self.lines[-1]["set"])

    @property
    def method(self) -> str:
        return str(self.lines[-1]["method"])

    def value(self, name: str) -> Any:
        """Return a field that all trials share, such as rows or param_rank, or None."""
        return self.lines[-1].get(name)

    def mean(self, name: str) -> float | None:
        found = [float(line[name]) for line in self.lines if is_number(line.get(name))]
        return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Curve:
    """The fits of a method on a set: points in order of the field that varies, and fits without results."""

    set: str
    method: str
    points: tuple[Point, ...]
    trouble: tuple[Line, ...]

    @property
    def best(self) -> Point | None:
        """The point of the lowest mean error; of equals the first, the smallest model."""
        return lowest(self.points)


Curves = dict[tuple[str, str], Curve]  # by set and method


@dataclass(frozen=True)
class Relative:
    error: float
    time: float


@dataclass(frozen=True)
class Quartiles:
    first: float
    median: float
    third: float
    worst: float
    count: int

    @property
    def width(self) -> float:
        return self.third - self.first


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _number(line: Line, name: str) -> float:
    return float(line[name]) if is_number(line.get(name)) else float("nan")


def finished(line: Line) -> bool:
    """Return whether a fit has the results that its experiment needs."""
    needed = NEEDED.get(str(line.get("experiment")), ("error", "seconds"))
    return line.get("status") == "ok" and all(is_number(line.get(name)) for name in needed)


def spread(values: list[float]) -> Spread:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Spread(float(np.mean(values)), deviation, min(values), max(values), len(values))


def quartiles(values: list[float]) -> Quartiles:
    first, median, third = (float(value) for value in np.percentile(values, [25, 50, 75]))
    return Quartiles(first, median, third, max(values), len(values))


def _settings(line: Line, by: str) -> tuple[tuple[str, Any], ...]:
    """Return what distinguishes settings, except for the field that varies and the seed."""
    names = [name for name in line if name.startswith("param_") or name in ("major", "rows", "degree")]
    return tuple((name, line[name]) for name in sorted(names) if name not in (by, "param_random_state"))


def _points(lines: list[Line], by: str) -> tuple[Point, ...]:
    groups: dict[float | None, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.get(by), []).append(line)
    points = []
    for at, group in groups.items():
        # A second tuning may leave fits of an older setting in the file: the last setting counts.
        trials = tuple(line for line in group if _settings(line, by) == _settings(group[-1], by))
        errors, seconds = ([_number(line, name) for line in trials] for name in ("error", "seconds"))
        points.append(Point(at, spread(errors), spread(seconds), trials))
    return tuple(sorted(points, key=lambda point: (point.at is not None, point.at)))


def curves(lines: Iterable[Line], experiment: str = "compare", by: str = "major") -> Curves:
    """Return the curves of an experiment; `by` is the field that varies: major, param_rank or rows."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.get("experiment") == experiment:
            groups.setdefault((str(line.get("set")), str(line.get("method"))), []).append(line)
    return {
        pair: Curve(
            *pair,
            _points([line for line in group if finished(line)], by),
            tuple(line for line in group if not finished(line)),
        )
        for pair, group in groups.items()
    }


def best_points(found: Curves) -> dict[tuple[str, str], Point]:
    """Return the point of every curve that is shown in the tables."""
    return {pair: curve.best for pair, curve in found.items() if curve.best}


def counted(found: dict[tuple[str, str], Point]) -> list[Point]:
    """Return the points that count in summaries over sets."""
    return [point for point in found.values() if point.set not in SAME_ROWS]


def own_or_relative(found: Curves, *papers: str) -> list[str]:
    """Return each of the paper's sets with points, or else its first relative with points, if any."""
    names = {curve.set for curve in found.values() if curve.points}
    return [name for paper in papers for name in [name for name in kin(paper) if name in names][:1]]


def lowest(points: Iterable[Point]) -> Point | None:
    """Return the point of the lowest mean error, of equals the first."""
    return min(points, key=lambda point: point.error.mean, default=None)


def last_gain(points: Sequence[Point], baseline: Point | None) -> float | None:
    """Return by how much the last two points lower the error, in units of the baseline's error.

    None if there is no baseline, if it has no error, or if there is nothing before these two.
    """
    errors = [point.error.mean for point in points]
    if baseline is None or not baseline.error.mean or len(errors) < 3:
        return None
    return (min(errors[:-2]) - min(errors[-2:])) / baseline.error.mean


def cheapest(points: Iterable[Point]) -> Point | None:
    """Return the point of the fewest seconds."""
    return min(points, key=lambda point: point.seconds.mean, default=None)


def relatives(found: Curves) -> dict[tuple[str, str], Relative]:
    """Return error and time of the best points relative to kernel ridge regression on the same set."""
    best, result = best_points(found), {}
    for (name, method), point in best.items():
        krr = best.get((name, "krr"))
        if method != "krr" and krr and krr.error.mean > 0 and krr.seconds.mean > 0:
            error = (point.error.mean - krr.error.mean) / krr.error.mean
            result[name, method] = Relative(error, point.seconds.mean / krr.seconds.mean)
    return result


def printed_relatives() -> dict[tuple[str, str], Relative]:
    return {
        (name, method): Relative(cell.relative_error(cells["krr"]), cell.relative_time(cells["krr"]))
        for name, cells in PRINTED.items()
        for method, cell in cells.items()
        if method != "krr"
    }


def over_sets(found: dict[tuple[str, str], Relative]) -> dict[str, tuple[Quartiles, Quartiles]]:
    """Return the quartiles over sets of each method's relative error and time; no rows count twice."""
    groups: dict[str, list[Relative]] = {}
    for (name, method), relative in found.items():
        if name not in SAME_ROWS:
            groups.setdefault(method, []).append(relative)
    return {
        method: (quartiles([r.error for r in groups[method]]), quartiles([r.time for r in groups[method]]))
        for method in in_order(groups, METHODS)
    }


def risk_gaps(point: Point) -> list[float]:
    """Return test risk minus training risk of the trials of a point of the experiment "bound"."""
    return [float(line["test_risk"]) - float(line["train_risk"]) for line in point.lines]


def risk_gap(point: Point) -> float:
    """Return the mean of `risk_gaps`."""
    return float(np.mean(risk_gaps(point)))


def log_slope(sizes: Iterable[float], values: Iterable[float], fewest: int = 2) -> float | None:
    """Return the least-squares slope of log value against log size: 1 is linear growth.

    None if fewer than ``fewest`` sizes have a positive value.
    """
    pairs = [(size, value) for size, value in zip(sizes, values, strict=True) if size > 0 and value > 0]
    if len({size for size, _ in pairs}) < fewest:
        return None
    logs = np.log(pairs)
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
