"""How far predictions are from the truth, with intervals, beside a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

RESAMPLES = 200
Errors = dict[str, dict[str, Any]]


def errors_of(model: Any, X: Any, y: np.ndarray) -> Errors:
    """For each measure its value, the 95 % interval of a bootstrap over the rows, and the value of the best constant."""
    measures = _classification(model, X, y) if hasattr(model, "classes_") else _regression(model, X, y)
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, len(y), len(y)) for _ in range(RESAMPLES)]
    found: Errors = {}
    for name, (measure, constant) in measures.items():
        resampled = [measure(rows) for rows in samples]
        low, high = np.nanpercentile(resampled, [2.5, 97.5])
        found[name] = {"value": float(measure(slice(None))), "low": float(low), "high": float(high), "constant": constant}
    return found


def _regression(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    y = y.reshape(len(y), -1)
    residuals = y - model.predict(X).reshape(y.shape)
    deviations = y - y.mean(axis=0)

    def r2(rows: Any) -> float:
        around = y[rows] - y[rows].mean(axis=0)
        return float(np.mean(1 - (residuals[rows] ** 2).sum(axis=0) / np.maximum((around**2).sum(axis=0), np.finfo(float).tiny)))

    return {
        "R2": (r2, 0.0),
        "RMSE": (lambda rows: np.sqrt(np.mean(residuals[rows] ** 2)), float(np.sqrt(np.mean(deviations**2)))),
        "MAE": (lambda rows: np.mean(np.abs(residuals[rows])), float(np.mean(np.abs(y - np.median(y, axis=0))))),
    }


def _classification(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    classes = model.classes_
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(
            f"There is a class {str(y[unknown][0])!r} that the model does not know: it knows {', '.join(map(str, classes[:20]))}."
        )
    numbers = np.searchsorted(classes, y)
    probabilities = model.predict_proba(X)
    right = probabilities.argmax(axis=1) == numbers
    losses = -np.log(np.maximum(probabilities[np.arange(len(y)), numbers], np.finfo(float).tiny))
    shares = np.bincount(numbers, minlength=len(classes)) / len(y)
    entropy = float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    measures: dict[str, Any] = {
        "accuracy": (lambda rows: np.mean(right[rows]), float(shares.max())),
        "log loss": (lambda rows: np.mean(losses[rows]), entropy),
    }

    def auc(rows: Any) -> float:
        return float(roc_auc_score(numbers[rows], probabilities[rows, 1])) if len(np.unique(numbers[rows])) == 2 else np.nan

    return measures | ({"AUC": (auc, 0.5)} if len(classes) == 2 else {})


def show_errors(model: Any, X: Any, y: np.ndarray, of_what: str) -> None:
    print(f"{of_what}:")
    print(f"  {'':<9} {'model':>10}  {'95 % interval':>22}  {'constant':>10}")
    for name, each in errors_of(model, X, y).items():
        interval = f"{each['low']:.4g} to {each['high']:.4g}"
        print(f"  {name:<9} {each['value']:>10.4g}  {interval:>22}  {each['constant']:>10.4g}")
