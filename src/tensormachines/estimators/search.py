"""The search for settings by cross-validation, for regression and classification alike."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._data.dataframes import as_frame, without_lists
from .._data.frame import Frame
from .._data.open import is_in_memory
from .._data.raw_columns import is_frame
from .._fit.settings import DEFAULT_TOL, Clock
from .best_estimator import HasBestEstimator
from .candidates import cost_of, for_more_rows, group_of
from .column_parameters import COLUMN_PARAMETERS
from .cv_results import cv_results
from .default_trial import COST, default_settings, has_usual_grid, try_default
from .ensemble import Outputs, best_scale, joined, members_of, refit
from .fit_scope import FitCallbacks, fit_scope
from .fold import Fold, Rows, Score, usable, with_scorer
from .halving import Budget, Trial, best, search
from .judge import Judge
from .polynomial_model import PolynomialModel
from .search_plan import Plan, plan_of
from .search_progress import SearchProgress
from .search_rows import rows_of_search
from .sklearn_private import CallbackSupportMixin, Interval, StrOptions, fit_context
from .validation import TakesFrames

FOLDS = 5


class Search(CallbackSupportMixin, HasBestEstimator, TakesFrames):
    """Base of both searches: candidates, folds, trials, and the ``best_estimator_`` that does the rest."""

    _passed_on: ClassVar[tuple[str, ...]] = (
        "shared_factors",
        "jumps",
        *COLUMN_PARAMETERS,
        "solver",
        "tol",
        "init_scale",
        "n_restarts",
        "n_jobs",
    )
    _clock: Clock = time.monotonic  # of the time budget

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: ["array-like"]
            for name in ("degrees", "alphas", "bases", "roughnesses", "relevances", "trends")
        },
        "ranks": [StrOptions({"auto"}), "array-like"],
        "max_iters": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "halving": ["boolean"],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "subsample": [Interval(Integral, 2, None, closed="left")],
        "refit": ["boolean"],
        **{
            name: PolynomialModel._parameter_constraints[name]
            for name in (*_passed_on, "n_members", "random_state")
        },
        "verbose": [*PolynomialModel._parameter_constraints["verbose"], StrOptions({"auto"})],
    }

    def __init__(
        self,
        degrees: Sequence[int] = (1, 2, 3, 4, 6),
        ranks: Sequence[int] | str = "auto",
        alphas: Sequence[float] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        bases: Sequence[str | None] = ("auto",),
        relevances: Sequence[int] = (0, 2),
        roughnesses: Sequence[float] = (3.0, 20.0),
        trends: Sequence[bool] = (False, True),
        *,
        cv: Any = None,
        scoring: Any = None,
        halving: bool = True,
        time_budget: float | None = 60.0,
        subsample: int = 50_000,
        refit: bool = True,
        n_members: int = 3,
        shared_factors: bool | str = "auto",
        jumps: bool | str = "auto",
        categorical_features: Any = "auto",
        periodic_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        solver: str = "adam",
        max_iters: Sequence[int] | None = None,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | str = "auto",
    ):
        self.degrees = degrees
        self.ranks = ranks
        self.alphas = alphas
        self.bases = bases
        self.relevances = relevances
        self.roughnesses = roughnesses
        self.trends = trends
        self.cv = cv
        self.scoring = scoring
        self.halving = halving
        self.time_budget = time_budget
        self.subsample = subsample
        self.refit = refit
        self.n_members = n_members
        self.shared_factors = shared_factors
        self.jumps = jumps
        self.categorical_features = categorical_features
        self.periodic_features = periodic_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.solver = solver
        self.max_iters = max_iters
        self.tol = tol
        self.init_scale = init_scale
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = self._takes_raw_columns()
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose among the candidates, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a dataframe, a Dask array or dataframe, or a source of `tensormachines.blocks`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            A classifier accepts several columns if they are labels, 0 and 1. A Dask collection if X is one. A
            source provides its own targets and weights.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice, also in the scores.
        groups : array-like of shape (n_samples,), optional
            Group of each row, for ``cv``. X must be in memory.
        """
        with fit_scope(self):
            self._fit_and_warn(X, y, sample_weight, groups)
        return self

    def _fit_and_warn(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        callbacks = FitCallbacks(self, X, y, sample_weight, n_iterations=1)
        learnt, messages = self._choose(X, y, sample_weight, groups)
        for name in ("best_estimator_", "members_", "refit_time_"):
            self.__dict__.pop(name, None)
        for name, value in learnt.items():
            setattr(self, name, value)
        self._name_target(X, y)
        callbacks.end(lambda: learnt)
        for message in messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _name_target(self, X: Any, y: Any) -> None:
        super()._name_target(X, y)
        if hasattr(self, "best_estimator_"):
            self.best_estimator_._name_target(X, y)

    # ---- the choice

    def _choose(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[dict[str, Any], list[str]]:
        """Return all that a search learns, and warnings of the last fit."""
        if groups is not None and not is_in_memory(X):
            raise ValueError("groups needs X and y in memory: fit to a sample of the rows.")
        budget = Budget(self.time_budget, [], self.n_members if self.refit else 0, self._clock)
        report = SearchProgress(self.verbose, type(self).__name__, lambda: budget.clock() - budget.began)
        given = isinstance(self.random_state, Integral)
        seed = int(self.random_state) if given else check_random_state(self.random_state).randint(1 << 31)
        rows = rows_of_search(self, (X, y, sample_weight), seed, report)
        budget.growth = rows.growth
        tried, plan = self._plan(rows.tried, groups, seed)
        candidates, trials, folds = self._try(plan, budget, report)
        number = best(trials)
        if trials[number].score == -math.inf:
            raise ValueError(
                "All candidates failed: their scores are not finite. X or y have values that overflow, or "
                "scoring fails."
            )
        learnt: dict[str, Any] = {
            "cv_results_": cv_results(candidates, trials, plan.rungs, plan.n_rows, len(folds)),
            "best_index_": number,
            "best_score_": trials[number].score,
            "best_params_": candidates[trials[number].candidate],
            "n_splits_": len(folds),
            "subsample_": len(tried[1]),
        }
        messages: list[str] = []
        if self.refit:
            weights, scale, held_out = self._ensemble(trials, number, candidates, folds)
            began = time.perf_counter()
            chosen = {k: for_more_rows(self._candidate(candidates[k], seed), rows.growth) for k in weights}
            verbose = 0 if self.verbose == "auto" else max(int(self.verbose) - 1, 0)
            n_members = 1 if rows.distant else self.n_members
            models, messages = refit(chosen, rows.elsewhere or tried, n_members, budget, report, verbose)
            estimator, members = joined(models, weights, scale, candidates)
            self._calibrate(estimator, held_out, folds, seed)
            learnt |= {"best_estimator_": estimator, "_columns": estimator._columns, "members_": members}
            learnt["refit_time_"] = time.perf_counter() - began
        report.end()
        return learnt, messages

    def _plan(self, rows: Rows, groups: Any, seed: int) -> tuple[Rows, Plan]:
        """Return the checked rows to try candidates on, and the plan of the search."""
        X, y, weight = rows
        given = without_lists(X) if callable(self.scoring) else None  # which the scorer of a user sees
        # Columns are read once, levels are learnt anew for each fold, and the names of columns are kept.
        X = as_frame(X) if self._takes_raw_columns() else self._enter(X)
        checked, y, weight = self._check_all(X, y, weight)
        self._notice_columns(rows[0], stacklevel=7)
        encoded = self._columns is not None  # the checked rows are then numbers of levels
        X = X if encoded or is_frame(X) or hasattr(X, "columns") else checked
        kinds = None if self._columns is None else self._columns.kinds
        given = given if isinstance(X, Frame) else None
        splits = self._splits(checked, y, weight, groups, seed)
        folds = [Fold(X, y, weight, split, seed, kinds, given) for split in splits]
        n_classes = len(np.unique(y)) if is_classifier(self) and y.ndim == 1 else 0
        return (X, y, weight), plan_of(self, folds, X, n_classes)

    def _try(
        self, plan: Plan, budget: Budget, report: SearchProgress
    ) -> tuple[list[dict[str, Any]], list[Trial], list[Fold]]:
        """Fit and score candidates on each rung, default settings first.

        Return the candidates, their trials, and the folds for which there was time."""
        folds, seed = plan.folds, plan.folds[0].seed
        trials: list[Trial] = []
        settings, jumps = default_settings(self.solver, self.jumps), self.jumps is True
        if has_usual_grid(self):
            default = self._candidate(settings, seed)
            trials, found = try_default(default, plan.rungs, folds, self._scorer(default), budget)
            settings, jumps = settings | found, found["jumps"]
            if trials and len(trials[0].scores) < plan.rungs[-1].n_splits(len(folds)):
                folds = folds[: len(trials[0].scores)]  # there is no time for more
        grid = plan.grid(jumps)
        estimators = [self._candidate(candidate, seed) for candidate in grid.candidates]
        budget.costs += [cost_of(estimator) for estimator in estimators]
        judge = Judge(estimators, folds, plan.rungs, self._scorer(estimators[0]), budget.clock)
        with warnings.catch_warnings():
            # The score of such a model says enough.
            warnings.filterwarnings("ignore", message=".*some outputs overflow", category=RuntimeWarning)
            found_trials = search(
                plan.rungs,
                [group_of(estimator) for estimator in estimators],
                len(folds),
                judge,
                budget,
                report,
                grid.coarse() if self.halving else None,
                [grid.usual()],
                grid.neighbours(),
            )
        if not trials:
            return list(grid.candidates), found_trials, folds
        budget.costs.append(COST * budget.costs[grid.usual()])
        trials = [replace(trial, candidate=len(grid.candidates)) for trial in trials]
        return [*grid.candidates, settings], trials + found_trials, folds

    def _ensemble(
        self, trials: list[Trial], best: int, candidates: list[dict[str, Any]], folds: list[Fold]
    ) -> tuple[dict[int, float], float, Outputs]:
        """Return the weights of candidates, their scale, and their mean outputs: see `members_of`."""
        if self.scoring is not None or self.n_members == 1:
            return {trials[best].candidate: 1.0}, 1.0, trials[best].outputs

        def loss(outputs: Outputs) -> float:
            some = folds[: len(outputs)]
            return -float(np.mean([self._mean_loss(*each) for each in zip(outputs, some, strict=True)]))

        weights, mean = members_of(trials, best, candidates, loss)
        return weights, best_scale(mean, loss) if mean and is_classifier(self) else 1.0, mean

    def _takes_raw_columns(self) -> bool:
        return all(basis in self._raw_bases for basis in self.bases)

    def _basis_in_words(self) -> tuple[str, str]:
        return f"bases={self.bases!r}", 'bases=("auto",)'

    def _candidate(self, candidate: dict[str, Any], seed: int) -> PolynomialModel:
        passed_on = {name: getattr(self, name) for name in self._passed_on}
        estimator = self._estimator_class(**{**passed_on, **candidate, "random_state": seed})
        estimator._validate_params()
        return estimator

    def _scorer(self, estimator: PolynomialModel) -> Score:
        return self._score if self.scoring is None else with_scorer(self.scoring, estimator)

    def _splits(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, groups: Any, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the rows to train on and to score on for each usable split."""
        if groups is not None:
            groups = column_or_1d(groups)
            check_consistent_length(y, groups)
        if groups is None or self.cv is not None:
            splitter = self._splitter(y, seed)
        else:
            n_folds = max(2, min(FOLDS, len(np.unique(groups))))
            splitter = GroupKFold(n_folds, shuffle=True, random_state=seed)
        return usable(splitter.split(X, y, groups), y, weight, is_classifier(self))

    # ---- what regression and classification do differently

    def _calibrate(self, estimator: PolynomialModel, outputs: Outputs, folds: list[Fold], seed: int) -> None:
        """Let the estimator learn from its outputs for the rows to score on, split by split."""

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        raise NotImplementedError

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        raise NotImplementedError

    def _mean_loss(self, outputs: np.ndarray, fold: Fold) -> float:
        """Return minus the mean loss of outputs for the rows to score on."""
        raise NotImplementedError

    def _score(self, fitted: PolynomialModel, fold: Fold) -> float:
        return self._mean_loss(fold.outputs(fitted), fold)
