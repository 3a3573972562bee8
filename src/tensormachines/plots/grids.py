"""Values of a column along an axis, and marks at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..inspection.forms import level_names
from .axes import GREY, MORE

MOST_LEVELS = 25  # of a category in a plot
MOST_JUMPS = 4  # thresholds that a legend lists
FEW_VALUES = 12  # a column of numbers with at most this many values is drawn as bars
OUTERMOST = 0.01  # share of the rows beyond each end of a curve
PLAIN: Any = {"parse_math": False}  # names may contain dollar signs, which are not TeX


@dataclass(frozen=True)
class Grid:
    """Values of a column along an axis, their positions, and labels if they are few."""

    values: np.ndarray
    places: np.ndarray
    labels: list[str] | None = None

    @classmethod
    def of(cls, values: np.ndarray, levels: list[str] | None, name: str, points: int) -> Grid:
        if levels:
            codes = np.arange(min(len(levels), MOST_LEVELS), dtype=np.float64)
            return cls(codes, codes, levels[:MOST_LEVELS])
        present = values[~np.isnan(values)]
        if not len(present):
            raise ValueError(f"All values of column {name!r} are missing in X: there is nothing to draw.")
        distinct = np.unique(present)
        if len(distinct) <= FEW_VALUES:
            labels = [f"{value:g}" for value in distinct]
            if len(set(labels)) < len(labels):
                labels = [repr(value) for value in distinct.tolist()]
            return cls(distinct, np.arange(len(distinct), dtype=np.float64), labels)
        low, high = np.quantile(present, [OUTERMOST, 1 - OUTERMOST])
        if low == high:
            low, high = distinct[0], distinct[-1]
        grid = np.linspace(low, high, points)
        return cls(grid, grid)

    @property
    def ends(self) -> tuple[float, float]:
        half = (self.places[1] - self.places[0]) / 2 if len(self.places) > 1 else 0.5
        return float(self.places[0] - half), float(self.places[-1] + half)


def levels_of(model: Any, booleans: set[int], column: int) -> list[str] | None:
    """Return the names of levels, or of false and true; None for other numeric columns."""
    names = level_names(model, column)
    return ["false", "true"] if names is None and column in booleans else names


def column_of(rows: Any, number: int) -> np.ndarray:
    return rows[:, [number]].toarray().ravel() if sparse.issparse(rows) else rows[:, number]


def slant(ax: Any, grid: Grid) -> None:
    """Write the labels below the axis, slanted if they are long."""
    slanted = sum(map(len, grid.labels or ())) > 40
    ax.set_xticks(
        grid.places,
        grid.labels,
        rotation=45 * slanted,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
        **PLAIN,
    )


def mark_values(ax: Any, values: np.ndarray) -> None:
    """Draw values as ticks above the axis."""
    ax.plot(
        values,
        np.full(len(values), 0.015),
        "|",
        color=GREY,
        alpha=min(1.0, 60 / max(1, len(values))),
        transform=ax.get_xaxis_transform(),  # x in data units, y as a share of the height
    )


def mark_jumps(ax: Any, grid: Grid, thresholds: np.ndarray, of: str) -> None:
    """Draw thresholds within the grid as dotted lines, between two bars if the grid has bars.

    ``of`` is the text before the thresholds in the legend."""
    shown = [each for each in thresholds.tolist() if grid.values[0] <= each <= grid.values[-1]]
    if grid.labels is not None:
        places = np.searchsorted(grid.values, shown, side="right") - 0.5
    else:
        places = np.array(shown)
    more = f" and {len(shown) - MOST_JUMPS} more" if len(shown) > MOST_JUMPS else ""
    label = f"{of}jumps above {', '.join(f'{each:.6g}' for each in shown[:MOST_JUMPS])}{more}"
    for k, place in enumerate(places):
        ax.axvline(place, color=MORE, linestyle=":", linewidth=1.2, zorder=0, label=None if k else label)
