"""What does a step of the solver "sfo" cost besides the evaluation of the objective?

    python benchmarks/sfo_overhead.py [--epochs 12]

Generated data of the shapes of Slice and Forest, float32, one thread, CPU time. The first four epochs, in
which minibatches join one by one, do not count. The mean includes the collapses of the subspace, the median
does not. Also prints how much memory the state of the solver takes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from timing import one_thread

one_thread()

import numpy as np

from problems import generated, in_memory, pose, start
from records import print_facts
from tensormachines._data.row_assignment import part_count
from tensormachines._fit.solvers.sum_of_functions import SumOfFunctions

WARM_UP = 4  # epochs
# rows, columns, degree, rank, whether the target is a class
SHAPES = {"Slice": (42_291, 384, 5, 3, False), "Forest": (522_910, 53, 4, 5, True)}


def times(optimiser: SumOfFunctions, objective: Any, epochs: int) -> Iterator[tuple[float, float]]:
    """Yield the CPU seconds inside and outside of the objective, step by step."""
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


def report(name: str, epochs: int) -> None:
    rows, columns, degree, rank, classes = SHAPES[name]
    data = generated(rows, columns, classes)
    problem = pose(in_memory(data), data.n_classes, degree, rank, parts=part_count)
    params = start(problem)
    optimiser = SumOfFunctions(params, len(problem.blocks.weights), seed=0)
    measured = np.array(list(times(optimiser, problem.objective(1e-5, 1), epochs)))
    inside, outside = measured[WARM_UP * optimiser.n_functions :].T * 1e6
    space, models = optimiser.space, optimiser.models
    print(
        f"{name}: {len(params)} parameters, {optimiser.n_functions} minibatches, "
        f"up to {space.capacity} directions"
    )
    for what, of in (("median", np.median), ("mean", np.mean)):
        evaluation, rest = of(inside), of(outside)
        print(
            f"  {what:7} evaluation {evaluation:5.0f} us, outside {rest:5.0f} us, "
            f"share outside {rest / (rest + evaluation):.2f}"
        )
    directions = megabytes(space.directions, space.origin, space.defect)
    histories = megabytes(models.steps, models.changes, models.positions, models.gradients)
    rest = megabytes(models.rows, models.cores, models.triangles, models.curvature)
    print(
        f"  state   directions {directions:.1f} MB, histories {histories:.1f} MB, "
        f"models and their sum {rest:.1f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.epochs <= WARM_UP:
        parser.error(f"--epochs must be more than {WARM_UP}, which do not count")
    for shape in SHAPES:
        report(shape, arguments.epochs)
    print_facts([0])
