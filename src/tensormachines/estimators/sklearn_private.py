"""The private names of scikit-learn that this package uses: if one changes, only this file must change.

`tests/estimators/test_sklearn_versions.py` says which versions they are tested with.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "callback_context",
    "check_feature_names_in",
    "check_sample_weight",
    "fit_context",
    "has_callbacks",
    "safe_indexing",
]


def has_callbacks(estimator: Any) -> bool:
    return bool(getattr(estimator, "_skl_callbacks", ()))


def callback_context(estimator: Any, n_iterations: int) -> Any:
    """Return the root context of scikit-learn's callbacks for a fit."""
    return estimator._init_callback_context(max_subtasks=n_iterations)
