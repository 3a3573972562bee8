"""Scores on rows that are not in memory, as sums over chunks.

The share of a loss that predictions explain is relative to the loss of the mean of y, which is known only at
the end. Squared errors and deviances d about the mean of all rows decompose, like variances, into a part
within chunks and a part between them. With n the rows of a chunk and m the mean of their y,

    sum over rows of d(y, mean)  =  sum over chunks of  [ sum over its rows of d(y, m)  +  n d(m, mean) ]"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score

from .._data.files.source import Chunk
from .._data.row_sample import RowSample
from .._model.losses import SQUARED, Loss
from .regression_losses import row_losses
from .sum_over_rows import fitted_alone, sum_over_rows

MOST_FOR_QUANTILES = 100_000  # rows from which quantiles of y are computed


@dataclass(frozen=True)
class Accuracy:
    """The weight of the rows whose label is predicted correctly, and of all rows."""

    right: float
    weight: float

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(self.right + other.right, self.weight + other.weight)


@dataclass(frozen=True)
class Explained:
    """Sums by output: the ``weight`` of the rows, the ``mean`` of y, and the losses of the mean and of
    predictions, ``about_mean`` and ``ours``. The loss is SQUARED, or one with a log link: its deviance.
    """

    loss: Loss
    weight: float
    mean: np.ndarray
    about_mean: np.ndarray
    ours: np.ndarray

    @classmethod
    def of(cls, loss: Loss, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> Explained:
        """Measure predictions (rows, outputs)."""
        y, predicted = y.astype(np.float64), predicted.astype(np.float64).reshape(y.shape)
        weights = np.ones(len(y)) if weight is None else weight
        total = float(weights.sum())
        mean = weights @ y / total if total > 0 else np.zeros(y.shape[1])
        about_mean, ours = (
            weights @ _losses(loss, y, each) for each in (np.broadcast_to(mean, y.shape), predicted)
        )
        return cls(loss, total, mean, about_mean, ours)

    def __add__(self, other: Explained) -> Explained:
        weight = self.weight + other.weight
        mean = (self.weight * self.mean + other.weight * other.mean) / weight if weight > 0 else self.mean
        between = sum(each.weight * _losses(self.loss, each.mean, mean) for each in (self, other))
        return Explained(
            self.loss, weight, mean, self.about_mean + other.about_mean + between, self.ours + other.ours
        )

    @property
    def share(self) -> float:
        """Return the share of the loss of the mean that predictions explain, averaged over outputs.

        Where y does not vary, R2 follows scikit-learn, and the share of a deviance is undefined."""
        if self.loss == SQUARED:
            if_constant = np.where(self.ours == 0, 1.0, 0.0)
        else:
            if_constant = np.full_like(self.ours, np.nan)
        varies = self.about_mean > 0
        return float(
            np.mean(np.where(varies, 1 - self.ours / np.where(varies, self.about_mean, 1), if_constant))
        )


def _losses(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the loss of each entry; 0 where both are 0, because a deviance would take the logarithm of 0."""
    if loss == SQUARED:
        return (y - predicted) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        outputs = np.log(predicted)
        losses = row_losses(loss, y.reshape(-1, 1), outputs.reshape(-1, 1)).reshape(y.shape)
    return np.where((y == 0) & (predicted == 0), 0.0, losses)


# ---- scores of a model


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    found = sum_over_rows(model, X, y, sample_weight, partial(_accuracy, fitted_alone(model)))
    return found.right / found.weight


def _accuracy(model: Any, chunk: Chunk) -> Accuracy:
    labels = model._labels(model._outputs_in_memory(chunk.X))
    right = (labels.reshape(chunk.y.shape) == chunk.y).all(axis=1)
    weight = np.ones(len(right)) if chunk.weight is None else chunk.weight
    return Accuracy(float(weight @ right), float(weight.sum()))


def explained(model: Any, loss: Loss, X: Any, y: Any, sample_weight: Any) -> float:
    """Return R2 if the loss is SQUARED, and otherwise the explained share of the deviance."""
    return sum_over_rows(model, X, y, sample_weight, partial(_explained, fitted_alone(model), loss)).share


def _explained(model: Any, loss: Loss, chunk: Chunk) -> Explained:
    return Explained.of(loss, chunk.y, model._predictions(model._outputs_in_memory(chunk.X)), chunk.weight)


def quantiles_explained(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the mean explained share of the pinball losses, on a sample if there are many rows."""
    sample = sum_over_rows(model, X, y, sample_weight, partial(_sample, fitted_alone(model)))
    predicted, y, weight = sample.parts
    return pinball_explained(model.quantiles_, y[:, 0], predicted, weight)


def pinball_explained(levels: np.ndarray, y: Any, predicted: np.ndarray, weight: Any) -> float:
    columns = zip(predicted.T, levels, strict=True)
    return float(np.mean([d2_pinball_score(y, each, sample_weight=weight, alpha=a) for each, a in columns]))


def _sample(model: Any, chunk: Chunk) -> RowSample:
    predicted = model._predictions(model._outputs_in_memory(chunk.X))
    return RowSample.of((predicted, chunk.y, chunk.weight), chunk.first, MOST_FOR_QUANTILES)
