"""Errors, losses and sizes of fitted models: one definition of each."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np

from sets import Sample


def loss_of(outputs: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    """Mean squared error, or log-loss of probabilities."""
    if not n_classes:
        return float(np.mean((outputs - y) ** 2))
    by_class = np.column_stack([1 - outputs, outputs]) if outputs.ndim == 1 else outputs
    return float(-np.mean(np.log(np.clip(by_class[np.arange(len(y)), y].astype(np.float64), 1e-15, 1))))


def error_of(outputs: np.ndarray, y: np.ndarray, n_classes: int, threshold: float = 0.5) -> float:
    """Root mean squared error in standard deviations of y, or the share of wrong classes."""
    if not n_classes:
        return math.sqrt(loss_of(outputs, y, 0)) / float(np.std(y))
    classes = (outputs > threshold).astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)
    return float(np.mean(classes != y))


def error(model: Any, sample: Sample) -> float:
    """The error of a fitted estimator: that of its values, or of the classes that it predicts."""
    return prediction_error(model.predict(sample.X), sample.y)


def prediction_error(predicted: np.ndarray, y: np.ndarray) -> float:
    """The same of predictions: numbers where y holds floats, classes where it holds integers."""
    return error_of(predicted, y, 0) if y.dtype.kind == "f" else float(np.mean(predicted != y))


def pickled_bytes(*objects: Any) -> int:
    return sum(len(pickle.dumps(each, protocol=5)) for each in objects if each is not None)
