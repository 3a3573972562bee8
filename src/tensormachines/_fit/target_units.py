"""Units of a target: how numbers are standardised for a fit, and how outputs are converted back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._data.summary import Summary
from .._model.losses import ABSOLUTE, Loss
from .own_units import own_units

SMALLEST = 1e-150  # mean of targets that do not vary
IQR_OF_NORMAL = 1.349  # interquartile range of a standard normal distribution
FAR_FROM_0 = 1e3  # in deviations: further away, float32 cannot tell values apart well


@dataclass(frozen=True)
class TargetUnits:
    """Solvers see (y - shift) / scale; outputs times ``deviation`` plus ``center`` are in the units of y.

    With squared error, these are the mean and the standard deviation. A robust loss uses a quantile and the
    interquartile range instead. With a log link, y is divided by its mean and not shifted; the log of the
    mean is added to outputs, which solvers see as 0 at the mean; ``largest`` is the log of the largest
    target. The noise may then be larger than 1, as in rare counts; it is bounded by the variance of y in
    units of its mean. The absolute error is twice the pinball loss, and so is its noise. For the units of a
    user's own loss, which is divided by ``size``, see `_fit.own_units`."""

    shift: np.ndarray
    scale: np.ndarray
    center: np.ndarray
    deviation: np.ndarray
    noise: float = 1.0
    largest: np.ndarray | None = None
    size: np.ndarray | None = None


def largest_outputs(targets: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """Return the logarithms of the largest targets (n_outputs,), including those ``before``."""
    with np.errstate(divide="ignore"):  # a block may have nothing but zeros
        found = np.log(targets.astype(np.float64))
    return found if before is None else np.maximum(found, before)


def target_units(summary: Summary, loss: Loss) -> TargetUnits:
    """Return the units of each output; the units of classes and labels change nothing."""
    if summary.targets is None:
        return _standardised(np.zeros(1), np.ones(1))
    if loss.of_classes:
        return _standardised(np.zeros_like(summary.targets.mean), np.ones_like(summary.targets.mean))
    mean, deviation = summary.targets.mean, summary.targets.deviation
    if not np.abs([mean, deviation]).max() < 1e-3 * np.finfo(summary.dtype).max:
        raise ValueError(
            f"y has values too large for {summary.dtype}: divide y by a power of ten, or pass X in float64."
        )
    size = np.abs(mean)
    if ((deviation == 0) & (size > 0) & (size < SMALLEST)).any():
        raise ValueError("y has values too small, whose squares are 0: multiply y by a power of ten.")
    if loss.log_link:
        assert summary.largest_targets is not None
        return _with_log_link(mean, deviation, summary.largest_targets, loss)
    deviation = np.where(deviation == 0, 1.0, deviation)
    if loss.code is None:
        return _own(summary, deviation, loss)
    if loss.level is None:
        return _standardised(mean, deviation)
    units = _robust(summary, deviation, loss.level)
    return replace(units, noise=2.0) if loss == ABSOLUTE else units


def _standardised(center: np.ndarray, deviation: np.ndarray) -> TargetUnits:
    return TargetUnits(center, deviation, center, deviation)


def _with_log_link(mean: np.ndarray, deviation: np.ndarray, largest: np.ndarray, loss: Loss) -> TargetUnits:
    if not (mean > 0).all():
        raise ValueError(f"loss={loss.name!r} needs some targets above 0, but all of them are 0.")
    noise = max(1.0, float(np.max((deviation / mean) ** 2)))
    zeros, ones = np.zeros_like(mean), np.ones_like(mean)
    return TargetUnits(zeros, mean, np.log(mean), ones, noise, largest_outputs(largest))


def _robust(summary: Summary, deviation: np.ndarray, level: float) -> TargetUnits:
    """Return a quantile and the interquartile range, or the standard deviation if the quartiles are equal."""
    sample = summary.target_sample
    assert sample is not None
    columns = [weighted_quantiles(y, sample.weight, [0.25, level, 0.75]) for y in sample.X.T]
    first, center, third = np.array(columns).T
    scale = (third - first) / IQR_OF_NORMAL
    return _standardised(center, np.where(scale > 0, scale, deviation))


def _own(summary: Summary, deviation: np.ndarray, loss: Loss) -> TargetUnits:
    """Leave y unchanged, because a loss may look for zeros or labels; but shift y if it is far from 0."""
    sample, targets = summary.target_sample, summary.targets
    assert sample is not None
    assert targets is not None
    shift = np.where(np.abs(targets.mean) > FAR_FROM_0 * deviation, targets.mean, 0.0)
    found = [own_units(loss, y.astype(np.float64), sample.weight) for y in sample.X.T]
    center, own_deviation, size = np.array(found).T
    return TargetUnits(shift, np.ones_like(shift), center, own_deviation, size=size)


def weighted_quantiles(values: np.ndarray, weight: np.ndarray, levels: list[float]) -> np.ndarray:
    """Return the smallest values that at least these shares of the weight do not exceed."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(share, np.array(levels) * (1 - 1e-12))
    return values[order][places.clip(max=len(values) - 1)].astype(np.float64)
