"""What the estimators share: parameters, checks, the fit itself, and evaluation on new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._blocks import Block
from ._callbacks import CallbackSupportMixin, FitCallbacks
from ._layout import Layout
from ._lbfgs import lbfgs
from ._losses import SQUARED, Loss
from ._machine import Machine
from ._merge import merge_rows
from ._objective import Objective
from ._projected import projected_gradient
from ._solution import Outcome, Solution, Solver, Watch, minimise
from ._start import random_start
from ._watch import EarlyStopping, Furthest, ProgressLines
from .basis import BASES, fit_basis

SOLVERS = ("lbfgs",)
DEFAULT_ALPHA = 1e-4
DEFAULT_MAX_ITER = 1000
DEFAULT_TOL = 1e-4
FEWEST_ROWS_FOR_THREADS = 512


class TensorMachine(CallbackSupportMixin, BaseEstimator):
    """All that is learnt is set at the very end of a fit, together: the public attributes, and ``_machine`` from which they are made and
    which new rows are evaluated with.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "basis": [StrOptions(set(BASES)), None],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 3,
        rank: int = 5,
        alpha: float = DEFAULT_ALPHA,
        *,
        basis: str | None = "standard",
        solver: str = "lbfgs",
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        max_norm: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
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
        self.init_scale = init_scale
        self.n_restarts = n_restarts
        self.max_norm = max_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machine")

    # ---- fit

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any, **y_options: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", accept_large_sparse=True, dtype=[np.float64, np.float32], order=None, **y_options
        )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("sample_weight is zero for every row: at least one weight must be positive.")
        return X, y, sample_weight

    def _fit(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, loss: Loss, n_outputs: int, squeeze: bool = False, **learnt: Any
    ) -> None:
        """Fit targets y (rows, targets) as ``loss`` defines them; set what was learnt, with ``learnt`` beside it."""
        callbacks = FitCallbacks(self, self.max_iter, X=X, y=y)
        X, y, weight = merge_rows(X, y, weight)
        random_state = check_random_state(self.random_state)
        threads = self._threads(X)
        training, held_out = self._hold_out(y, weight, loss, random_state)
        basis = fit_basis(self.basis, X, np.ones(len(y)) if training is None else training)
        layout = Layout(basis.width, int(self.degree), int(self.rank), n_outputs)
        center, spread = _center_and_spread(y, training) if loss is SQUARED else (np.zeros(1), np.ones(1))
        targets = (y - center) / spread if loss is SQUARED else y
        block = Block(X, basis, targets, training)

        def machine(params: np.ndarray) -> Machine:
            params = layout.scale_outputs(params, spread.astype(params.dtype))
            layout.bias(params)[...] += center
            return Machine(basis, layout, params)

        starts = [random_start(block, layout, self.init_scale, random_state) for _ in range(self.n_restarts)]
        if self.warm_start and hasattr(self, "_machine"):
            starts[0] = self._resume(layout, center, spread).astype(X.dtype)
        watchers: list[Watch] = [
            ProgressLines(self.verbose, type(self).__name__, len(starts)),
            Furthest(lambda iterate: callbacks.iteration(lambda: {**learnt, **_attributes(machine(iterate.params), squeeze)})),
        ]
        early = None
        if held_out is not None:
            kept = Block(X[held_out], basis, targets[held_out], None if weight is None else weight[held_out])
            early = EarlyStopping(Objective([kept], layout, loss, 0.0, threads), self.n_iter_no_change)
            watchers.append(early)
        solutions = minimise(
            Objective([block], layout, loss, float(self.alpha), threads),
            [self._solver(start, layout, spread) for start in starts],
            lambda solver, iterate: any([watcher(solver, iterate) for watcher in watchers]),
        )
        best = _best(solutions, early)
        self._complain(best)
        learnt.update(_attributes(machine(best.params), squeeze), n_iter_=best.n_iter, objective_=best.value)
        for name, value in learnt.items():
            setattr(self, name, value)
        callbacks.end(lambda: learnt)

    def _hold_out(
        self, y: np.ndarray, weight: np.ndarray | None, loss: Loss, random_state: np.random.RandomState
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Weights to train with, and rows to hold out. Held-out rows get weight 0, which spares a copy of all the others."""
        if not self.early_stopping:
            return weight, None
        stratify = None if loss is SQUARED else y
        _, held_out = train_test_split(np.arange(len(y)), test_size=self.validation_fraction, random_state=random_state, stratify=stratify)
        training = np.ones(len(y)) if weight is None else weight.copy()
        training[held_out] = 0
        if not training.any() or (weight is not None and not weight[held_out].any()):
            raise ValueError("early_stopping needs rows of positive weight both to train on and to hold out.")
        return training, held_out

    def _resume(self, layout: Layout, center: np.ndarray, spread: np.ndarray) -> np.ndarray:
        machine: Machine = self._machine
        if machine.layout != layout:
            raise ValueError(
                f"warm_start needs a model of the same shape as before: that was {machine.layout}, this is {layout}. "
                "Set warm_start=False to start afresh."
            )
        params = machine.params.astype(np.float64)
        layout.bias(params)[...] -= center
        return layout.scale_outputs(params, 1 / spread)

    def _solver(self, start: np.ndarray, layout: Layout, spread: np.ndarray) -> Solver:
        if self.max_norm is None:
            return lbfgs(start, max_iter=self.max_iter, tol=self.tol)
        return projected_gradient(start, _ball(layout, self.max_norm, spread), max_iter=self.max_iter, tol=self.tol)

    def _complain(self, solution: Solution) -> None:
        if solution.outcome is Outcome.NOT_FINITE:
            raise ValueError(
                "The objective is not finite at the start: X or y have values that overflow. "
                'Use basis="standard", a smaller init_scale, or float64.'
            )
        if solution.outcome is Outcome.LIMIT and not self.early_stopping:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} before the objective settled to tol={self.tol}. "
                "The model is usable; more iterations may improve it.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _threads(self, X: Any) -> int:
        """A few rows are done before a second thread has started, or joblib has said how many there may be."""
        return effective_n_jobs(self.n_jobs) if X.shape[0] >= FEWEST_ROWS_FOR_THREADS else 1

    # ---- new rows

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order=None, reset=False)

    def _outputs(self, X: Any) -> np.ndarray:
        """f of every row, (rows, n_outputs)."""
        X = self._check_rows(X)
        outputs = self._machine.outputs(X, self._threads(X))
        if not np.isfinite(outputs).all():
            warnings.warn(
                f"{type(self).__name__}: some outputs overflow, because these rows lie far outside of the training data.",
                RuntimeWarning,
                stacklevel=3,
            )
        return outputs


def _attributes(machine: Machine, squeeze: bool) -> dict[str, Any]:
    """What a fit sets; squeeze: one output in scikit-learn's shapes for a y with one axis."""
    layout, params = machine.layout, machine.params
    intercept, coef = layout.bias(params).copy(), np.ascontiguousarray(layout.linear(params))
    return {
        "_machine": machine,
        "intercept_": intercept[0] if squeeze else intercept,
        "coef_": coef[0] if squeeze else coef,
        "factors_": {p: np.ascontiguousarray(factors) for p, factors in layout.factors_by_degree(params).items()},
        "n_parameters_": layout.size,
    }


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """If the block fails or is interrupted, what the estimator had learnt before is as it was."""

    def learnt() -> dict[str, Any]:
        return {name: value for name, value in vars(estimator).items() if name.endswith("_") or name == "_machine"}

    before = learnt()
    try:
        yield
    except BaseException:
        for name in learnt():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def _center_and_spread(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each output; the latter 1 for a constant."""
    center = np.average(y, axis=0, weights=weight)
    spread = np.sqrt(np.average((y - center) ** 2, axis=0, weights=weight))
    constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(center)
    return center, np.where(constant, 1.0, spread)


def _ball(layout: Layout, max_norm: float, spread: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Projection onto: every factor and linear part of norm at most max_norm, in the units that the user sees."""
    radius = np.empty((layout.n_outputs, layout.n_projections))
    radius[:, 0] = max_norm / spread
    for p, columns in layout.degrees():
        radius[:, columns] = (max_norm / spread ** (1 / p))[:, None]

    def project(params: np.ndarray) -> np.ndarray:
        projected = params.copy()
        factors = layout.factors(projected)
        norms = np.linalg.norm(factors, axis=0)
        factors *= np.where(norms > radius, radius / np.where(norms > 0, norms, 1), 1)
        return projected

    return project


def _best(solutions: list[Solution], early: EarlyStopping | None) -> Solution:
    """The solution with the lowest objective; with early stopping, the params with the lowest held-out loss."""
    if early is None or not early.best:
        finite = [solution for solution in solutions if np.isfinite(solution.value)]
        return min(finite or solutions, key=lambda solution: solution.value)
    number = min(early.best, key=lambda solver: early.best[solver][0])
    _, iteration, params = early.best[number]
    return Solution(params, solutions[number].value, iteration, solutions[number].n_evaluations, solutions[number].outcome)
