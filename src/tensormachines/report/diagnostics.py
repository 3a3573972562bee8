"""Diagnostics of predictions: residuals, calibration and the confusion matrix, as plain values for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from .measures import quantiles_by_weight

MOST_POINTS = 1000
BINS = 30
GROUPS = 10
LEAST = 0.2  # what a certain row counts, as a share of the mean variance
MOST_CLASSES = 20
NORMAL = 1.959964  # 95 % of a normal distribution lie within this many standard deviations


def residuals(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> dict[str, Any]:
    """Return predicted and actual values of some rows, and for the residuals of all rows a histogram, the
    mean, and quantiles of their absolute values, by weight.
    """
    shown = np.linspace(0, len(y) - 1, min(len(y), MOST_POINTS)).astype(np.intp)
    points = np.column_stack([predicted[shown], y[shown]])
    differences = y - predicted
    low, high = np.quantile(differences, [0.005, 0.995])
    reach = float(max(abs(low), abs(high))) or 1.0
    counts = np.histogram(np.clip(differences, -reach, reach), bins=BINS, range=(-reach, reach))[0]
    half, most = quantiles_by_weight(np.abs(differences), weight, [0.5, 0.9])
    return {
        "kind": "residuals",
        "points": [[float(f"{a:.6g}"), float(f"{b:.6g}")] for a, b in points],
        "reach": reach,
        "counts": counts.tolist(),
        "half": float(half),
        "most": float(most),
        "bias": float(np.average(differences, weights=weight)),
    }


def calibration(
    codes: np.ndarray, probabilities: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, Any]:
    """Return predicted probabilities and observed frequencies in groups, by weight, and the confusion matrix.

    With two classes, the probability is that of the second class, otherwise that of the predicted class. All
    groups have about the same total variance p (1 - p). Rows that are nearly certain, as most rows are if a
    class is rare, carry little information each and share few groups. Intervals use the effective number of
    rows of equal weight (Kish 1965)."""
    binary = probabilities.shape[1] == 2
    predicted = probabilities.argmax(axis=1)
    stated = probabilities[:, 1] if binary else probabilities.max(axis=1)
    true = codes == (1 if binary else predicted)
    groups, weights = [], np.ones(len(codes)) if weight is None else weight
    for members in _groups(stated):
        of_members = weights[members]
        if not of_members.any():
            continue
        observed = float(np.average(true[members], weights=of_members))
        low, high = wilson(observed, of_members.sum() ** 2 / (of_members**2).sum())
        groups.append(
            {
                "predicted": float(np.average(stated[members], weights=of_members)),
                "observed": observed,
                "low": low,
                "high": high,
                "rows": len(members),
                "true": int(true[members].sum()),
            }
        )
    confusion = _confusion(codes, predicted, probabilities.shape[1])
    return {"kind": "calibration", "groups": groups, "confusion": confusion}


def _groups(stated: np.ndarray) -> list[np.ndarray]:
    """Return the row indices of each group, in order of probability."""
    order = np.argsort(stated, kind="stable")
    variance = (stated * (1 - stated))[order]
    weight = np.cumsum(variance + (LEAST * variance.mean() or 1.0))
    ends = np.searchsorted(weight, np.arange(1, GROUPS) / GROUPS * weight[-1] * (1 + 1e-12))
    return [members for members in np.split(order, ends) if len(members)]


def wilson(share: float, rows: float) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927), which stays between 0 and 1."""
    z = NORMAL**2 / rows
    middle = (share + z / 2) / (1 + z)
    half = np.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def _confusion(codes: np.ndarray, predicted: np.ndarray, n_classes: int) -> list[list[int]] | None:
    """Return the confusion matrix, actual by predicted; None if there are too many classes to show."""
    if n_classes > MOST_CLASSES:
        return None
    counts = np.bincount(codes * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes).tolist()
