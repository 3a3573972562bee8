"""Tensor Machines that choose degree, rank, alpha and basis by cross-validation."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._data.dataframes import as_frame, is_frame
from .._data.files.source import Source
from .._data.open import is_on_dask
from .._fit.settings import DEFAULT_TOL, Clock, Deadline, usual_alpha
from .callbacks import CallbackSupportMixin, FitCallbacks
from .candidates import Grid, all_candidates
from .classification import Classification, TensorMachineClassifier, encode_labels
from .cv_results import cv_results
from .docstrings import search_documentation
from .fitted_model import all_or_nothing
from .fold import Fold
from .halving import FULL, LONGER_THAN_EXPECTED, Budget, Rung, Trial, best, ladder, search
from .polynomial_model import PolynomialModel
from .regression import TensorMachineRegressor
from .sklearn_private import Interval, StrOptions, fit_context
from .validation import TakesFrames

ENOUGH_TO_HOLD_OUT = 5000  # rows: from here on one hold-out set takes the place of folds
HELD_OUT = 0.2
FOLDS = 5
ALPHA_POWER = 0.5  # the best alpha falls with about this power of the number of rows (benchmarks/RESULTS.md)

Score = Callable[[PolynomialModel, Fold], float]


def _of_best_estimator(name: str) -> Any:
    """Return a property that is the attribute of the best estimator."""
    return property(lambda self: getattr(self._best(name), name), doc=f"The {name} of ``best_estimator_``.")


class Search(CallbackSupportMixin, TakesFrames):
    """What both searches share: candidates, folds, trials, and the ``best_estimator_`` that does the rest."""

    _estimator_class: ClassVar[type[PolynomialModel]]
    _passed_on: ClassVar[tuple[str, ...]] = ("solver", "tol", "init_scale", "n_restarts", "n_jobs")
    _clock: ClassVar[Clock] = time.monotonic  # of the time budget

    intercept_ = _of_best_estimator("intercept_")
    coef_ = _of_best_estimator("coef_")
    factors_ = _of_best_estimator("factors_")
    n_parameters_ = _of_best_estimator("n_parameters_")
    basis_features_ = _of_best_estimator("basis_features_")
    n_iter_ = _of_best_estimator("n_iter_")
    objective_ = _of_best_estimator("objective_")
    # What inspection, exports and files read of a fitted model.
    _machine = _of_best_estimator("_machine")
    _squeezed = _of_best_estimator("_squeezed")
    _layout = _of_best_estimator("_layout")
    _check_rows = _of_best_estimator("_check_rows")
    _on_rows = _of_best_estimator("_on_rows")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: ["array-like"] for name in ("degrees", "ranks", "alphas", "bases", "relevances")},
        "max_iters": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "halving": ["boolean"],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "refit": ["boolean"],
        **{
            name: PolynomialModel._parameter_constraints[name]
            for name in (*_passed_on, "n_members", "random_state", "verbose")
        },
    }

    def __init__(
        self,
        degrees: Sequence[int] = (2, 3, 4, 6),
        ranks: Sequence[int] = (10, 20),
        alphas: Sequence[float] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        bases: Sequence[str | None] = ("auto",),
        relevances: Sequence[int] = (0, 2),
        *,
        cv: Any = None,
        scoring: Any = None,
        halving: bool = True,
        time_budget: float | None = None,
        refit: bool = True,
        n_members: int = 3,
        solver: str = "adam",
        max_iters: Sequence[int] | None = None,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.degrees = degrees
        self.ranks = ranks
        self.alphas = alphas
        self.bases = bases
        self.relevances = relevances
        self.cv = cv
        self.scoring = scoring
        self.halving = halving
        self.time_budget = time_budget
        self.refit = refit
        self.n_members = n_members
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose among the candidates, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or in regression (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice, in the scores too.
        """
        with all_or_nothing(self):
            callbacks = FitCallbacks(self, X, y, sample_weight, n_iterations=1)
            learnt, messages = self._choose(X, y, sample_weight)
            self.__dict__.pop("best_estimator_", None)
            for name, value in learnt.items():
                setattr(self, name, value)
            self._name_target(y)
            callbacks.end(lambda: learnt)
            for message in messages:
                warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    def _best(self, name: str) -> PolynomialModel:
        """Return the best estimator; raise an AttributeError for the attribute ``name`` if there is none."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no {name}: {self._why_not_fitted()}")
        return self.best_estimator_

    def _fitted(self) -> PolynomialModel:
        """Return the best estimator; raise a NotFittedError if there is none."""
        self._require_fit()
        return self.best_estimator_

    def _require_fit(self) -> None:
        check_is_fitted(self, msg=self._why_not_fitted() if hasattr(self, "best_params_") else None)

    def _why_not_fitted(self) -> str:
        if not hasattr(self, "best_params_"):
            return "it is not fitted yet."
        name = self._estimator_class.__name__
        return f"refit=False leaves no model: set refit=True, or fit {name}(**best_params_) to all rows."

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the best estimator."""
        return self._fitted().predict(X)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted search to a file, which `tensormachines.load` reads.

        See `tensormachines.persistence.save`.
        """
        from ..persistence import save  # which knows all estimators

        save(self, path)

    # ---- the choice

    def _choose(self, X: Any, y: Any, sample_weight: Any) -> tuple[dict[str, Any], list[str]]:
        """Return all that a search learns, and warnings of the last fit."""
        if isinstance(X, Source) or is_on_dask(X):
            raise ValueError(
                f"{type(self).__name__} needs rows in memory: search with a sample of them, and fit its "
                "best_params_ to all."
            )
        # Columns are read once, levels are learnt anew for each fold, and the names of columns are kept.
        X = as_frame(X) if self._takes_raw_columns() else X
        checked, y, weight = self._check_all(X, y, sample_weight)
        X = X if is_frame(X) or hasattr(X, "columns") else checked
        if isinstance(self.random_state, int):
            seed = self.random_state
        else:
            seed = check_random_state(self.random_state).randint(1 << 31)
        candidates = all_candidates(self)
        estimators = [self._candidate(candidate, seed) for candidate in candidates]
        costs = [_cost(estimator) for estimator in estimators]
        budget = Budget(self.time_budget, costs, self.refit, type(self)._clock)
        kinds = None if self._columns is None else self._columns.kinds
        folds = [Fold(X, y, weight, rows, seed, kinds) for rows in self._splits(checked, y, weight, seed)]
        n_rows = min(fold.n_training_rows for fold in folds)
        rungs = ladder(n_rows, len(candidates), self.halving)
        grid = Grid(candidates, usual_alpha(len(y), self._n_models(y)))
        trials = self._try(grid, estimators, folds, rungs, budget)
        number = best(trials)
        if trials[number].score == -math.inf:
            raise ValueError(
                "All candidates failed: their scores are not finite. X or y have values that overflow, or "
                "scoring fails."
            )
        chosen = trials[number].candidate
        learnt: dict[str, Any] = {
            "cv_results_": cv_results(candidates, trials, rungs, n_rows, len(folds)),
            "best_index_": number,
            "best_score_": trials[number].score,
            "best_params_": candidates[chosen],
            "n_splits_": len(folds),
        }
        if not self.refit:
            return learnt, []
        longer = grid.longest_untried(
            chosen, {trial.candidate for trial in trials if trial.rung == len(rungs) - 1}
        )
        if self._fits_in_the_time(longer, budget):
            chosen = longer
        n_members = min(self.n_members, max(1, self._fits_in_the_time(chosen, budget)))
        refitted, messages = self._refit(
            estimators[chosen].set_params(n_members=n_members), X, y, weight, budget.refit_deadline(chosen)
        )
        return learnt | refitted, messages

    def _refit(
        self, estimator: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None, deadline: Deadline
    ) -> tuple[dict[str, Any], list[str]]:
        began = time.perf_counter()
        estimator.set_params(verbose=max(self.verbose - 1, 0))
        messages = estimator._fit(X, y, weight, deadline)
        return {"best_estimator_": estimator, "refit_time_": time.perf_counter() - began}, messages

    def _fits_in_the_time(self, candidate: int, budget: Budget) -> int:
        """Return how many fits to all rows can be done in the time left."""
        left = budget.end - budget.clock()
        each = LONGER_THAN_EXPECTED * budget.expected([candidate], FULL, 1)
        return int(max(0.0, left) // each) if each > 0 and math.isfinite(left) else int(self.n_members)

    def _takes_raw_columns(self) -> bool:
        return all(basis in self._raw_bases for basis in self.bases)

    def _basis_in_words(self) -> tuple[str, str]:
        return f"bases={self.bases!r}", 'bases=("auto",)'

    def _candidate(self, candidate: dict[str, Any], seed: int) -> PolynomialModel:
        passed_on = {name: getattr(self, name) for name in self._passed_on}
        estimator = self._estimator_class(**{**passed_on, **candidate, "random_state": seed})
        estimator._validate_params()
        return estimator

    def _splits(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the rows to train on and to score on for each split that can be used."""
        numbers = np.arange(len(y))
        splits = [
            (numbers[training], numbers[scoring]) for training, scoring in self._splitter(y, seed).split(X, y)
        ]
        if weight is not None:
            splits = [split for split in splits if all(weight[part].any() for part in split)]
        splits = [split for split in splits if self._can_learn_from(y[split[0]])]
        if not splits:
            raise ValueError(
                "cv has no usable split: each needs rows of positive weight both to train on (of at least "
                "two classes in classification) and to score on."
            )
        return splits

    def _try(
        self,
        grid: Grid,
        estimators: list[PolynomialModel],
        folds: list[Fold],
        rungs: list[Rung],
        budget: Budget,
    ) -> list[Trial]:
        """Fit and score candidates on each rung."""
        score = self._mean_loss if self.scoring is None else _with_scorer(self.scoring, estimators[0])

        def evaluate(group: Sequence[int], number: int, deadline: float) -> list[Trial]:
            rung = rungs[number]
            some = folds[: rung.n_splits(len(folds))]
            scores, fit_seconds, score_seconds = (np.full((len(group), len(some)), np.nan) for _ in range(3))
            on_rung = [_on_rung(estimators[candidate], rung) for candidate in group]
            for s, fold in enumerate(some):
                began = time.perf_counter()
                results = fold.fit(on_rung, rung.rows, Deadline(deadline, budget.clock))
                fit_seconds[:, s] = (time.perf_counter() - began) / len(group)
                for k, fitted in enumerate(results):
                    began = time.perf_counter()
                    if fitted is not None:
                        scores[k, s] = score(fitted, fold)
                    score_seconds[k, s] = time.perf_counter() - began
            return [
                Trial(candidate, number, scores[k], fit_seconds[k], score_seconds[k])
                for k, candidate in enumerate(group)
            ]

        def report(line: str) -> None:
            if self.verbose:
                seconds = budget.clock() - budget.began
                print(f"[{type(self).__name__}] {line}, {seconds:.1f} s so far", flush=True)

        groups = [_group(estimator) for estimator in estimators]
        with warnings.catch_warnings():
            # The score of such a model tells enough.
            warnings.filterwarnings("ignore", message=".*some outputs overflow", category=RuntimeWarning)
            first = grid.coarse() if self.halving else None
            return search(
                rungs, groups, len(folds), evaluate, budget, report, first, [grid.usual()], grid.neighbours()
            )

    # ---- what regression and classification do differently

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        raise NotImplementedError

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        raise NotImplementedError

    def _mean_loss(self, fitted: PolynomialModel, fold: Fold) -> float:
        raise NotImplementedError

    def _can_learn_from(self, y: np.ndarray) -> bool:
        return True

    def _n_models(self, y: np.ndarray) -> int:
        """Return the number of models that share the rows, for the usual alpha."""
        return 1


class TensorMachineRegressorCV(RegressorMixin, Search):
    __doc__ = search_documentation(
        "A Tensor Machine for regression that chooses degree, rank, alpha and basis by cross-validation.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineRegressorCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TensorMachineRegressorCV(degrees=(1, 2), ranks=(2,), random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        0.6
        """,
        leave_out=("class_weight", "classes_"),
    )

    _estimator_class = TensorMachineRegressor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        return self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        if self.cv is not None:
            return check_cv(self.cv)
        if len(y) >= ENOUGH_TO_HOLD_OUT:
            return ShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
        return KFold(_n_folds(y), shuffle=True, random_state=seed)

    def _mean_loss(self, fitted: PolynomialModel, fold: Fold) -> float:
        """Return minus the mean squared error."""
        _, y, weight = fold.scoring
        errors = (fold.outputs(fitted) - y.reshape(len(y), -1)) ** 2
        return -float(np.average(errors.mean(axis=1), weights=weight))


class TensorMachineClassifierCV(ClassifierMixin, Search):
    __doc__ = search_documentation(
        "A Tensor Machine for classification that chooses degree, rank, alpha and basis by cross-validation.",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines import TensorMachineClassifierCV
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TensorMachineClassifierCV(degrees=(1, 2), ranks=(2,), random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        1.0
        """,
        leave_out=(),
    )

    _estimator_class = TensorMachineClassifier
    _passed_on = (*Search._passed_on, "class_weight")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Search._parameter_constraints,
        "class_weight": Classification._parameter_constraints["class_weight"],
    }

    classes_ = _of_best_estimator("classes_")

    def __init__(
        self,
        degrees: Sequence[int] = (2, 3, 4, 6),
        ranks: Sequence[int] = (10, 20),
        alphas: Sequence[float] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        bases: Sequence[str | None] = ("auto",),
        relevances: Sequence[int] = (0, 2),
        *,
        cv: Any = None,
        scoring: Any = None,
        halving: bool = True,
        time_budget: float | None = None,
        refit: bool = True,
        n_members: int = 3,
        solver: str = "adam",
        max_iters: Sequence[int] | None = None,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degrees=degrees,
            ranks=ranks,
            alphas=alphas,
            bases=bases,
            relevances=relevances,
            cv=cv,
            scoring=scoring,
            halving=halving,
            time_budget=time_budget,
            refit=refit,
            n_members=n_members,
            solver=solver,
            max_iters=max_iters,
            tol=tol,
            init_scale=init_scale,
            n_restarts=n_restarts,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log-odds or outputs of the best estimator, see `TensorMachineClassifier`."""
        return self._fitted().decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities with the best estimator."""
        return self._fitted().predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of the probabilities with the best estimator."""
        return self._fitted().predict_log_proba(X)

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X, y, weight = self._check_training_data(X, y, sample_weight)
        encode_labels(y)  # refuses other targets before anything is fitted
        return X, y, weight

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y, classifier=True)
        sizes = np.unique(y, return_counts=True)[1]
        # The only row of one of two classes must not be held out.
        if len(y) >= ENOUGH_TO_HOLD_OUT and (sizes.min() > 1 or len(sizes) > 2):
            splitter = StratifiedShuffleSplit if sizes.min() > 1 else ShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=seed)
        splitter = StratifiedKFold if sizes.min() >= FOLDS else KFold
        return splitter(_n_folds(y), shuffle=True, random_state=seed)

    def _can_learn_from(self, y: np.ndarray) -> bool:
        return len(np.unique(y)) > 1

    def _n_models(self, y: np.ndarray) -> int:
        n_classes = len(np.unique(y))
        return n_classes if n_classes > 2 else 1

    def _mean_loss(self, fitted: PolynomialModel, fold: Fold) -> float:
        """Return minus the mean log-loss.

        A class that is missing in the training rows counts as if it had the smallest probability there is.
        """
        _, y, weight = fold.scoring
        outputs, classes = fold.outputs(fitted), fitted.classes_
        if outputs.shape[1] == 1:
            outputs = np.hstack([np.zeros_like(outputs), outputs])
        numbers = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        logarithms = log_softmax(outputs, axis=1)[np.arange(len(y)), numbers]
        smallest = math.log(np.finfo(np.float64).eps)
        return float(np.average(np.where(classes[numbers] == y, logarithms, smallest), weights=weight))


def _n_folds(y: np.ndarray) -> int:
    return max(2, min(FOLDS, len(y)))


def _with_scorer(scoring: Any, estimator: PolynomialModel) -> Score:
    """Return the score of a fitted model on the rows of a fold, weighted if the scorer can do it."""
    scorer = check_scoring(estimator, scoring)
    weighted = "sample_weight" in signature(scorer).parameters

    def score(fitted: PolynomialModel, fold: Fold) -> float:
        X, y, weight = fold.scoring
        options = {"sample_weight": weight} if weighted and weight is not None else {}
        return float(scorer(fitted, X, y, **options))

    return score


def _group(estimator: PolynomialModel) -> tuple[str | None, int, int, int, int]:
    """Return what candidates that can be fitted together have in common."""
    return estimator.basis, estimator.relevance, estimator.degree, estimator.rank, estimator._max_iter()


def _cost(estimator: PolynomialModel) -> float:
    """Return the cost of a fit: the number of projections times that of iterations."""
    return (1 + estimator.rank * sum(range(2, estimator.degree + 1))) * estimator._max_iter()


def _on_rung(estimator: PolynomialModel, rung: Rung) -> PolynomialModel:
    """Return the estimator with the penalty and the iterations that it has on a rung."""
    settings = estimator.get_params(deep=False)
    settings |= {
        "alpha": estimator.alpha / rung.rows**ALPHA_POWER,
        "max_iter": math.ceil(estimator._max_iter() * rung.iterations),
        "tol": estimator.tol * rung.tolerance,
    }
    return type(estimator)(**settings)
