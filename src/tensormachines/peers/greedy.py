"""Tensor Machines whose terms are fitted greedily, one rank at a time."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._fit.checkpoint import Checkpoint
from .._fit.greedy import greedy
from .._fit.monitors import EarlyStopping, Recorder
from .._fit.problem import Problem
from .._fit.settings import DEFAULT_TOL, Settings
from .._fit.solvers.protocol import Curves, Iterate, Outcome, Solution
from .._fit.units import units
from ..estimators.classification import Classification
from ..estimators.docstrings import COLUMNS, LOSS, documentation
from ..estimators.fit_scope import FitCallbacks
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.regression import Regression
from ..estimators.sklearn_private import Interval

DEFAULT_ALPHA = 1e-4
DEFAULT_MAX_ITER = 200

_MODEL = """
The model and the objective are those of `TensorMachineRegressor`. The fit begins with the linear part, and
then adds one term of every degree at a time. New terms are fitted, together with the linear part, to the
residual of the earlier terms, and do not change afterwards. So the models of all smaller ranks are
by-products: `staged_predict` returns their predictions.

This is the greedy algorithm of R. Livni, S. Shalev-Shwartz and O. Shamir, "On the computational efficiency of
training neural networks" (2014), section 5, for any degree and for every loss. Fitting all terms together
reaches a lower objective; the greedy model can be the start of such a fit, with init="greedy".
"""
_NOT_OFFERED = (
    "shared_factors",
    "solver",
    "init",
    "relevance",
    "roughness",
    "trend",
    "jumps",
    "history",
    *COLUMNS,
    "n_restarts",
    "n_members",
    "max_norm",
    "warm_start",
    "checkpoint",
    "checkpoint_every",
    "task",
    *LOSS,
)
_DEFAULTS = {"alpha": DEFAULT_ALPHA, "basis": "standard"}
_INSTEAD = {
    "rank": """rank : int, default=5
    Number of terms (products of linear forms) of each output for each degree from 2 on.""",
    "max_iter": f"""max_iter : int, default={DEFAULT_MAX_ITER}
    Maximum number of iterations of L-BFGS for each rank.""",
    "early_stopping": """early_stopping : bool, default=False
    Whether to hold out rows, and to end the fit of a rank when the loss on these rows has not improved for
    ``n_iter_no_change`` iterations. The first rank that does not improve the loss at all is dropped, and the
    fit ends.""",
    "degree": """degree : int, default=3
    Degree of the polynomial, 1 or more. Degree 1 is a linear model.""",
    "n_iter_": """n_iter_ : int
    Number of iterations, for all ranks together.""",
    "objective_": """objective_ : float
objective_path_ : ndarray of shape (rank + 1,)
    The objective with 0, 1, ... terms of each degree; shorter if the fit was stopped.""",
    "random_state": """random_state : int, RandomState instance or None, default=None
    Draws the initial factors of each term.""",
}


class GreedyTensorMachine(PolynomialModel):
    """Greedy fit and staged predictions, shared by the regressor and the classifier."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in PolynomialModel._parameter_constraints.items()
            if name not in _NOT_OFFERED
        },
        "degree": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
    }

    def _solve(
        self,
        problem: Problem,
        settings: Settings,
        random_state: np.random.RandomState,
        callbacks: FitCallbacks,
        checkpoint: Checkpoint | None,
        start: np.ndarray | None = None,
    ) -> list[Solution]:
        """Return the best end of the path. It begins with a small random start and ignores ``start``."""
        threads = settings.threads(problem.n_rows)
        watchers = self._watchers(problem, settings, callbacks, 1)
        recorder = Recorder(problem, threads, n_solvers=problem.layout.rank + 1)
        early = EarlyStopping(recorder.curves, settings.n_iter_no_change) if self.early_stopping else None
        stopped = False  # by a callback

        def watch(step: int, iterate: Iterate) -> bool:
            nonlocal stopped
            recorder(step, iterate)
            stopped = any([watcher(step, iterate) for watcher in watchers])
            return (early is not None and early(step, iterate)) or stopped

        def settle(step: int, solution: Solution) -> tuple[Solution, bool]:
            go_on = not stopped and solution.outcome is not Outcome.NOT_FINITE
            if early is None or step not in early.best:
                return solution, go_on
            loss, best = early.best[step]
            improved = all(loss < before for number, (before, _) in early.best.items() if number < step)
            return replace(solution, params=best.params, value=best.value), go_on and improved

        start = problem.random_start(self.init_scale, random_state)
        alpha = settings.penalty(problem)
        objective = problem.objective(alpha, threads)
        path = greedy(
            objective,
            start,
            max_iter=int(self.max_iter or DEFAULT_MAX_ITER),
            tol=self.tol,
            units=units(problem, alpha),
            watch=watch,
            settle=settle,
        )
        if early and early.best:
            steps = range(len(path))
            path = [*path[: early.best_solver(steps)], early.best_of(path, steps)]
        self._stages = [problem.machine(solution.params) for solution in path]
        self.objective_path_ = np.array([solution.value for solution in path])
        return [replace(path[-1], curves=sum(recorder.curves, start=Curves()))]

    def _max_iter(self) -> int:
        return (int(self.rank) + 1) * int(self.max_iter or DEFAULT_MAX_ITER)

    @property
    def partial_fit(self) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} has no partial_fit: a term fitted to some rows would never change again."
        )

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions with 0, 1, ... terms of each degree."""
        check_is_fitted(self)
        for machine in self._stages:
            stage = copy(self)
            stage._machine = machine
            yield stage.predict(X)


class GreedyTensorMachineRegressor(GreedyTensorMachine, Regression):
    __doc__ = documentation(
        "Regression by a Tensor Machine whose terms are fitted greedily, one rank at a time.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines.peers import GreedyTensorMachineRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = GreedyTensorMachineRegressor(degree=2, rank=2, alpha=0.01, random_state=0).fit(X, y)
        >>> model.objective_path_.round(2)
        array([0.26, 0.25, 0.25])
        """,
        model=_MODEL,
        leave_out=(*_NOT_OFFERED, "class_weight", "classes_"),
        instead=_INSTEAD,
        defaults=_DEFAULTS,
    )

    def __init__(
        self,
        degree: int = 3,
        rank: int = 5,
        alpha: float = DEFAULT_ALPHA,
        *,
        basis: str | None = "standard",
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree,
            rank,
            alpha,
            shared_factors=False,
            basis=basis,
            solver="lbfgs",
            max_iter=max_iter,
            tol=tol,
            init_scale=init_scale,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )


class GreedyTensorMachineClassifier(GreedyTensorMachine, Classification):
    __doc__ = documentation(
        "Classification by a Tensor Machine whose terms are fitted greedily, one rank at a time.",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines.peers import GreedyTensorMachineClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = GreedyTensorMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        1.0
        """,
        model=_MODEL,
        leave_out=_NOT_OFFERED,
        instead=_INSTEAD,
        defaults=_DEFAULTS,
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GreedyTensorMachine._parameter_constraints,
        "class_weight": Classification._parameter_constraints["class_weight"],
    }

    def __init__(
        self,
        degree: int = 3,
        rank: int = 5,
        alpha: float = DEFAULT_ALPHA,
        *,
        basis: str | None = "standard",
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree,
            rank,
            alpha,
            shared_factors=False,
            basis=basis,
            solver="lbfgs",
            max_iter=max_iter,
            tol=tol,
            init_scale=init_scale,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            class_weight=class_weight,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
