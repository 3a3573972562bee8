"""The training rows of one split of a cross-validation, and models that are fitted to them together."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np

from .._data.frame import Frame
from .._data.table import ValidationRows
from .._fit.monitors import Deadline
from .._fit.problem import Problem
from .._fit.solvers.protocol import Outcome, Solution, best_of, minimise
from .polynomial_model import PARTS, PolynomialModel
from .sklearn_private import safe_indexing

DEAD = 1e-2  # the size of a term, in units of that at a random start


class Split:
    """Rows to train on and rows to score on, as numbers of rows of X, whose columns are of ``kinds`` if X is
    a raw table.

    The problem that the training rows pose is set up once for every basis, from all of them and from nothing
    else; fits on fewer rows and models of other shapes share it."""

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        rows: tuple[np.ndarray, np.ndarray],
        seed: int,
        kinds: tuple[str, ...] | None = None,
    ):
        self.training, self.scoring = (
            (_rows(X, part), y[part], None if weight is None else weight[part]) for part in rows
        )
        self.n_training_rows = len(rows[0])
        self.seed = seed
        self.kinds = kinds
        self._posed: dict[tuple[str | None, int], tuple[PolynomialModel, Problem]] = {}

    def fit(
        self, machines: Sequence[PolynomialModel], share: float, deadline: float
    ) -> list[PolynomialModel | None]:
        """Fit machines that differ in alpha alone to a share of the rows, in common passes over them; None
        where a fit failed.
        """
        checked, problem = self._pose(machines[0], deadline)
        problem = problem.with_shape(int(machines[0].degree), int(machines[0].rank)).with_share(
            share, self.seed
        )
        solutions = _fit_together(problem, machines, np.random.RandomState(self.seed), deadline)
        return [
            None if solution.outcome is Outcome.NOT_FINITE else _fitted(checked, problem, machine, solution)
            for machine, solution in zip(machines, solutions, strict=True)
        ]

    def _pose(self, machine: PolynomialModel, deadline: float) -> tuple[PolynomialModel, Problem]:
        """A machine that knows the columns, and the problem."""
        key = machine.basis, int(machine.relevance)
        if key not in self._posed:
            checked = copy(machine)
            checked._kinds = self.kinds
            table, target = checked._open(*self.training)
            random_state = np.random.RandomState(self.seed)
            problem = checked._pose(
                table, target, ValidationRows(), random_state, parts=PARTS.get(checked.solver)
            )
            checked._deadline = deadline
            for _ in range(checked.relevance):
                problem.weigh_columns(
                    checked._short_fit(problem, checked._threads(problem.n_rows), random_state)
                )
            del checked._deadline, checked._kinds
            self._posed[key] = checked, problem
        return self._posed[key]


def _rows(X: Any, numbers: np.ndarray) -> Any:
    return X[numbers] if isinstance(X, Frame) else safe_indexing(X, numbers)


def _fit_together(
    problem: Problem,
    machines: Sequence[PolynomialModel],
    random_state: np.random.RandomState,
    deadline: float,
) -> list[Solution]:
    """For each machine the best solution of all its starts.

    The penalty is all that tells them apart: the objective that is evaluated for all of them at once has
    none, each solver adds its own."""
    first = machines[0]
    threads = first._threads(problem.n_rows)
    starts = [problem.random_start(first.init_scale, random_state) for _ in range(first.n_restarts)]
    solvers, owners = [], []
    for number, machine in enumerate(machines):
        objective = problem.objective(machine._penalty(problem), threads)
        for start in starts:
            # The same random numbers for all, as in a fit: so they share their minibatches.
            solvers.append(
                objective.with_penalty(machine._solver(start, problem, objective, deepcopy(random_state))())
            )
            owners.append(number)
    solutions = minimise(problem.objective(0.0, threads), solvers, Deadline(deadline))
    return [
        best_of([solution for solution, owner in zip(solutions, owners, strict=True) if owner == number])
        for number in range(len(machines))
    ]


def _fitted(
    checked: PolynomialModel, problem: Problem, machine: PolynomialModel, solution: Solution
) -> PolynomialModel:
    fitted = copy(checked).set_params(**machine.get_params(deep=False))
    learnt = {
        **fitted._attributes(problem, solution.params),
        "n_iter_": solution.n_iter,
        "objective_": solution.value,
    }
    for name, value in learnt.items():
        setattr(fitted, name, value)
    return fitted
