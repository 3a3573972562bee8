"""Plots of what a fitted model says: which columns matter, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inspection import importance, part_importance
from ..inspection.decomposition import remainder_key
from ..inspection.drawn_rows import rows_to_inspect
from ..inspection.effects import Scale, effects_of, unit_of_effects
from ..inspection.forms import column_names
from ..inspection.members import COVERAGE, band_of
from .axes import GREY, MORE, PAIR, SINGLE, axes, tidy
from .grids import PLAIN, Grid, column_of, levels_of, mark_jumps, mark_values, slant

DIVERGING = "RdBu_r"  # centred at no effect
SEQUENTIAL = "Oranges"
POINTS = 200  # of a curve
SURFACE_POINTS = 60  # of a surface, in each direction


def interaction_heat_map(
    model: Any, X: Any, *, k: int = 12, reference: Any = None, output: Any = None, ax: Any = None
) -> Any:
    """Draw the importance of pairs of columns as a heat map, with single columns on the diagonal.

    Importance is the variance of the part of the predictions due to a pair or column, as a share of the
    variances of all parts.

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
    # Leave out the diagonal: its large shares would leave no colours for the pairs.
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
    """Draw the largest variances of the parts of columns and of sets of columns as bars.

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
    scale: Scale = "link",
    label: str | None = None,
    color: Any = None,
    points: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the main effect of a column: what it adds to the output, or the prediction from this column alone.

    A thin line marks no effect. Dotted lines mark thresholds at which the model may jump (``jumps_``).

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`; the curve covers the values of the column in X.
    column : str or int
    scale : {"link", "target"}, default="link"
        As in `inspection.effect`: "link" draws the change of the output, which is a logarithm or log-odds
        with some links; "target" draws the prediction if all other parts are 0, in the units of the target or
        as a probability.
    members : list of models, optional
        Members from `inspection.bootstrap`: a band around the curve shows how far other rows might move it,
        see `inspection.effect_band`. Bars get whiskers instead.
    coverage : float, default=0.9
        Probability with which the band should contain the true effect at each point.
    label : str, optional
        Label of the curve in the legend, for plots of several models in the same axes.
    color : color of matplotlib, optional
    points : bool, default=True
        Whether to mark the values of the column in X by ticks above the axis.
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
    found, (rows, booleans) = effects_of(model, output, reference, scale), rows_to_inspect(model, X)
    forms, shown, base = found.own_forms, found.scale.shown, found.scale.base
    number = forms.column(column)
    name, values = forms.columns[number], column_of(rows, number)
    grid = Grid.of(values, levels_of(model, booleans, number), name, POINTS)
    curve = shown(found.at({number: grid.values}))
    band = None
    if members is not None:
        band = band_of(model, found, members, reference, coverage, lambda of: of.at({number: grid.values}))
    ax, of = axes(ax, (5.0, 3.4)), "" if label is None else f"{label}: "
    colour, of_missing = (SINGLE, PAIR) if color is None else (color, color)
    ax.axhline(base, color=GREY, linewidth=0.8, zorder=0)
    if grid.labels is None:
        ax.plot(grid.places, curve, color=colour, linewidth=2, label=label)
        if band is not None:
            shade = {"color": colour, "alpha": 0.2, "linewidth": 0, "label": f"{of}{100 * coverage:g} % band"}
            ax.fill_between(grid.places, *band, **shade)
        if points:
            mark_values(ax, values[(values >= grid.values[0]) & (values <= grid.values[-1])])
        ax.margins(x=0.01)
    else:
        whiskers = None if band is None else np.abs(np.stack(band) - curve)
        bars: Any = {"width": 0.7, "yerr": whiskers, "ecolor": GREY, "capsize": 3, "label": label}
        ax.bar(grid.places, curve - base, bottom=base, color=colour, **bars)
        slant(ax, grid)
    if np.isnan(values).any():
        missing = float(shown(found.at({number: np.array([np.nan])}))[0])
        ax.axhline(missing, color=of_missing, linestyle="--", linewidth=1.2, label=f"{of}missing")
    if forms.machine.has_jumps:
        mark_jumps(ax, grid, forms.machine.thresholds[number], of)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    ax.set_xlabel(name, **PLAIN)
    ax.set_ylabel(unit_of_effects(model, output, scale), **PLAIN)
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
    scale: Scale = "link",
    points: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the interaction of two columns, beyond their main effects, with the rows of X as points.

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`.
    columns : sequence of two names or numbers
    scale : {"link", "target"}, default="link"
        As in `effect_curve`.
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
    found, (rows, booleans) = effects_of(model, output, reference, scale), rows_to_inspect(model, X)
    pair = found.numbers(list(columns))
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"columns must be two different columns, got {list(columns)!r}.")
    names = [found.own_forms.columns[number] for number in pair]
    values = [column_of(rows, number) for number in pair]
    across, up = (
        Grid.of(values[axis], levels_of(model, booleans, pair[axis]), names[axis], SURFACE_POINTS)
        for axis in (0, 1)
    )
    mesh = np.meshgrid(across.values, up.values)
    surface = found.scale.shown(found.at({pair[axis]: mesh[axis].ravel() for axis in (0, 1)}))
    ax = axes(ax, (5.2, 4.0))
    base = found.scale.base
    largest = np.abs(surface - base).max() or 1.0
    colours = {"cmap": DIVERGING, "vmin": base - largest, "vmax": base + largest, "shading": "nearest"}
    image = ax.pcolormesh(across.places, up.places, surface.reshape(mesh[0].shape), **colours)
    if points and across.labels is None and up.labels is None:
        ax.plot(*values, ".", color="black", markersize=2, alpha=0.3)
    ax.set_xlim(*across.ends)
    ax.set_ylim(*up.ends)
    if across.labels is not None:
        slant(ax, across)
    if up.labels is not None:
        ax.set_yticks(up.places, up.labels, **PLAIN)
    ax.set_xlabel(names[0], **PLAIN)
    ax.set_ylabel(names[1], **PLAIN)
    ax.set_title(f"Interaction of {names[0]} and {names[1]}", **PLAIN)
    ax.figure.colorbar(image, ax=ax).set_label(unit_of_effects(model, output, scale), **PLAIN)
    return ax


def _key(shares: Any, a: str, b: str) -> tuple[str, ...]:
    if a == b:
        return (a,)
    return (a, b) if (a, b) in shares else (b, a)
