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

ROWS_OF_PENALTY, SMALLEST_PENALTY, LARGEST_PENALTY = 5, 1e-8, 1e-2  # measured, see benchmarks/RESULTS.md
USUAL_DEGREE, USUAL_RANK, USUAL_SHARED_RANK = 3, 10, 20
DEFAULT_TOL = 1e-4
FEWEST_ROWS_FOR_THREADS = 512

Clock = Callable[[], float]


@dataclass(frozen=True)
class Deadline:
    """A time of ``clock`` at which fits should stop."""

    end: float = math.inf
    clock: Clock = time.monotonic

    def is_over(self) -> bool:
        return self.clock() >= self.end

    def watch(self, solver: int, iterate: Iterate) -> bool:
        """Stop every solver when time is up."""
        return self.is_over()

    def share(self, n_fits: int) -> Deadline:
        """Return the deadline of the first of several fits that share the remaining time equally."""
        if math.isinf(self.end):
            return self
        now = self.clock()
        return Deadline(now + (self.end - now) / n_fits, self.clock)


NO_DEADLINE = Deadline()


@dataclass(frozen=True)
class Settings:
    """Everything that an estimator specifies about a fit except the rows, with the names of its constructor.

    ``name`` is the name of the estimator in messages, ``max_iter`` the effective number of iterations,
    ``n_threads`` the number of threads from ``n_jobs``, and ``epochs_before`` the epochs of the fit that a
    warm start continues. ``replaces_adam``: whether a full-batch solver is used because steps of "adam" would
    have to wait for other machines.
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
        """Tell whether a race chooses the penalty and whatever else the settings leave open."""
        by_adam = self.solver == "adam" or self.replaces_adam
        return self.alpha == "auto" and by_adam and self.max_norm is None

    @property
    def goes_on(self) -> bool:
        """Tell whether a fit continues where the race ended: if it has one start, which is random."""
        return self.races and self.n_starts == 1 and self.init == "random" and self.relevance in ("auto", 0)

    @property
    def starts_near(self) -> bool:
        """Tell whether a fit without a race continues from a fit by "adam" to parts brought into memory."""
        given = self.replaces_adam and not self.races
        return given and self.n_starts == 1 and self.init == "random"

    @property
    def n_starts(self) -> int:
        return self.n_members * self.n_restarts

    def threads(self, n_rows: int) -> int:
        """Return the number of threads: 1 for few rows, which are done before a second thread has started."""
        return self.n_threads if n_rows >= FEWEST_ROWS_FOR_THREADS else 1

    def penalty(self, problem: Problem, n_rows: int | None = None) -> float:
        """Return alpha as a number."""
        if isinstance(self.alpha, str):
            n_classes = problem.layout.n_outputs if problem.loss == MULTINOMIAL else 1
            return problem.noise * usual_alpha(n_rows or problem.n_rows, n_classes, problem.layout.shared)
        return float(self.alpha)


def usual_rank(n_sharing: int) -> int:
    """Return the rank that "auto" stands for if ``n_sharing`` outputs share their factors."""
    return USUAL_RANK if n_sharing < 2 else max(USUAL_SHARED_RANK, 3 * n_sharing // 2)


def usual_alpha(n_rows: int, n_classes: int, shared: bool) -> float:
    """Return the penalty that alpha="rows" stands for; ``n_classes`` is 1 for fewer than three classes.

    The penalty of each class weighs as much as a few of its rows. Shared factors see the rows of all classes,
    but must serve all of them, so their penalty is in between."""
    share = math.sqrt(n_classes) if shared else n_classes
    return float(np.clip(ROWS_OF_PENALTY / (n_rows * share), SMALLEST_PENALTY, LARGEST_PENALTY))
