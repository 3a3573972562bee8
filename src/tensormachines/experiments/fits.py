"""The work of a child process: one fit with one timed line, or one search over a grid."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from ..datasets import Data
from ..inspection import rademacher_bound
from .methods import REGRESSION, Grid, Method, Params, Splits, candidates, n_parameters
from .records import Line

WARM_UP_ROWS = 200
TRAIN_ROWS = 20_000  # on which the training error is measured
N_RESAMPLES = 25  # of the test rows, to estimate the noise of an error


@dataclass(frozen=True)
class ScaledSet:
    """A set in the paper's scaling, with its task and the degree of the models.

    ``whole_targets`` says that rows of one target stay together in cross-validation. ``centred`` is False if
    a regression target keeps its mean, and is only divided by its root mean square."""

    data: Data
    task: str
    degree: int
    whole_targets: bool = False
    centred: bool = True

    @property
    def n_rows(self) -> int:
        return len(self.data.y_train)

    def training_rows(self, n_rows: int, part: int = 0) -> tuple[Any, np.ndarray]:
        """Return ``n_rows`` shuffled training rows with their targets: the first ones, or a later part."""
        if part == 0:
            return self.data.X_train[:n_rows], self.data.y_train[:n_rows]
        chosen = np.arange(part * n_rows, (part + 1) * n_rows) % self.n_rows
        return self.data.X_train[chosen], self.data.y_train[chosen]

    def units(self, y: np.ndarray) -> Units:
        if self.task != REGRESSION:
            return Units()
        center = float(y.mean()) if self.centred else 0.0
        return Units(center, float(np.sqrt(np.mean((y - center) ** 2))) or 1.0)

    def error(self, predicted: np.ndarray, y: np.ndarray) -> float:
        """Return |predicted - y| / |y|, or the misclassified share."""
        return float(self._weighted_errors(predicted, y, np.ones((1, len(y))))[0])

    def resampled_errors(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the errors on bootstrap samples of the rows, the same ones in every fit."""
        counts = np.random.default_rng(0).multinomial(len(y), np.full(len(y), 1 / len(y)), N_RESAMPLES)
        return self._weighted_errors(predicted, y, counts)

    def _weighted_errors(self, predicted: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return an error for each of several lists of row counts."""
        if self.task == REGRESSION:
            return np.sqrt(counts @ (predicted - y) ** 2 / (counts @ y**2))
        return counts @ (predicted != y) / len(y)

    def splits(self, y: np.ndarray, folds: int) -> Splits:
        """Return the rows to fit and to validate on in every fold; 1 fold is one split into halves."""
        if self.whole_targets:
            targets, of_row = np.unique(y, return_inverse=True)
            parts = [
                (np.flatnonzero(np.isin(of_row, fitted)), np.flatnonzero(np.isin(of_row, others)))
                for fitted, others in _folds(KFold, folds).split(targets)
            ]
        else:
            parts = list(_folds(KFold if self.task == REGRESSION else StratifiedKFold, folds).split(y, y))
        return parts[:folds]


def _folds(kind: Any, folds: int) -> Any:
    return kind(max(folds, 2), shuffle=True, random_state=0)


@dataclass(frozen=True)
class Units:
    """The units of a regression target, mostly fitted with mean 0 and variance 1; labels are left unchanged.

    Penalties then mean the same on every set.
    """

    center: float = 0.0
    scale: float = 1.0

    def of(self, y: np.ndarray) -> np.ndarray:
        return y if self == Units() else (y - self.center) / self.scale

    def undone(self, predicted: np.ndarray) -> np.ndarray:
        return predicted if self == Units() else predicted.astype(np.float64) * self.scale + self.center


@dataclass(frozen=True)
class Fit:
    """A fit of a method to `ScaledSet.training_rows`; returns the results for its line."""

    method: Method
    scaled: ScaledSet
    n_rows: int
    params: Params
    major: float | None
    seed: int
    part: int = 0
    with_bound: bool = False

    def __call__(self) -> Line:
        scaled, data = self.scaled, self.scaled.data
        X, y = scaled.training_rows(self.n_rows, self.part)
        X, X_test = (rows.astype(self.method.dtype, copy=False) for rows in (X, data.X_test))
        units = scaled.units(y)
        targets = units.of(y)
        model = self.method.estimator(scaled.task, scaled.degree, self.seed, self.params, self.major)
        _warm_up(model, X, targets)
        began, wall = time.process_time(), time.perf_counter()
        model.fit(X, targets)
        seconds, wall_seconds = time.process_time() - began, time.perf_counter() - wall
        predicted = units.undone(model.predict(X_test))
        resampled = scaled.resampled_errors(predicted, data.y_test)
        line = {
            "faithful": data.faithful,  # depends on where the rows come from
            "error": scaled.error(predicted, data.y_test),
            "resampled_errors": " ".join(f"{error:.6g}" for error in resampled),
            "train_error": scaled.error(units.undone(model.predict(X[:TRAIN_ROWS])), y[:TRAIN_ROWS]),
            "seconds": seconds,
            "wall_seconds": wall_seconds,
            "objective": _float(getattr(model, "objective_", None)),
            "iterations": _integer(getattr(model, "n_iter_", None)),
            "parameters": n_parameters(model),
        }
        if not self.with_bound:
            return line
        train_risk, test_risk = (
            _risk(model, scaled.task, *pair) for pair in ((X, targets), (X_test, units.of(data.y_test)))
        )
        return {**line, **_bound(model, X), "train_risk": train_risk, "test_risk": test_risk}


def _warm_up(model: Any, X: Any, y: np.ndarray) -> None:
    """Do a small fit, so that the timed one does not pay for imports and first use of memory."""
    clone(model).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])


def _bound(model: Any, X: Any) -> Line:
    bound = rademacher_bound(model, X)
    return {"bound": bound.value, "bound_norm": bound.norm, "bound_row_norm": bound.row_norm}


def _risk(model: Any, task: str, X: Any, y: np.ndarray) -> float:
    """Return the mean of the loss that was minimised."""
    if task == REGRESSION:
        return float(np.mean((model.predict(X) - y) ** 2) / 2)
    return float(np.mean(np.logaddexp(0, -y * model.decision_function(X).astype(np.float64))))


def _float(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _integer(value: Any) -> int | None:
    return None if value is None else int(np.max(value))


@dataclass(frozen=True)
class Search:
    """A search for the minor parameters; returns the candidates with their mean error and its deviation.

    Errors in regression are in units of the target's standard deviation.
    """

    method: Method
    scaled: ScaledSet
    n_rows: int
    grid: Grid
    folds: int

    def __call__(self) -> list[tuple[Params, float, float]]:
        scaled = self.scaled
        X, y = scaled.training_rows(self.n_rows)
        X, targets = X.astype(self.method.dtype, copy=False), scaled.units(y).of(y)
        splits = scaled.splits(y, self.folds)
        found = []
        for also, search in self.method.searches(scaled.task, scaled.degree, self.grid, splits):
            found += candidates(search.fit(X, targets), also, self.grid)
        return found
