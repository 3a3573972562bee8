"""Bands around the effects of columns in the page, from bootstrap members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inspection.displacements import ColumnForms
from ..inspection.members import half_width_at

POINTS = 64  # for a number


def with_bands(
    inputs: Sequence[dict[str, Any]],
    of_model: Sequence[ColumnForms],
    of_members: Sequence[Sequence[ColumnForms]],
) -> list[dict[str, Any]]:
    """Return the inputs of the page with the half-widths of bands around the effects of their columns.

    The model and each member have forms for each output. Half-widths are given at equal steps of a number, or
    at each level, and then for missing values if there may be any."""
    found = []
    for of in inputs:
        values = {of["column"]: _points(of)}
        widths = [
            half_width_at(of_model[k], [each[k] for each in of_members], values) for k in range(len(of_model))
        ]
        found.append({**of, "band": [[float(f"{width:.4g}") for width in each] for each in widths]})
    return found


def _points(of: dict[str, Any]) -> np.ndarray:
    """Return the values of a column for which browser/effects.js has widths."""
    if of["kind"] == "category" or of["boolean"]:
        points = np.arange(float(len(of["counts"])))
    else:
        whole = of["whole"] and of["high"] - of["low"] < POINTS
        points = np.linspace(of["low"], of["high"], int(of["high"] - of["low"]) + 1 if whole else POINTS)
    return np.append(points, [np.nan] * of["missing"])
