"""How fast the solvers lower the objective: SFO, L-BFGS and Adam on Forest, Adult and Cod-rna.

    TENSORMACHINES_DATA=... python benchmarks/solvers.py [--quick]

All begin at the same start, on one thread, float32, basis "sphere". Seconds are CPU seconds of the calling
thread; evaluating the objective for the picture is not counted. Adam has minibatches of 256 rows and a
learning rate that falls to 0 along a cosine over its whole run; of the learning rates tried the one that ends
lowest is shown. Writes solvers.png beside this file, and a table."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tensormachines._data.row_assignment import part_count
from tensormachines._data.table import TableInMemory, ValidationRows
from tensormachines._fit.problem import Bases, PartCount, Problem, Target
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import Iterate, Solver, minimise
from tensormachines._fit.solvers.sfo import sfo
from tensormachines._model.layout import Layout
from tensormachines._model.objective import Objective

RATES = (0.003, 0.01, 0.03)
BATCH = 256


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    degree: int
    rank: int
    alpha: float
    passes: int


CASES = [
    Case("Forest", "forest", 4, 5, 1e-5, 60),
    Case("Adult", "adult", 3, 4, 1e-4, 60),
    Case("Cod-rna", "cod_rna", 4, 3, 1e-5, 100),
]


@dataclass(frozen=True)
class Point:
    passes: float
    seconds: float
    objective: float


def load(case: Case) -> TableInMemory:
    data = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{case.file}.npz")
    return TableInMemory(
        data["X_train"].astype(np.float32), (data["y_train"] > 0).astype(np.float64)[:, None], None
    )


def pose(case: Case, table: TableInMemory, parts: PartCount | None) -> tuple[Problem, Objective, np.ndarray]:
    target = Target(True, np.array([0, 1]))
    layout = partial(Layout, degree=case.degree, rank=case.rank)
    problem = Problem(
        table, target, ValidationRows(), bases=Bases("sphere", "sphere"), layout=layout, parts=parts, seed=0
    )
    start = problem.random_start("auto", np.random.RandomState(0))
    return problem, problem.objective(case.alpha, 1), start


class Clock:
    """CPU seconds, which can be halted."""

    def __init__(self) -> None:
        self.began = time.thread_time()

    @property
    def seconds(self) -> float:
        return time.thread_time() - self.began

    def forget(self, seconds: float) -> None:
        self.began += seconds


def trace(objective: Objective, make: Solver, per_evaluation: float, exact: bool) -> list[Point]:
    """The course of a solver. ``exact``: its values are those of the whole objective already."""
    points: list[Point] = []
    clock = Clock()
    evaluations = 0.0

    class Counted:
        def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            nonlocal evaluations
            evaluations += 1
            return objective(params)

        def partial(
            self, params: np.ndarray, part: int, likely_next: int | None
        ) -> tuple[np.ndarray, np.ndarray]:
            nonlocal evaluations
            evaluations += per_evaluation
            return objective.partial(params, part, likely_next)

    def watch(solver: int, iterate: Iterate) -> bool:
        seconds = clock.seconds
        value = iterate.value if exact else float(objective(iterate.params[None])[0][0])
        points.append(Point(evaluations, seconds, value))
        clock.forget(clock.seconds - seconds)
        return False

    minimise(Counted(), [make], watch)
    return points


def adam(case: Case, table: TableInMemory, rate: float) -> list[Point]:
    """Kingma & Ba (2015), with beta 0.9 and 0.99 and a cosine from ``rate`` to 0."""
    problem, whole, params = pose(case, table, parts=None)
    n_parts = problem.n_rows // BATCH
    objective = replace(whole, blocks=table.blocks(replace(problem.recipe, n_parts=n_parts))[0])
    rng = np.random.default_rng(0)
    mean, square = np.zeros_like(params), np.zeros_like(params)
    points, clock, step = [], Clock(), 0
    for epoch in range(case.passes):
        for part in rng.permutation(n_parts):
            step += 1
            (gradient,) = objective.partial(params[None], int(part))[1]
            gradient *= n_parts
            mean += 0.1 * (gradient - mean)
            square += 0.01 * (gradient * gradient - square)
            now = rate * 0.5 * (1 + np.cos(np.pi * step / (case.passes * n_parts)))
            params = params - np.float32(now / (1 - 0.9**step)) * mean / (
                np.sqrt(square / np.float32(1 - 0.99**step)) + np.float32(1e-8)
            )
        seconds = clock.seconds
        points.append(Point(epoch + 1, seconds, float(whole(params[None])[0][0])))
        clock.forget(clock.seconds - seconds)
    return points


def courses(case: Case) -> Iterator[tuple[str, list[Point]]]:
    table = load(case)
    problem, objective, start = pose(case, table, parts=part_count)
    n = len(problem.blocks.weights)
    for name, subset in (("SFO", False), ("SFO, subset first", True)):
        yield (
            name,
            trace(
                objective,
                sfo(start, n, max_iter=case.passes, tol=0, seed=0, subset=subset),
                1 / n,
                exact=False,
            ),
        )
    _, objective, start = pose(case, table, parts=None)
    yield "L-BFGS", trace(objective, lbfgs(start, max_iter=6 * case.passes, tol=0), 1.0, exact=True)
    runs = {rate: adam(case, table, rate) for rate in RATES}
    best = min(runs, key=lambda rate: runs[rate][-1].objective)
    yield f"Adam, rate {best}", runs[best]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the passes")
    quick = parser.parse_args().quick
    figure, axes = plt.subplots(2, len(CASES), figsize=(13, 7), layout="constrained")
    print(
        "| data | solver | objective after 3 passes | 10 passes | 30 passes | at the end | passes | s |\n|---|---|---|---|---|---|---|---|"
    )
    for column, case in enumerate(CASES):
        results = list(courses(replace(case, passes=case.passes // 10) if quick else case))
        lowest = min(point.objective for _, points in results for point in points)
        for name, points in results:
            after = [
                min((p.objective for p in points if p.passes <= limit), default=np.nan)
                for limit in (3.5, 10.5, 31.5)
            ]
            last = points[-1]
            reached = " | ".join(f"{value:.5f}" for value in (*after, last.objective))
            print(
                f"| {case.name} | {name} | {reached} | {last.passes:.0f} | {last.seconds:.1f} |", flush=True
            )
            gap = [p.objective - lowest + 1e-5 for p in points]
            axes[0, column].plot([p.passes for p in points], gap, label=name)
            axes[1, column].plot([p.seconds for p in points], gap, label=name)
        axes[0, column].set(title=case.name, xlabel="passes over the rows", yscale="log", xscale="log")
        axes[1, column].set(xlabel="CPU seconds", yscale="log", xscale="log")
        axes[0, column].legend(frameon=False)
    for row in axes:
        row[0].set_ylabel("objective above the lowest seen (+1e-5)")
    figure.savefig(Path(__file__).with_name("solvers.png"), dpi=90)


if __name__ == "__main__":
    main()
