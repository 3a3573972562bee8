"""Tensor Machines that choose degree, rank, alpha and basis themselves, by cross-validation."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from itertools import pairwise, product
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from scipy.stats import rankdata
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils import check_random_state

from .._data.dataframes import as_frame, is_frame
from .._data.files.source import Source
from .._data.open import is_on_dask
from .callbacks import FitCallbacks
from .candidates import Grid
from .classification import Classification, encode_labels
from .docstrings import search_documentation
from .fold import Split
from .halving import FULL, LONGER_THAN_EXPECTED, Budget, Rung, Trial, best, ladder, search
from .polynomial_model import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    PRIVATELY_LEARNT,
    PolynomialModel,
    all_or_nothing,
    usual_alpha,
)
from .regression import Regression
from .sklearn_private import Interval, StrOptions, fit_context
from .tensor_machines import TensorMachineClassifier, TensorMachineRegressor

ENOUGH_TO_HOLD_OUT = 5000  # rows, of which some are held out once; with fewer rows, one part after the other
HELD_OUT = 0.2
FOLDS = 5
ALPHA_POWER = (
    0.5  # the best alpha falls with the number of rows, about like this power of it (benchmarks/RESULTS.md)
)

Score = Callable[..., float]  # of a fitted machine, X, y


class _Search(PolynomialModel):
    """What both searches share.

    A search is a Tensor Machine too: that of the best candidate, fitted to all rows.
    """

    _machine_class: ClassVar[type[PolynomialModel]]
    _passed_on: ClassVar[tuple[str, ...]] = ("solver", "tol", "init_scale", "n_restarts", "n_jobs")

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

    @property
    def partial_fit(self) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no partial_fit: it needs all rows at once. Its best_estimator_ has it."
        )

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
            callbacks = FitCallbacks(self, X, y, sample_weight)
            learnt = self._choose(X, y, sample_weight)
            for name in [
                name
                for name in PRIVATELY_LEARNT | set(vars(self))
                if name in PRIVATELY_LEARNT or name.endswith("_")
            ]:
                if name not in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            for name, value in learnt.items():
                setattr(self, name, value)
            for model in (self, *([self.best_estimator_] if self.refit else [])):
                model._name_target(y)
            callbacks.end(lambda: learnt)
        return self

    def _why_not_fitted(self) -> str | None:
        if not hasattr(self, "best_params_"):
            return None
        name = self._machine_class.__name__
        return f"refit=False leaves no model: set refit=True, or fit {name}(**best_params_) to all rows."

    def _choose(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """All that a search learns."""
        if isinstance(X, Source) or is_on_dask(X):
            raise ValueError(
                f"{type(self).__name__} needs rows in memory: search with a sample of them, and fit its best_params_ to all."
            )
        # Columns are read once; levels are learnt anew for each split, and the names of columns are kept.
        X = as_frame(X) if self._takes_raw_columns() else X
        checked, y, weight = self._check_all(X, y, sample_weight)
        X = X if is_frame(X) or hasattr(X, "columns") else checked
        seed = (
            self.random_state
            if isinstance(self.random_state, int)
            else check_random_state(self.random_state).randint(1 << 31)
        )
        candidates = self._candidates()
        machines = [self._candidate(candidate, seed) for candidate in candidates]
        budget = Budget(self.time_budget, [_cost(machine) for machine in machines], self.refit)
        kinds = None if self._columns is None else self._columns.kinds
        splits = [Split(X, y, weight, rows, seed, kinds) for rows in self._splits(checked, y, weight, seed)]
        rungs = ladder(min(split.n_training_rows for split in splits), len(candidates), self.halving)
        grid = Grid(candidates, usual_alpha(len(y), self._n_models(y)))
        trials = self._try(grid, machines, splits, rungs, budget)
        number = best(trials)
        if trials[number].score == -math.inf:
            raise ValueError(
                "All candidates failed: their scores are not finite. X or y have values that overflow, or scoring fails."
            )
        learnt: dict[str, Any] = {
            "cv_results_": _results(candidates, trials, rungs, splits),
            "best_index_": number,
            "best_score_": trials[number].score,
            "best_params_": candidates[trials[number].candidate],
            "n_splits_": len(splits),
        }
        if not self.refit:
            return learnt
        chosen = trials[number].candidate
        longer = grid.longest_untried(
            chosen, {trial.candidate for trial in trials if trial.rung == len(rungs) - 1}
        )
        if self._fits_in_the_time(longer, budget):
            chosen = longer
        machine = machines[chosen].set_params(
            n_members=min(self.n_members, max(1, self._fits_in_the_time(chosen, budget)))
        )
        # A fit that ends in the middle is worth little: rather too late than that, by as much as a fit may
        # take.
        deadline = max(
            budget.end, time.monotonic() + 2 * LONGER_THAN_EXPECTED * budget.expected([chosen], FULL, 1)
        )
        return learnt | self._refit(machine, X, y, weight, deadline)

    def _fits_in_the_time(self, candidate: int, budget: Budget) -> int:
        """How many fits to all rows can be done in the time that is left: one that is cut off in the middle
        is worth little.
        """
        left, each = (
            budget.end - time.monotonic(),
            LONGER_THAN_EXPECTED * budget.expected([candidate], FULL, 1),
        )
        return int(max(0.0, left) // each) if each > 0 and math.isfinite(left) else int(self.n_members)

    def _most_iterations(self) -> int:
        return 1  # task for callbacks: a search is one

    def _takes_raw_columns(self) -> bool:
        return all(basis in self._raw_bases for basis in self.bases)

    def _basis_in_words(self) -> tuple[str, str]:
        return f"bases={self.bases!r}", 'bases=("auto",)'

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        raise NotImplementedError

    def _splits(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the rows to train on and of those to score on, without splits that cannot be used."""
        numbers = np.arange(len(y))
        splits = [
            (numbers[training], numbers[scoring]) for training, scoring in self._splitter(y, seed).split(X, y)
        ]
        if weight is not None:
            splits = [split for split in splits if all(weight[part].any() for part in split)]
        splits = [split for split in splits if self._can_learn_from(y[split[0]])]
        if not splits:
            raise ValueError(
                "cv has no split with rows of positive weight both to train on, of at least two classes if y has such, and to score on."
            )
        return splits

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        raise NotImplementedError

    def _can_learn_from(self, y: np.ndarray) -> bool:
        return True

    def _n_models(self, y: np.ndarray) -> int:
        """That share the rows, for the usual alpha."""
        return 1

    def _candidates(self) -> list[dict[str, Any]]:
        """In order of their size: of equally good ones the first is chosen."""
        longest = DEFAULT_MAX_ITER[self.solver]
        max_iters = (
            ((longest // 3, longest) if self.solver == "adam" else (longest,))
            if self.max_iters is None
            else self.max_iters
        )
        named = {
            **{
                "basis": self.bases,
                "relevance": self.relevances,
                "degree": self.degrees,
                "rank": self.ranks,
                "alpha": self.alphas,
            },
            "max_iter": max_iters,
        }
        for name, values in zip(
            ("bases", "relevances", "degrees", "ranks", "alphas", "max_iters"), named.values(), strict=True
        ):
            if len(values) == 0:
                raise ValueError(f"{name} must hold at least one value, got {values!r}.")
            if name in ("alphas", "max_iters") and not all(isinstance(value, Real) for value in values):
                raise ValueError(
                    f"{name} must hold numbers, which have an order to search in; got {values!r}."
                )
        candidates = [dict(zip(named, values, strict=True)) for values in product(*named.values())]
        linear = [
            candidate
            for candidate in candidates
            if candidate["degree"] == 1 and candidate["rank"] != min(self.ranks)
        ]
        return [
            candidate for candidate in candidates if candidate not in linear
        ]  # a linear model has no rank: once is enough

    def _candidate(self, candidate: dict[str, Any], seed: int, **settings: Any) -> PolynomialModel:
        passed_on = {name: getattr(self, name) for name in self._passed_on}
        machine = self._machine_class(**{**passed_on, **candidate, "random_state": seed, **settings})
        machine._validate_params()
        return machine

    def _try(
        self,
        grid: Grid,
        machines: list[PolynomialModel],
        splits: list[Split],
        rungs: list[Rung],
        budget: Budget,
    ) -> list[Trial]:
        """Fit and score candidates on each rung."""
        score = _default_or(self._mean_loss, self.scoring, machines[0])

        def evaluate(group: Sequence[int], number: int, deadline: float) -> list[Trial]:
            rung = rungs[number]
            some = splits[: rung.n_splits(len(splits))]
            scores, fit_seconds, score_seconds = (np.full((len(group), len(some)), np.nan) for _ in range(3))
            on_rung = [_on_rung(machines[candidate], rung) for candidate in group]
            for s, split in enumerate(some):
                clock = time.perf_counter()
                results = split.fit(on_rung, rung.rows, deadline)
                fit_seconds[:, s] = (time.perf_counter() - clock) / len(group)
                for k, fitted in enumerate(results):
                    clock = time.perf_counter()
                    if fitted is not None:
                        scores[k, s] = score(fitted, *split.scoring)
                    score_seconds[k, s] = time.perf_counter() - clock
            return [
                Trial(candidate, number, scores[k], fit_seconds[k], score_seconds[k])
                for k, candidate in enumerate(group)
            ]

        def report(line: str) -> None:
            if self.verbose:
                print(
                    f"[{type(self).__name__}] {line}, {time.monotonic() - budget.began:.1f} s so far",
                    flush=True,
                )

        shapes = [_shape(machine) for machine in machines]
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=".*some outputs overflow", category=RuntimeWarning
            )  # its score tells
            first = grid.coarse() if self.halving else None
            return search(
                rungs, shapes, len(splits), evaluate, budget, report, first, [grid.usual()], grid.neighbours()
            )

    def _mean_loss(self, machine: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        raise NotImplementedError

    def _refit(
        self, machine: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None, deadline: float
    ) -> dict[str, Any]:
        began = time.perf_counter()
        machine.set_params(verbose=max(self.verbose - 1, 0))
        machine._deadline = deadline
        machine.fit(X, y, sample_weight=weight)
        del machine._deadline
        learnt = {
            name: value
            for name, value in vars(machine).items()
            if name in PRIVATELY_LEARNT or name.endswith("_")
        }
        return {**learnt, "best_estimator_": machine, "refit_time_": time.perf_counter() - began}


class TensorMachineRegressorCV(_Search, Regression):
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

    _machine_class = TensorMachineRegressor

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        return self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        if self.cv is not None:
            return check_cv(self.cv)
        if len(y) >= ENOUGH_TO_HOLD_OUT:
            return ShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
        return KFold(_folds(y), shuffle=True, random_state=seed)

    def _mean_loss(self, machine: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        """Minus the mean squared error."""
        errors = (machine._outputs(X) - y.reshape(len(y), -1)) ** 2
        return -float(np.average(errors.mean(axis=1), weights=weight))


class TensorMachineClassifierCV(_Search, Classification):
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

    _machine_class = TensorMachineClassifier
    _passed_on = (*_Search._passed_on, "class_weight")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_Search._parameter_constraints,
        "class_weight": Classification._parameter_constraints["class_weight"],
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

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X, y, weight = self._check_training_data(X, y, sample_weight)
        encode_labels(y)  # refuses what are no classes before anything is fitted
        return X, y, weight

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y, classifier=True)
        sizes = np.unique(y, return_counts=True)[1]
        if len(y) >= ENOUGH_TO_HOLD_OUT and (
            sizes.min() > 1 or len(sizes) > 2
        ):  # the only row of one of two classes must not be held out
            splitter = StratifiedShuffleSplit if sizes.min() > 1 else ShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=seed)
        return (StratifiedKFold if sizes.min() >= FOLDS else KFold)(
            _folds(y), shuffle=True, random_state=seed
        )

    def _can_learn_from(self, y: np.ndarray) -> bool:
        return len(np.unique(y)) > 1

    def _n_models(self, y: np.ndarray) -> int:
        n_classes = len(np.unique(y))
        return n_classes if n_classes > 2 else 1

    def _mean_loss(self, machine: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        """Minus the mean log-loss; a class that the training rows did not have counts as if it had the
        smallest probability there is.
        """
        outputs = machine._outputs(X)
        if outputs.shape[1] == 1:
            outputs = np.hstack([np.zeros_like(outputs), outputs])
        numbers = np.searchsorted(machine.classes_, y).clip(max=len(machine.classes_) - 1)
        logarithms = log_softmax(outputs, axis=1)[np.arange(len(y)), numbers]
        known = machine.classes_[numbers] == y
        return float(
            np.average(np.where(known, logarithms, math.log(np.finfo(np.float64).eps)), weights=weight)
        )


def _folds(y: np.ndarray) -> int:
    return max(2, min(FOLDS, len(y)))


def _default_or(default: Score, scoring: Any, machine: PolynomialModel) -> Score:
    """The score of a fitted machine on rows with weights."""
    if scoring is None:
        return default
    scorer = check_scoring(machine, scoring)
    weighted = "sample_weight" in signature(scorer).parameters

    def score(fitted: PolynomialModel, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        return float(
            scorer(fitted, X, y, sample_weight=weight)
            if weighted and weight is not None
            else scorer(fitted, X, y)
        )

    return score


def _shape(machine: PolynomialModel) -> tuple[str | None, int, int, int, int]:
    """Of candidates that can be fitted together."""
    return machine.basis, machine.relevance, machine.degree, machine.rank, machine._most_iterations()


def _cost(machine: PolynomialModel) -> float:
    """Of a fit, in units that differ from data to data: the number of projections, times that of iterations."""
    return (1 + machine.rank * sum(range(2, machine.degree + 1))) * machine._most_iterations()


def _on_rung(machine: PolynomialModel, rung: Rung) -> PolynomialModel:
    settings = machine.get_params(deep=False)
    settings |= {
        "alpha": machine.alpha / rung.rows**ALPHA_POWER,
        "max_iter": math.ceil(machine._most_iterations() * rung.iterations),
        "tol": machine.tol * rung.tolerance,
    }
    return type(machine)(**settings)


def _results(
    candidates: list[dict[str, Any]], trials: list[Trial], rungs: list[Rung], splits: list[Split]
) -> dict[str, Any]:
    """One row a trial, as in scikit-learn's halving searches."""
    tried = [candidates[trial.candidate] for trial in trials]
    means = np.array([trial.score for trial in trials])
    n_rows = min(split.n_training_rows for split in splits)
    results: dict[str, Any] = {
        "iter": np.array([trial.rung for trial in trials]),
        "n_resources": np.array([math.ceil(rungs[trial.rung].rows * n_rows) for trial in trials]),
        "max_iter": np.array(
            [
                math.ceil(rungs[trial.rung].iterations * each["max_iter"])
                for trial, each in zip(trials, tried, strict=True)
            ]
        ),
    }
    for name, values in (
        ("fit", [t.fit_seconds for t in trials]),
        ("score", [t.score_seconds for t in trials]),
    ):
        results |= {
            f"mean_{name}_time": np.array([v.mean() for v in values]),
            f"std_{name}_time": np.array([v.std() for v in values]),
        }
    for name in tried[0]:
        kind = object if name == "basis" else float if name == "alpha" else int
        results[f"param_{name}"] = np.ma.MaskedArray([each[name] for each in tried], mask=False, dtype=kind)
    results["params"] = tried
    for s in range(len(splits)):
        results[f"split{s}_test_score"] = np.array(
            [trial.scores[s] if s < len(trial.scores) else np.nan for trial in trials]
        )
    # As in scikit-learn, a trial ranks before all of the rungs below it.
    order = np.lexsort([-means, -results["iter"]])
    keys = np.empty(len(trials))
    keys[order] = np.cumsum([1, *(_differ(trials[a], trials[b]) for a, b in pairwise(order))])
    return results | {
        "mean_test_score": means,
        "std_test_score": np.array([trial.scores.std() for trial in trials]),
        "rank_test_score": rankdata(keys, method="min").astype(np.int32),
    }


def _differ(one: Trial, other: Trial) -> bool:
    return (one.rung, one.score) != (other.rung, other.score)
