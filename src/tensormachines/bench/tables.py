"""Lines to summaries: what the report's tables and figures show, as plain numbers. Nothing is fitted or loaded here."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from .paper import METHODS as PAPER_METHODS
from .paper import PRINTED

Line = dict[str, Any]
METHODS = (*PAPER_METHODS, "fm")
RELATIVES = {
    "year_msd_subset": "year",
    "census_house_16H": "census",
    "slice_first_rows": "slice",
    "buzz_sample": "buzz",
    "ebay_like": "ebay",
}
NEEDED = {"select": ("error",), "bound": ("bound", "train_risk", "test_risk")}  # of a finished fit, by experiment


@dataclass(frozen=True)
class Spread:
    """Mean over trials, their standard deviation (n - 1; 0 for a single trial) and range."""

    mean: float
    deviation: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Point:
    """The trials of one setting: `at` is the value of the field that varies along the path."""

    at: float | None
    error: Spread
    seconds: Spread
    lines: tuple[Line, ...]

    def value(self, name: str) -> Any:
        """A field that all trials share, such as rows or param_rank; None where there is none."""
        return self.lines[-1].get(name)

    def mean(self, name: str) -> float | None:
        found = [float(line[name]) for line in self.lines if is_number(line.get(name))]
        return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Path:
    """All that one method did on one set: its points in order of the field that varies, and the fits that came to nothing."""

    set: str
    method: str
    points: tuple[Point, ...]
    trouble: tuple[Line, ...]

    @property
    def best(self) -> Point | None:
        """The point of the lowest mean error; of equals the first, which is the smallest model."""
        return min(self.points, key=lambda point: point.error.mean, default=None)

    def cheapest(self, error: float) -> Point | None:
        """The point of the fewest seconds among those whose mean error is at most `error`."""
        reached = [point for point in self.points if point.error.mean <= error]
        return min(reached, key=lambda point: point.seconds.mean, default=None)


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


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _number(line: Line, name: str) -> float:
    return float(line[name]) if is_number(line.get(name)) else float("nan")


def latest(lines: list[Line]) -> list[Line]:
    """Of several lines with one key the last, in the order of the file; a line without a key stands for itself."""
    found: dict[Any, Line] = {}
    for number, line in enumerate(lines):
        key = line.get("key", number)
        found.pop(key, None)
        found[key] = line
    return list(found.values())


def finished(line: Line) -> bool:
    """Did the fit give the figures that its experiment needs?"""
    needed = NEEDED.get(str(line.get("experiment")), ("error", "seconds"))
    return line.get("status") == "ok" and all(is_number(line.get(name)) for name in needed)


def spread(values: list[float]) -> Spread:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Spread(float(np.mean(values)), deviation, min(values), max(values), len(values))


def quartiles(values: list[float]) -> Quartiles | None:
    if not values:
        return None
    first, median, third = (float(value) for value in np.percentile(values, [25, 50, 75]))
    return Quartiles(first, median, third, max(values), len(values))


def _settings(line: Line, by: str) -> tuple[tuple[str, Any], ...]:
    """What tells two settings apart, but for the field that varies and the seed."""
    names = [name for name in line if name.startswith("param_") or name in ("major", "rows", "degree")]
    return tuple((name, line[name]) for name in sorted(names) if name not in (by, "param_random_state"))


def _points(lines: list[Line], by: str) -> tuple[Point, ...]:
    groups: dict[float | None, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.get(by), []).append(line)
    points = []
    for at, group in groups.items():
        # A second tuning may leave fits of an older setting in the file: as with keys, the last counts.
        trials = tuple(line for line in group if _settings(line, by) == _settings(group[-1], by))
        errors, seconds = ([_number(line, name) for line in trials] for name in ("error", "seconds"))
        points.append(Point(at, spread(errors), spread(seconds), trials))
    return tuple(sorted(points, key=lambda point: (point.at is not None, point.at)))


def paths(lines: list[Line], experiment: str, by: str) -> dict[tuple[str, str], Path]:
    """(set, method) -> Path of one experiment; `by` is the field that varies: major, param_rank or rows."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.get("experiment") == experiment:
            groups.setdefault((str(line.get("set")), str(line.get("method"))), []).append(line)
    return {
        (name, method): Path(
            name,
            method,
            _points([line for line in group if finished(line)], by),
            tuple(line for line in group if not finished(line)),
        )
        for (name, method), group in groups.items()
    }


def in_order(found: set[str], known: tuple[str, ...]) -> list[str]:
    """The known ones in their order, then any others by name."""
    return [name for name in known if name in found] + sorted(found - set(known))


def relatives(found: dict[tuple[str, str], Path]) -> dict[tuple[str, str], Relative]:
    """(set, method) -> error and time of its best point against those of kernel ridge regression on the same set."""
    result = {}
    for (name, method), path in found.items():
        baseline = found[(name, "krr")].best if (name, "krr") in found else None
        if method != "krr" and path.best and baseline and baseline.error.mean > 0 and baseline.seconds.mean > 0:
            error, seconds = path.best.error.mean, path.best.seconds.mean
            result[(name, method)] = Relative((error - baseline.error.mean) / baseline.error.mean, seconds / baseline.seconds.mean)
    return result


def printed_relatives() -> dict[tuple[str, str], Relative]:
    return {
        (name, method): Relative(cell.relative_error(cells["krr"]), cell.relative_time(cells["krr"]))
        for name, cells in PRINTED.items()
        for method, cell in cells.items()
        if method != "krr"
    }


def over_sets(found: dict[tuple[str, str], Relative], names: set[str] | None = None) -> dict[str, tuple[Quartiles, Quartiles]]:
    """Method -> quartiles over the sets (all, or those named) of the relative error and of the relative time."""
    groups: dict[str, list[Relative]] = {}
    for (name, method), relative in found.items():
        if names is None or name in names:
            groups.setdefault(method, []).append(relative)
    result = {}
    for method in in_order(set(groups), METHODS):
        errors, times = (quartiles([getattr(relative, name) for relative in groups[method]]) for name in ("error", "time"))
        if errors and times:
            result[method] = (errors, times)
    return result


def log_slope(points: tuple[Point, ...]) -> float | None:
    """Least-squares slope of log seconds against log `at`: 1 is linear growth. None for fewer than two sizes."""
    pairs = [(point.at, point.seconds.mean) for point in points if point.at and point.seconds.mean > 0]
    if len({at for at, _ in pairs}) < 2:
        return None
    sizes, seconds = np.log(np.array(pairs, dtype=float)).T
    return float(np.polyfit(sizes, seconds, 1)[0])
