"""The settings of a fit, from the parameters of an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from joblib import effective_n_jobs

from .._fit.settings import Deadline, Settings
from .._fit.solver_table import choice
from .._model import native
from .column_parameters import allowed_degree, check_constraints
from .warm_start import continues

PASSES_AFTER_SHORT_FIT = 50  # of L-BFGS in place of "adam": more would fit the noise, see docs/large-data.md


def settings_of(model: Any, deadline: Deadline, distant: bool) -> Settings:
    """Return the settings of a fit to rows that may be ``distant``.

    Without compiled steps, L-BFGS replaces "adam" for distant rows: it would wait for other machines at every
    minibatch."""
    if model.max_norm is not None and model.solver == "sfo":
        raise ValueError(f'max_norm needs solver="lbfgs", "adam" or "kfac", got {model.solver!r}.')
    check_constraints(model)
    compiled = native.compiled() and not callable(getattr(model, "loss", None))
    by_adam = model.solver == "adam" and model.max_norm is None
    replaced = distant and not compiled and by_adam and model.monotonic_cst is None
    solver = "lbfgs" if replaced else model.solver
    settings = Settings(
        name=type(model).__name__,
        degree=allowed_degree(model.degree, model.interaction_cst),
        rank=model.rank,
        alpha=model.alpha,
        solver=solver,
        max_iter=most_iterations(model, solver),
        tol=model.tol,
        history=model.history,
        init=model.init,
        init_scale=model.init_scale,
        relevance=model.relevance if model.relevance == "auto" else int(model.relevance),
        trend=model.trend if model.trend == "auto" else bool(model.trend),
        jumps=model.jumps if model.jumps == "auto" else bool(model.jumps),
        n_restarts=int(model.n_restarts),
        n_members=int(model.n_members),
        max_norm=model.max_norm,
        early_stopping=model.early_stopping,
        n_iter_no_change=model.n_iter_no_change,
        epochs_before=model.n_iter_ if continues(model) else 0,
        n_threads=effective_n_jobs(model.n_jobs),
        verbose=int(model.verbose),
        deadline=deadline,
        replaces_adam=replaced,
    )
    short = replaced and (settings.goes_on or settings.starts_near) and model.max_iter is None
    return replace(settings, max_iter=PASSES_AFTER_SHORT_FIT) if short else settings


def most_iterations(model: Any, solver: str) -> int:
    """Return the largest number of iterations of a solver."""
    return choice(solver, model.max_norm).max_iter if model.max_iter is None else int(model.max_iter)
