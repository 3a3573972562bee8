"""Epochs, streams and expansions of Apple: when an online polynomial learns, and when it grows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from .._model.rows import Rows
from .memory import available_memory
from .online_polynomial import OnlinePolynomial, readable


@dataclass(frozen=True)
class Schedule:
    """The settings of `AppleRegressor` and `AppleClassifier`, and the loss."""

    degree: int
    expansion: float
    n_expansions: int
    max_iter: int
    learning_rate: float
    alpha: float
    shuffle: bool
    expand_after: int
    loss: int


class Learner:
    """A polynomial and its progress: the rows seen, their mean number of non-zeros, the expansions made.

    ``X`` holds the first rows; their largest entries determine the units of the columns.
    """

    def __init__(self, X: Rows, n_outputs: int):
        self.polynomial = OnlinePolynomial(_units(X), n_outputs)
        self.seen = 0
        self.n_expansions = 0
        self._weight = 0.0
        self._nonzeros = 0.0

    def learn_epochs(
        self,
        X: Rows,
        targets: np.ndarray,
        weight: np.ndarray | None,
        schedule: Schedule,
        random_state: np.random.RandomState,
    ) -> None:
        """Learn the rows ``max_iter`` times, and expand after each of the first epochs.

        ``targets`` is (rows, outputs).
        """
        self._count(X, weight)
        rows, targets, weight = self._readable(X, targets, weight)
        closing = max(1, schedule.max_iter - schedule.n_expansions)
        for left in range(schedule.max_iter, 0, -1):
            order = random_state.permutation(len(targets)) if schedule.shuffle else None
            learning_rate = schedule.learning_rate * min(1.0, left / closing)
            self.polynomial.learn(rows, targets, weight, order, schedule.loss, learning_rate, schedule.alpha)
            if left > 1:
                self._expand(schedule)
        self.seen = len(targets) * schedule.max_iter

    def after_rows(
        self, X: Rows, targets: np.ndarray, weight: np.ndarray | None, schedule: Schedule
    ) -> Learner:
        """Return a copy that has learned these rows of a stream, each once and in order.

        Expansions come after the same rows of the stream, however it is divided into pieces.
        """
        result, start = copy(self), 0
        result.polynomial = self.polynomial.copy()
        X = X.astype(self.polynomial.unit.dtype, copy=False)
        rows, targets, weight = self._readable(X, targets, weight)
        while start < len(targets):
            stop = min(len(targets), start + result._rows_until_expansion(schedule.expand_after))
            piece = slice(start, stop)
            result._count(X[piece], None if weight is None else weight[piece])
            result.polynomial.learn(
                rows,
                targets,
                weight,
                np.arange(start, stop),
                schedule.loss,
                schedule.learning_rate,
                schedule.alpha,
            )
            result.seen += stop - start
            if result._is_at_expansion(schedule.expand_after):
                result._expand(schedule)
            start = stop
        return result

    def outputs(self, X: Rows) -> np.ndarray:
        """Return the outputs, (rows, outputs)."""
        return self.polynomial.outputs(readable(X.astype(self.polynomial.unit.dtype, copy=False)))

    def _readable(
        self, X: Rows, targets: np.ndarray, weight: np.ndarray | None
    ) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        targets = np.ascontiguousarray(targets, dtype=X.dtype)
        return readable(X), targets, None if weight is None else np.ascontiguousarray(weight, dtype=X.dtype)

    def _count(self, X: Rows, weight: np.ndarray | None) -> None:
        weight = np.ones(X.shape[0]) if weight is None else weight
        nonzeros = np.asarray((X != 0).sum(axis=1)).ravel()  # count_nonzero has no axis before SciPy 1.15
        self._weight += weight.sum(dtype=np.float64)
        self._nonzeros += float(weight @ nonzeros)

    def _expand(self, schedule: Schedule) -> None:
        if self.n_expansions < schedule.n_expansions:
            mean_nonzeros = self._nonzeros / self._weight if self._weight > 0 else 0.0
            count = max(1, int(mean_nonzeros**schedule.expansion))
            _require_memory(self.polynomial, count, schedule)
            self.polynomial.expand(count, schedule.degree)
            self.n_expansions += 1

    def _rows_until_expansion(self, first: int) -> int:
        """Return the number of rows until 1, 2, 4, 8, ... times ``first`` have been seen."""
        following = first
        while following <= self.seen:
            following *= 2
        return following - self.seen

    def _is_at_expansion(self, first: int) -> bool:
        multiple = self.seen // first
        return self.seen == multiple * first and multiple > 0 and multiple & (multiple - 1) == 0


def _require_memory(polynomial: OnlinePolynomial, count: int, schedule: Schedule) -> None:
    """Refuse an expansion that does not fit into memory; growing copies the arrays, so both must fit."""
    n_columns, n_arrays = len(polynomial.unit), 2 * (len(polynomial.weights) + 1)
    needed = (2 * len(polynomial.parents) + count) * n_columns * n_arrays * polynomial.unit.itemsize
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"Expanding {count} monomials by {n_columns} columns takes about {needed:,} bytes, but only "
            f"{available:,} are available. Lower expansion, now {schedule.expansion}, or n_expansions, now "
            f"{schedule.n_expansions}."
        )


def _units(X: Rows) -> np.ndarray:
    """Return powers of two that bring the largest entry of each column near 1.

    They cause no rounding errors, and keep products from overflowing.
    """
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    largest = np.maximum(high, -low)
    exponent = np.frexp(np.where(largest > 0, largest, 1))[1]
    limit = np.finfo(X.dtype).maxexp - 4
    return np.ldexp(np.ones(1, dtype=X.dtype), -exponent.clip(-limit, limit)).astype(X.dtype)
