"""scikit-learn's callbacks (1.9 and later), and the same names doing nothing before that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass


class FitCallbacks:
    """Calls the hooks of one fit: a root task, and a task for each iteration."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any):
        self.active = bool(getattr(estimator, "_skl_callbacks", ()))
        if self.active:
            self.estimator = estimator
            self.data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
            self.root = estimator._init_callback_context(max_subtasks=estimator._most_iterations())
            self.root.call_on_fit_task_begin(estimator=estimator, **self.data)

    def iteration(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """Report one iteration; ``fitted`` makes the attributes that turn the estimator into the model reached so far.

        True if a callback wants the fit to stop.
        """
        if not self.active:
            return False
        task = self.root.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=fitted, **self.data))

    def end(self, fitted: Callable[[], dict[str, Any]]) -> None:
        if self.active:
            self.root.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=fitted, **self.data)
