"""What all plots share: axes, and colours."""

from __future__ import annotations

from typing import Any

SINGLE, PAIR, MORE, GREY = "#1f5fa8", "#d9822b", "#8c6bb1", "#666666"


def axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "tensormachines[explain]".') from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Any, grid: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)
