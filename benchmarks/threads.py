"""Is a default fit of one model with two threads faster than with one?

    python benchmarks/threads.py        wall-clock seconds with n_jobs=1 and n_jobs=2, in interleaved rounds

Both need two free processors: a fit during which other processes took more than a twentieth of one does not
count, and is repeated up to TRIES times. The tables are those of `fit_time.py` with at least 20,000 rows, at
most 100,000 rows of each. `--sets` names some of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from statistics import median
from typing import Any

from timing import one_thread, others_busy, timed

one_thread()  # of BLAS

import numpy as np

from fit_time import SEED, Rows, load
from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

ROUNDS, TRIES, BUSY = 5, 20, 0.05
SETS = ("metro_traffic", "gas_turbine_nox", "beijing_pm25", "kin40k", "protein", "cod_rna", "adult")


def fit(rows: Rows, threads: int) -> Any:
    X, y, classes = rows
    model = TensorMachineClassifier if classes else TensorMachineRegressor
    return model(random_state=SEED, n_jobs=threads).fit(X, y)


def compare(rows: Rows) -> dict[int, list[float]]:
    """Return the seconds of the rounds that count, by number of threads."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    fit(rows, 2)
    for _ in range(TRIES):
        for threads, measured in seconds.items():
            (_, taken), others = others_busy(partial(timed, partial(fit, rows, threads), time.perf_counter))
            if others <= BUSY * taken:
                measured.append(taken)
        if min(map(len, seconds.values())) >= ROUNDS:
            break
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=SETS)
    warnings.simplefilter("ignore")
    lines, ratios = [], []
    for name in parser.parse_args().sets:
        rows = load(name)
        seconds = compare(rows)
        size = f"{rows[0].shape[0]:,} x {rows[0].shape[1]}"
        counted = f"{len(seconds[1])}, {len(seconds[2])}"
        cells = ("", "", "")
        if seconds[1] and seconds[2]:
            one, two = median(seconds[1]), median(seconds[2])
            ratios.append(one / two)
            cells = (f"{one:.2f}", f"{two:.2f}", f"{ratios[-1]:.2f}")
        lines.append((name, size, counted, *cells))
        print(*lines[-1], file=sys.stderr, flush=True)
    print(table(("table", "rows x columns", "rounds", "one thread, s", "two, s", "ratio"), lines))
    if ratios:
        print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}.")
    print_facts((SEED,))


if __name__ == "__main__":
    main()
