"""The settings of a fit: one frozen record, made once from an estimator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._model.losses import MULTINOMIAL
from .problem import Problem
from .solvers.protocol import Iterate

ROWS_OF_PENALTY, SMALLEST_PENALTY, LARGEST_PENALTY = 5, 1e-5, 1e-2  # measured, see benchmarks/RESULTS.md
USUAL_DEGREE, USUAL_RANK, USUAL_SHARED_RANK = 3, 10, 20
DEFAULT_TOL = 1e-4
FEWEST_ROWS_FOR_THREADS = 512

Clock = Callable[[], float]


@dataclass(frozen=True)
class Deadline:
    """A time of ``clock`` at which fits should stop."""

    end: float = math.inf
    clock: Clock = time.monotonic

    def watch(self, solver: int, iterate: Iterate) -> bool:
        """Stop every solver when the time is over."""
        return self.clock() >= self.end

    def share(self, n_fits: int) -> Deadline:
        """Return the deadline of the first of fits that have the time that is left in equal shares."""
        if math.isinf(self.end):
            return self
        now = self.clock()
        return Deadline(now + (self.end - now) / n_fits, self.clock)


NO_DEADLINE = Deadline()


@dataclass(frozen=True)
class Settings:
    """Everything that an estimator says about a fit, but for the rows; names as in its constructor.

    ``name`` is what messages call the estimator, ``max_iter`` the number of iterations that applies,
    ``n_threads`` what ``n_jobs`` amounts to, ``epochs_before`` those of a fit that a warm start continues.
    ``replaces_adam``: whether the solver goes over all rows at a time because a step of "adam" would have to
    wait for other machines.
    """

    name: str
    degree: int | str
    rank: int | str
    alpha: float | str
    solver: str
    max_iter: int
    tol: float
    history: int | str = "auto"
    init: str = "random"
    init_scale: float | str = "auto"
    relevance: int | str = 0
    trend: bool | str = False
    jumps: bool | str = False
    n_restarts: int = 1
    n_members: int = 1
    max_norm: float | None = None
    early_stopping: bool = False
    n_iter_no_change: int = 10
    epochs_before: int = 0
    n_threads: int = 1
    verbose: int = 0
    deadline: Deadline = NO_DEADLINE
    replaces_adam: bool = False

    @property
    def races(self) -> bool:
        """Tell whether a race chooses the penalty, and what else the settings leave open."""
        by_adam = self.solver == "adam" or self.replaces_adam
        return self.alpha == "auto" and by_adam and self.max_norm is None

    @property
    def goes_on(self) -> bool:
        """Tell whether a fit goes on where the race has ended: if it has one start, which is random."""
        return self.races and self.n_starts == 1 and self.init == "random" and self.relevance in ("auto", 0)

    @property
    def starts_near(self) -> bool:
        """Tell whether a fit without a race goes on from one by "adam" to parts brought into memory."""
        given = self.replaces_adam and not self.races
        return given and self.n_starts == 1 and self.init == "random"

    @property
    def n_starts(self) -> int:
        return self.n_members * self.n_restarts

    def threads(self, n_rows: int) -> int:
        """Return the number of threads: a few rows are done before a second thread has started."""
        return self.n_threads if n_rows >= FEWEST_ROWS_FOR_THREADS else 1

    def penalty(self, problem: Problem, n_rows: int | None = None) -> float:
        """Return alpha as a number."""
        if isinstance(self.alpha, str):
            n_classes = problem.layout.n_outputs if problem.loss == MULTINOMIAL else 1
            return problem.noise * usual_alpha(n_rows or problem.n_rows, n_classes, problem.layout.shared)
        return float(self.alpha)


def usual_rank(n_sharing: int) -> int:
    """Return rank="auto" where so many outputs share their factors."""
    return USUAL_RANK if n_sharing < 2 else max(USUAL_SHARED_RANK, 3 * n_sharing // 2)


def usual_alpha(n_rows: int, n_classes: int, shared: bool) -> float:
    """Return alpha="rows", where ``n_classes`` is 1 for less than three of them.

    The penalty of each class weighs as much as a few of its rows. Factors that classes share see the rows of
    all of them, but have more to do: they are in between."""
    share = math.sqrt(n_classes) if shared else n_classes
    return float(np.clip(ROWS_OF_PENALTY / (n_rows * share), SMALLEST_PENALTY, LARGEST_PENALTY))
