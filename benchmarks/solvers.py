"""How fast do SFO, L-BFGS and Adam lower the objective, by passes over the rows and by seconds?

    TENSORMACHINES_DATA=folder python benchmarks/solvers.py [--quick]    # prints a table, draws solvers.png

Forest (all rows), Adult and Cod-rna. All begin at the same start, on one thread, float32, basis "sphere".
Seconds are CPU seconds of the calling thread; evaluating the objective for the picture does not count. Adam
has minibatches of 256 rows and a learning rate that falls to 0 along a cosine over its whole run; of the
learning rates tried, the one that ends lowest is shown."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from timing import one_thread

one_thread()

import numpy as np

import sets
from problems import Counted, in_memory, pose, start
from records import head, print_facts, row
from tensormachines._data.row_assignment import part_count
from tensormachines._fit.problem import Problem
from tensormachines._fit.solver_table import MOST_PAIRS
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import Iterate, Solver, minimise
from tensormachines._fit.solvers.sfo import sfo
from tensormachines._model.objective import Objective

RATES = (0.003, 0.01, 0.03)
BATCH = 256


@dataclass(frozen=True)
class Case:
    title: str
    name: str
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


class Clock:
    """CPU seconds, which can be halted."""

    def __init__(self) -> None:
        self.began = time.thread_time()

    @property
    def seconds(self) -> float:
        return time.thread_time() - self.began

    def forget(self, seconds: float) -> None:
        self.began += seconds


def trace(objective: Objective, solver: Solver, exact: bool) -> list[Point]:
    """Follow a solver. ``exact``: the values that it reports are those of the whole objective already."""
    points: list[Point] = []
    clock, counted = Clock(), Counted(objective)

    def watch(solver: int, iterate: Iterate) -> bool:
        seconds = clock.seconds
        value = iterate.value if exact else float(objective(iterate.params[None])[0][0])
        points.append(Point(counted.passes, seconds, value))
        clock.forget(clock.seconds - seconds)
        return False

    minimise(counted, [solver], watch)
    return points


def adam(case: Case, table: Any, problem: Problem, whole: Objective, rate: float) -> list[Point]:
    """Kingma & Ba (2015), with beta 0.9 and 0.99 and a cosine from ``rate`` to 0."""
    params, n_parts = start(problem), problem.n_rows // BATCH
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
    data = sets.load(case.name)
    table = in_memory(data)
    problem = pose(table, data.n_classes, case.degree, case.rank, parts=part_count)
    objective, n = problem.objective(case.alpha, 1), len(problem.blocks.weights)
    solver = sfo(start(problem), n, max_iter=case.passes, tol=0, seed=0)
    yield "SFO", trace(objective, solver, exact=False)
    problem = pose(table, data.n_classes, case.degree, case.rank)
    objective = problem.objective(case.alpha, 1)
    solver = lbfgs(start(problem), max_iter=6 * case.passes, tol=0, history=MOST_PAIRS)
    yield "L-BFGS", trace(objective, solver, exact=True)
    runs = {rate: adam(case, table, problem, objective, rate) for rate in RATES}
    best = min(runs, key=lambda rate: runs[rate][-1].objective)
    yield f"Adam, rate {best}", runs[best]


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the passes, and no picture")
    quick = parser.parse_args().quick
    figure, axes = plt.subplots(2, len(CASES), figsize=(13, 7), layout="constrained")
    print(head(["data", "solver", "after 3 passes", "10 passes", "30 passes", "at the end", "passes", "s"]))
    for (by_pass, by_second), case in zip(axes.T, CASES, strict=True):
        results = list(courses(replace(case, passes=case.passes // 10) if quick else case))
        lowest = min(point.objective for _, points in results for point in points)
        for name, points in results:
            reached = [
                min((p.objective for p in points if p.passes <= limit), default=np.nan)
                for limit in (3.5, 10.5, 31.5)
            ]
            last = points[-1]
            cells = [f"{value:.5f}" for value in (*reached, last.objective)]
            print(row([case.title, name, *cells, f"{last.passes:.0f}", f"{last.seconds:.1f}"]), flush=True)
            gap = [p.objective - lowest + 1e-5 for p in points]
            by_pass.plot([p.passes for p in points], gap, label=name)
            by_second.plot([p.seconds for p in points], gap, label=name)
        by_pass.set(title=case.title, xlabel="passes over the rows", yscale="log", xscale="log")
        by_second.set(xlabel="CPU seconds", yscale="log", xscale="log")
        by_pass.legend(frameon=False)
    for axis in axes[:, 0]:
        axis.set_ylabel("objective above the lowest seen (+1e-5)")
    if not quick:
        figure.savefig(Path(__file__).with_name("solvers.png"), dpi=90)
    print_facts([0])


if __name__ == "__main__":
    main()
