"""Blocks that come one after another and are not kept: the sum of functions when each function is there only
once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._data.table import Chunk
from .._model.block import BlocksInMemory
from .._model.machine import Machine
from .._model.objective import Objective
from .problem import Problem
from .solvers.sfo import SumOfFunctions

SLOTS = 30  # blocks that are remembered, as quadratic models
EVALUATIONS = 8  # of each block, at the points that they lead to


class Stream:
    """A model that learns from block after block.

    The objective is the mean over the last SLOTS blocks. A new block takes the place of the oldest one. It is
    evaluated a few times while it is there; from then on its quadratic model stands for it. So memory does
    not grow, and what was learnt is not lost at once.

    ``problem`` is posed on the first block: its basis and the units of its target serve all that follow.
    Where there is a model ``before``, it is the basis of that."""

    def __init__(
        self,
        problem: Problem,
        before: Machine | None,
        init_scale: float | str,
        random_state: np.random.RandomState,
        settings: tuple[int, int, str | None],
    ):
        if before is None:
            start = problem.random_start(init_scale, random_state)
        else:
            problem.adopt(before.basis)
            start = problem.params(before)
        self.usual_weight = float(problem.blocks.weights.sum())
        self.problem = problem.without_rows()
        self.optimiser = SumOfFunctions(start, SLOTS, random_state.randint(1 << 31), n_active=SLOTS)
        self.n_blocks = 0
        self.rows: deque[int] = deque(maxlen=SLOTS)  # of the blocks that count
        self.settings = settings  # degree, rank and basis

    def require_shape(self, degree: int, rank: int, basis: str | None) -> None:
        """Refuse to go on with other settings than the stream began with."""
        if (degree, rank, basis) != self.settings:
            raise ValueError(
                f"partial_fit began with degree, rank and basis {self.settings}, now they are {(degree, rank, basis)}: "
                "fit a clone to begin anew."
            )

    def rows_with(self, chunk: Chunk) -> int:
        """That count, once a chunk has come."""
        return _present(chunk) + sum(list(self.rows)[-(SLOTS - 1) :])

    @property
    def params(self) -> np.ndarray:
        return self.optimiser.point

    def learn(self, chunk: Chunk, alpha: float, threads: int) -> float:
        """Improve the model by the rows of a chunk; gives the objective on them as it was before."""
        block = self.problem.recipe(replace(chunk, X=chunk.X.astype(self.problem.dtype, copy=False)))[0]
        objective = Objective(BlocksInMemory([block]), self.problem.layout, self.problem.loss, alpha, threads)
        share = block.total_weight / self.usual_weight
        slot = self.n_blocks % SLOTS
        values: list[float] = []

        def evaluate(params: np.ndarray) -> tuple[float, np.ndarray]:
            (value,), (gradient,) = objective(params[None])
            values.append(float(value))
            return share * float(value), gradient * gradient.dtype.type(share)

        before = self.optimiser.state()
        try:
            self.optimiser.forget(slot)
            for _ in range(EVALUATIONS):
                self._advance(slot, evaluate)
        except BaseException:
            self.optimiser.restore(before)
            raise
        self.n_blocks += 1
        self.rows.append(_present(chunk))
        return values[0]

    def _advance(self, slot: int, evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> None:
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what overflows is not finite, and the optimiser looks at that
            steps = self.optimiser.advance(slot)
            answer = None
            try:
                while True:
                    answer = evaluate(steps.send(answer).params)
            except StopIteration:
                pass
        if self.optimiser.broken:
            raise ValueError("The objective is not finite on these rows: X or y have values that overflow.")


def _present(chunk: Chunk) -> int:
    """Rows of positive weight."""
    return len(chunk.y) if chunk.weight is None else int(np.count_nonzero(chunk.weight))
