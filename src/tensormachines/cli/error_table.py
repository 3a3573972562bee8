"""Errors of a model on the rows of a file, next to those of a constant prediction.

The formulas are those of the report.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model.losses import Loss, is_defined
from ..estimators.regression_losses import row_losses
from ..report.measures import ABSENT_OR_PRESENT, Measure, classification_errors, regression_errors
from .known_rows import KnownRows
from .model_rows import Rows, SparseRows, TableRows, has_labels, names_of_numbers, targets_of
from .numbers import shown

SHORT = {"root mean square error": "RMSE", "mean absolute error": "MAE", "area under the ROC curve": "AUC"}
MODEL, CONSTANT = "model", "constant"
# By measure: its "value", "low" and "high" of the 95 % interval, and the value of a "constant".
Errors = dict[str, dict[str, float]]


def errors_on(
    model: Any, rows: SparseRows | TableRows, known: KnownRows | None = None
) -> tuple[int, dict[str, Errors]]:
    """Return the number of rows with a target, and the errors by target; predicts a block at a time.

    ``known`` counts the rows that were in the fit."""
    found = []
    for block in rows.blocks(with_target=True):
        found.append((block.y, _outputs(model, block.X)))
        if known is not None:
            known.add(block.X, block.y)
    if not found:
        raise ValueError(f"{rows.label} has no rows with a target.")
    y, outputs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return len(y), errors_of(model, y, outputs)


def errors_in(model: Any, rows: Rows) -> dict[str, Errors]:
    """Return the errors by target on rows in memory."""
    return errors_of(model, rows.y, _outputs(model, rows.X))


def errors_of(model: Any, y: np.ndarray, outputs: np.ndarray) -> dict[str, Errors]:
    """Return the errors by target.

    ``outputs`` are predictions or probabilities. The constant is the mean of y, or the quantile that a model
    predicts, or the shares of the classes.
    """
    names = targets_of(model) or ["target"]
    if has_labels(model):
        return {
            name: _errors_of_classes(ABSENT_OR_PRESENT, y[:, k], np.column_stack([1 - likely, likely]))
            for k, (name, likely) in enumerate(zip(names_of_numbers(model, names), outputs.T, strict=True))
        }
    if hasattr(model, "classes_"):
        return {names[0]: _errors_of_classes(model.classes_, y, outputs)}
    y, outputs = y.reshape(len(y), -1), outputs.reshape(len(y), -1)
    names = names if len(names) == y.shape[1] else [f"target {k}" for k in range(y.shape[1])]
    return {name: _errors_of_numbers(model._loss(), y[:, k], outputs[:, k]) for k, name in enumerate(names)}


def _errors_of_classes(classes: np.ndarray, y: np.ndarray, probabilities: np.ndarray) -> Errors:
    shares = np.array([np.mean(y == label) for label in classes])
    both = {MODEL: probabilities, CONSTANT: np.tile(shares, (len(y), 1))}
    return _by_measure(classification_errors(y, classes, both))


def _errors_of_numbers(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> Errors:
    """Return the errors for one target: with a deviance or a pinball loss, if the model has that loss."""
    constant = y.mean() if loss.level is None else np.quantile(y, loss.level)
    both = {MODEL: predicted, CONSTANT: np.full(len(y), constant)}
    name = "deviance" if loss.log_link else "pinball" if loss.name == "quantile" else None
    if name is None or not is_defined(loss, y):
        return _by_measure(regression_errors(y, both))
    link = np.log if loss.log_link else np.asarray
    losses = {of: row_losses(loss, y[:, None], link(each)[:, None]) for of, each in both.items()}
    return _by_measure(regression_errors(y, both, losses=(name, losses)))


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
        print(f"{of_what}{f', {target}' if len(errors) > 1 else ''}:")
        print(f"  {'':<9} {'model':>10}  {'95 % interval':>22}  {'constant':>10}")
        for name, each in measures.items():
            interval = f"{shown(each['low'])} to {shown(each['high'])}"
            value, constant = shown(each["value"]), shown(each["constant"])
            print(f"  {name:<9} {value:>10}  {interval:>22}  {constant:>10}")
