"""Problems as a solver sees them: the one place where scripts build the package's private parts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from sets import Data, Sample
from tensormachines._data.summary import ValidationRows
from tensormachines._data.training import RowsInMemory
from tensormachines._fit.pose import Bases, Target
from tensormachines._fit.pose import pose as pose_problem
from tensormachines._fit.problem import PartCount, Problem
from tensormachines._model.layout import Layout
from tensormachines._model.objective import Objective


def in_memory(data: Data) -> RowsInMemory:
    return RowsInMemory(data.train.X, data.train.y.astype(np.float64)[:, None], None)


def pose(
    rows: Any,
    n_classes: int,
    degree: int,
    rank: int,
    *,
    basis: str = "sphere",
    parts: PartCount | None = None,
    seed: int = 0,
) -> Problem:
    """Pose the fit of a Tensor Machine to rows in memory or on Dask; ``parts``: how many minibatches."""
    target = Target(True, np.arange(n_classes)) if n_classes else Target()

    def layout(n_features: int, n_outputs: int, n_meetings: int, of_classes: bool) -> Layout:
        return Layout(n_features, degree=degree, rank=rank, n_outputs=n_outputs)

    return pose_problem(
        rows, target, ValidationRows(), bases=Bases(basis, basis), layout=layout, parts=parts, seed=seed
    )


def start(problem: Problem, seed: int = 0) -> np.ndarray:
    return problem.random_start("auto", np.random.RandomState(seed))


class Counted:
    """An objective that counts its passes over the rows; minibatches count by their rows."""

    def __init__(self, objective: Objective):
        self.objective = objective
        self.blocks = objective.blocks
        self.passes = 0.0

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.passes += len(params)
        return self.objective(params)

    def partial(
        self, params: np.ndarray, part: int, likely_next: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        self.passes += len(params) * self.blocks.weights[part] / self.blocks.weights.sum()
        return self.objective.partial(params, part, likely_next)


def generated(rows: int, columns: int, classes: bool) -> Data:
    """Return normal rows with a target of degree 2 and noise; there are no test rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    linear = X @ (rng.standard_normal((columns, 3), dtype=np.float32) / np.float32(np.sqrt(columns)))
    y = linear[:, 0] + linear[:, 1] * linear[:, 2] + 0.3 * rng.standard_normal(rows)
    train = Sample(X, (y > 0).astype(np.int64) if classes else y)
    return Data(train, train.first(0), 2 if classes else 0)
