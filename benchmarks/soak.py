"""Do memory, open files or threads grow with the number of fits and predictions of one process?

    python benchmarks/soak.py [--fits 10000] [--predictions 1000000]

Small fits of every solver, dense, sparse, of a frame of text and from blocks, each with a prediction, and
predictions of one row; every so often the resident memory, the open descriptors and the threads are read from
/proc. The first tenth is for caches to fill. The process fails if what is in use at the end is more than it
was then: memory by more than MOST_GROWTH, descriptors or threads by any.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from scipy import sparse

from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks

MOST_GROWTH = 8.0  # megabytes
LOOKS = 10
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
TEXT = [{"town": f"town {k % 7}", "size": float(size)} for k, size in enumerate(X[:, 0])]
QUICK: dict[str, Any] = {"degree": 2, "rank": 2, "alpha": 1e-3, "max_iter": 3, "random_state": 0}

FITS: list[Callable[[], object]] = [
    *(
        lambda solver=solver: TensorMachineRegressor(**QUICK, solver=solver).fit(X, Y).predict(X)
        for solver in ("adam", "kfac", "lbfgs", "sfo")
    ),
    lambda: TensorMachineClassifier(**QUICK, n_jobs=2).fit(X, Y > 0).predict_proba(X),
    lambda: TensorMachineRegressor(**QUICK).fit(sparse.csr_array(X * (X > 0)), Y).predict(X),
    lambda: TensorMachineRegressor(**QUICK).fit(TEXT, Y).predict(TEXT[:3]),
    lambda: TensorMachineRegressor(**QUICK).fit(blocks.iterable([(X, Y), (X, Y)])).predict(X),
]


def in_use() -> tuple[float, int, int]:
    """Return the resident memory in megabytes, the open descriptors and the threads of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    descriptors, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return pages * resource.getpagesize() / 2**20, descriptors, threads


def repeat(work: Callable[[int], object], count: int) -> list[tuple[float, int, int]]:
    """Return what is in use after each tenth of the calls."""
    found = []
    for number in range(1, count + 1):
        work(number)
        if number % (count // LOOKS) == 0:
            found.append(in_use())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--predictions", type=int, default=1_000_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    model = TensorMachineRegressor(**QUICK).fit(X, Y)
    works: dict[str, tuple[Callable[[int], object], int]] = {
        "fits": (lambda number: FITS[number % len(FITS)](), options.fits),
        "predictions of one row": (lambda number: model.predict(X[number % 60 :][:1]), options.predictions),
    }
    lines, grown = [], False
    for name, (work, count) in works.items():
        found = repeat(work, count)
        first, last = found[0], found[-1]
        grown |= last[0] - first[0] > MOST_GROWTH or last[1:] > first[1:]
        for title, k, form in (("memory, MB", 0, ".1f"), ("descriptors", 1, "d"), ("threads", 2, "d")):
            lines.append(
                [f"{count:,} {name}", title, *(format(each[k], form) for each in (first, found[4], last))]
            )
    print(table(["after", "in use", "a tenth", "half", "all"], lines))
    print_facts([0])
    sys.exit("It grows." if grown else 0)


if __name__ == "__main__":
    main()
