"""The context of a fit: a failed fit changes nothing, BLAS uses no more threads than ``n_jobs`` allows, and
scikit-learn's callbacks (1.9 and later) are called."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from threadpoolctl import ThreadpoolController

from .sklearn_private import callback_context, has_callbacks


@contextmanager
def fit_scope(estimator: Any) -> Iterator[None]:
    """Undo all changes to an estimator if the block fails; limit the threads of BLAS to its ``n_jobs``.

    Small products wake BLAS threads, which then wait by spinning. On a busy machine, these took twenty times
    the CPU time of the fit itself."""
    with all_or_nothing(estimator), _blas.at_most(effective_n_jobs(estimator.n_jobs)):
        yield


class _Blas:
    """The threads of BLAS, which belong to the whole process: fits that overlap share the lowest limit, and
    the last one to end restores what was before the first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._limits: list[int] = []  # of the fits at this moment
        self._most = 1
        self._before: Any = None

    @contextmanager
    def at_most(self, threads: int) -> Iterator[None]:
        """Let BLAS use at most so many threads, and never more than before."""
        with self._lock:
            first = not self._limits
            if first:
                self._most = max((each["num_threads"] for each in _libraries().info()), default=1)
            self._limits.append(threads)
            limiter = self._limit()
            self._before = limiter if first else self._before
        try:
            yield
        finally:
            with self._lock:
                self._limits.remove(threads)
                if self._limits:
                    self._limit()
                else:
                    self._before.restore_original_limits()

    def _limit(self) -> Any:
        return _libraries().limit(limits=min(self._most, *self._limits))


_blas = _Blas()
if hasattr(os, "register_at_fork"):  # other threads, and their fits, do not live on in a forked process
    os.register_at_fork(after_in_child=_blas.__init__)  # type: ignore[misc]


@cache
def _libraries() -> Any:
    """Return the BLAS libraries of this process, once: finding them takes as long as a small fit."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore all attributes of an estimator if the block fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # scikit-learn tears down its callbacks afterwards, and needs the attributes it set for them.
        callbacks = {name: value for name, value in vars(estimator).items() if "callback" in name}
        vars(estimator).clear()
        vars(estimator).update(before | callbacks)
        raise


class FitCallbacks:
    """Calls the hooks of one fit: a root task, and a task for each iteration."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any, n_iterations: int):
        self.active = has_callbacks(estimator)
        if self.active:
            self.root = callback_context(estimator, n_iterations)
            self.estimator = estimator
            self.data = {
                "X": X,
                "y": y,
                "metadata": None if sample_weight is None else {"sample_weight": sample_weight},
            }
            self.root.call_on_fit_task_begin(estimator=estimator, **self.data)

    def iteration(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """Report one iteration; return whether a callback wants the fit to stop.

        ``fitted`` returns the attributes that turn the estimator into the model reached so far.
        """
        task = self.root.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(
            task.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=fitted, **self.data)
        )

    def end(self, fitted: Callable[[], dict[str, Any]]) -> None:
        if self.active:
            self.root.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=fitted, **self.data
            )
