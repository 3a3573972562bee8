"""The state of `partial_fit`: blocks arrive one after another and are not kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._data.files.source import Chunk
from .._model.block import BlocksInMemory
from .._model.losses import require_targets
from .._model.machine import Machine
from .._model.objective import Objective
from .problem import Problem
from .settings import Settings
from .solvers.sum_of_functions import Evaluation, SumOfFunctions

SLOTS = 30  # blocks that are remembered, as quadratic models
EVALUATIONS = 8  # of each block, at successive points
FIRST_EVALUATIONS = 20  # of the first block, from a random start: 8 ended worse than a constant
FAR_WORSE = 10.0  # times the objective of a block before it was learned


class Stream:
    """A model that learns from one block after another.

    The objective is the mean over the last SLOTS blocks. A new block replaces the oldest one. It is evaluated
    a few times while it is available; afterwards its quadratic model represents it. So memory does not grow,
    and earlier learning is not lost at once. A step that makes the objective far worse is undone as if it had
    overflowed: with a log link, the gradient may be 1e70 times as large there, and a quadratic model that
    learned from it would allow no more steps.

    ``problem`` is posed on the first block: its basis and target units serve all later blocks.

    If there is a model ``before``, the stream continues with that model and its basis. The ``n_before`` rows
    that it has learned from are gone, and a few new rows must not outweigh them: the params go to those that
    are best for the new block alone, but only a share of the way, the share of the new rows in all rows so
    far. If the number of rows is not known, it is 0, and only new blocks count.
    """

    def __init__(
        self,
        problem: Problem,
        before: Machine | None,
        settings: Settings,
        basis: str | None,
        random_state: np.random.RandomState,
        n_before: int = 0,
    ):
        if before is None:
            start = problem.random_start(settings.init_scale, random_state)
        else:
            if settings.degree == "auto":
                problem = problem.with_shape(before.layout.degree, problem.layout.rank)
            if problem.layout.degree > 1:  # the mean of several members continues as one model
                layout = problem.layout.with_rank(problem.layout.rank * settings.n_members)
                problem = replace(problem, layout=layout)
            problem = problem.adopt(before.basis)
            start = problem.params(before)
        self.usual_weight = float(problem.blocks.weights.sum())
        self.problem = problem.without_rows()
        self.optimiser = SumOfFunctions(start, SLOTS, random_state.randint(1 << 31), n_active=SLOTS)
        self.params = start
        self.n_before = 0 if before is None else n_before
        self.n_blocks = 0
        self.first_evaluations = FIRST_EVALUATIONS if before is None else EVALUATIONS
        self.rows: deque[int] = deque(maxlen=SLOTS)  # row counts of the blocks that count
        self.shape = settings.degree, settings.rank, basis

    def require_shape(self, settings: Settings, basis: str | None) -> None:
        """Refuse to continue with another degree, rank or basis."""
        now = settings.degree, settings.rank, basis
        if now != self.shape:
            raise ValueError(
                f"partial_fit began with degree, rank and basis {self.shape}, now they are {now}: "
                "fit a clone to start anew."
            )

    @property
    def n_rows(self) -> int:
        """Return the number of rows that the model represents."""
        return self.n_before or sum(self.rows)

    def learn(self, chunk: Chunk, settings: Settings) -> float:
        """Learn from the rows of a chunk; return the objective on them before learning."""
        require_targets(self.problem.loss, chunk.y)
        n_new, n_old = _present(chunk), self.n_before or sum(list(self.rows)[-(SLOTS - 1) :])
        alpha, threads = settings.penalty(self.problem, n_new + n_old), settings.threads(len(chunk.y))
        block = self.problem.recipe(replace(chunk, X=chunk.X.astype(self.problem.dtype, copy=False)))[0]
        objective = Objective(BlocksInMemory([block]), self.problem.layout, self.problem.loss, alpha, threads)
        share = block.total_weight / self.usual_weight
        slot = self.n_blocks % SLOTS
        values: list[float] = []

        def evaluate(params: np.ndarray) -> tuple[float, np.ndarray]:
            (value,), (gradient,) = objective(params[None])
            values.append(float(value))
            seen = np.inf if value > FAR_WORSE * values[0] else float(value)
            return share * seen, gradient * gradient.dtype.type(share)

        before = self.optimiser.state()
        try:
            self.optimiser.forget(slot)
            if self.n_before:
                self.optimiser.restart(self.params)
            for _ in range(EVALUATIONS if self.n_blocks else self.first_evaluations):
                self._run(self.optimiser.advance(slot), evaluate)
            self._run(self.optimiser.settle(slot), evaluate)
        except BaseException:
            self.optimiser.restore(before)
            raise
        self.n_blocks += 1
        if self.n_before:
            self.n_before += n_new
            self.params = self.params + n_new / self.n_before * (self.optimiser.point - self.params)
        else:
            self.rows.append(n_new)
            self.params = self.optimiser.point
        return values[0]

    def _run(self, steps: Evaluation, evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> None:
        # An overflow gives a value that is not finite, which the optimiser checks.
        with np.errstate(over="ignore", invalid="ignore"):
            answer = None
            try:
                while True:
                    answer = evaluate(steps.send(answer).params)
            except StopIteration:
                pass
        if self.optimiser.broken:
            raise ValueError("The objective is not finite on these rows: X or y have values that overflow.")


def _present(chunk: Chunk) -> int:
    """Return the number of rows of positive weight."""
    return len(chunk.y) if chunk.weight is None else int(np.count_nonzero(chunk.weight))
