"""The figures as SVG: the same bytes for the same numbers, or None if there is nothing to draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..methods import METHODS
from .curves import Curve, Curves, Point, Quartiles, best_points, log_slope, risk_gaps
from .figure_style import line_style, look, plain_style, plain_ticks, shared_legend, show_range, svg
from .labels import in_order, major_name, method_name, number, set_name


def overview(
    ours: dict[str, tuple[Quartiles, Quartiles]], paper: dict[str, tuple[Quartiles, Quartiles]], sets: int
) -> bytes | None:
    """Draw Figure 1: medians and quartiles over sets of the relative error and time."""
    methods = in_order(ours, METHODS)
    if not methods:
        return None
    with plain_style() as figure_class:
        figure = figure_class(figsize=(9.2, 0.62 * len(methods) + 1.5), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for part, (axis, title) in enumerate(
            zip(axes, ("error relative to KRR", "time relative to KRR"), strict=True)
        ):
            for row, method in enumerate(methods):
                for found, shift, filled in ((ours, -0.15, True), (paper, 0.15, False)):
                    if method in found:
                        _quartile_bar(axis, row + shift, found[method][part], method, filled)
            axis.set_title(title, loc="left")
            axis.axvline(part, color="#333333", linewidth=1, linestyle=(0, (6, 3)))
            axis.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(methods)), [method_name(method) for method in methods])
        axes[0].set_ylim(len(methods) - 0.5, -0.5)
        axes[0].set_xlabel("(error - error of KRR) / error of KRR")
        axes[1].set_xscale("log")
        plain_ticks(axes[1].xaxis)
        axes[1].set_xlabel("seconds / seconds of KRR, log")
        key: dict[str, Any] = {"color": "#333333", "linestyle": "none", "marker": "o", "markersize": 7}
        handles = [axes[0].plot([], [], **key)[0], axes[0].plot([], [], **key, markerfacecolor="white")[0]]
        labels = [f"ours, {sets} sets", "the paper's, 10 sets"]
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return svg(figure)


def _quartile_bar(axis: Any, height: float, values: Quartiles, method: str, filled: bool) -> None:
    colour, marker, _ = look(method)
    bar = {"linewidth": 3 if filled else 1.3, "solid_capstyle": "butt", "alpha": 0.9}
    axis.plot([values.first, values.third], [height, height], color=colour, **bar)
    mark = {"marker": marker, "markerfacecolor": colour if filled else "white", "markersize": 8}
    axis.plot([values.median], [height], color=colour, **mark, markeredgewidth=1.4, zorder=3)


def _curve_line(axis: Any, points: tuple[Point, ...], across: list[float], method: str) -> None:
    """Draw mean errors and bars over the range of trials; a band would fold where time goes back."""
    means = [point.error.mean for point in points]
    axis.plot(across, means, label=method_name(method), **line_style(method), zorder=3)
    low, high = [point.error.low for point in points], [point.error.high for point in points]
    axis.vlines(across, low, high, color=look(method)[0], alpha=0.35, linewidth=3)


def _baseline(axis: Any, compared: Curves, name: str) -> list[float]:
    """Draw the error of KRR and return it, if it has one."""
    curve = compared.get((name, "krr"))
    if curve is None or curve.best is None:
        return []
    colour, _, dashes = look("krr")
    axis.axhline(curve.best.error.mean, color=colour, linestyle=dashes, linewidth=1.2, label="KRR")
    return [curve.best.error.mean]


def rank(found: Curves, compared: Curves) -> bytes | None:
    """Draw Figure 2: test error against the rank, mean and range over trials, one panel per set."""
    names = _sets_with_points(found)
    if not names:
        return None
    with plain_style() as figure_class:
        figure = figure_class(figsize=(4.6 * max(2, len(names)), 3.5), layout="constrained")
        axes = figure.subplots(1, max(2, len(names)), squeeze=False)[0]
        for axis in axes[len(names) :]:
            axis.set_axis_off()
        for axis, name in zip(axes, names, strict=False):
            errors = _baseline(axis, compared, name)
            for curve in _of_set(found, name):
                points = tuple(point for point in curve.points if point.at is not None)
                _curve_line(axis, points, [float(point.at or 0) for point in points], curve.method)
                errors += [value for point in points for value in (point.error.low, point.error.high)]
            axis.set(title=set_name(name), xlabel="rank r", ylabel="test error")
            ranks = [float(point.at or 0) for curve in _of_set(found, name) for point in curve.points]
            axis.set_xlim(min(ranks) - 0.5, max(ranks) + 0.5)
            axis.xaxis.get_major_locator().set_params(integer=True)
            show_range(axis, errors)
        shared_legend(figure, axes)
        return svg(figure)


def _sets_with_points(found: Curves) -> list[str]:
    return list(dict.fromkeys(curve.set for curve in found.values() if curve.points))


def _of_set(found: Curves, name: str) -> list[Curve]:
    methods = {curve.method for curve in found.values() if curve.set == name and curve.points}
    return [found[(name, method)] for method in in_order(methods, METHODS)]


def tradeoff(found: Curves, names: list[str], small: bool = False) -> bytes | None:
    """Draw Figure 3: test error against training seconds along each method's major parameter."""
    names = [name for name in names if name in _sets_with_points(found)]
    if not names:
        return None
    columns = min(3, len(names)) if small else 2
    rows = -(-len(names) // columns)
    with plain_style() as figure_class:
        figure = figure_class(figsize=(9.2, (2.5 if small else 3.9) * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(names) :]:
            axis.set_axis_off()
        for panel, (axis, name) in enumerate(zip(axes, names, strict=False)):
            _tradeoff_panel(axis, found, name, small)
            axis.set_ylabel("test error" if panel % columns == 0 else "")
        shared_legend(figure, axes)
        return svg(figure)


def _tradeoff_panel(axis: Any, found: Curves, name: str, small: bool) -> None:
    errors = _baseline(axis, found, name)
    for curve in _of_set(found, name):
        across = [point.seconds.mean for point in curve.points]
        _curve_line(axis, curve.points, across, curve.method)
        errors += [value for point in curve.points for value in (point.error.low, point.error.high)]
        if not small and curve.method != "krr":
            _write_major(axis, curve.points[0], curve.method, above=True)
            if len(curve.points) > 1:
                _write_major(axis, curve.points[-1], curve.method, above=False)
    axis.set(title=set_name(name), xlabel="training, CPU seconds, log")
    axis.margins(x=0.12)
    show_range(axis, errors)
    if any(point.seconds.mean > 0 for curve in _of_set(found, name) for point in curve.points):
        axis.set_xscale("log")
        plain_ticks(axis.xaxis)


def _write_major(axis: Any, point: Point, method: str, above: bool) -> None:
    """Write the value of the major parameter, on a white ground so that it is legible over lines."""
    if point.at is not None:
        axis.annotate(
            f"{point.at:,.6g}",
            (point.seconds.mean, point.error.mean),
            (0, 6) if above else (0, -7),
            textcoords="offset points",
            fontsize=7.5,
            ha="center",
            va="bottom" if above else "top",
            color=look(method)[0],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.75},
            zorder=4,
        )


def scaling(found: Curves) -> bytes | None:
    """Draw Figure 4: test error and seconds against the training rows."""
    names = _sets_with_points(found)
    if not names:
        return None
    with plain_style() as figure_class:
        figure = figure_class(figsize=(8.2, 4.2 * len(names)), layout="constrained")
        axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
        for left, name in zip(axes, names, strict=True):
            right = left.twinx()
            right.spines["right"].set_visible(True)
            right.grid(visible=False)
            for curve in _of_set(found, name):
                _scaling_lines(left, right, curve)
            left.set(title=set_name(name), xlabel="training rows", ylabel="test error (solid)")
            right.set(ylabel="training, CPU seconds (dashed)")
            right.set_ylim(bottom=0)
            left.set_xlim(left=0)
            left.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")
            handles, labels = (
                ours + theirs
                for ours, theirs in zip(
                    *(axis.get_legend_handles_labels() for axis in (left, right)), strict=True
                )
            )
            left.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        return svg(figure)


def _scaling_lines(left: Any, right: Any, curve: Curve) -> None:
    colour, marker, _ = look(curve.method)
    name, style = method_name(curve.method), dict[str, Any](color=colour, marker=marker)
    sizes = [float(point.at or 0) for point in curve.points]
    seconds = [point.seconds.mean for point in curve.points]
    slope = log_slope(sizes, seconds)
    grows = f", seconds ~ rows^{slope:.2f}" if slope is not None else ""
    left.plot(sizes, [point.error.mean for point in curve.points], **style, label=f"{name}, error (left)")
    style |= {"markerfacecolor": "white", "linestyle": (0, (4, 2))}
    right.plot(sizes, seconds, **style, label=f"{name}, seconds (right){grows}")


def bound(found: Curves) -> bytes | None:
    """Draw Figure 5: the bound, and the gap between test and training risk, against the rows."""
    shown = [curve for curve in found.values() if curve.points]
    if not shown:
        return None
    with plain_style() as figure_class:
        figure = figure_class(figsize=(9.2, 3.3 * len(shown)), layout="constrained")
        axes = figure.subplots(len(shown), 2, squeeze=False)
        for row, curve in zip(axes, shown, strict=True):
            rows = np.array([float(point.at or 0) for point in curve.points])
            bounds = [[float(line["bound"]) for line in point.lines] for point in curve.points]
            gaps = [risk_gaps(point) for point in curve.points]
            _falling(row[0], rows, bounds, curve, "the bound, in units of c")
            _falling(row[1], rows, gaps, curve, "test risk - training risk")
        return svg(figure)


def _falling(axis: Any, rows: np.ndarray, values: list[list[float]], curve: Curve, title: str) -> None:
    """Draw the mean and range of values that fall with the rows, and a guide that falls as 1/sqrt(rows)."""
    means = np.array([np.mean(trials) for trials in values])
    shown = (means > 0) & (rows > 0)
    title = f"{title}\n{set_name(curve.set)}, {method_name(curve.method)}"
    axis.set(title=title, xlabel="training rows n, log")
    if not shown.any():
        axis.text(0.5, 0.5, "not positive at any n", transform=axis.transAxes, ha="center")
        return
    colour, marker, _ = look(curve.method)
    slope = log_slope(rows, means)
    label = "mean over trials" if slope is None else f"mean over trials, slope {slope:.2f}"
    axis.plot(rows[shown], means[shown], color=colour, marker=marker, label=label)
    low, high = np.array([min(trials) for trials in values]), np.array([max(trials) for trials in values])
    band = {"color": colour, "alpha": 0.15, "linewidth": 0}
    axis.fill_between(rows[shown], np.maximum(low, 0)[shown], high[shown], **band)
    # The guide goes through the middle of the points.
    guide = np.exp(np.mean(np.log(means[shown]) + 0.5 * np.log(rows[shown]))) / np.sqrt(rows[shown])
    dashed = {"color": "#333333", "linestyle": (0, (5, 3)), "linewidth": 1}
    axis.plot(rows[shown], guide, **dashed, label="1/√n")
    axis.set(xscale="log", yscale="log")
    plain_ticks(axis.xaxis)
    plain_ticks(axis.yaxis)
    axis.legend()


def starts(found: Curves) -> bytes | None:
    """Draw Figure 6: each random start's test error over the mean, one row per set and method."""
    shown = [point for point in best_points(found).values() if point.error.mean > 0]
    if not shown:
        return None
    with plain_style() as figure_class:
        figure = figure_class(figsize=(9.2, 0.55 * len(shown) + 1.1), layout="constrained")
        axis = figure.subplots()
        labels = []
        for row, point in enumerate(shown):
            mean, (colour, marker, _) = point.error.mean, look(point.method)
            deviations = [100 * (float(line["error"]) / mean - 1) for line in point.lines]
            style = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 7}
            axis.plot(deviations, [row] * len(deviations), **style, alpha=0.6)
            labels.append(f"{set_name(point.set)}, {method_name(point.method)}\nmean {number(mean)}")
        axis.set_yticks(range(len(shown)), labels)
        axis.set_ylim(len(shown) - 0.5, -0.5)
        axis.axvline(0, color="#333333", linewidth=1)
        axis.set_xlabel("test error of a start against the mean of the starts, %")
        return svg(figure)


def major_legend(found: Curves) -> str:
    """Say what the numbers at the ends of the lines of Figure 3 count, method by method."""
    named = {
        curve.method: major_name(curve.method, curve.points[-1].value("major_name"))
        for curve in found.values()
        if curve.points
    }
    methods = [method for method in in_order(named, METHODS) if named[method]]
    return ", ".join(f"{named[method]} ({method_name(method)})" for method in methods)
