"""The losses that users choose for a regressor: their parameters, their scores, and exposures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._data.files.source import Source
from .._data.open import import_dask, is_on_dask
from .._fit.target_units import IQR_OF_NORMAL, weighted_quantiles
from .._model.losses import NAMES, USUAL_QUANTILE, Loss, huber, loss_named
from .sklearn_private import Interval, StrOptions
from .sum_over_rows import require_y

LARGEST_OFFSET = 100  # for a log link: its exponential, and weights derived from it, do not overflow

CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [StrOptions(set(NAMES)), callable],
    "power": [Interval(Real, 1, 2, closed="neither")],
    "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
    "intervals": ["boolean"],
}


def loss_of(estimator: Any) -> Loss:
    """Return the loss named by the parameters of a regressor or search, except for several quantiles."""
    level = float(estimator.quantile) if isinstance(estimator.quantile, Real) else USUAL_QUANTILE
    return loss_named(estimator.loss, float(estimator.power), level)


def mean_loss(loss: Loss, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
    """Return scikit-learn's measure for a loss, averaged over rows and outputs (rows, outputs).

    The measure is the deviance for losses with a log link (outputs are logarithms), the pinball loss or the
    absolute error without the parabola near 0, the squared error, or the user's own loss itself."""
    return float(np.average(row_losses(loss, y, outputs), weights=weight))


def row_losses(loss: Loss, y: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return the measure of `mean_loss` for each row, (rows,)."""
    if loss.log_link:
        return 2 * loss.pointwise(y, outputs)[0] / y.shape[1]
    if loss.code is None:
        return loss.pointwise(y, outputs)[0] / y.shape[1]
    return _ERRORS[loss.name](y - outputs, loss.parameter).mean(axis=1)


def in_units_of(y: np.ndarray, weight: np.ndarray | None, loss: Loss) -> Loss:
    """Return the loss for numbers like y, which are not standardised: it changes Huber's threshold."""
    if loss.name != "huber":
        return loss
    flat = y.astype(np.float64).ravel()
    weights = np.ones(len(y)) if weight is None else weight
    first, third = weighted_quantiles(flat, np.repeat(weights, len(flat) // len(y)), [0.25, 0.75])
    scale = (third - first) / IQR_OF_NORMAL or flat.std() or 1.0
    return huber(loss.parameter * float(scale))


_ERRORS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "squared_error": lambda residual, _: residual**2,
    "absolute_error": lambda residual, _: np.abs(residual),
    "quantile": lambda residual, level: np.maximum(level * residual, (level - 1) * residual),
    "huber": lambda residual, threshold: np.where(
        np.abs(residual) < threshold, residual**2 / 2, threshold * (np.abs(residual) - threshold / 2)
    ),
}


def deviance_explained(loss: Loss, y: Any, predicted: Any, weight: Any) -> float:
    """Return the share of the deviance from the mean that predictions explain, as scikit-learn's GLMs do.

    The share is averaged over several outputs, as R2 is."""
    y, predicted = (np.asarray(each, dtype=np.float64).reshape(len(each), -1) for each in (y, predicted))
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    shares = []
    for of_y, of_predicted in zip(y.T[:, :, None], predicted.T[:, :, None], strict=True):
        mean = np.full_like(of_y, np.average(of_y[:, 0], weights=weight))
        with np.errstate(divide="ignore"):
            ours, least = (mean_loss(loss, of_y, np.log(each), weight) for each in (of_predicted, mean))
        shares.append(1 - ours / least if least > 0 else np.nan)
    return float(np.mean(shares))


def unknown_part(
    loss: Loss, X: Any, y: Any, sample_weight: Any, exposure: Any, offset: Any
) -> tuple[Any, Any]:
    """Return the targets and weights of a fit for an exposure of 1 and an offset of 0."""
    if exposure is not None:
        y, sample_weight = per_exposure(loss, X, y, sample_weight, exposure)
    return (y, sample_weight) if offset is None else without_offset(loss, X, y, sample_weight, offset)


def per_exposure(loss: Loss, X: Any, y: Any, sample_weight: Any, exposure: Any) -> tuple[Any, Any]:
    """Return the rates y / exposure, and the weights times the exposure."""
    _require_log_link(loss)
    if isinstance(X, Source):
        raise ValueError(
            "exposure needs X and y in memory or on Dask: let the source give y / exposure as the target, "
            "and the exposure as the weight."
        )
    if is_on_dask(X):
        beside = import_dask("dask_beside")
        return beside.map_targets(_rates, X, y, sample_weight, exposure, "exposure", weighted=True)
    return _rates(y, sample_weight, exposure)


def _rates(y: Any, sample_weight: Any, exposure: Any) -> tuple[np.ndarray, np.ndarray]:
    exposure = checked_exposure(exposure)
    _require_length(exposure, y, "exposure")
    values = np.asarray(y, dtype=np.float64)
    rates = values / (exposure if values.ndim == 1 else exposure[:, None])
    return rates, exposure if sample_weight is None else np.asarray(sample_weight) * exposure


def without_offset(loss: Loss, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any]:
    """Return the targets and weights for a fit with an ``offset`` added to the outputs.

    With a log link, the target becomes y / exp(offset). The deviance of power p between y and a mean m is
    c^(2 - p) times the deviance between y / c and m / c, so the weights are multiplied by this factor."""
    if loss.code is None:
        raise ValueError("offset cannot be combined with a loss of your own: leave it out.")
    if isinstance(X, Source):
        raise ValueError(
            f"offset needs X and y in memory or on Dask: let the source {_without_offset_in_words(loss)}."
        )
    if is_on_dask(X):
        function, beside = partial(_without_known_part, loss), import_dask("dask_beside")
        return beside.map_targets(function, X, y, sample_weight, offset, "offset", weighted=loss.log_link)
    return _without_known_part(loss, y, sample_weight, offset)


def _without_known_part(loss: Loss, y: Any, sample_weight: Any, offset: Any) -> tuple[np.ndarray, Any]:
    offset = checked_offset(offset, loss.log_link)
    _require_length(offset, y, "offset")
    values = np.asarray(y, dtype=np.float64)
    shift = offset if values.ndim == 1 else offset[:, None]
    if not loss.log_link:
        return values - shift, None if sample_weight is None else np.asarray(sample_weight)
    factor = np.exp((2 - _power(loss)) * offset)
    return values / np.exp(shift), factor if sample_weight is None else np.asarray(sample_weight) * factor


def _power(loss: Loss) -> float:
    """Return the power of the deviance of a loss with a log link."""
    return {"poisson": 1.0, "gamma": 2.0}.get(loss.name, loss.parameter)


def _without_offset_in_words(loss: Loss) -> str:
    """Return what a source does with y and weights for a model without an offset."""
    if not loss.log_link:
        return "subtract it from y"
    if (left := 2 - _power(loss)) == 0:
        return "divide y by exp(offset)"
    factor = "exp(offset)" if left == 1 else f"exp({left:g} * offset)"
    return f"divide y by exp(offset), and give {factor} as the weight, times the weights that you have"


def with_known_part(loss: Loss, link: str, X: Any, predicted: Any, exposure: Any, offset: Any) -> Any:
    """Return predictions of X for an exposure and an offset, lazily on Dask."""
    if exposure is not None:
        _require_log_link(loss)
    for function, known, what in (
        (times_exposure, exposure, "exposure"),
        (partial(with_offset, link), offset, "offset"),
    ):
        if known is not None and is_on_dask(predicted):
            predicted = import_dask("dask_beside").map_predictions(function, X, predicted, known, what)
        elif known is not None:
            predicted = function(predicted, known)
    return predicted


def with_offset(link: str, predicted: np.ndarray, offset: Any) -> np.ndarray:
    offset = checked_offset(offset, link == "log")
    _require_length(offset, predicted, "offset")
    shift = offset if predicted.ndim == 1 else offset[:, None]
    return predicted * np.exp(shift) if link == "log" else predicted + shift


def checked_offset(offset: Any, log_link: bool) -> np.ndarray:
    checked = np.asarray(offset, dtype=np.float64)
    if checked.ndim != 1:
        raise ValueError(f"offset must have one number for each row, got shape {checked.shape}.")
    if not np.isfinite(checked).all():
        raise ValueError("offset must hold finite numbers: leave out the other rows.")
    if log_link and np.abs(checked).max(initial=0) > LARGEST_OFFSET:
        raise ValueError(
            f"offset is a logarithm here, and must be between -{LARGEST_OFFSET} and {LARGEST_OFFSET}: give "
            "the logarithm of the factor."
        )
    return checked


def times_exposure(predicted: np.ndarray, exposure: Any) -> np.ndarray:
    exposure = checked_exposure(exposure)
    _require_length(exposure, predicted, "exposure")
    return predicted * (exposure if predicted.ndim == 1 else exposure[:, None])


def checked_exposure(exposure: Any) -> np.ndarray:
    if np.ndim(exposure) == 0:
        raise ValueError(f"exposure must have one number for each row, got {exposure!r}.")
    checked = column_or_1d(exposure, dtype=np.float64)
    if not (np.isfinite(checked).all() and (checked > 0).all()):
        raise ValueError("exposure must hold positive, finite numbers: leave out the other rows.")
    return checked


def _require_length(known: np.ndarray, rows: Any, what: str) -> None:
    require_y(rows)
    n_rows = np.shape(rows)[0]
    if len(known) != n_rows:
        raise ValueError(f"{what} must have one number for each row, got {len(known)} for {n_rows} rows.")


def _require_log_link(loss: Loss) -> None:
    if not loss.log_link:
        raise ValueError(
            f'exposure needs loss="poisson", "gamma" or "tweedie", got {loss.shown}: leave it out, or '
            "divide y by it yourself."
        )
