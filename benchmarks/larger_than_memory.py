"""Does the time of a fit from disk grow with the rows alone, and its memory not at all?

    python benchmarks/larger_than_memory.py [--folder FOLDER] [--rows 62500 125000 ...]

The data are generated in the shape of the paper's eBay experiment, whose data are private: pairs of search
results, described by the 478 differences of their features, and which of the two was clicked. The truth is a
polynomial of degree 3 with noise. The model has degree 3, rank 5, alpha=1e-4 and basis "standard", and is
fitted by SFO. Each fit runs in a process of its own, on one thread, so that its peak of resident memory is
its own. Seconds are wall-clock seconds of the passes over the data; preparing the fit, with the scratch file,
has a column of its own. Needs scikit-learn 1.9 for its callbacks, and Linux for the peak of memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from timing import memory, one_thread

one_thread()

import numpy as np

from records import head, print_facts, row

FEATURES, ROWS_AT_ONCE = 478, 50_000
ROWS = (62_500, 125_000, 250_000, 500_000, 1_000_000, 1_200_000)


def generate(folder: Path, rows: int) -> None:
    """Write X.npy and y.npy. The first pairs are the same whatever the number of rows."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(rows, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int8, shape=(rows,))
    truth = np.random.default_rng(0).standard_normal((6, FEATURES)).astype(np.float32)
    truth /= np.float32(np.sqrt(FEATURES))
    for start in range(0, rows, ROWS_AT_ONCE):
        rng = np.random.default_rng([1, start])
        pairs = rng.standard_normal((ROWS_AT_ONCE, FEATURES), dtype=np.float32)[: rows - start]
        z = pairs @ truth.T
        noise = rng.logistic(size=ROWS_AT_ONCE)[: rows - start]
        score = 2 * z[:, 0] + 2 * z[:, 1] * z[:, 2] + z[:, 3] * z[:, 4] * z[:, 5] + noise
        X[start : start + ROWS_AT_ONCE] = pairs
        y[start : start + ROWS_AT_ONCE] = score > 0
    X.flush()
    y.flush()


class EpochTimes:
    """A scikit-learn callback that notes when each iteration ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.task_name == "iteration":
            self.ends.append(time.perf_counter())
        return False


def fit(folder: Path, rows: int, epochs: int, in_memory: bool) -> dict[str, float]:
    """Return the figures of one fit.

    The seconds of an epoch are the median over all but the first two: not all minibatches take part in these.
    """
    from tensormachines import TensorMachineClassifier, blocks

    warnings.simplefilter("ignore")
    X, y = (np.load(folder / f"{name}.npy", mmap_mode="r")[:rows] for name in ("X", "y"))
    times = EpochTimes()
    model = TensorMachineClassifier(
        3, 5, 1e-4, basis="standard", solver="sfo", max_iter=epochs, tol=0, random_state=0
    ).set_callbacks(times)
    began = time.perf_counter()
    if in_memory:
        X, y = X.copy(), y.copy()  # without the mapped files, whose pages would count as resident
        model.fit(X, y)
    else:
        model.fit(blocks.npy(X, y))
    total = time.perf_counter() - began
    epoch = float(np.median(np.diff(times.ends)[1:]))
    return {
        "rows": rows,
        "seconds": total,
        "training": times.ends[-1] - times.ends[0] + epoch,
        "epoch": epoch,
        "preparation": times.ends[0] - began - epoch,
        "peak": memory("VmHWM"),
        "objective": float(model.objective_),
    }


def measure(folder: Path, rows: int, epochs: int, in_memory: bool) -> dict[str, float]:
    """Return the figures of one fit in a process of its own, and print them."""
    command = [sys.executable, __file__, "--folder", str(folder), "--epochs", str(epochs)]
    command += ["--fit", str(rows), str(int(in_memory))]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    cells = [f"{found['epoch']:.3f}", f"{found['training']:.2f}", f"{found['preparation']:.2f}"]
    cells += [f"{found['peak']:,.0f}", f"{found['objective']:.6f}"]
    print(row([f"{rows:,}", "RAM" if in_memory else "disk", *cells]), flush=True)
    return found


def slope(results: list[dict[str, float]], key: str) -> float:
    found = [result for result in results if result["rows"] <= 1_000_000]
    logs = np.log([[result["rows"], result[key]] for result in found])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def compare(folder: Path, all_rows: list[int], epochs: int) -> None:
    names = ["rows", "from", "s an epoch", f"s of {epochs} epochs", "s to prepare", "peak MB", "objective"]
    print(head(names))
    disk, ratios = [], []
    for rows in all_rows:
        # In memory before and after: the machine is shared, and its speed wanders.
        before, on_disk, after = (measure(folder, rows, epochs, where) for where in (True, False, True))
        disk.append(on_disk)
        ratios.append(on_disk["epoch"] / (0.5 * (before["epoch"] + after["epoch"])))
    listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"\nan epoch from disk / in memory: {listed} (asked: 1.5 at most)")
    print(f"peak from disk: {max(result['peak'] for result in disk):.0f} MB (asked: 1024 at most)")
    if len(disk) > 1:
        slopes = [f"{slope(disk, key):.2f} ({key})" for key in ("epoch", "training", "seconds")]
        print(
            "slope of log seconds from disk against log rows, up to 1,000,000: "
            f"{', '.join(slopes)} (asked: 0.9 to 1.1)"
        )
    print_facts([0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--folder", type=Path, help="for the generated files; kept, and used if they are there"
    )
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--fit", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        rows, in_memory = arguments.fit
        print(json.dumps(fit(arguments.folder, rows, arguments.epochs, bool(in_memory))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        if not (folder / "X.npy").exists():
            generate(folder, max(arguments.rows))
        compare(folder, arguments.rows, arguments.epochs)


if __name__ == "__main__":
    main()
