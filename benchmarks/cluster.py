"""What does an evaluation cost on a Dask cluster, and what would it cost on a larger one?

    python benchmarks/cluster.py [--quick]

A LocalCluster of two worker processes with one thread each; random rows, made on the workers. Wall-clock
milliseconds of one value and gradient, medians of 8, over rows, columns and partitions, and the changes of
state of tasks that the scheduler makes for it. A model with four constants is fitted to the seconds by
non-negative least squares on relative errors, and predicts a cluster that is not here:

    seconds = call + task * partitions + operation * rows * columns * projections / workers
              + byte * workers * bytes of params
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from statistics import median

from timing import one_thread, timed

one_thread()

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import nnls

from problems import pose
from records import print_facts, table
from tensormachines._data.dask import RowsOnDask

WORKERS, DEGREE, RANK, EVALUATIONS = 2, 3, 5, 8
SHAPES = ((20_000, 20), (200_000, 20), (100_000, 100), (400_000, 100), (20_000, 1000), (60_000, 1000))
PARTITIONS = (2, 8, 32)
LARGER = ((10**9, 100, 400, 100), (10**9, 100, 2000, 100))  # rows, columns, partitions, workers


def terms(rows: int, columns: int, partitions: int, workers: int = WORKERS) -> list[float]:
    """Return what the four constants are multiplied by."""
    projections = 1 + RANK * (DEGREE * (DEGREE + 1) // 2 - 1)
    size = 4 * (1 + (columns + 1) * projections)
    return [1.0, float(partitions), rows * columns * projections / workers, float(workers * size)]


def evaluation(client: Client, rows: int, columns: int, partitions: int) -> tuple[float, float]:
    """Return the seconds of an evaluation, and the changes of state that it takes."""
    chunks = (-(-rows // partitions), columns)
    X = da.random.default_rng(0).standard_normal((rows, columns), chunks=chunks, dtype=np.float32)
    on_dask = RowsOnDask(X, (X[:, 0] * X[:, 1]).astype(np.float64), None)
    problem = pose(on_dask, 0, DEGREE, RANK, basis="standard")
    objective = problem.objective(1e-4, 1)
    params = np.random.default_rng(0).standard_normal((1, problem.layout.size)).astype(np.float32)
    objective(params)
    before = changes_of_state(client)
    times = [timed(partial(objective, params), time.perf_counter)[1] for _ in range(EVALUATIONS)]
    changes = (changes_of_state(client) - before) / EVALUATIONS
    on_dask.close()
    return median(times), changes


def changes_of_state(client: Client) -> int:
    return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only the smallest shapes")
    quick = parser.parse_args().quick
    grid = [(*shape, partitions) for shape, partitions in product(SHAPES[: 2 if quick else None], PARTITIONS)]
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        seconds, changes = np.array([evaluation(client, *case) for case in grid]).T
    matrix = np.array([terms(*case) for case in grid])
    constants, _ = nnls(matrix / seconds[:, None], np.ones(len(seconds)))
    modelled = matrix @ constants
    rows = [
        [*(f"{size:,}" for size in case), f"{count:.0f}", f"{1e3 * found:.0f}", f"{1e3 * model:.0f}"]
        for case, count, found, model in zip(grid, changes, seconds, modelled, strict=True)
    ]
    print(
        table(
            ["rows", "columns", "partitions", "changes of state", "ms measured", "ms by the model"],
            rows,
        )
    )
    call, task, operation, byte = constants
    off = np.abs(modelled / seconds - 1)
    print(
        f"\ncall {1e3 * call:.1f} ms, task {1e3 * task:.2f} ms, operation {1e9 * operation:.3f} ns, "
        f"byte {1e9 * byte:.3f} ns; model off by {np.median(off):.0%} (median), {off.max():.0%} (most)"
    )
    for n, columns, partitions, workers in LARGER:
        parts = np.array(terms(n, columns, partitions, workers)) * constants
        named = zip(("call", "tasks", "rows", "bytes"), parts, strict=True)
        print(
            f"PREDICTED: {n:.0e} rows x {columns} columns, {workers} workers, {partitions} partitions: "
            f"{parts.sum():.1f} s ({', '.join(f'{name} {part:.1f} s' for name, part in named)})"
        )
    print_facts([0], ("dask",))


if __name__ == "__main__":
    main()
