"""What surrounds a fit: a failed one changes nothing, and BLAS has no more threads than ``n_jobs`` allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from threadpoolctl import ThreadpoolController


@contextmanager
def fit_scope(estimator: Any) -> Iterator[None]:
    """Undo all changes to an estimator if the block fails; limit the threads of BLAS to its ``n_jobs``.

    Small products wake threads of BLAS that wait by spinning: on a machine with other work, they took twenty
    times the CPU time of the fit itself."""
    with all_or_nothing(estimator), _libraries().limit(limits=effective_n_jobs(estimator.n_jobs)):
        yield


@cache
def _libraries() -> Any:
    """Return the BLAS libraries of this process; looking for them takes as long as a small fit."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore all attributes of an estimator if the block fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # scikit-learn tears its callbacks down afterwards, and needs what it set for them.
        callbacks = {name: value for name, value in vars(estimator).items() if "callback" in name}
        vars(estimator).clear()
        vars(estimator).update(before | callbacks)
        raise
