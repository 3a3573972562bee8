"""Refit a fitted model with its settings and columns to its rows, with other weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._data.column_notes import ColumnWarning
from .ensemble import join
from .search import Search


def refitted(model: Any, X: Any, y: Any, weight: np.ndarray, seed: int) -> Any:
    """Return a refitted copy of a model; for a search, the weighted mean of the candidates that it chose."""
    if not isinstance(model, Search):
        return _fit_alike(model, {}, X, y, weight, seed)
    best, chosen = model._fitted(), [dict(member) for member in model.members_]
    shares = [settings.pop("weight") for settings in chosen]
    models = [_fit_alike(best, settings, X, y, weight, seed) for settings in chosen]
    join(models[0], models, shares)
    return models[0]


def _fit_alike(model: Any, settings: dict[str, Any], X: Any, y: Any, weight: np.ndarray, seed: int) -> Any:
    """Fit a clone that knows the category levels: with other weights, different levels might be rare."""
    plain = {"warm_start": False, "checkpoint": None, "intervals": False, "verbose": 0, "random_state": seed}
    known = model.get_params(deep=False)
    alike = clone(model).set_params(**settings, **{name: plain[name] for name in plain if name in known})
    alike._known_columns = model._columns
    with warnings.catch_warnings():
        for category in (ColumnWarning, ConvergenceWarning):  # the model itself has already warned
            warnings.simplefilter("ignore", category)
        alike.fit(X, y, sample_weight=weight)
    del alike._known_columns
    return alike
