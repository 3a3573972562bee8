"""What is done in a process of its own: one fit with one timed line, or one search over a grid. Both return what goes into the lines."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..datasets import Data
from ..inspection import rademacher_bound
from .methods import REGRESSION, Grid, Method, Params, candidates, n_parameters
from .records import Line

WARM_UP_ROWS = 200
TRAIN_ROWS = 20_000  # that the training error is measured on


@dataclass(frozen=True)
class Rows:
    """Scaled rows of a set; a regression target is standardised with the mean and deviation of its training rows."""

    data: Data
    task: str
    degree: int

    def first(self, rows: int | None) -> tuple[Any, np.ndarray]:
        """The first training rows, which are in no order, and their targets."""
        X, y = self.data.X_train[:rows], self.data.y_train[:rows]
        center, scale = self.units(rows)
        return X, (y - center) / scale if self.task == REGRESSION else y

    def units(self, rows: int | None) -> tuple[float, float]:
        y = self.data.y_train[:rows]
        return (float(y.mean()), float(y.std()) or 1.0) if self.task == REGRESSION else (0.0, 1.0)

    def error(self, predicted: np.ndarray, y: np.ndarray) -> float:
        """|predicted - y| / |y| in the units of the set, or the misclassified share."""
        if self.task == REGRESSION:
            return float(np.linalg.norm(predicted - y) / np.linalg.norm(y))
        return float(np.mean(predicted != y))


@dataclass(frozen=True)
class Fit:
    """A fit of a method to the first so many rows."""

    method: Method
    rows: Rows
    n_rows: int
    params: Params
    major: float | None
    seed: int
    with_bound: bool = False

    def __call__(self) -> Line:
        rows, data = self.rows, self.rows.data
        X, y = rows.first(self.n_rows)
        dtype = np.float64 if self.method.float64 else np.float32
        X, X_test = X.astype(dtype, copy=False), data.X_test.astype(dtype, copy=False)
        model = self.method.estimator(rows.task, rows.degree, self.seed, self.params, self.major)
        _warm_up(model, X, y)
        began, wall = time.process_time(), time.perf_counter()
        model.fit(X, y)
        seconds, wall_seconds = time.process_time() - began, time.perf_counter() - wall
        center, scale = rows.units(self.n_rows)
        predicted, predicted_train = (_predict(model, part, center, scale, rows.task) for part in (X_test, X[:TRAIN_ROWS]))
        line = {
            "faithful": data.faithful,  # which depends on where the rows come from
            "error": rows.error(predicted, data.y_test),
            "train_error": rows.error(predicted_train, data.y_train[: self.n_rows][:TRAIN_ROWS]),
            "seconds": seconds,
            "wall_seconds": wall_seconds,
            "objective": _float(getattr(model, "objective_", None)),
            "iterations": _integer(getattr(model, "n_iter_", None)),
            "parameters": n_parameters(self.method, model),
        }
        return {**line, **self._bound(model, X, y, X_test)} if self.with_bound else line

    def _bound(self, model: Any, X: Any, y: np.ndarray, X_test: Any) -> Line:
        bound = rademacher_bound(model, X)
        center, scale = self.rows.units(self.n_rows)
        y_test = (self.rows.data.y_test - center) / scale if self.rows.task == REGRESSION else self.rows.data.y_test
        train_risk, test_risk = (_risk(model, self.rows.task, *part) for part in ((X, y), (X_test, y_test)))
        return {
            "bound": bound.value,
            "bound_norm": bound.norm,
            "bound_row_norm": bound.row_norm,
            "train_risk": train_risk,
            "test_risk": test_risk,
        }


def _warm_up(model: Any, X: Any, y: np.ndarray) -> None:
    """A small fit first, so that the timed one pays neither for imports nor for the memory that a new process has yet to make its own."""
    clone(model).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])


def _predict(model: Any, X: Any, center: float, scale: float, task: str) -> np.ndarray:
    predicted: np.ndarray = model.predict(X)
    return predicted.astype(np.float64) * scale + center if task == REGRESSION else predicted


def _risk(model: Any, task: str, X: Any, y: np.ndarray) -> float:
    """The mean loss that the model was fitted with."""
    if task == REGRESSION:
        return float(np.mean((model.predict(X) - y) ** 2) / 2)
    return float(np.mean(np.logaddexp(0, -y * model.decision_function(X).astype(np.float64))))


def _float(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _integer(value: Any) -> int | None:
    return None if value is None else int(np.max(value))


@dataclass(frozen=True)
class Search:
    """A search for the minor parameters; returns the candidates with their errors, in regression in units of the target's deviation."""

    method: Method
    rows: Rows
    n_rows: int
    grid: Grid
    folds: int

    def __call__(self) -> list[tuple[Params, float, float]]:
        X, y = self.rows.first(self.n_rows)
        X = X.astype(np.float64 if self.method.float64 else np.float32, copy=False)
        found = []
        for also, search in self.method.searches(self.rows.task, self.rows.degree, self.grid, self.folds):
            found += candidates(search.fit(X, y), also, self.grid)
        return found
