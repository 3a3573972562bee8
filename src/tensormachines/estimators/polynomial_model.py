"""What the estimators share: parameters, checks, the fit itself, and evaluation on new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._data.deduplicate import merge_rows
from .._data.files.source import Source
from .._data.frame import all_different
from .._data.read_ahead import ahead
from .._data.row_assignment import part_count
from .._data.table import Table, TableInMemory, ValidationRows
from .._fit.checkpoint import Checkpoint
from .._fit.greedy import greedy
from .._fit.monitors import Deadline, EarlyStopping, Furthest, ProgressLines
from .._fit.partial import Stream
from .._fit.problem import Bases, PartCount, Problem, Target
from .._fit.solvers.adam import adam, minibatch_count
from .._fit.solvers.lbfgs import lbfgs
from .._fit.solvers.levenberg_marquardt import gauss_newton, levenberg_marquardt, nearly_exact
from .._fit.solvers.projected_gradient import projected_gradient
from .._fit.solvers.protocol import (
    Iterate,
    Outcome,
    Solution,
    Solver,
    State,
    Watch,
    best_of,
    in_units,
    minimise,
)
from .._fit.solvers.sfo import sfo
from .._fit.warm_up import warm_up
from .._model.basis import BASES, RAW_BASES
from .._model.block import canonical
from .._model.layout import Layout
from .._model.losses import MULTINOMIAL
from .._model.machine import Machine
from .._model.objective import Objective
from .callbacks import CallbackSupportMixin, FitCallbacks
from .sklearn_private import Interval, StrOptions
from .validation import TakesFrames

SOLVERS = ("adam", "kfac", "lbfgs", "sfo", "sfo-subset")
PARTS = {"adam": minibatch_count, "sfo": part_count, "sfo-subset": part_count}
DEFAULT_MAX_ITER = {
    "adam": 30,
    "kfac": 1000,
    "lbfgs": 1000,
    "projected": 1000,
    "sfo": 1000,
    "sfo-subset": 1000,
}
ROWS_OF_PENALTY, SMALLEST_PENALTY, LARGEST_PENALTY = (
    5,
    1e-5,
    1e-2,
)  # alpha="auto", by measurement (benchmarks/RESULTS.md)
KFAC_PAIRS = 20
DEFAULT_TOL = 1e-4
GREEDY_ITERATIONS = 50  # a step
LONGEST_SHORT_FIT = 30  # iterations
FEWEST_ROWS_FOR_THREADS = 512
PRIVATELY_LEARNT = {"_columns", "_machine", "_output_names", "_squeezed", "_stages", "_stream"}
NOT_IN_THE_IDENTITY = {
    "n_jobs",
    "verbose",
    "checkpoint",
    "checkpoint_every",
}  # of a fit: they do not change its result


class PolynomialModel(CallbackSupportMixin, TakesFrames):
    """A model whose terms are those of ``_layout``.

    All that is learnt is set at the very end of a fit, together: the public attributes, and ``_machine`` from
    which they are made and which new rows are evaluated with."""

    _layout: ClassVar[type[Layout]] = Layout
    _deadline: float = np.inf  # of time.monotonic(); of a fit within a search that has a time budget
    _machine: Machine
    _squeezed: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "basis": [StrOptions({*BASES, *RAW_BASES}), None],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"random", "greedy"})],
        "relevance": [Interval(Integral, 0, None, closed="left")],
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
        degree: int = 3,
        rank: int = 10,
        alpha: float | str = "auto",
        *,
        basis: str | None = "auto",
        solver: str = "adam",
        max_iter: int | None = None,
        tol: float = DEFAULT_TOL,
        init: str = "random",
        init_scale: float | str = "auto",
        relevance: int = 0,
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
        self.basis = basis
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.init_scale = init_scale
        self.relevance = relevance
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
        tags.input_tags.allow_nan = tags.input_tags.categorical = (
            self._takes_raw_columns()
        )  # "string" would promise that any object is one
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machine")

    def _require_fit(self) -> None:
        check_is_fitted(self, msg=self._why_not_fitted())

    def _why_not_fitted(self) -> str | None:
        """Where it is not because `fit` has not been called."""
        return None

    # ---- fit

    def _fit(self, table: Table, target: Target, attributes: Attributes, callbacks: FitCallbacks) -> None:
        """Fit a table, and set what was learnt. Whatever happens, the table keeps nothing of the fit."""
        try:
            self._fit_table(table, target, attributes, callbacks)
        finally:
            table.close()

    def _fit_table(
        self, table: Table, target: Target, attributes: Attributes, callbacks: FitCallbacks
    ) -> None:
        if self.solver in ("sfo", "sfo-subset") and self.max_norm is not None:
            raise ValueError(
                f'max_norm needs solver="lbfgs", "adam" or "kfac", got {self.solver!r}, which cannot respect it.'
            )
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self.checkpoint_every)
        random_state = check_random_state(self.random_state)
        if checkpoint:
            random_state = checkpoint.random_state(random_state)
        validation = ValidationRows()
        if self.early_stopping:
            table, validation = self._hold_out(table, target, random_state)
        if not isinstance(table, TableInMemory):
            self._columns = None  # those of the fit before
        problem = self._pose(table, target, validation, random_state, parts=PARTS.get(self._solved_by()))
        if not isinstance(table, TableInMemory):
            self._name_columns(table.n_columns, table.feature_names)
            self._columns = table.columns
        solutions = self._solve(problem, attributes, callbacks, random_state, checkpoint)
        best = best_of(solutions)
        self._complain(best)
        # Where another start overflowed, its model would spoil the mean.
        members = [solution.params for solution in solutions if np.isfinite(solution.value)]
        problem, params = problem.average(members or [best.params])
        params = problem.without_noise(params)
        learnt = {**attributes(problem, params), "n_iter_": best.n_iter, "objective_": best.value}
        for name, value in learnt.items():
            setattr(self, name, value)
        self.__dict__.pop("_stream", None)  # of partial_fit, which will go on from here
        callbacks.end(lambda: learnt)

    def _learn(self, table: TableInMemory, target: Target, attributes: Attributes) -> None:
        """Learn from the rows of a table, in the place of the oldest of those that came before."""
        if self.max_norm is not None or self.early_stopping or self.checkpoint is not None:
            raise ValueError(
                "partial_fit knows neither max_norm nor early_stopping nor checkpoint: it cannot respect them."
            )
        self._stream: Stream
        if hasattr(self, "_stream"):
            self._stream.require_shape(int(self.degree), int(self.rank), self.basis)
        else:
            random_state = check_random_state(self.random_state)
            problem = self._pose(table, target, ValidationRows(), random_state, parts=None)
            before = getattr(self, "_machine", None)
            if before is not None and self.degree > 1:
                problem.layout = problem.layout.with_rank(
                    int(self.rank * self.n_members)
                )  # the mean of members goes on as one model
            settings = int(self.degree), int(self.rank), self.basis
            self._stream = Stream(problem, before, self.init_scale, random_state, settings)
        alpha = self._penalty(self._stream.problem, self._stream.rows_with(table.chunk))
        value = self._stream.learn(table.chunk, alpha, self._threads(len(table.chunk.y)))
        learnt = attributes(self._stream.problem, self._stream.params)
        for name, attribute in {**learnt, "n_iter_": self._stream.n_blocks, "objective_": value}.items():
            setattr(self, name, attribute)

    def _pose(
        self,
        table: Table,
        target: Target,
        validation: ValidationRows,
        random_state: np.random.RandomState,
        parts: PartCount | None,
    ) -> Problem:
        return Problem(
            table,
            target,
            validation,
            bases=self._bases(),
            layout=partial(self._layout, degree=int(self.degree), rank=int(self.rank)),
            parts=parts,
            seed=deepcopy(random_state).randint(
                1 << 31
            ),  # a copy: the start is the same wherever the rows are
            fingerprint=self.checkpoint is not None,
            column_sizes=self._solved_by() == "adam",
        )

    def _solved_by(self) -> str:
        """A constrained problem is solved by projected gradients, whatever the solver of others."""
        return self.solver if self.max_norm is None else "projected"

    def _most_iterations(self) -> int:
        return DEFAULT_MAX_ITER[self._solved_by()] if self.max_iter is None else self.max_iter

    def _penalty(self, problem: Problem, n_rows: int | None = None) -> float:
        """alpha; "auto" gives the model of each class as much say as a few of its rows have."""
        if self.alpha == "auto":
            return usual_alpha(
                n_rows or problem.n_rows, problem.layout.n_outputs if problem.loss is MULTINOMIAL else 1
            )
        return float(self.alpha)

    def _bases(self) -> Bases:
        """ "auto" is "spline" where rows are dense; sparse ones stay sparse."""
        dense, of_sparse = ("spline", "standard") if self.basis == "auto" else (self.basis, self.basis)
        if self._columns is None:
            return Bases(dense, of_sparse)
        return Bases(
            dense,
            of_sparse,
            tuple(None if column.levels is None else column.n_codes for column in self._columns.columns),
        )

    def _solve(
        self,
        problem: Problem,
        attributes: Attributes,
        callbacks: FitCallbacks,
        random_state: np.random.RandomState,
        checkpoint: Checkpoint | None,
    ) -> list[Solution]:
        """Minimise the objective from all starts, and choose the best solution for each member."""
        threads = self._threads(problem.n_rows)
        for _ in range(self.relevance):
            problem.weigh_columns(self._short_fit(problem, threads, random_state))
        objective = problem.objective(self._penalty(problem), threads)
        starts = [
            problem.random_start(self.init_scale, random_state)
            for _ in range(self.n_members * self.n_restarts)
        ]
        if self.warm_start and hasattr(self, "_machine"):
            starts[0] = self._begin_where_the_last_fit_ended(problem)
        # The same random numbers for all: so they ask for the same minibatches at the same time, and share
        # them.
        solvers = [self._solver(start, problem, objective, deepcopy(random_state)) for start in starts]
        watchers, early = self._watchers(problem, attributes, callbacks, len(starts), threads)
        if checkpoint:
            checkpoint.identify(self._identity(problem))
            if early:
                checkpoint.extra = early.state
                for number in range(len(starts)):
                    early.restore(number, checkpoint.kept_extra(number))

        def watch(solver: int, iterate: Iterate) -> bool:
            stop = any([watcher(solver, iterate) for watcher in watchers])
            return stop or (checkpoint is not None and checkpoint.watch(solver, iterate))

        solutions = minimise(
            objective,
            [
                checkpoint.solver(number, solver) if checkpoint else solver()
                for number, solver in enumerate(solvers)
            ],
            watch,
            together=checkpoint is None,
        )
        if checkpoint:
            checkpoint.write()
        of_members = [range(member, len(solutions), self.n_members) for member in range(self.n_members)]
        if early:
            return [early.best_of(solutions, solvers) for solvers in of_members]
        return [
            self._polish(best_of([solutions[solver] for solver in solvers]), objective)
            for solvers in of_members
        ]

    def _polish(self, solution: Solution, objective: Objective) -> Solution:
        """Fit a target that seems to have no noise to all its digits."""
        if self.solver != "kfac" or self.max_norm is not None or not nearly_exact(solution, objective):
            return solution
        solver = levenberg_marquardt(solution, partial(gauss_newton, objective))
        return minimise(objective, [solver], Deadline(self._deadline))[0]

    def _short_fit(self, problem: Problem, threads: int, random_state: np.random.RandomState) -> np.ndarray:
        objective = problem.objective(self._penalty(problem), threads)
        start = problem.random_start(self.init_scale, random_state)
        solver = self._solver(
            start,
            problem,
            objective,
            random_state,
            max_iter=max(1, min(self._most_iterations() // 3, LONGEST_SHORT_FIT)),
        )
        return minimise(objective, [solver()], Deadline(self._deadline))[0].params

    def _watchers(
        self, problem: Problem, attributes: Attributes, callbacks: FitCallbacks, n_solvers: int, threads: int
    ) -> tuple[list[Watch], EarlyStopping | None]:
        early = EarlyStopping(problem, self.n_iter_no_change, threads) if self.early_stopping else None
        watchers: list[Watch] = [
            ProgressLines(self.verbose, type(self).__name__, n_solvers),
            Furthest(lambda iterate: callbacks.iteration(lambda: attributes(problem, iterate.params))),
            Deadline(self._deadline),
        ]
        return [*watchers, *([early] if early else [])], early

    def _identity(self, problem: Problem) -> dict[str, Any]:
        """What makes two fits the same fit."""
        settings = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in NOT_IN_THE_IDENTITY
        }
        if isinstance(self.random_state, np.random.RandomState):
            settings["random_state"] = crc32(repr(self.random_state.get_state()).encode())
        if self.warm_start and hasattr(self, "_machine"):
            settings["start"] = crc32(self._machine.params.tobytes())
        data = f"{problem.n_rows} rows x {problem.basis.n_columns} columns of {problem.dtype}, checksum {problem.checksum:016x}"
        return {
            "estimator": type(self).__name__,
            **{name: _plain(value) for name, value in settings.items()},
            "data": data,
        }

    def _table_in_memory(self, X: Any, y: np.ndarray, weight: np.ndarray | None, flat: bool = True) -> Table:
        """y is (rows, targets), float64."""
        if not self.early_stopping:  # which must be able to share out the rows of a class, equal or not
            X, y, weight = merge_rows(X, y, weight)
        return TableInMemory(X, y, weight, flat=flat)

    def _hold_out(
        self, table: Table, target: Target, random_state: np.random.RandomState
    ) -> tuple[Table, ValidationRows]:
        """Decide which rows early stopping validates on; in memory, of every class its share."""
        if not isinstance(table, TableInMemory):
            return table, ValidationRows(self.validation_fraction, random_state.randint(1 << 31))
        y = table.chunk.y
        rows = train_test_split(
            np.arange(len(y)),
            test_size=self.validation_fraction,
            random_state=random_state,
            stratify=y if target.classification else None,
        )[1]
        mask = np.zeros(len(y), dtype=bool)
        mask[rows] = True
        return TableInMemory(table.chunk.X, y, table.chunk.weight, mask, table.flat), ValidationRows(
            given=True
        )

    def _begin_where_the_last_fit_ended(self, problem: Problem) -> np.ndarray:
        if self.n_members > 1:
            raise ValueError(
                f"warm_start needs n_members=1, got {self.n_members}: the mean of several models is where none of them ended."
            )
        if (
            problem.labels is not None
            and hasattr(self, "classes_")
            and not np.array_equal(problem.labels, self.classes_)
        ):
            raise ValueError(
                f"warm_start needs the same classes as before: they were {self.classes_}, now {problem.labels}."
            )
        return problem.params(self._machine)

    def _solver(
        self,
        start: np.ndarray,
        problem: Problem,
        objective: Objective,
        random_state: np.random.RandomState,
        max_iter: int | None = None,
        improve: bool = True,
    ) -> Callable[..., Solver]:
        """A solver that begins at ``start``, or at a better one that it makes of it, or where its argument
        ``resume`` says.
        """
        options: dict[str, Any] = {"max_iter": max_iter or self._most_iterations(), "tol": self.tol}
        seed = 0 if self.solver == "lbfgs" else random_state.randint(1 << 31)
        n_functions = len(problem.blocks.weights)
        curvature = (
            problem.curvature(objective.alpha) if self.solver == "kfac" and self.max_norm is None else None
        )
        # A ball is none in other units; and a curvature knows its own.
        scaled = self.max_norm is None and curvature is None
        units = (
            (problem.step_units if self.solver == "adam" else problem.units)(objective.alpha)
            if scaled
            else None
        )
        solver: Callable[..., Solver]
        if self.max_norm is not None:
            solver = partial(projected_gradient, project=problem.ball(self.max_norm), **options)
        elif self.solver == "adam":
            solver = partial(
                adam,
                n_functions=n_functions,
                max_iter=options["max_iter"],
                seed=seed,
                reach=problem.reach(units),
            )
        elif self.solver == "kfac":
            solver = partial(lbfgs, history=KFAC_PAIRS, curvature=curvature, **options)
        elif self.solver != "lbfgs":
            solver = partial(
                sfo, n_functions=n_functions, seed=seed, subset=self.solver == "sfo-subset", **options
            )
        else:
            solver = partial(lbfgs, **options)
        if units is not None:
            plain = solver

            def solver(start: np.ndarray, resume: State | None = None) -> Solver:
                return in_units(plain(start / units, resume=resume), units)

        def begin(resume: State | None = None) -> Solver:
            """A better start is not looked for before the solver runs, and not at all where it resumes."""
            known = resume or not improve or (self.warm_start and hasattr(self, "_machine"))
            return (
                yield from solver(
                    start if known else self._better_start(start, problem, objective, seed), resume=resume
                )
            )

        return begin

    def _better_start(
        self, start: np.ndarray, problem: Problem, objective: Objective, seed: int
    ) -> np.ndarray:
        if self.init == "greedy":
            path = greedy(
                objective,
                start,
                max_iter=GREEDY_ITERATIONS,
                tol=DEFAULT_TOL,
                units=problem.units(objective.alpha),
            )
            return path[-1].params
        minibatches = problem.minibatches() if self.solver == "kfac" and self.max_norm is None else None
        return (
            start
            if minibatches is None
            else warm_up(replace(objective, blocks=minibatches, alpha=0.0), start, seed)
        )

    def _complain(self, solution: Solution) -> None:
        if solution.outcome is Outcome.NOT_FINITE:
            raise ValueError(
                "The objective is not finite at the start: X or y have values that overflow. "
                'Use basis="standard", a smaller init_scale, or float64.'
            )
        if solution.outcome is Outcome.PRECISION and solution.n_iter == 0:
            warnings.warn(
                f"{type(self).__name__} found no step that lowers the objective from its random start, and returns that start. "
                'The columns of X may have too different scales: use basis="standard".',
                ConvergenceWarning,
                stacklevel=6,
            )
        if solution.outcome is Outcome.LIMIT and not self.early_stopping:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter={self.max_iter or self._most_iterations()} before the objective settled "
                f"to tol={self.tol}. The model is usable; more iterations may improve it.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _threads(self, n_rows: int) -> int:
        """A few rows are done before a second thread has started, or joblib has said how many there may be."""
        return effective_n_jobs(self.n_jobs) if n_rows >= FEWEST_ROWS_FOR_THREADS else 1

    # ---- what was learnt

    @property
    def intercept_(self) -> Any:
        bias = self._learnt_machine("intercept_").layout.bias(self._machine.params)
        return bias[0] if self._squeezed else bias.copy()

    @property
    def coef_(self) -> np.ndarray:
        linear = self._learnt_machine("coef_").layout.linear(self._machine.params)
        return np.ascontiguousarray(linear[0] if self._squeezed else linear)

    @property
    def factors_(self) -> dict[int, np.ndarray]:
        by_degree = self._learnt_machine("factors_").layout.factors_by_degree(self._machine.params)
        return {p: np.ascontiguousarray(factors) for p, factors in by_degree.items()}

    @property
    def n_parameters_(self) -> int:
        return self._learnt_machine("n_parameters_").layout.size

    @property
    def basis_features_(self) -> np.ndarray:
        basis = self._learnt_machine("basis_features_").basis
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        columns = [None] * len(names) if self._columns is None else self._columns.columns
        levels = [None if column is None else column.level_names for column in columns]
        return np.array(all_different(basis.names(names, levels)), dtype=object)

    def _learnt_machine(self, attribute: str) -> Machine:
        if not hasattr(self, "_machine"):
            raise AttributeError(
                f"{type(self).__name__} has no {attribute}: {self._why_not_fitted() or 'it is not fitted yet.'}"
            )
        return self._machine

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, from which `tensormachines.load` reads it.

        See `tensormachines.persistence.save`.
        """
        from ..persistence import save  # which knows all estimators

        save(self, path)

    # ---- new rows

    def _check_rows(self, X: Any) -> Any:
        self._require_fit()
        if self._is_plain(X):
            return X
        return canonical(self._check_data(X, reset=False))

    def _outputs(self, X: Any) -> np.ndarray:
        """f of every row, (rows, n_outputs)."""
        return self._on_rows(X, self._outputs_in_memory)

    def _on_rows(self, X: Any, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """``function`` of the rows of X, which may be a source of blocks."""
        if not isinstance(X, Source):
            return function(self._check_rows(X))
        self._require_fit()
        names = getattr(self, "feature_names_in_", None)
        results = []
        with closing(ahead(X.encoded(self._columns, missing=self._takes_raw_columns()))) as chunks:
            for chunk in chunks:
                if chunk.X.shape[1] != self.n_features_in_:
                    raise ValueError(
                        f"{chunk.place}: {chunk.X.shape[1]} columns of X, but the model was fitted on {self.n_features_in_}."
                    )
                if X.feature_names is not None and names is not None and list(names) != X.feature_names:
                    raise ValueError(
                        f"The columns should be named as in the fit, {list(names)}, in that order; got {X.feature_names}."
                    )
                results.append(function(canonical(chunk.X)))
        return np.concatenate(results)

    def _outputs_in_memory(self, X: Any) -> np.ndarray:
        outputs = self._machine.outputs(X, self._threads(X.shape[0]))
        if not np.isfinite(outputs).all():
            warnings.warn(
                f"{type(self).__name__}: some outputs overflow, because these rows lie far outside of the training data.",
                RuntimeWarning,
                stacklevel=3,
            )
        return outputs


def usual_alpha(n_rows: int, n_models: int) -> float:
    """The penalty that gives each model as much say as a few of its rows have."""
    return float(np.clip(ROWS_OF_PENALTY / (n_rows * n_models), SMALLEST_PENALTY, LARGEST_PENALTY))


def _plain(setting: Any) -> Any:
    """The same text for the same setting, whether 1 or 1.0, and in whatever order a dict has it."""
    if isinstance(setting, dict):
        return sorted(f"{key}: {_plain(value)}" for key, value in setting.items())
    return str(
        float(setting) if isinstance(setting, Real) and str(setting) not in ("True", "False") else setting
    )


@dataclass(frozen=True)
class Attributes:
    """How what was learnt is shown: the attributes that a problem and the params of its solution make.

    ``learnt`` gives those that do not depend on params. ``squeeze``: where y has one axis, the only output is
    shown in scikit-learn's shapes for that."""

    learnt: Callable[[Problem], dict[str, Any]] = lambda problem: {}
    squeeze: bool = False

    def __call__(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        return {
            **self.learnt(problem),
            "_machine": problem.machine(params),
            "_squeezed": self.squeeze and problem.flat,
        }


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """If the block fails or is interrupted, what the estimator had learnt before is as it was."""

    def learnt() -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(estimator).items()
            if name.endswith("_") or name in PRIVATELY_LEARNT
        }

    before = learnt()
    try:
        yield
    except BaseException:
        for name in learnt():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise
