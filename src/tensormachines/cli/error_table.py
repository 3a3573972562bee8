"""Errors of a model on the rows of a file, compared with those of a constant prediction.

The formulas are those of the report.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.plain_text import plain
from ..report.measures import Measure
from ..report.summed_errors import CONSTANT, MODEL, SummedErrors, measures_in_memory
from .known_rows import KnownRows
from .model_rows import (
    Rows,
    SparseRows,
    TableRows,
    has_labels,
    names_of_numbers,
    targets_and_weights,
    targets_of,
)
from .numbers import shown

SHORT = {
    "root mean square error": "RMSE",
    "mean absolute error": "MAE",
    "area under the ROC curve": "AUC",
    "pinball loss": "pinball",
    "share below": "below",
}
# By measure: its "value", "low" and "high" of the 95 % interval, and the value of a "constant".
Errors = dict[str, dict[str, float]]


def errors_on(
    model: Any, rows: SparseRows | TableRows, known: KnownRows | None = None
) -> tuple[int, dict[str, Errors]]:
    """Return the number of rows with a target, and the errors by target; predict a block at a time.

    ``known`` counts the rows that were in the fit."""
    found: SummedErrors | None = None
    for block in rows.blocks(with_target=True):
        first = 0 if found is None else found.n_rows
        y, weight = targets_and_weights(model, block)
        of_block = SummedErrors.of(model, y, _outputs(model, block.X), first, weight)
        found = of_block if found is None else found + of_block
        if known is not None:
            known.add(block)
    if found is None:
        raise ValueError(f"{rows.label} has no rows with a target.")
    return found.n_rows, by_target(model, found.measures(model))


def errors_in(model: Any, rows: Rows) -> dict[str, Errors]:
    """Return the errors by target on rows in memory."""
    y, weight = targets_and_weights(model, rows)
    return by_target(model, measures_in_memory(model, y, _outputs(model, rows.X), weight))


def by_target(model: Any, measures: list[dict[str, list[Measure]]]) -> dict[str, Errors]:
    names = targets_of(model) or ["target"]
    if has_labels(model):
        names = names_of_numbers(model, names)
    elif hasattr(model, "quantiles_"):
        names = [f"quantile {level} of {names[0]}" for level in model.quantiles_]
    elif len(names) != len(measures):
        names = [f"target {k}" for k in range(len(measures))]
    return {name: _by_measure(each) for name, each in zip(names, measures, strict=True)}


def _outputs(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X))


def _by_measure(measured: dict[str, list[Measure]]) -> Errors:
    return {
        SHORT.get(ours.name, ours.name): {
            "value": ours.value,
            "low": ours.interval[0],
            "high": ours.interval[1],
            "constant": round(constant.value, 12) + 0.0 if ours.name == "R2" else constant.value,
        }
        for ours, constant in zip(measured[MODEL], measured[CONSTANT], strict=True)
    }


def show_errors(errors: dict[str, Errors], of_what: str) -> None:
    for target, measures in errors.items():
        print(f"{of_what}{f', {plain(target)}' if len(errors) > 1 else ''}:")
        print(f"  {'':<9} {'model':>10}  {'95 % interval':>22}  {'constant':>10}")
        for name, each in measures.items():
            interval = f"{shown(each['low'])} to {shown(each['high'])}"
            value, constant = shown(each["value"]), shown(each["constant"])
            print(f"  {name:<9} {value:>10}  {interval:>22}  {constant:>10}")
