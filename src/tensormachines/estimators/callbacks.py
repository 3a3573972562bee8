"""scikit-learn's callbacks (1.9 and later), and the same names doing nothing before that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .sklearn_private import CallbackSupportMixin, callback_context

__all__ = ["CallbackSupportMixin", "FitCallbacks"]


class FitCallbacks:
    """Calls the hooks of one fit: a root task, and a task for each iteration."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any):
        self.root = callback_context(estimator, estimator._most_iterations())
        if self.root is not None:
            self.estimator = estimator
            self.data = {
                "X": X,
                "y": y,
                "metadata": None if sample_weight is None else {"sample_weight": sample_weight},
            }
            self.root.call_on_fit_task_begin(estimator=estimator, **self.data)

    def iteration(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """Report one iteration; ``fitted`` makes the attributes that turn the estimator into the model
        reached so far.

        True if a callback wants the fit to stop.
        """
        if self.root is None:
            return False
        task = self.root.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(
            task.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=fitted, **self.data)
        )

    def end(self, fitted: Callable[[], dict[str, Any]]) -> None:
        if self.root is not None:
            self.root.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=fitted, **self.data
            )
