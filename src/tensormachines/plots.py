"""Plots of a fitted Tensor Machine with matplotlib. Each function draws into ``ax``, or into new axes, and
returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import validation_curve

from .inspection import importance, part_importance
from .inspection.decomposition import effect_on
from .inspection.displacements import column_forms
from .inspection.forms import boolean_columns, check_rows, column_names, level_names

SINGLE, PAIR, MORE, GREY = "#1f5fa8", "#d9822b", "#8c6bb1", "#666666"
DIVERGING = "RdBu_r"  # about 0
SEQUENTIAL = "Oranges"
POINTS = 200  # of a curve
SURFACE_POINTS = 60  # of a surface, in each direction
MOST_LEVELS = 25  # of a category in a plot
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
    """
    columns = list(importance(model, X, output=output).largest(k))
    shares = part_importance(model, X, columns=columns, reference=reference, output=output)
    matrix = np.array([[shares.get(_key(shares, a, b), 0.0) for b in columns] for a in columns])
    # Without the diagonal, whose large shares would leave the pairs no colour.
    pairs = np.where(np.eye(len(columns), dtype=bool), np.nan, 100 * matrix)
    ax = _axes(ax, (1.9 + 0.5 * len(columns), 1.2 + 0.45 * len(columns)))
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
    """
    shares = part_importance(model, X, order=order, reference=reference, output=output).largest(k)
    ax = _axes(ax, (6.0, 1.0 + 0.28 * len(shares)))
    kinds = np.array([3 if isinstance(key, str) else min(len(key), 3) for key in shares])
    places, widths = np.arange(len(shares)), 100 * np.array(list(shares.values()))
    for kind, label, colour in (
        (1, "one column", SINGLE),
        (2, "pair of columns", PAIR),
        (3, "more columns", MORE),
    ):
        if (kinds == kind).any():
            ax.barh(places[kinds == kind], widths[kinds == kind], color=colour, label=label, height=0.75)
    names = [key if isinstance(key, str) else " × ".join(key) for key in shares]  # noqa: RUF001
    ax.set_yticks(places, names, **PLAIN)
    ax.set_ylim(len(shares) - 0.4, -0.6)
    ax.set(xlabel="% of the variance of all parts", title="What the predictions consist of")
    if len(set(kinds.tolist())) > 1:
        ax.legend(frameon=False, loc="lower right")
    _tidy(ax, "x")
    return ax


def effect_curve(
    model: Any, column: Any, X: Any, *, reference: Any = None, output: Any = None, ax: Any = None
) -> Any:
    """Draw the main effect of a column: what it adds to the output, with the other columns at the reference.

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`; the curve is over the values that the column has in X.
    column : str or int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    forms, rows = column_forms(model, output, reference), check_rows(model, X)
    number = forms.column(column)
    name, values = forms.columns[number], _column(rows, number)
    grid = _Grid.of(values, _levels(model, X, number), name, POINTS)
    curve = effect_on(forms, [number], _rows_with(model, {number: grid.values}))
    ax = _axes(ax, (5.0, 3.4))
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    if grid.labels is None:
        ax.plot(grid.places, curve, color=SINGLE, linewidth=2)
        inside = values[(values >= grid.values[0]) & (values <= grid.values[-1])]
        ax.plot(
            inside,
            np.full(len(inside), 0.015),
            "|",
            color=GREY,
            alpha=min(1.0, 60 / max(1, len(inside))),
            transform=ax.get_xaxis_transform(),  # x in data, y as a share of the height
        )
        ax.margins(x=0.01)
    else:
        ax.bar(grid.places, curve, color=SINGLE, width=0.7)
        _slant(ax, grid)
    if np.isnan(values).any():
        missing = float(effect_on(forms, [number], _rows_with(model, {number: np.array([np.nan])}))[0])
        ax.axhline(missing, color=PAIR, linestyle="--", linewidth=1.2, label="missing")
        ax.legend(frameon=False)
    ax.set_xlabel(name, **PLAIN)
    ax.set_ylabel("change of the output")
    ax.set_title(f"Effect of {name}", **PLAIN)
    _tidy(ax, "y")
    return ax


def effect_surface(
    model: Any, columns: Sequence[Any], X: Any, *, reference: Any = None, output: Any = None, ax: Any = None
) -> Any:
    """Draw the interaction of two columns, beyond their main effects, with the rows of X as points.

    Parameters
    ----------
    model, X, reference, output
        As in `inspection.contributions`.
    columns : sequence of two names or numbers
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    forms, rows = column_forms(model, output, reference), check_rows(model, X)
    pair = [forms.column(column) for column in columns]
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"columns must be two different columns, got {list(columns)!r}.")
    names, values = [forms.columns[number] for number in pair], [_column(rows, number) for number in pair]
    across, up = (
        _Grid.of(values[axis], _levels(model, X, pair[axis]), names[axis], SURFACE_POINTS) for axis in (0, 1)
    )
    mesh = np.meshgrid(across.values, up.values)
    surface = effect_on(forms, pair, _rows_with(model, {pair[axis]: mesh[axis].ravel() for axis in (0, 1)}))
    ax = _axes(ax, (5.2, 4.0))
    largest = np.abs(surface).max() or 1.0
    colours = {"cmap": DIVERGING, "vmin": -largest, "vmax": largest, "shading": "nearest"}
    image = ax.pcolormesh(across.places, up.places, surface.reshape(mesh[0].shape), **colours)
    if across.labels is None and up.labels is None:
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


def training_curve(
    estimator: Any, X: Any, y: Any, *, X_test: Any = None, y_test: Any = None, ax: Any = None
) -> Any:
    """Fit a copy of the estimator and draw its error, 1 - score, after each iteration.

    A model keeps no record of its fit, so it is fitted here; scoring all rows after each iteration takes
    time. It needs the callbacks of scikit-learn 1.9.

    Parameters
    ----------
    estimator : TensorMachineRegressor or TensorMachineClassifier
    X, y : training rows and targets, in memory
    X_test, y_test : optional
        Other rows to score.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(estimator, "set_callbacks"):
        raise RuntimeError(
            "training_curve needs the callbacks of scikit-learn 1.9 or later: pip install -U scikit-learn."
        )
    recorded = _Errors(
        {"training rows": (X, y), **({} if X_test is None else {"other rows": (X_test, y_test)})}
    )
    clone(estimator).set_callbacks(recorded).fit(X, y)
    ax = _axes(ax, (5.0, 3.4))
    for (name, errors), colour in zip(recorded.errors.items(), (SINGLE, PAIR), strict=False):
        ax.plot(np.arange(1, len(errors) + 1), errors, color=colour, linewidth=2, label=name)
    _error_axis(ax, [error for errors in recorded.errors.values() for error in errors])
    ax.set(xlabel="iteration", title="Error during the fit")
    if len(recorded.errors) > 1:
        ax.legend(frameon=False)
    return ax


def error_against_rank(
    estimator: Any, X: Any, y: Any, *, ranks: Sequence[int] = (1, 2, 4, 8, 16), cv: Any = 3, ax: Any = None
) -> Any:
    """Draw the training and the cross-validated error, 1 - score, against the rank.

    Parameters
    ----------
    estimator : TensorMachineRegressor or TensorMachineClassifier
    X, y : rows and targets, in memory
    ranks : sequence of int
    cv : int or splitter of scikit-learn
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    scores = validation_curve(estimator, X, y, param_name="rank", param_range=list(ranks), cv=cv)
    ax = _axes(ax, (5.0, 3.4))
    for name, colour, of_rank in zip(
        ("training rows", "other rows"), (SINGLE, PAIR), (1 - score for score in scores), strict=True
    ):
        middle, spread = of_rank.mean(axis=1), of_rank.std(axis=1)
        ax.plot(ranks, middle, "o-", color=colour, linewidth=2, markersize=4, label=name)
        ax.fill_between(ranks, middle - spread, middle + spread, color=colour, alpha=0.15, linewidth=0)
    _error_axis(ax, (1 - np.concatenate(scores)).mean(axis=1).tolist())
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(ranks), [str(rank) for rank in ranks])
    ax.set(xlabel="rank", title="Error and rank")
    ax.legend(frameon=False)
    return ax


class _Errors:
    """A scikit-learn callback that records the error after each iteration."""

    def __init__(self, rows: dict[str, tuple[Any, Any]]):
        self.rows = rows
        self.errors: dict[str, list[float]] = {name: [] for name in rows}

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.task_name == "iteration":
            for name, (X, y) in self.rows.items():
                self.errors[name].append(1 - float(fitted_estimator.score(X, y)))
        return False


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


def _rows_with(model: Any, columns: dict[int, np.ndarray]) -> np.ndarray:
    """Return rows with these columns, and 0 elsewhere."""
    rows = np.zeros((len(next(iter(columns.values()))), len(column_names(model))))
    for number, values in columns.items():
        rows[:, number] = values
    return rows


def _levels(model: Any, X: Any, column: int) -> list[str] | None:
    """Return the names of levels, or of false and true; None for a column of other numbers."""
    return ["false", "true"] if column in boolean_columns(model, X) else level_names(model, column)


def _column(rows: Any, number: int) -> np.ndarray:
    return rows[:, [number]].toarray().ravel() if sparse.issparse(rows) else rows[:, number]


def _key(shares: Any, a: str, b: str) -> tuple[str, ...]:
    if a == b:
        return (a,)
    return (a, b) if (a, b) in shares else (b, a)


# ---- axes


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "tensormachines[explain]".') from None
    return plt.subplots(figsize=size, layout="constrained")[1]


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


def _tidy(ax: Any, grid: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)


def _error_axis(ax: Any, errors: list[float]) -> None:
    ax.set_ylabel("error (1 - score)")
    if min(errors) > 0 and max(errors) > 10 * min(errors):
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=min(0.0, *errors))
    _tidy(ax, "y")
