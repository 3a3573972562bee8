"""Prediction intervals for numbers, calibrated by errors on held-out rows.

Conformal prediction (Vovk, Gammerman and Shafer 2005) with the errors of cross-validation, in units of the
size that errors are expected to have (Lei et al. 2018): with the model f, the expected size s, and quantiles
q of (y - f(x)) / s(x) over held-out rows, a row has the interval [f(x) + s(x) q_low, f(x) + s(x) q_high]."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .._data.dataframes import as_frame, as_known
from .._data.open import is_in_memory
from .._fit.target_units import weighted_quantiles
from .fold import Rows, select
from .sum_over_rows import require_y

FOLDS, FEWEST_FOR_FOLDS = 5, 10
FEWEST_ROWS = 200  # with fewer, all errors are assumed to have the same size
MOST_ROWS = 20_000  # that expected sizes are learned from
MOST_ERRORS = 2001  # that are kept
SMALLEST_SIZE = 0.1  # in units of the mean size
JUDGED = 0.9  # coverage at which constant and varying sizes are compared


@dataclass(frozen=True)
class Intervals:
    """Sorted errors of ``n_rows`` held-out rows in units of their expected sizes, or quantiles of them.

    ``sizes`` is the estimator of expected sizes in units of ``mean_size``; None if all sizes are equal."""

    errors: np.ndarray
    n_rows: int
    mean_size: float
    sizes: Any = None

    def around(self, predicted: np.ndarray, X: Any, coverage: float) -> np.ndarray:
        """Return the lower and upper bounds, (rows, 2), for predictions of the rows of X."""
        expected = expected_sizes(self.sizes, X) if self.sizes is not None else np.ones(len(predicted))
        bounds = _bounds(self.errors, np.ones(len(self.errors)), self.n_rows, coverage)
        return predicted[:, None] + self.mean_size * expected[:, None] * bounds


def check_interval_data(X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse data that intervals cannot be learned from."""
    if not is_in_memory(X):
        raise ValueError(
            "intervals=True needs X and y in memory: fit without it, or to a sample of the rows."
        )
    require_y(y)
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise ValueError("intervals=True needs one target: fit a model for each of them.")
    n_rows = np.shape(y)[0] if sample_weight is None else np.count_nonzero(sample_weight)
    if n_rows < FEWEST_FOR_FOLDS:
        raise ValueError(
            f"intervals=True needs at least {FEWEST_FOR_FOLDS} rows of positive weight, got {n_rows}."
        )


def refuse_known_part(exposure: Any, offset: Any, beside: str = "intervals=True") -> None:
    if exposure is not None or offset is not None:
        raise ValueError(f"{beside} cannot be combined with exposure or offset: leave one of them out.")


def fit_intervals(model: Any, X: Any, y: Any, sample_weight: Any) -> Intervals:
    """Return intervals around the predictions of a regressor, learned from models fitted to other rows."""
    X = as_frame(X) if model._takes_raw_columns() else as_known(X)
    X = X.tocsr() if sparse.issparse(X) else X
    rows: Rows = X, np.asarray(y, dtype=np.float64).ravel(), None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        rows = select(X, rows[1], weight, np.flatnonzero(weight))
    seed = check_random_state(model.random_state).randint(1 << 31)
    alike = clone(model).set_params(
        intervals=False, checkpoint=None, warm_start=False, verbose=0, random_state=seed
    )
    return learn_intervals(sizes_like(model, seed), rows, cross_predict(alike, rows, seed), seed)


def sizes_like(model: Any, seed: int) -> Callable[[], Any]:
    """Return a factory of estimators that predict how large the errors of a model are."""
    given = {name: getattr(model, name) for name in ("categorical_features", "periodic_features", "n_jobs")}
    kind: Callable[..., Any] = type(model)
    return partial(kind, degree=2, loss="poisson", random_state=seed, **given)


def bounds_of(model: Any, X: Any, coverage: Any) -> np.ndarray:
    """Return the lower and upper bounds that a fitted regressor predicts, (rows, 2)."""
    if not hasattr(model, "_intervals"):
        raise AttributeError(
            f"{type(model).__name__} has no intervals: set intervals=True before the fit, which then takes "
            "about six times as long."
        )
    if not (isinstance(coverage, Real) and 0 < float(coverage) < 1):
        raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
    coverage = float(coverage)
    fewest = int(np.ceil(round(2 / (1 - coverage), 9))) - 1
    if model._intervals.n_rows < fewest:
        warnings.warn(
            f"Intervals of coverage {coverage} need at least {fewest:,} rows, and the fit had "
            f"{model._intervals.n_rows:,}: they end at the largest errors of the fit, and cover less than "
            "that.",
            UserWarning,
            stacklevel=3,
        )
    bounds = model._intervals.around(np.ravel(model.predict(X)), X, coverage)
    return np.maximum(bounds, 0) if model._target_link == "log" else bounds


def cross_predict(estimator: Any, rows: Rows, seed: int) -> np.ndarray:
    """Return cross-validated predictions: each row's prediction comes from a model fitted to other rows."""
    X, y, weight = rows
    predicted = np.empty(len(y))
    for training, scoring in KFold(FOLDS, shuffle=True, random_state=seed).split(y):
        estimator._fit(*select(X, y, weight, training))
        predicted[scoring] = estimator.predict(select(X, y, weight, scoring)[0])
    return predicted


def learn_intervals(make_sizes: Callable[[], Any], rows: Rows, predicted: np.ndarray, seed: int) -> Intervals:
    """Return intervals, given predictions for held-out rows.

    ``make_sizes`` returns an estimator of positive numbers, the sizes of errors. It is kept if it improves
    the intervals of rows that it was not fitted to: if these are narrower or are missed by less."""
    X, y, weight = rows
    weight = np.ones(len(y)) if weight is None else weight
    mean_size = float(np.average(np.abs(y - predicted), weights=weight)) or 1.0
    some = np.random.default_rng(seed).permutation(np.flatnonzero(weight))[:MOST_ROWS]
    errors, weight = ((y - predicted) / mean_size)[some], weight[some]
    sizes: Any = None
    has_errors = errors[::2].any() and errors[1::2].any()
    if len(errors) >= FEWEST_ROWS and has_errors:
        X = select(X, y, None, some)[0]
        expected = np.empty(len(errors))
        for first in (0, 1):  # every second row
            others, half = np.arange(1 - first, len(errors), 2), np.arange(first, len(errors), 2)
            fitted = _fit_sizes(make_sizes(), select(X, errors, weight, others))
            expected[half] = expected_sizes(fitted, select(X, errors, weight, half)[0])
        if _interval_score(errors, expected, weight) < _interval_score(errors, np.ones_like(errors), weight):
            sizes, errors = _fit_sizes(make_sizes(), (X, errors, weight)), errors / expected
    return Intervals(_kept(errors, weight), len(errors), mean_size, sizes)


def expected_sizes(estimator: Any, X: Any) -> np.ndarray:
    return np.maximum(estimator.predict(X), SMALLEST_SIZE)


def _fit_sizes(estimator: Any, rows: Rows) -> Any:
    X, errors, weight = rows
    estimator._fit(X, np.abs(errors), weight)
    return estimator


def _interval_score(errors: np.ndarray, expected: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean width plus a penalty for each row outside (Gneiting and Raftery 2007)."""
    low, high = (expected[:, None] * _bounds(errors / expected, weight, len(errors), JUDGED)).T
    outside = np.maximum(low - errors, 0) + np.maximum(errors - high, 0)
    return float(np.average(high - low + 2 / (1 - JUDGED) * outside, weights=weight))


def _bounds(errors: np.ndarray, weight: np.ndarray, n_rows: int, coverage: float) -> np.ndarray:
    """Return the quantiles, (2,), between which a new error lies with probability ``coverage``.

    The new error is equally likely to have any rank among the others, so quantiles are those of one more
    row."""
    beyond = round((1 - coverage) / 2 * (n_rows + 1), 9)  # 0.1 is not a binary number
    levels = [max(np.floor(beyond), 1) / n_rows, min(np.ceil(n_rows + 1 - beyond), n_rows) / n_rows]
    return weighted_quantiles(errors, weight, levels)


def _kept(errors: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the sorted errors, or quantiles of them if there are many."""
    if len(errors) <= MOST_ERRORS and (weight == weight[0]).all():
        return np.sort(errors)
    return weighted_quantiles(errors, weight, np.linspace(0, 1, MOST_ERRORS).tolist())
