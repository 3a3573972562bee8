"""Plots of what a fitted model says: which columns matter, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..inspection import importance, part_importance
from ..inspection.decomposition import effect_at, remainder_key
from ..inspection.displacements import column_forms
from ..inspection.drawn_rows import rows_to_inspect
from ..inspection.forms import column_names, level_names
from ..inspection.members import COVERAGE, check_members, half_width_at
from .axes import GREY, MORE, PAIR, SINGLE, axes, tidy

DIVERGING = "RdBu_r"  # about 0
SEQUENTIAL = "Oranges"
POINTS = 200  # of a curve
SURFACE_POINTS = 60  # of a surface, in each direction
MOST_LEVELS = 25  # of a category in a plot
MOST_JUMPS = 4  # thresholds that a legend tells
FEW_VALUES = 12  # a column of numbers with at most this many values is drawn as bars
OUTERMOST = 0.01  # share of the rows beyond each end of a curve
PLAIN: Any = {"parse_math": False}  # names may contain dollar signs, which are not TeX


def interaction_heat_map(
    model: Any, X: Any, *, k: int = 12, reference: Any = None, output: Any = None, ax: Any = None
) -> Any:
    """Draw the importance of pairs of columns as a heat map, that of single columns on the diagonal.

    It is the variance of their parts of the predictions, as a share of that of all parts.

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.part_importance`.
    k : int
        Number of columns to show: the most important ones.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> ax = interaction_heat_map(model, X)
    """
    columns = list(importance(model, X, output=output).largest(k))
    shares = part_importance(model, X, columns=columns, reference=reference, output=output)
    matrix = np.array([[shares.get(_key(shares, a, b), 0.0) for b in columns] for a in columns])
    # Without the diagonal, whose large shares would leave the pairs no colour.
    pairs = np.where(np.eye(len(columns), dtype=bool), np.nan, 100 * matrix)
    ax = axes(ax, (1.9 + 0.5 * len(columns), 1.2 + 0.45 * len(columns)))
    largest = np.nanmax(pairs, initial=0.0) or 1.0
    ax.set_facecolor("#e8e8e8")
    image = ax.imshow(pairs, cmap=SEQUENTIAL, vmin=0, vmax=largest)
    for i, j in np.ndindex(*matrix.shape):
        if i == j or pairs[i, j] >= 0.005:
            dark = i != j and pairs[i, j] > 0.6 * largest
            share = round(float(100 * matrix[i, j]), 2)
            text = f"{share:.{2 - (share >= 1) - (share >= 10)}f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor", **PLAIN)
    ax.set_yticks(range(len(columns)), columns, **PLAIN)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="pairs: % of the variance of all parts", shrink=0.85)
    ax.set_title("Importance of columns and pairs")
    return ax


def term_importance(
    model: Any,
    X: Any,
    *,
    k: int = 15,
    order: int = 2,
    reference: Any = None,
    output: Any = None,
    ax: Any = None,
) -> Any:
    """Draw the variance of the parts of columns and of sets of columns as bars: the largest ones.

    Parameters
    ----------
    model, X, order, reference, output
        As in `inspection.part_importance`.
    k : int
        Number of bars.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> ax = term_importance(model, X, k=5)
    """
    shares = part_importance(model, X, order=order, reference=reference, output=output).largest(k)
    ax = axes(ax, (6.0, 1.0 + 0.28 * len(shares)))
    remainder = remainder_key(column_names(model))
    kinds = np.array([3 if key == remainder else min(len(key), 3) for key in shares])
    places, widths = np.arange(len(shares)), 100 * np.array(list(shares.values()))
    for kind, label, colour in (
        (1, "one column", SINGLE),
        (2, "pair of columns", PAIR),
        (3, "more columns", MORE),
    ):
        if (kinds == kind).any():
            ax.barh(places[kinds == kind], widths[kinds == kind], color=colour, label=label, height=0.75)
    names = [" × ".join(key) for key in shares]  # noqa: RUF001
    ax.set_yticks(places, names, **PLAIN)
    ax.set_ylim(len(shares) - 0.4, -0.6)
    ax.set(xlabel="% of the variance of all parts", title="What the predictions consist of")
    if len(set(kinds.tolist())) > 1:
        ax.legend(frameon=False, loc="lower right")
    tidy(ax, "x")
    return ax


def effect_curve(
    model: Any,
    column: Any,
    X: Any,
    *,
    members: Sequence[Any] | None = None,
    coverage: float = COVERAGE,
    reference: Any = None,
    output: Any = None,
    label: str | None = None,
    color: Any = None,
    points: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the main effect of a column: what it adds to the output, with the other columns at the reference.

    Dotted lines mark thresholds at which the model may jump (``jumps_``).

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`; the curve is over the values that the column has in X.
    column : str or int
    members : list of models, optional
        Those of `inspection.bootstrap`: a band around the curve shows how far other rows might move it, see
        `inspection.effect_band`. Bars have whiskers in its place.
    coverage : float, default=0.9
        The probability with which the band should contain the true effect, at each point.
    label : str, optional
        What the legend calls the curve, for those of several models in the same axes.
    color : color of matplotlib, optional
    points : bool, default=True
        Whether strokes above the axis mark the values of the column in X.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> ax = effect_curve(model, "bmi", X, label="degree 2")
    >>> other = TensorMachineRegressor(degree=1, max_iter=5, random_state=0).fit(X, y)
    >>> ax = effect_curve(other, "bmi", X, label="degree 1", color="black", points=False, ax=ax)
    """
    forms, (rows, booleans) = column_forms(model, output, reference), rows_to_inspect(model, X)
    number = forms.column(column)
    name, values = forms.columns[number], _column(rows, number)
    grid = _Grid.of(values, _levels(model, booleans, number), name, POINTS)
    curve = effect_at(forms, {number: grid.values})
    half = None
    if members is not None:
        check_members(model, members)
        of_members = [column_forms(member, output, reference) for member in members]
        half = half_width_at(forms, of_members, {number: grid.values}, coverage)
    ax, of = axes(ax, (5.0, 3.4)), "" if label is None else f"{label}: "
    colour, of_missing = (SINGLE, PAIR) if color is None else (color, color)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    if grid.labels is None:
        ax.plot(grid.places, curve, color=colour, linewidth=2, label=label)
        if half is not None:
            shade = {"color": colour, "alpha": 0.2, "linewidth": 0, "label": f"{of}{100 * coverage:g} % band"}
            ax.fill_between(grid.places, curve - half, curve + half, **shade)
        if points:
            _mark_values(ax, values[(values >= grid.values[0]) & (values <= grid.values[-1])])
        ax.margins(x=0.01)
    else:
        ax.bar(grid.places, curve, color=colour, width=0.7, yerr=half, ecolor=GREY, capsize=3, label=label)
        _slant(ax, grid)
    if np.isnan(values).any():
        missing = float(effect_at(forms, {number: np.array([np.nan])})[0])
        ax.axhline(missing, color=of_missing, linestyle="--", linewidth=1.2, label=f"{of}missing")
    if forms.machine.has_jumps:
        _mark_jumps(ax, grid, forms.machine.thresholds[number], of)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    ax.set_xlabel(name, **PLAIN)
    ax.set_ylabel("change of the output")
    ax.set_title(f"Effect of {name}", **PLAIN)
    tidy(ax, "y")
    return ax


def effect_surface(
    model: Any,
    columns: Sequence[Any],
    X: Any,
    *,
    reference: Any = None,
    output: Any = None,
    points: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the interaction of two columns, beyond their main effects, with the rows of X as points.

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`.
    columns : sequence of two names or numbers
    points : bool, default=True
        Whether to draw the rows of X.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> ax = effect_surface(model, ("bmi", "bp"), X)
    """
    forms, (rows, booleans) = column_forms(model, output, reference), rows_to_inspect(model, X)
    pair = [forms.column(column) for column in columns]
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"columns must be two different columns, got {list(columns)!r}.")
    names, values = [forms.columns[number] for number in pair], [_column(rows, number) for number in pair]
    across, up = (
        _Grid.of(values[axis], _levels(model, booleans, pair[axis]), names[axis], SURFACE_POINTS)
        for axis in (0, 1)
    )
    mesh = np.meshgrid(across.values, up.values)
    surface = effect_at(forms, {pair[axis]: mesh[axis].ravel() for axis in (0, 1)})
    ax = axes(ax, (5.2, 4.0))
    largest = np.abs(surface).max() or 1.0
    colours = {"cmap": DIVERGING, "vmin": -largest, "vmax": largest, "shading": "nearest"}
    image = ax.pcolormesh(across.places, up.places, surface.reshape(mesh[0].shape), **colours)
    if points and across.labels is None and up.labels is None:
        ax.plot(*values, ".", color="black", markersize=2, alpha=0.3)
    ax.set_xlim(*across.ends)
    ax.set_ylim(*up.ends)
    if across.labels is not None:
        _slant(ax, across)
    if up.labels is not None:
        ax.set_yticks(up.places, up.labels, **PLAIN)
    ax.set_xlabel(names[0], **PLAIN)
    ax.set_ylabel(names[1], **PLAIN)
    ax.set_title(f"Interaction of {names[0]} and {names[1]}", **PLAIN)
    ax.figure.colorbar(image, ax=ax, label="effect of the pair")
    return ax


# ---- grids


@dataclass(frozen=True)
class _Grid:
    """Values of a column along an axis, their positions, and labels if they are few."""

    values: np.ndarray
    places: np.ndarray
    labels: list[str] | None = None

    @classmethod
    def of(cls, values: np.ndarray, levels: list[str] | None, name: str, points: int) -> _Grid:
        if levels is not None:
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


def _levels(model: Any, booleans: set[int], column: int) -> list[str] | None:
    """Return the names of levels, or of false and true; None for a column of other numbers."""
    return ["false", "true"] if column in booleans else level_names(model, column)


def _column(rows: Any, number: int) -> np.ndarray:
    return rows[:, [number]].toarray().ravel() if sparse.issparse(rows) else rows[:, number]


def _key(shares: Any, a: str, b: str) -> tuple[str, ...]:
    if a == b:
        return (a,)
    return (a, b) if (a, b) in shares else (b, a)


def _slant(ax: Any, grid: _Grid) -> None:
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


def _mark_values(ax: Any, values: np.ndarray) -> None:
    """Draw values as strokes above the axis."""
    ax.plot(
        values,
        np.full(len(values), 0.015),
        "|",
        color=GREY,
        alpha=min(1.0, 60 / max(1, len(values))),
        transform=ax.get_xaxis_transform(),  # x in data, y as a share of the height
    )


def _mark_jumps(ax: Any, grid: _Grid, thresholds: np.ndarray, of: str) -> None:
    """Draw thresholds within the grid as dotted lines, between two bars if the grid has bars.

    ``of`` is what the legend says before it tells them."""
    shown = [each for each in thresholds.tolist() if grid.values[0] <= each <= grid.values[-1]]
    if grid.labels is not None:
        places = np.searchsorted(grid.values, shown, side="right") - 0.5
    else:
        places = np.array(shown)
    more = f" and {len(shown) - MOST_JUMPS} more" if len(shown) > MOST_JUMPS else ""
    label = f"{of}jumps above {', '.join(f'{each:.6g}' for each in shown[:MOST_JUMPS])}{more}"
    for k, place in enumerate(places):
        ax.axvline(place, color=MORE, linestyle=":", linewidth=1.2, zorder=0, label=None if k else label)
