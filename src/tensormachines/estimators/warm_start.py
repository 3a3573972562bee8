"""Fits that continue where the last one ended."""

from __future__ import annotations

from typing import Any

from .._fit.begin import Before
from .._fit.problem import Problem
from .._fit.pruning import relevance_of_columns


def continues(estimator: Any) -> bool:
    """Tell whether the next fit of an estimator continues the last one."""
    if not (estimator.warm_start and hasattr(estimator, "_machine")):
        return False
    machine = estimator._machine
    return bool(machine.layout.factors(machine.params).any())  # a constant has nothing to continue


def last_fit(estimator: Any) -> Before | None:
    """Return what the next fit continues from, if it does."""
    if not continues(estimator):
        return None
    relevance = getattr(estimator, "_relevance", None)
    return Before(estimator._machine, getattr(estimator, "alpha_", None), relevance)


def kept_for_next_fit(problem: Problem, roughness: float) -> dict[str, Any]:
    """Return the attribute that `last_fit` reads: the relevance of columns, if a race has weighed them."""
    relevance = relevance_of_columns(problem, roughness)
    return {} if relevance is None else {"_relevance": relevance}
