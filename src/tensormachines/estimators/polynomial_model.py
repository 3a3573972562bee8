"""Base class of the estimators: parameters, and the steps of a fit."""

from __future__ import annotations

import warnings
from contextlib import closing
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._data.files.source import Chunk
from .._data.summary import ValidationRows
from .._data.training import RowsInMemory, TrainingRows, merge_rows
from .._fit.begin import begin
from .._fit.checkpoint import Checkpoint
from .._fit.constant import or_constant
from .._fit.fit import combine, solve
from .._fit.huber_threshold import find_threshold
from .._fit.monitors import Furthest, ProgressLines
from .._fit.partial import Stream
from .._fit.pose import Bases, Target, pose
from .._fit.problem import Problem
from .._fit.race import MOST_PARTS
from .._fit.settings import DEFAULT_TOL, NO_DEADLINE, Deadline, Settings
from .._fit.solver_table import SOLVERS, SolverChoice, choice
from .._fit.solvers.protocol import Outcome, Solution, Watch
from .._model.basis import BASES, RAW_BASES
from .._model.layout import Layout
from .._model.spline_column import USUAL_SHAPE
from .column_parameters import COLUMN_PARAMETERS, constraints_of, periods_of, refuse_other_categories
from .fit_scope import FitCallbacks, fit_scope
from .fit_settings import most_iterations, settings_of
from .fit_warnings import fit_warnings
from .fitted_model import FittedModel
from .held_out_rows import GivenRows, given_rows, hold_out
from .identity import identity
from .model_shape import jumps_of, shape_of
from .sklearn_private import CallbackSupportMixin, Interval, StrOptions, fit_context
from .training_facts import TRAINING_FACTS, loss_curves, training_facts
from .warm_start import continues, kept_for_next_fit, last_fit


class PolynomialModel(CallbackSupportMixin, FittedModel):
    """A model with the terms of ``_layout``.

    The steps of a fit: `_open` checks X and y and says what y holds; `pose` reads the rows twice, to learn
    the basis and to make the blocks of the kernel; `_solve` minimises the objective; `combine` averages the
    members; `_fitted_attributes` returns the attributes that are set at the very end. Facts about the columns
    are set as soon as they are known, because callbacks evaluate models during the fit; a fit that fails
    undoes this.
    """

    _layout: ClassVar[type[Layout]] = Layout
    _stream: Stream

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "alpha": [StrOptions({"auto", "rows"}), Interval(Real, 0, None, closed="left")],
        "shared_factors": [StrOptions({"auto"}), "boolean"],
        "basis": [StrOptions({*BASES, *RAW_BASES}), None],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "history": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "greedy"})],
        "roughness": [Interval(Real, 0, None, closed="neither")],
        "relevance": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "trend": [StrOptions({"auto"}), "boolean"],
        "jumps": [StrOptions({"auto"}), "boolean"],
        **COLUMN_PARAMETERS,
        "init_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "checkpoint": [str, PathLike, None],
        "checkpoint_every": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int | str = "auto",
        rank: int | str = "auto",
        alpha: float | str = "auto",
        *,
        shared_factors: bool | str = "auto",
        basis: str | None = "auto",
        solver: str = "adam",
        max_iter: int | None = None,
        tol: float = DEFAULT_TOL,
        history: int | str = "auto",
        init: str = "random",
        init_scale: float | str = "auto",
        roughness: float = USUAL_SHAPE.roughness,
        relevance: int | str = "auto",
        trend: bool | str = "auto",
        jumps: bool | str = "auto",
        categorical_features: Any = "auto",
        periodic_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        n_restarts: int = 1,
        n_members: int = 1,
        max_norm: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.degree = degree
        self.rank = rank
        self.alpha = alpha
        self.shared_factors = shared_factors
        self.basis = basis
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.history = history
        self.init = init
        self.init_scale = init_scale
        self.roughness = roughness
        self.relevance = relevance
        self.trend = trend
        self.jumps = jumps
        self.categorical_features = categorical_features
        self.periodic_features = periodic_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.n_restarts = n_restarts
        self.n_members = n_members
        self.max_norm = max_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Not the tag "string": scikit-learn would then expect any object to be accepted.
        tags.input_tags.allow_nan = tags.input_tags.categorical = self._takes_raw_columns()
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a dataframe, a Dask array or dataframe, or a source of `tensormachines.blocks`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. For a classifier: labels of any type, (n_samples,), or a matrix of 0 and 1 for multilabel
            targets, (n_samples, n_labels). A Dask collection if X is one. A source provides its own targets
            and weights.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        X_val : array-like or sparse matrix of shape (n_validation_samples, n_features), optional
            Validation rows, with the columns of X; both must be in memory. Their loss after each iteration is
            ``validation_loss_curve_``. ``early_stopping=True`` uses this loss and holds out no training rows.
        y_val : array-like of shape (n_validation_samples,) or (n_validation_samples, n_outputs), optional
        sample_weight_val : array-like of shape (n_validation_samples,), optional
        """
        with fit_scope(self):
            self._fit_and_warn(X, y, sample_weight, given_rows(X, X_val, y_val, sample_weight_val))
        return self

    def _fit_and_warn(self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None) -> None:
        for message in self._fit(X, y, sample_weight, given=given):
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self._notice_columns(X, stacklevel=5)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        deadline: Deadline = NO_DEADLINE,
        given: GivenRows | None = None,
    ) -> list[str]:
        """Fit until a deadline; return warnings."""
        refuse_other_categories(self, X)
        callbacks = FitCallbacks(self, X, y, sample_weight, self._max_iter())
        training, target = self._open(X, y, sample_weight, given)
        with closing(training):
            learnt, best = self._fit_rows(training, target, callbacks, deadline)
        for name in TRAINING_FACTS:  # left over from an earlier fit, which may have set more of them
            self.__dict__.pop(name, None)
        for name, value in learnt.items():
            setattr(self, name, value)
        self.__dict__.pop("_stream", None)  # partial_fit continues from here
        self._name_target(X, y)
        callbacks.end(lambda: learnt)
        return fit_warnings(self, best)

    def _open(
        self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None = None
    ) -> tuple[TrainingRows, Target]:
        """Check all rows; return the training rows, with ``given`` as validation rows, and what y holds."""
        raise NotImplementedError

    def _fit_rows(
        self, training: TrainingRows, target: Target, callbacks: FitCallbacks, deadline: Deadline
    ) -> tuple[dict[str, Any], Solution]:
        """Return the attributes that are learned from the rows, and the best solution."""
        settings = self._settings(deadline, distant=training.distant)
        random_state = check_random_state(self.random_state)
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self.checkpoint_every)
        if checkpoint:
            random_state = checkpoint.random_state(random_state)
        validation = ValidationRows()
        if self.early_stopping:
            training, validation = hold_out(training, target, self.validation_fraction, random_state)
        chosen = choice(settings.solver, self.max_norm)
        problem = self._pose(training, target, validation, random_state, chosen)
        if not isinstance(training, RowsInMemory):
            self._name_columns(training.n_columns, training.feature_names)
            self._columns = training.columns
        if checkpoint:
            checkpoint.identify(identity(self, problem))
        winner = begin(problem, settings, random_state, last_fit(self))
        settings = winner.settings(settings)
        problem = winner.problem
        solutions = self._solve(problem, settings, random_state, callbacks, checkpoint, winner.params)
        problem, params, best = combine(problem, solutions, winner.scale)
        if best.outcome is Outcome.NOT_FINITE:
            raise ValueError(
                "The objective is not finite at the start: X or y have values that overflow. "
                'Use basis="standard", a smaller init_scale, or float64.'
            )
        values = [each.value for each in solutions if np.isfinite(each.value)]
        threads, cut_short = settings.threads(problem.n_rows), self.max_iter is not None
        params, best = or_constant(problem, params, best, values or [np.inf], threads, cut_short)
        learnt = {
            **self._fitted_attributes(problem, params),
            **training_facts(problem, params, settings.threads(problem.n_rows)),
            "alpha_": settings.alpha,
            "solver_": settings.solver,
            "n_iter_": best.n_iter,
            "objective_": best.value,
            "_n_rows": problem.n_rows,
            **loss_curves(best.curves),
            **kept_for_next_fit(problem, float(self.roughness)),
        }
        return learnt, best

    def _settings(self, deadline: Deadline = NO_DEADLINE, distant: bool = False) -> Settings:
        return settings_of(self, deadline, distant)

    def _max_iter(self) -> int:
        """Return the largest number of iterations, for callbacks."""
        return most_iterations(self, self.solver)

    def _pose(
        self,
        training: TrainingRows,
        target: Target,
        validation: ValidationRows,
        random_state: np.random.RandomState,
        chosen: SolverChoice | None,
    ) -> Problem:
        settings = self._settings(distant=training.distant)
        # Short fits by "adam" need minibatches, and L-BFGS needs no more of them.
        near = settings.replaces_adam and (settings.races or settings.starts_near)
        parts = SOLVERS["adam"].parts if near else None if chosen is None else chosen.parts
        # Distant machines join the other rows to minibatches of their own.
        on_machines = training.distant and settings.solver == "adam" and parts is not None
        problem = pose(
            training,
            target,
            validation,
            bases=self._bases(),
            layout=partial(shape_of, self),
            parts=parts,
            most_parts=MOST_PARTS if near or on_machines else None,
            single=chosen is not None and (chosen.single or settings.replaces_adam),
            roughness=float(self.roughness),
            seed=deepcopy(random_state).randint(1 << 31),  # a copy: dealing rows leaves the start alone
            fingerprint=self.checkpoint is not None,
            measure_columns=self.solver == "adam" and self.max_norm is None,
            threads=effective_n_jobs(self.n_jobs),
            jumps=jumps_of(self, settings, chosen),
            constraints=partial(constraints_of, self),
            periods=partial(periods_of, self),
        )
        return problem if chosen is None else find_threshold(problem, settings, deepcopy(random_state))

    def _bases(self) -> Bases:
        """Return the basis for dense and for sparse rows: "auto" is "spline" for dense ones."""
        return Bases("spline", "scaled") if self.basis == "auto" else Bases(self.basis, self.basis)

    def _solve(
        self,
        problem: Problem,
        settings: Settings,
        random_state: np.random.RandomState,
        callbacks: FitCallbacks,
        checkpoint: Checkpoint | None,
        start: np.ndarray | None = None,
    ) -> list[Solution]:
        """Return a solution for each member; ``start`` replaces the random start."""
        warm = self._warm_params(problem) if continues(self) else start
        watchers = self._watchers(problem, settings, callbacks, settings.n_starts)
        return solve(problem, settings, random_state, warm=warm, watchers=watchers, checkpoint=checkpoint)

    def _watchers(
        self, problem: Problem, settings: Settings, callbacks: FitCallbacks, n_solvers: int
    ) -> list[Watch]:
        """Return the observers of every iteration: progress lines, callbacks and the deadline."""
        watchers: list[Watch] = []
        if settings.verbose:
            watchers.append(ProgressLines(settings.verbose, settings.name, n_solvers))
        if callbacks.active:
            report = Furthest(
                lambda iterate: callbacks.iteration(lambda: self._fitted_attributes(problem, iterate.params))
            )
            watchers.append(report)
        if settings.deadline is not NO_DEADLINE:
            watchers.append(settings.deadline.watch)
        return watchers

    def _fitted_attributes(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        """Return the attributes of the model that the params of a solver stand for."""
        return {"_machine": problem.machine(params), "_squeezed": False}

    def _warm_params(self, problem: Problem) -> np.ndarray:
        """Return the params with which the last fit ended."""
        if self.n_members > 1:
            raise ValueError(
                f"warm_start needs n_members=1, got {self.n_members}: an averaged model cannot be continued."
            )
        classes = getattr(self, "classes_", None)
        if problem.labels is not None and classes is not None and not np.array_equal(problem.labels, classes):
            raise ValueError(
                f"warm_start needs the same classes as before: they were {classes}, now {problem.labels}."
            )
        return problem.params(self._machine)

    def _in_memory(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, held_out: Chunk | None, flat: bool = True
    ) -> TrainingRows:
        """Return rows in memory as training rows; y is (rows, targets), float64."""
        if held_out is not None or not self.early_stopping:  # which splits by class, and merges afterwards
            X, y, weight = merge_rows(X, y, weight)
        return RowsInMemory(X, y, weight, held_out, flat, self._columns)

    def _learn_block(self, training: RowsInMemory, target: Target) -> None:
        """Learn from the rows of a block, which replaces the oldest remembered block."""
        if self.max_norm is not None or self.early_stopping or self.checkpoint is not None:
            raise ValueError("partial_fit does not support max_norm, early_stopping or checkpoint.")
        if self.interaction_cst is not None or self.monotonic_cst is not None:
            raise ValueError("partial_fit does not support interaction_cst or monotonic_cst.")
        settings = self._settings()
        if hasattr(self, "_stream"):
            self._stream.require_shape(settings, self.basis)
        else:
            random_state = check_random_state(self.random_state)
            problem = self._pose(training, target, ValidationRows(), random_state, chosen=None)
            before, n_before = getattr(self, "_machine", None), getattr(self, "_n_rows", 0)
            self._stream = Stream(problem, before, settings, self.basis, random_state, n_before)
        value = self._stream.learn(training.chunk, settings)
        learnt = self._fitted_attributes(self._stream.problem, self._stream.params)
        learnt["_n_rows"] = self._stream.n_rows
        for name in TRAINING_FACTS:  # they describe rows that are gone
            self.__dict__.pop(name, None)
        for name, attribute in {**learnt, "n_iter_": self._stream.n_blocks, "objective_": value}.items():
            setattr(self, name, attribute)
