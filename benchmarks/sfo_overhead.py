"""What a step of the solver "sfo" costs besides the evaluation of the objective, and what its state takes up.

    python benchmarks/sfo_overhead.py [--epochs 12]

Generated data of the shapes of Slice and Forest, float32, one thread. CPU time, so that a busy machine
disturbs less; the first epochs, in which the functions join one by one, do not count. The mean holds the
collapses of the subspace, the median does not."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from tensormachines._data.row_assignment import part_count
from tensormachines._data.table import TableInMemory, ValidationRows
from tensormachines._fit.problem import Bases, Problem, Target
from tensormachines._fit.solvers.sfo import SumOfFunctions
from tensormachines._model.layout import Layout

WARM_UP = 4  # epochs


@dataclass(frozen=True)
class Shape:
    name: str
    rows: int
    columns: int
    degree: int
    rank: int
    classes: bool


SHAPES = [Shape("Slice", 42291, 384, 5, 3, False), Shape("Forest", 522910, 53, 4, 5, True)]


def make_problem(shape: Shape) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape.rows, shape.columns), dtype=np.float32)
    linear = X @ (
        rng.standard_normal((shape.columns, 3), dtype=np.float32) / np.float32(np.sqrt(shape.columns))
    )
    y = linear[:, 0] + linear[:, 1] * linear[:, 2] + 0.3 * rng.standard_normal(shape.rows)
    target = Target(shape.classes, np.array([0, 1]) if shape.classes else None)
    table = TableInMemory(X, (y > 0 if shape.classes else y).astype(np.float64)[:, None], None)
    layout = partial(Layout, degree=shape.degree, rank=shape.rank)
    return Problem(
        table,
        target,
        ValidationRows(),
        bases=Bases("sphere", "sphere"),
        layout=layout,
        parts=part_count,
        seed=0,
    )


def times(optimiser: SumOfFunctions, objective: Any, epochs: int) -> Iterator[tuple[float, float]]:
    """Seconds inside and outside of the objective, step by step."""
    end = time.thread_time()
    for _ in range(epochs * optimiser.n_functions):
        step = optimiser.advance()
        request = next(step)
        while True:
            begin = time.thread_time()
            values, gradients = objective.partial(request.params[None], request.function, None)
            outside, end = begin - end, time.thread_time()
            yield end - begin, outside
            try:
                request = step.send((float(values[0]), gradients[0]))
            except StopIteration:
                break


def megabytes(*arrays: np.ndarray) -> float:
    return sum(array.nbytes for array in arrays) / 1e6


def report(shape: Shape, epochs: int) -> None:
    problem = make_problem(shape)
    start = problem.random_start("auto", np.random.RandomState(0))
    optimiser = SumOfFunctions(start, len(problem.blocks.weights), seed=0)
    measured = np.array(list(times(optimiser, problem.objective(1e-5, 1), epochs)))
    inside, outside = measured[WARM_UP * optimiser.n_functions :].T * 1e6
    space, models = optimiser.space, optimiser.models
    print(
        f"{shape.name}: {len(start)} parameters, {optimiser.n_functions} functions, up to {space.capacity} directions"
    )
    for name, of in (("median", np.median), ("mean", np.mean)):
        evaluation, rest = of(inside), of(outside)
        print(
            f"  {name:7} evaluation {evaluation:5.0f} us, outside {rest:5.0f} us, share outside {rest / (rest + evaluation):.2f}"
        )
    directions = megabytes(space.directions, space.origin, space.defect)
    histories = megabytes(models.steps, models.changes, models.positions, models.gradients)
    rest = megabytes(models.rows, models.cores, models.curvature)
    print(
        f"  state   directions {directions:.1f} MB, histories {histories:.1f} MB, models and their sum {rest:.1f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=12)
    arguments = parser.parse_args()
    for shape in SHAPES:
        report(shape, arguments.epochs)
