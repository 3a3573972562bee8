"""What the lines of a run say about a set and a method: the trials put together, and the one fit that stands in the tables.

Every table, figure and verdict reads the lines through this file, so that they cannot differ in what they count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isnan
from statistics import fmean, stdev
from typing import Any

Line = dict[str, Any]
Value = int | float | None


@dataclass(frozen=True)
class Cell:
    """The finished trials of one method on one set at one value of what is varied: the major parameter, unless said otherwise.

    ``errors`` and ``seconds`` are those of ``lines``, in the order of the trials; an error that is not a number counts as infinite.
    """

    set: str
    method: str
    major: Value
    errors: tuple[float, ...]
    seconds: tuple[float, ...]
    parameters: float | None
    lines: tuple[Line, ...]

    @property
    def mean_error(self) -> float:
        return fmean(self.errors)

    @property
    def spread(self) -> float:
        """Standard deviation of the errors over the trials; 0 for one trial, which shows none."""
        return stdev(self.errors) if len(self.errors) > 1 and self.mean_error < inf else 0.0

    @property
    def mean_seconds(self) -> float:
        return fmean(self.seconds)

    def relative_error(self, baseline: Cell) -> float:
        """(error - error of the baseline) / error of the baseline, as in the paper's Figure 1."""
        return _ratio(self.mean_error - baseline.mean_error, baseline.mean_error)

    def relative_time(self, baseline: Cell) -> float:
        return _ratio(self.mean_seconds, baseline.mean_seconds)


def latest(lines: Iterable[Line]) -> list[Line]:
    """Of the lines with one key, the last: a fit that was repeated replaces what it gave before."""
    return list({line["key"]: line for line in lines}.values())


def cells(lines: Iterable[Line], experiment: str = "compare", by: str = "major") -> dict[tuple[str, str, Value], Cell]:
    """The cells of an experiment by (set, method, value of the field ``by``), e.g. "param_rank" or "rows" where these are varied."""
    trials: dict[tuple[str, str, Value], list[Line]] = {}
    for line in latest(lines):
        if line["experiment"] == experiment and line["status"] == "ok" and None not in (line.get("error"), line.get("seconds")):
            trials.setdefault((line["set"], line["method"], line.get(by)), []).append(line)
    return {key: _cell(key, sorted(found, key=lambda line: line["trial"])) for key, found in trials.items()}


def path(lines: Iterable[Line], set: str, method: str, experiment: str = "compare", by: str = "major") -> list[Cell]:
    """The cells of a method on a set, from the smallest value of what is varied to the largest."""
    found = [cell for cell in cells(lines, experiment, by).values() if (cell.set, cell.method) == (set, method)]
    return sorted(found, key=_size)


def selected(lines: Iterable[Line]) -> dict[tuple[str, str], Cell]:
    """The fit that counts for a set and a method: the major value with the lowest mean test error over the trials, as in the paper.

    Of equal errors the smallest value, which is the cheapest. Choosing by test error flatters every method alike.
    """
    best: dict[tuple[str, str], Cell] = {}
    for cell in sorted(cells(lines).values(), key=lambda cell: (cell.mean_error, _size(cell))):
        best.setdefault((cell.set, cell.method), cell)
    return best


def _cell(key: tuple[str, str, Value], lines: list[Line]) -> Cell:
    errors = tuple(inf if isnan(line["error"]) else float(line["error"]) for line in lines)
    parameters = [line["parameters"] for line in lines if line.get("parameters") is not None]
    return Cell(*key, errors, tuple(float(line["seconds"]) for line in lines), max(parameters, default=None), tuple(lines))


def _size(cell: Cell) -> float:
    return -inf if cell.major is None else cell.major


def _ratio(part: float, whole: float) -> float:
    if whole == 0:
        return 0.0 if part == 0 else inf
    return part / whole
