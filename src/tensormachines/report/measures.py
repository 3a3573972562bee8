"""Error measures of predictions, with bootstrap intervals.

Each measure is a smooth function of means over rows. Rows are resampled with replacement and measured again;
the interval holds 95 % of the results. With many rows the means are drawn instead, from their asymptotic
normal distribution. All predictions of the same rows are measured on the same draws, so that their
differences have intervals, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._fit.target_units import weighted_quantiles

DRAWS = 1000
LEVEL = 0.95
ENTRIES_AT_ONCE = 1 << 22
MOST_RESAMPLED = 20_000  # rows
ABSENT_OR_PRESENT = np.array([0, 1])  # the two classes of each label in multilabel targets
SMALLEST = 1e-15  # probabilities are clipped here: a single 0 would make the log loss infinite


@dataclass(frozen=True)
class Measure:
    """One measure of one prediction: its ``value`` on the rows, its values on the bootstrap ``draws``, and
    their 95 % ``interval``.
    """

    name: str
    value: float
    draws: np.ndarray
    interval: tuple[float, float]


def interval_of(draws: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of draws, ignoring NaN: a measure may be undefined on a draw of one class."""
    known = draws[np.isfinite(draws)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def regression_errors(
    y: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    sample_weight: np.ndarray | None = None,
    random_state: int = 0,
    most_resampled: int = MOST_RESAMPLED,
    own: tuple[Sequence[str], Mapping[str, np.ndarray]] = ((), {}),
) -> dict[str, list[Measure]]:
    """Return R2, RMSE and mean absolute error of each prediction, and its ``own`` measures.

    Parameters
    ----------
    y : ndarray of shape (rows,)
    predictions : mapping of names to ndarrays of shape (rows,)
    sample_weight : ndarray of shape (rows,), optional
    random_state : int
        Seed of the draws.
    most_resampled : int
        With more rows, means are drawn from their normal distribution.
    own : tuple of names and mapping, optional
        Names of further measures, and for each prediction the numbers whose means are these measures,
        (rows, measures).
    """
    y = np.asarray(y, dtype=np.float64)
    scale = _scale(y)
    target = (y - y.mean()) / scale
    errors = {
        name: (np.asarray(predicted, dtype=np.float64) - y) / scale for name, predicted in predictions.items()
    }
    of_rows = np.column_stack(
        [target, target**2, *(part for error in errors.values() for part in (error**2, np.abs(error)))]
        + ([own[1][name] for name in errors] if own[0] else [])
    )
    means = _means(of_rows, sample_weight, random_state, most_resampled)
    measured = {}
    for place, name in enumerate(errors):
        squared, absolute = means[:, 2 + 2 * place], means[:, 3 + 2 * place]
        measured[name] = regression_measures(means[:, 0], means[:, 1], squared, absolute, scale)
        first = 2 + 2 * len(errors) + len(own[0]) * place
        measured[name] += [measure(each, means[:, first + k]) for k, each in enumerate(own[0])]
    return measured


def regression_measures(
    target: np.ndarray, squares: np.ndarray, squared: np.ndarray, absolute: np.ndarray, scale: float = 1.0
) -> list[Measure]:
    """Return measures from means over rows (1 + draws,) of the target, its square, and squared and absolute
    errors, all in units of ``scale``.
    """
    variance = np.maximum(squares - target**2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(variance > 0, 1 - squared / variance, np.nan)
    return [
        measure("R2", explained),
        measure("root mean square error", scale * np.sqrt(np.maximum(squared, 0))),
        measure("mean absolute error", scale * absolute),
    ]


def classification_errors(
    y: np.ndarray,
    classes: np.ndarray,
    probabilities: Mapping[str, np.ndarray],
    sample_weight: np.ndarray | None = None,
    random_state: int = 0,
    most_resampled: int = MOST_RESAMPLED,
) -> dict[str, list[Measure]]:
    """Return accuracy and log loss of each prediction, and for two classes the area under the ROC curve.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        Labels, which must all be among ``classes``.
    classes : ndarray of shape (n_classes,)
    probabilities : mapping of names to ndarrays of shape (rows, n_classes)
    sample_weight, random_state, most_resampled
        As in `regression_errors`.
    """
    codes = class_codes(y, classes)
    rows, has_area = np.arange(len(codes)), len(classes) == 2
    moments = []
    for of_classes in probabilities.values():
        moments.append((of_classes.argmax(axis=1) == codes).astype(np.float64))
        moments.append(-np.log(np.maximum(of_classes[rows, codes], SMALLEST)))
        if has_area:
            moments.append(_shares_of_area(codes == 1, of_classes[:, 1], sample_weight))
    means = iter(_means(np.column_stack(moments), sample_weight, random_state, most_resampled).T)
    measured = {}
    for name in probabilities:
        measured[name] = [measure("accuracy", np.clip(next(means), 0, 1)), measure("log loss", next(means))]
        if has_area:
            measured[name].append(measure("area under the ROC curve", np.clip(next(means), 0, 1)))
    return measured


def quantiles_by_weight(numbers: np.ndarray, weight: np.ndarray | None, levels: list[float]) -> np.ndarray:
    """Return quantiles of numbers, weighted if there are weights."""
    return np.quantile(numbers, levels) if weight is None else weighted_quantiles(numbers, weight, levels)


def class_codes(y: Any, classes: np.ndarray) -> np.ndarray:
    """Return the position of each label among the classes."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    labels = np.asarray(y).tolist()
    unknown = sorted({repr(label) for label in labels if label not in places})
    if unknown:
        known = ", ".join(repr(label) for label in classes.tolist()[:10])
        raise ValueError(
            f"y has labels that the model does not know: {', '.join(unknown[:5])}. "
            f"It knows {known}: leave the other rows out."
        )
    return np.fromiter((places[label] for label in labels), dtype=np.intp, count=len(labels))


def _scale(y: np.ndarray) -> float:
    """Return the scale by which to divide numbers before squaring them, because large ones would overflow."""
    largest = float(np.abs(y - y.mean()).max(initial=0.0))
    return largest if largest > 0 else 1.0


def measure(name: str, values: np.ndarray) -> Measure:
    return Measure(name, float(values[0]), values[1:], interval_of(values[1:]))


def _means(
    of_rows: np.ndarray, sample_weight: np.ndarray | None, random_state: int, most_resampled: int
) -> np.ndarray:
    """Return the weighted means over the rows, and over each draw of them: (1 + draws, moments)."""
    weight = np.ones(len(of_rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    random = np.random.default_rng(random_state)
    means = weight @ of_rows / weight.sum()
    if len(of_rows) > most_resampled:
        distances = (weight / weight.sum())[:, None] * (of_rows - means)
        return with_draws(means, distances.T @ distances, random_state)
    found = [means[None]]
    at_once = max(1, ENTRIES_AT_ONCE // max(1, len(of_rows)))
    for start in range(0, DRAWS, at_once):
        weights = weight * _counts(random, min(at_once, DRAWS - start), len(of_rows))
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN if only rows of weight 0 were drawn
            found.append(weights @ of_rows / weights.sum(axis=1, keepdims=True))
    return np.vstack(found)


def with_draws(means: np.ndarray, covariance: np.ndarray, random_state: int = 0) -> np.ndarray:
    """Return means (moments,), and draws from a normal distribution about them: (1 + draws, moments)."""
    random = np.random.default_rng(random_state)
    return np.vstack([means, random.multivariate_normal(means, covariance, DRAWS, method="eigh")])


def _counts(random: np.random.Generator, draws: int, rows: int) -> np.ndarray:
    """Return how many times each row is drawn, (draws, rows)."""
    drawn = random.integers(rows, size=(draws, rows)) + rows * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * rows).reshape(draws, rows)


def _shares_of_area(positive: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return a number per row, with the area under the ROC curve as its mean: this area plus the influence of
    the row on it (DeLong, DeLong and Clarke-Pearson 1988).

    The area is the share of pairs of a positive and a negative row in which the positive row has the higher
    score; ties count half."""
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    below = np.empty(len(scores))  # share of the rows of the other class with a lower score
    for these in (positive, ~positive):
        order = np.argsort(scores[~these])
        others, total = scores[~these][order], np.append(0, np.cumsum(weight[~these][order]))
        lower, not_higher = (
            total[np.searchsorted(others, scores[these], side)] for side in ("left", "right")
        )
        with np.errstate(invalid="ignore"):  # NaN if there are no others
            below[these] = (lower + not_higher) / 2 / total[-1]
    right = np.where(positive, below, 1 - below)
    share = np.where(positive, weight[positive].sum(), weight[~positive].sum()) / weight.sum()
    area = weight[positive] @ right[positive] / weight[positive].sum() if positive.any() else np.nan
    return area + (right - area) / share
