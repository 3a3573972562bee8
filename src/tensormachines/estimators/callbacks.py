"""The hooks of scikit-learn's callbacks (1.9 and later) in a fit; older versions have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .sklearn_private import CallbackSupportMixin, callback_context, has_callbacks

__all__ = ["CallbackSupportMixin", "FitCallbacks"]


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

        ``fitted`` makes the attributes that turn the estimator into the model reached so far.
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
