"""Errors of a model on any number of rows, as sums over chunks, in bounded memory.

The measures are those of `measures`, which are functions of means over rows. Up to 20,000 rows are kept and
resampled as in memory. With more rows, the means and their covariances are enough. Measures that need all
rows at once come from histograms of 65,536 bins (`BinnedSums`): the area under the ROC curve from a histogram
of the scores, and the errors of a constant, known only at the end, from a histogram of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.binned_sums import BinnedSums
from .._data.row_sample import RowSample
from .._data.summary import both
from .._model.losses import SQUARED, Loss, is_defined, quantile
from ..estimators.regression_losses import row_losses
from ..estimators.summed_scores import Explained
from .measures import (
    ABSENT_OR_PRESENT,
    MOST_RESAMPLED,
    SMALLEST,
    Measure,
    class_codes,
    classification_errors,
    measure,
    quantiles_by_weight,
    regression_errors,
    regression_measures,
    with_draws,
)

MODEL, CONSTANT = "model", "constant"


@dataclass(frozen=True)
class JointMoments:
    """Moments of some quantities of a row, over rows with weights.

    ``mean`` is the mean over rows of total ``weight``. The variance of this mean is a sum with squared
    weights: ``squares`` is their total, ``center`` the mean with squared weights, and ``scatter`` holds the
    sums of products of deviations from ``center``."""

    weight: float
    mean: np.ndarray
    squares: float
    center: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, quantities: np.ndarray, weight: np.ndarray) -> JointMoments:
        total, squares = float(weight.sum()), float((weight**2).sum())
        mean = weight @ quantities / (total or 1.0)
        center = weight**2 @ quantities / (squares or 1.0)
        distances = weight[:, None] * (quantities - center)
        return cls(total, mean, squares, center, distances.T @ distances)

    def __add__(self, other: JointMoments) -> JointMoments:
        weight, squares = self.weight + other.weight, self.squares + other.squares
        share, of_squares = other.weight / (weight or 1.0), other.squares / (squares or 1.0)
        distance = other.center - self.center
        between = np.outer(distance, distance) * (self.squares * of_squares)
        return JointMoments(
            weight,
            self.mean * (1 - share) + other.mean * share,
            squares,
            self.center * (1 - of_squares) + other.center * of_squares,
            self.scatter + other.scatter + between,
        )

    def mapped(self, matrix: np.ndarray, shift: np.ndarray) -> JointMoments:
        """Return the moments of ``matrix @ quantities + shift``."""
        mean, center = (matrix @ each + shift for each in (self.mean, self.center))
        return JointMoments(self.weight, mean, self.squares, center, matrix @ self.scatter @ matrix.T)

    def drawn(self) -> np.ndarray:
        """Return the means, and draws from their normal distribution, (quantities, 1 + draws)."""
        distance = self.center - self.mean
        about_mean = self.scatter + self.squares * np.outer(distance, distance)
        deviation = np.sqrt(np.diag(about_mean))  # units in which rounding loses no quantity
        units = np.where(deviation > 0, deviation, 1.0)
        covariance = about_mean / units / units[:, None] / self.weight**2
        return (with_draws(self.mean / units, covariance) * units).T


# ---- numbers


@dataclass(frozen=True)
class NumberErrors:
    """Errors of predictions of one target.

    ``moments`` are the moments of y - center, its square, the squared and the absolute error, and the measure
    of the model's loss, which must be ``defined`` for all y. ``explained`` also has the losses of the mean.
    ``bins`` hold the weight and the weighted sum of the values of y."""

    loss: Loss
    defined: bool
    center: float
    moments: JointMoments
    explained: Explained
    bins: BinnedSums

    @classmethod
    def of(cls, loss: Loss, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> NumberErrors:
        """Measure predictions (rows,) of y by a model with this loss."""
        y, predicted = y.astype(np.float64), predicted.astype(np.float64)
        explained = Explained.of(loss if loss.log_link else SQUARED, y[:, None], predicted[:, None], weight)
        center, error, defined = float(explained.mean[0]), predicted - y, is_defined(loss, y)
        own = own_values(loss, y, predicted) if defined else np.zeros((len(y), len(own_measures(loss))))
        quantities = [y - center, (y - center) ** 2, error**2, np.abs(error), own]
        moments = JointMoments.of(np.column_stack(quantities), weight)
        bins = BinnedSums.of(y, np.column_stack([weight, weight * y]))
        return cls(loss, defined, center, moments, explained, bins)

    def __add__(self, other: NumberErrors) -> NumberErrors:
        explained = self.explained + other.explained
        center = float(explained.mean[0])
        return NumberErrors(
            self.loss,
            self.defined and other.defined,
            center,
            self._about(center) + other._about(center),
            explained,
            self.bins + other.bins,
        )

    def _about(self, center: float) -> JointMoments:
        """Return the moments with y relative to another center."""
        size, distance = len(self.moments.mean), self.center - center
        matrix, shift = np.eye(size), np.zeros(size)
        matrix[1, 0], shift[:2] = 2 * distance, (distance, distance**2)
        return self.moments.mapped(matrix, shift)

    def measures(self) -> dict[str, list[Measure]]:
        target, squares, squared, absolute, *own = self.moments.drawn()
        ours = regression_measures(target, squares, squared, absolute)
        constant, (weights, sums) = self._constant(), self.bins.sums.T
        total, variance = self.moments.weight, squares[0] - target[0] ** 2
        distances = sums - weights * constant
        about_constant = variance + (target[0] + self.center - constant) ** 2
        values = [
            1 - about_constant / variance if variance > 0 else np.nan,
            np.sqrt(about_constant),
            np.abs(distances).sum() / total,
        ]
        if self.defined:
            ours += [measure(name, each) for name, each in zip(own_measures(self.loss), own, strict=True)]
        if self.defined and self.loss.log_link:
            values.append(self.explained.about_mean[0] / total)
        elif self.loss.name == "quantile":
            level = self.loss.parameter
            values.append(np.maximum(level * distances, (level - 1) * distances).sum() / total)
            values.append(weights[distances <= 0].sum() / total)
        return {MODEL: ours, CONSTANT: [_only(of.name, each) for of, each in zip(ours, values, strict=True)]}

    def _constant(self) -> float:
        """Return the mean of y, or the quantile that the model predicts."""
        if self.loss.level is None:
            return float(self.explained.mean[0])
        weights, sums = self.bins.sums.T
        place = np.searchsorted(np.cumsum(weights), self.loss.level * self.moments.weight)
        return float(sums[place] / weights[place])


def own_measures(loss: Loss) -> tuple[str, ...]:
    """Return the names of the measures of a loss besides R2 and errors: its mean, and the share of y that is
    not above a quantile.
    """
    if loss.log_link:
        return ("deviance",)
    return ("pinball loss", "share below") if loss.name == "quantile" else ()


def own_values(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the numbers whose means over rows are the `own_measures`, (rows, measures)."""
    if not (names := own_measures(loss)):
        return np.zeros((len(y), 0))
    positive = np.maximum(predicted, np.finfo(np.float64).tiny)  # the constant of counts of 0 is 0
    losses = row_losses(loss, y[:, None], (np.log(positive) if loss.log_link else predicted)[:, None])
    return np.column_stack([losses, y <= predicted][: len(names)])


def _only(name: str, value: float) -> Measure:
    """Return a value without draws."""
    return Measure(name, float(value), np.empty(0), (np.nan, np.nan))


# ---- classes


@dataclass(frozen=True)
class ClassErrors:
    """Errors of probabilities.

    ``moments`` are the moments of the accuracy and of the log loss; ``weights`` are the weights of each
    class. For two classes, ``bins`` of the probability of the second class hold the weights of both classes,
    and their squares."""

    moments: JointMoments
    weights: np.ndarray
    bins: BinnedSums | None

    @classmethod
    def of(
        cls, classes: np.ndarray, y: np.ndarray, probabilities: np.ndarray, weight: np.ndarray
    ) -> ClassErrors:
        codes, probabilities = class_codes(y, classes), probabilities.astype(np.float64)
        right = (probabilities.argmax(axis=1) == codes).astype(np.float64)
        losses = -np.log(np.maximum(probabilities[np.arange(len(codes)), codes], SMALLEST))
        by_class = weight[:, None] * (codes[:, None] == np.arange(len(classes)))
        both = np.column_stack([by_class, by_class**2])
        bins = BinnedSums.of(probabilities[:, 1], both) if len(classes) == 2 else None
        return cls(JointMoments.of(np.column_stack([right, losses]), weight), by_class.sum(axis=0), bins)

    def __add__(self, other: ClassErrors) -> ClassErrors:
        bins = both(self.bins, other.bins)
        return ClassErrors(self.moments + other.moments, self.weights + other.weights, bins)

    def measures(self) -> dict[str, list[Measure]]:
        right, losses = self.moments.drawn()
        ours = [measure("accuracy", np.clip(right, 0, 1)), measure("log loss", losses)]
        shares = self.weights / self.weights.sum()
        entropy = -(shares * np.log(np.maximum(shares, SMALLEST))).sum()
        values = [shares.max(), entropy]
        if self.bins is not None:
            area, variance = area_under_curve(self.bins)
            drawn = with_draws(np.array([area]), np.array([[variance]]))[:, 0]
            ours.append(measure("area under the ROC curve", np.clip(drawn, 0, 1)))
            values.append(0.5 if self.weights.all() else np.nan)
        return {MODEL: ours, CONSTANT: [_only(of.name, each) for of, each in zip(ours, values, strict=True)]}


def area_under_curve(bins: BinnedSums) -> tuple[float, float]:
    """Return the area under the ROC curve and its variance (DeLong, DeLong and Clarke-Pearson 1988), from the
    weights of negative and positive rows, and their squares, by bins of their scores; rows of a bin are ties.
    """
    totals = bins.sums[:, :2].sum(axis=0)
    if not totals.all():
        return np.nan, 0.0
    negative, positive = (bins.sums[:, :2] / totals).T
    of_negative, of_positive = (bins.sums[:, 2:] / totals**2).T
    # The shares of the other class that are ranked correctly.
    below, above = (np.cumsum(share) - share / 2 for share in (negative, positive))
    area = float(positive @ below)
    spread = of_positive @ (below - area) ** 2 + of_negative @ (1 - above - area) ** 2
    return area, float(spread)


# ---- a model


@dataclass(frozen=True)
class SummedErrors:
    """The errors of a model on rows: the errors of each target, and a sample of targets, predictions and
    weights (None if all rows count the same)."""

    sample: RowSample
    of_targets: tuple[NumberErrors | ClassErrors, ...]

    @classmethod
    def of(
        cls, model: Any, y: np.ndarray, predicted: np.ndarray, first: int, weight: np.ndarray | None = None
    ) -> SummedErrors:
        """Measure predictions or probabilities of rows that come after ``first`` other rows."""
        weights = np.ones(len(y)) if weight is None else weight
        each = (
            NumberErrors.of(kind, actual, found, weights)
            if isinstance(kind, Loss)
            else ClassErrors.of(kind, actual, found, weights)
            for kind, actual, found in by_target(model, y, predicted)
        )
        return cls(RowSample.of((y, predicted, weight), first, MOST_RESAMPLED), tuple(each))

    def __add__(self, other: SummedErrors) -> SummedErrors:
        pairs: Any = zip(self.of_targets, other.of_targets, strict=True)
        return SummedErrors(self.sample + other.sample, tuple(one + two for one, two in pairs))

    @property
    def n_rows(self) -> int:
        return self.sample.n_rows

    def measures(self, model: Any) -> list[dict[str, list[Measure]]]:
        """Return for each target the measures of the model, and of a constant."""
        if self.n_rows <= self.sample.most:
            return measures_in_memory(model, *self.sample.parts)
        return [each.measures() for each in self.of_targets]


def measures_in_memory(
    model: Any, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None
) -> list[dict[str, list[Measure]]]:
    """Return the measures of `SummedErrors.measures` for rows in memory."""
    return [
        _number_measures(kind, actual, found, weight)
        if isinstance(kind, Loss)
        else _class_measures(kind, actual, found, weight)
        for kind, actual, found in by_target(model, y, predicted)
    ]


Target = tuple[np.ndarray | Loss, np.ndarray, np.ndarray]


def by_target(model: Any, y: np.ndarray, predicted: np.ndarray) -> list[Target]:
    """Return for each target or quantile level its classes or its loss, its y (rows,), and its predictions or
    probabilities."""
    if not hasattr(model, "classes_"):
        predictions = predicted.reshape(len(y), -1)
        columns = np.broadcast_to(y.reshape(len(y), -1), predictions.shape)
        losses = losses_of(model, predictions.shape[1])
        return list(zip(losses, columns.T, predictions.T, strict=True))
    if model._target_link != "sigmoid":
        return [(model.classes_, y.reshape(len(y)), predicted)]
    return [
        (ABSENT_OR_PRESENT, y[:, k], np.column_stack([1 - likely, likely]))
        for k, likely in enumerate(predicted.T)
    ]


def losses_of(model: Any, n_outputs: int) -> list[Loss]:
    """Return the loss of each output of a regressor."""
    levels = getattr(model, "quantiles_", None)
    return [model._loss()] * n_outputs if levels is None else [quantile(level) for level in levels]


def _class_measures(
    classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None
) -> dict[str, list[Measure]]:
    shares = np.array([np.average(y == label, weights=weight) for label in classes])
    both = {MODEL: predicted, CONSTANT: np.tile(shares, (len(y), 1))}
    return classification_errors(y, classes, both, weight)


def _number_measures(
    loss: Loss, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None
) -> dict[str, list[Measure]]:
    y = y.astype(np.float64)  # counts in a file may be integers
    if loss.level is None:
        constant = np.average(y, weights=weight)
    else:
        constant = quantiles_by_weight(y, weight, [loss.level])[0]
    both = {MODEL: predicted, CONSTANT: np.full(len(y), constant)}
    if not is_defined(loss, y):
        return regression_errors(y, both, weight)
    own = {of: own_values(loss, y, each) for of, each in both.items()}
    return regression_errors(y, both, weight, own=(own_measures(loss), own))
