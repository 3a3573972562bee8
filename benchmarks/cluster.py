"""What an evaluation costs on a Dask cluster, a model of that cost, and what the model predicts for a cluster
that is not here.

    python benchmarks/cluster.py

A LocalCluster of two worker processes with one thread each; random rows, made on the workers. Milliseconds of
one value and gradient, medians of 8, over rows, columns and partitions; to these a model with four constants
is fitted, by non-negative least squares on relative errors:

    seconds = call + task * partitions + operation * rows * columns * projections / workers + byte *
    partitions * bytes of params
"""

from __future__ import annotations

import time
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import nnls

from tensormachines._data.dask import TableOnDask
from tensormachines._data.table import ValidationRows
from tensormachines._fit.problem import Bases, Problem, Target
from tensormachines._model.layout import Layout
from tensormachines._model.objective import Objective

WORKERS = 2
DEGREE, RANK = 3, 5
GRID = [
    (rows, columns, partitions)
    for rows, columns in (
        (20_000, 20),
        (200_000, 20),
        (100_000, 100),
        (400_000, 100),
        (20_000, 1000),
        (60_000, 1000),
    )
    for partitions in (2, 8, 32)
]


def terms(rows: float, columns: int, partitions: int, workers: int) -> list[float]:
    """What the four constants are multiplied by."""
    projections = 1 + RANK * (DEGREE * (DEGREE + 1) // 2 - 1)
    size = 4 * (1 + (columns + 1) * projections)
    return [1.0, float(partitions), rows * columns * projections / workers, float(partitions * size)]


def evaluation_seconds(rows: int, columns: int, partitions: int) -> float:
    generator = da.random.default_rng(0)
    chunk = -(-rows // partitions)
    X = generator.standard_normal((rows, columns), chunks=(chunk, columns), dtype=np.float32)
    y = (X[:, 0] * X[:, 1]).astype(np.float64)
    table = TableOnDask(X, y, None)
    layout = partial(Layout, degree=DEGREE, rank=RANK)
    problem = Problem(
        table,
        Target(),
        ValidationRows(),
        bases=Bases("standard", "standard"),
        layout=layout,
        parts=None,
        seed=0,
    )
    objective: Objective = problem.objective(1e-4, 1)
    params = np.random.default_rng(0).standard_normal((1, problem.layout.size)).astype(np.float32)
    times = []
    for _ in range(9):
        began = time.perf_counter()
        objective(params)
        times.append(time.perf_counter() - began)
    table.close()
    return float(np.median(times[1:]))


def main() -> None:
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        measured = [(case, evaluation_seconds(*case)) for case in GRID]
    matrix = np.array([terms(*case, WORKERS) for case, _ in measured])
    seconds = np.array([time for _, time in measured])
    constants, _ = nnls(matrix / seconds[:, None], np.ones(len(seconds)))
    modelled = matrix @ constants
    print("| rows | columns | partitions | ms measured | ms by the model |\n|---|---|---|---|---|")
    for (case, time_), model in zip(measured, modelled, strict=True):
        print(f"| {case[0]:,} | {case[1]} | {case[2]} | {1e3 * time_:.0f} | {1e3 * model:.0f} |")
    call, task, operation, byte = constants
    print(
        f"\ncall {1e3 * call:.1f} ms, task {1e3 * task:.2f} ms, operation {1e9 * operation:.3f} ns, byte {1e9 * byte:.3f} ns"
    )
    print(
        f"median error of the model {np.median(np.abs(modelled / seconds - 1)):.0%}, largest {np.abs(modelled / seconds - 1).max():.0%}"
    )
    for rows, columns, partitions, workers in ((1e9, 100, 400, 100), (1e9, 100, 2000, 100)):
        parts = np.array(terms(rows, columns, partitions, workers)) * constants
        shares = ", ".join(
            f"{name} {part:.1f} s"
            for name, part in zip(("call", "tasks", "rows", "bytes"), parts, strict=True)
        )
        print(
            f"PREDICTED: {rows:.0e} rows x {columns} columns, {workers} workers, {partitions} partitions: {parts.sum():.1f} s ({shares})"
        )


if __name__ == "__main__":
    main()
