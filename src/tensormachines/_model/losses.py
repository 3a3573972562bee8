"""Losses of a target and the outputs of a model, row by row, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logsumexp, ndtri, softmax

WIDTH = 0.02  # of the parabola around 0 that replaces |z - y|, as in src/native/losses.hpp
HUBER = 1.35  # threshold, in deviations of the noise: 95 % as efficient as squared error for normal noise

# "expected": for y with the mean exp(z), or for normal noise of deviation 1 with the quantile z
Second = Literal["exact", "bound", "expected"]
Pointwise = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Loss:
    """A loss of targets y and outputs z (rows, outputs); it is never negative, except for rounding.

    ``pointwise(y, z)`` returns the loss of each row (rows,) and its derivative with respect to z (rows,
    outputs). ``second(z)`` returns the second derivatives with respect to each output (rows, outputs), for
    the curvature of kfac. These must not depend on y; ``kind_of_second`` tells whether they are exact, an
    upper bound, or expected values.

    y is (rows, outputs). For a loss ``of_classes``, y holds 0 and 1: whether a row is in the second of two
    classes, or which labels it has; for the multinomial loss, y is (rows, 1), the class index. Numbers must
    be above 0 if ``positive``, and at least 0 if ``not_negative``. With ``log_link``, predictions are exp(z).
    A robust loss has a ``level``: the quantile of y that replaces the mean when the target is standardised.
    Compare losses by ``==``, and define their functions at the top level of a module, because problems are
    pickled.
    """

    name: str
    code: int | None  # as in the enum Loss of src/native/kernel.hpp; None for a function of the user
    pointwise: Pointwise = field(compare=False)
    second: Callable[[np.ndarray], np.ndarray] = field(compare=False)
    of_classes: bool = False
    kind_of_second: Second = "exact"
    parameter: float = 0.0
    log_link: bool = False
    not_negative: bool = False
    positive: bool = False
    level: float | None = None

    @property
    def shown(self) -> str:
        """Return the name in messages of the loss that a user has chosen."""
        return "a function as loss" if self.code is None else f"loss={self.name!r}"


# ---- squared error, and losses of classes


def _squared(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    difference = z - y
    return 0.5 * np.einsum("ij,ij->i", difference, difference), difference


def _logistic(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign = 2 * y - 1
    return np.logaddexp(0, -sign * z).sum(axis=1), -sign * expit(-sign * z)


def _multinomial(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    own = (np.arange(len(z)), y[:, 0].astype(np.intp))
    log_total = logsumexp(z, axis=1)
    slope = np.exp(z - log_total[:, None])
    slope[own] -= 1
    return log_total - z[own], slope


def _second_logistic(z: np.ndarray) -> np.ndarray:
    return expit(z) * expit(-z)


def _second_multinomial(z: np.ndarray) -> np.ndarray:
    share = softmax(z, axis=1)
    return share * (1 - share)


SQUARED = Loss("squared_error", 0, _squared, np.ones_like)
LOGISTIC = Loss("logistic", 1, _logistic, _second_logistic, of_classes=True)
MULTINOMIAL = Loss("multinomial", 2, _multinomial, _second_multinomial, of_classes=True)


# ---- half deviances of numbers with the mean exp(z)


def _logarithm(y: np.ndarray) -> np.ndarray:
    """Return log(y); for 0, return the log of the smallest normal number."""
    return np.log(np.maximum(y, np.finfo(y.dtype).tiny))


@np.errstate(over="ignore", invalid="ignore")
def _poisson(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    slope = np.exp(z) - y
    return (slope + y * (_logarithm(y) - z)).sum(axis=1), slope


@np.errstate(over="ignore", invalid="ignore")
def _gamma(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    excess = y * np.exp(-z) - 1
    return (excess + z - _logarithm(y)).sum(axis=1), -excess


@np.errstate(over="ignore", invalid="ignore")
def _tweedie(y: np.ndarray, z: np.ndarray, power: float) -> tuple[np.ndarray, np.ndarray]:
    a, b = power - 1, 2 - power
    ratio, mean = y * np.exp(-a * z), np.exp(b * z)
    return (ratio / a + mean / b - y**b / (a * b)).sum(axis=1), mean - ratio


@np.errstate(over="ignore")
def _second_of_power(z: np.ndarray, power: float) -> np.ndarray:
    return np.minimum(np.exp((2 - power) * z), np.finfo(z.dtype).max)


POISSON = Loss("poisson", 3, _poisson, partial(_second_of_power, power=1.0), log_link=True, not_negative=True)
GAMMA = Loss("gamma", 4, _gamma, np.ones_like, kind_of_second="expected", log_link=True, positive=True)


def tweedie(power: float) -> Loss:
    """Return the loss of a Tweedie distribution, 1 < power < 2: zeros, and positive numbers."""
    return Loss(
        "tweedie",
        5,
        partial(_tweedie, power=power),
        partial(_second_of_power, power=power),
        kind_of_second="expected",
        parameter=power,
        log_link=True,
        not_negative=True,
    )


# ---- robust losses: absolute values, rounded by a parabola near 0


def _rounded(
    y: np.ndarray, z: np.ndarray, width: float, size: float, tilt: float, at_zero: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return size r + tilt (z - y), and its slope.

    r is a straight line in |z - y| beyond ``width``, a parabola below, and ``at_zero`` at 0. Nothing that is
    large is subtracted from the parabola, so small losses stay exact."""
    difference = z - y
    distance = np.abs(difference)
    near = distance < width
    rounded = np.where(near, distance**2 / (2 * width) + at_zero, distance + (at_zero - width / 2))
    slope = np.where(near, difference / width, np.sign(difference))
    return (size * rounded + tilt * difference).sum(axis=1), size * slope + tilt


def _constant(z: np.ndarray, value: float) -> np.ndarray:
    return np.full_like(z, value)


def _density(level: float) -> float:
    """Return the density of the standard normal distribution at one of its quantiles."""
    return float(np.exp(-0.5 * ndtri(level) ** 2) / np.sqrt(2 * np.pi))


ABSOLUTE = Loss(
    "absolute_error",
    6,
    partial(_rounded, width=WIDTH, size=1.0, tilt=0.0, at_zero=WIDTH / 2),
    partial(_constant, value=2 * _density(0.5)),
    kind_of_second="expected",
    level=0.5,
)


def quantile(level: float) -> Loss:
    """Return the pinball loss, whose minimum is the quantile of y at this level."""
    return Loss(
        "quantile",
        7,
        partial(_rounded, width=WIDTH, size=0.5, tilt=0.5 - level, at_zero=WIDTH / 2),
        partial(_constant, value=_density(level)),
        kind_of_second="expected",
        parameter=level,
        level=level,
    )


def huber(threshold: float) -> Loss:
    """Return the loss that is half the squared error up to the threshold, and a straight line beyond."""
    return Loss(
        "huber",
        8,
        partial(_rounded, width=threshold, size=threshold, tilt=0.0, at_zero=0.0),
        np.ones_like,
        kind_of_second="bound",
        parameter=threshold,
        level=0.5,
    )


# ---- the loss of a user


@dataclass(frozen=True)
class OwnLoss:
    """The losses of a user's function, which sees y + shift and center + deviation * z.

    ``function(y, z)`` takes two arrays (n,), and returns the losses and their derivatives with respect to z,
    each (n,). The losses are divided by ``size``. All numbers may be arrays, (outputs,)."""

    function: Callable[[np.ndarray, np.ndarray], Any]
    shift: Any = 0.0
    center: Any = 0.0
    deviation: Any = 1.0
    size: Any = 1.0

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def __call__(self, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, z = self.shift + y.astype(np.float64), self.center + self.deviation * z.astype(np.float64)
        values, slopes = (each.reshape(z.shape) for each in self._results(y.ravel(), z.ravel()))
        return (values / self.size).sum(axis=1), slopes * (self.deviation / self.size)

    def _results(self, y: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        results = self.function(y, z)
        if not (isinstance(results, tuple) and len(results) == 2):
            raise TypeError(
                "loss(y, z) must return a tuple of two arrays, the losses and their derivatives with respect "
                f"to z, got {type(results).__name__}."
            )
        arrays = [np.asarray(each, dtype=np.float64) for each in results]
        if any(array.shape != z.shape for array in arrays):
            raise ValueError(
                "loss(y, z) must return two arrays with a number for each row, of shape "
                f"{z.shape} as y and z are, got {arrays[0].shape} and {arrays[1].shape}."
            )
        return arrays


def own_loss(function: Callable[[np.ndarray, np.ndarray], Any]) -> Loss:
    """Return a user's loss in the user's units; see `_fit.own_units` for the units of a fit."""
    return Loss("own", None, OwnLoss(function), np.ones_like, kind_of_second="expected")


def in_units(loss: Loss, **units: Any) -> Loss:
    """Return a user's loss in other units, see `OwnLoss`."""
    assert isinstance(loss.pointwise, OwnLoss)
    return replace(loss, pointwise=replace(loss.pointwise, **units))


# ---- the losses of regressors


USUAL_POWER, USUAL_QUANTILE = 1.5, 0.5
BY_NAME: dict[str, Callable[[float, float], Loss]] = {  # given a power and a level
    "squared_error": lambda *_: SQUARED,
    "poisson": lambda *_: POISSON,
    "gamma": lambda *_: GAMMA,
    "tweedie": lambda power, _: tweedie(power),
    "absolute_error": lambda *_: ABSOLUTE,
    "huber": lambda *_: huber(HUBER),
    "quantile": lambda _, level: quantile(level),
}
NAMES = tuple(BY_NAME)


def loss_named(name: Any, power: float, level: float) -> Loss:
    """Return the loss of a regressor, by its name or from a user's function.

    ``power`` and ``level`` belong to "tweedie" and "quantile"."""
    return own_loss(name) if callable(name) else BY_NAME[name](power, level)


def is_defined(loss: Loss, y: np.ndarray) -> bool:
    """Tell whether a loss is defined for all these numbers."""
    if loss.positive:
        return bool((y > 0).all())
    return not loss.not_negative or bool((y >= 0).all())


def require_targets(loss: Loss, y: np.ndarray) -> None:
    """Refuse numbers for which a loss is not defined."""
    if is_defined(loss, y):
        return
    bad = y <= 0 if loss.positive else y < 0
    allowed = "positive" if loss.positive else "0 or more"
    instead = "or use loss='tweedie', which takes zeros" if loss.positive else "or use another loss"
    raise ValueError(
        f"loss={loss.name!r} needs targets that are {allowed}, but y has {np.count_nonzero(bad):,} others, "
        f"such as {y[bad][0]:g}: leave out these rows, {instead}."
    )
