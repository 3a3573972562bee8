"""The style of every figure: colours, markers, axes and the conversion to SVG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np

from ..methods import METHODS
from .labels import method_name

MATPLOTLIB_MISSING = 'The figures of the report need matplotlib: pip install "tensormachines[demo]"'
# colour, marker, dashes
STYLES: dict[str, tuple[str, str, Any]] = {
    "krr": ("#333333", "*", (0, (6, 3))),
    "tm-batch": ("#D55E00", "o", "-"),
    "tm-sfo": ("#0072B2", "s", "-"),
    "tm-kfac": ("#6A3D9A", "<", "-"),
    "tm-free": ("#A0522D", ">", "-"),
    "craftmaps": ("#009E73", "^", (0, (4, 1.5))),
    "basis-learner": ("#B0508A", "D", (0, (1, 1.2))),
    "apple": ("#B37400", "v", (0, (5, 1.5, 1, 1.5))),
    "fm": ("#56B4E9", "P", (0, (2, 1.5))),
}
# Leading digits of the labels on a log axis, by the least number of decades that it spans.
LEADING_DIGITS = ((2.2, "1"), (1.3, "13"), (0.5, "125"), (0.2, "12357"), (-np.inf, "123456789"))
OTHER: tuple[str, str, Any] = ("#777777", "x", "-")
SETTINGS = {
    "svg.hashsalt": "tensormachines",
    "svg.fonttype": "path",  # the reader needs no fonts
    "font.family": "DejaVu Sans",  # matplotlib's own
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def look(method: str) -> tuple[str, str, Any]:
    """Return colour, marker and dashes of a method, the same in every figure."""
    return STYLES.get(method, OTHER)


@contextmanager
def plain_style() -> Iterator[Any]:
    """Use matplotlib's defaults and SETTINGS, whatever the user's settings are; yield the class Figure."""
    try:
        from matplotlib import rc_context, style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(MATPLOTLIB_MISSING) from error
    with style.context("default", after_reset=True), rc_context(SETTINGS):
        yield Figure


def svg(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def line_style(method: str) -> dict[str, Any]:
    colour, marker, dashes = look(method)
    return {
        "color": colour,
        "marker": marker,
        "linestyle": dashes,
        "markersize": 9 if marker == "*" else 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
    }


def shared_legend(figure: Any, axes: Any, columns: int = 8) -> None:
    """Draw one legend below all panels, each name once and in the order of the methods."""
    found: dict[str, Any] = {}
    for axis in np.ravel(axes):
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    order = [method_name(method) for method in METHODS]
    labels = sorted(found, key=lambda label: order.index(label) if label in order else len(order))
    if labels:
        handles = [found[label] for label in labels]
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def show_range(axis: Any, values: list[float], ratio: float = 8) -> None:
    """Fit the vertical axis to the values: logarithmic if they span more than `ratio`, else linear."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high > ratio * low:
        axis.set_yscale("log")
        plain_ticks(axis.yaxis)
        axis.set_ylim(low / 1.25, high * 1.25)
    else:
        margin = 0.1 * (high - low) or 0.1 * high or 1.0
        axis.set_ylim(low - margin, high + margin)


def plain_ticks(ticks: Any) -> None:
    """Label a log axis with 0.01, 0.1, 1 rather than powers of ten, and with numbers between if they fit."""
    from matplotlib.ticker import FuncFormatter

    def plain(value: float, position: int | None = None) -> str:
        low, high = sorted(ticks.get_view_interval())
        decades = np.log10(high / low)
        shown = next(digits for least, digits in LEADING_DIGITS if decades > least)
        leading = round(value / 10 ** np.floor(np.log10(value) + 1e-9))
        return f"{value:,.10g}" if str(leading) in shown else ""

    ticks.set_major_formatter(FuncFormatter(plain))
    ticks.set_minor_formatter(FuncFormatter(plain))
