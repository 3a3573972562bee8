"""How large the errors of predictions are, and how certain that is.

Each measure is a smooth function of means over rows, or the share of pairs in the right order (AUC). The interval is that of the bootstrap:
rows are drawn again, with repetition, and measured again; it holds 95 % of what comes out. All predictions of the same rows are
measured on the same draws, so that their differences have intervals, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

DRAWS = 1000
LEVEL = 0.95
ENTRIES_AT_ONCE = 1 << 22
SMALLEST = 1e-15  # a probability counts as that at least: one that is exactly 0 would make the loss of all rows infinite


@dataclass(frozen=True)
class Measure:
    """One measure of one prediction: its ``value`` on the rows, and in each of the ``draws``."""

    name: str
    value: float
    draws: np.ndarray
    higher_is_better: bool

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.draws)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """NaN where a measure is not defined, as in a draw of a single class, does not count."""
    known = draws[np.isfinite(draws)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def regression_errors(
    y: np.ndarray, predictions: Mapping[str, np.ndarray], sample_weight: np.ndarray | None = None, random_state: int = 0
) -> dict[str, list[Measure]]:
    """R2, root mean square error and mean absolute error of each prediction (rows,).

    Parameters
    ----------
    y : ndarray of shape (rows,)
    predictions : mapping of names to ndarrays of shape (rows,)
    sample_weight : ndarray of shape (rows,), optional
    random_state : int
        Of the draws.
    """
    y = np.asarray(y, dtype=np.float64)
    scale = _scale(y)
    target = (y - y.mean()) / scale
    errors = {name: (np.asarray(predicted, dtype=np.float64) - y) / scale for name, predicted in predictions.items()}
    of_rows = np.column_stack([target, target**2, *(part for error in errors.values() for part in (error**2, np.abs(error)))])
    means = _means(of_rows, sample_weight, random_state)  # (draws + 1, moments), the first of the rows themselves
    variance = np.maximum(means[:, 1] - means[:, 0] ** 2, 0)
    measured = {}
    for place, name in enumerate(errors):
        squared, absolute = means[:, 2 + 2 * place], means[:, 3 + 2 * place]
        with np.errstate(divide="ignore", invalid="ignore"):
            explained = np.where(variance > 0, 1 - squared / variance, np.nan)
        measured[name] = [
            _measure("R2", explained, True),
            _measure("root mean square error", scale * np.sqrt(squared), False),
            _measure("mean absolute error", scale * absolute, False),
        ]
    return measured


def classification_errors(
    y: np.ndarray,
    classes: np.ndarray,
    probabilities: Mapping[str, np.ndarray],
    sample_weight: np.ndarray | None = None,
    random_state: int = 0,
) -> dict[str, list[Measure]]:
    """Accuracy and log loss of each prediction, and with two classes the area under the ROC curve.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        Labels, all among classes.
    classes : ndarray of shape (n_classes,)
    probabilities : mapping of names to ndarrays of shape (rows, n_classes)
    sample_weight, random_state
        As in `regression_errors`.
    """
    codes = class_codes(y, classes)
    rows = np.arange(len(codes))
    moments = []
    for of_classes in probabilities.values():
        moments.append((of_classes.argmax(axis=1) == codes).astype(np.float64))
        moments.append(-np.log(np.maximum(of_classes[rows, codes], SMALLEST)))
    means = _means(np.column_stack(moments), sample_weight, random_state)
    measured = {}
    for place, (name, of_classes) in enumerate(probabilities.items()):
        measured[name] = [_measure("accuracy", means[:, 2 * place], True), _measure("log loss", means[:, 2 * place + 1], False)]
        if len(classes) == 2:
            areas = _areas(codes == 1, of_classes[:, 1], sample_weight, random_state)
            measured[name].append(_measure("area under the ROC curve", areas, True))
    return measured


def class_codes(y: Any, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    labels = np.asarray(y).tolist()
    unknown = sorted({repr(label) for label in labels if label not in places})
    if unknown:
        known = ", ".join(repr(label) for label in classes.tolist()[:10])
        raise ValueError(
            f"y has labels that the model does not know: {', '.join(unknown[:5])}. It knows {known}: leave the other rows out."
        )
    return np.fromiter((places[label] for label in labels), dtype=np.intp, count=len(labels))


def _scale(y: np.ndarray) -> float:
    """By which numbers are divided before they are squared: large ones would overflow."""
    largest = float(np.abs(y - y.mean()).max(initial=0.0))
    return largest if largest > 0 else 1.0


def _measure(name: str, values: np.ndarray, higher_is_better: bool) -> Measure:
    return Measure(name, float(values[0]), values[1:], higher_is_better)


def _means(of_rows: np.ndarray, sample_weight: np.ndarray | None, random_state: int) -> np.ndarray:
    """(draws + 1, moments)"""
    parts = []
    for weights in _weights(len(of_rows), sample_weight, random_state):
        parts.append(weights @ of_rows / weights.sum(axis=1, keepdims=True))
    return np.vstack(parts)


def _areas(positive: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray | None, random_state: int) -> np.ndarray:
    """(draws + 1): of all pairs of a positive and a negative row, the share where the positive one has the higher score; ties half."""
    order = np.argsort(scores, kind="stable")
    positive = positive[order]
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])  # of rows with equal scores
    parts = []
    for weights in _weights(len(scores), sample_weight, random_state):
        weights = weights[:, order]
        positives = np.add.reduceat(weights * positive, starts, axis=1)
        negatives = np.add.reduceat(weights * ~positive, starts, axis=1)
        below = np.cumsum(negatives, axis=1) - 0.5 * negatives
        pairs = positives.sum(axis=1) * negatives.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(np.where(pairs > 0, (positives * below).sum(axis=1) / pairs, np.nan))
    return np.concatenate(parts)


def _weights(rows: int, sample_weight: np.ndarray | None, random_state: int) -> Iterator[np.ndarray]:
    """The weights of the rows in each draw, (some draws, rows), the same for the same random_state; those of no draw come first."""
    own = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    yield own[None]
    random = np.random.default_rng(random_state)
    at_once = max(1, ENTRIES_AT_ONCE // max(1, rows))
    for start in range(0, DRAWS, at_once):
        drawn = random.integers(rows, size=(min(at_once, DRAWS - start), rows))
        counts = np.bincount((drawn + rows * np.arange(len(drawn))[:, None]).ravel(), minlength=drawn.size)
        yield counts.reshape(drawn.shape) * own
