"""Fits from disk: time against the number of rows, memory, and the same fit in memory.

    python benchmarks/larger_than_memory.py [--folder FOLDER] [--rows 62500 125000 ...]

The data are generated in the shape of the paper's eBay experiment, whose data are private: pairs of search
results, described by the 478 differences of their features, and which of the two was clicked. The truth is a
polynomial of degree 3 with noise. The model has degree 3 and rank 5 and is fitted by SFO. Each fit runs in a
process of its own, on one thread, so that its peak of resident memory is its own; seconds are wall-clock
seconds of the passes over the data, without making the scratch file, which is given apart."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

FEATURES = 478
MOST_ROWS = 1_200_000
ROWS_AT_ONCE = 50_000


def generate(folder: Path, rows: int) -> None:
    """The first pairs are the same whatever the number of rows."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(rows, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int8, shape=(rows,))
    truth = np.random.default_rng(0).standard_normal((6, FEATURES)).astype(np.float32) / np.float32(
        np.sqrt(FEATURES)
    )
    for start in range(0, rows, ROWS_AT_ONCE):
        rng = np.random.default_rng([1, start])
        pairs = rng.standard_normal((ROWS_AT_ONCE, FEATURES), dtype=np.float32)[: rows - start]
        z = pairs @ truth.T
        score = (
            2 * z[:, 0]
            + 2 * z[:, 1] * z[:, 2]
            + z[:, 3] * z[:, 4] * z[:, 5]
            + rng.logistic(size=ROWS_AT_ONCE)[: rows - start]
        )
        X[start : start + ROWS_AT_ONCE] = pairs
        y[start : start + ROWS_AT_ONCE] = score > 0
    X.flush()
    y.flush()


def peak_memory() -> float:
    """Peak of resident memory, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def fit(folder: Path, rows: int, epochs: int, in_memory: bool) -> dict[str, float]:
    """One fit; the seconds of an epoch are the median over all but the first two, in which not all
    minibatches take part yet.
    """
    import warnings

    from tensormachines import TensorMachineClassifier, blocks
    from tensormachines._fit import monitors

    warnings.simplefilter("ignore")
    times: list[float] = []

    class Timer(monitors.ProgressLines):
        def __call__(self, solver: int, iterate: object) -> bool:
            times.append(time.perf_counter())
            return False

    import tensormachines.estimators.polynomial_model as wiring

    wiring.ProgressLines = Timer  # type: ignore[misc]
    model = TensorMachineClassifier(degree=3, rank=5, solver="sfo", max_iter=epochs, tol=0, random_state=0)
    began = time.perf_counter()
    if in_memory:
        model.fit(np.load(folder / "X.npy", mmap_mode="r")[:rows].copy(), np.load(folder / "y.npy")[:rows])
    else:
        mapped = (
            np.load(folder / "X.npy", mmap_mode="r")[:rows],
            np.load(folder / "y.npy", mmap_mode="r")[:rows],
        )
        model.fit(blocks.npy(*mapped))
    total = time.perf_counter() - began
    seconds = np.diff(times)[1:]
    return {
        "rows": rows,
        "in memory": in_memory,
        "seconds": total,
        "training": times[-1] - times[0] + float(np.median(seconds)),
        "epoch": float(np.median(seconds)),
        "preparation": times[0] - began - float(np.median(seconds)),
        "peak": peak_memory(),
        "objective": float(model.objective_),
    }


def measure(folder: Path, rows: int, epochs: int, in_memory: bool) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--fit",
        str(rows),
        str(int(in_memory)),
        "--epochs",
        str(epochs),
        "--folder",
        str(folder),
    ]
    return json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[62_500, 125_000, 250_000, 500_000, 1_000_000, MOST_ROWS]
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--fit", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.folder, arguments.fit[0], arguments.epochs, bool(arguments.fit[1]))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        if not (folder / "X.npy").exists():
            generate(folder, max(arguments.rows))
        print("|   rows    | from | s an epoch | s of 10 epochs | s to prepare | peak MB | objective |")
        print("|-----------|------|------------|----------------|--------------|---------|-----------|")
        disk, ratios = [], []
        for rows in arguments.rows:
            # In memory before and after: the machine is shared, and its speed wanders.
            before, on_disk, after = (
                measure(folder, rows, arguments.epochs, where) for where in (True, False, True)
            )
            disk.append(on_disk)
            ratios.append(on_disk["epoch"] / (0.5 * (before["epoch"] + after["epoch"])))
            for result in (before, on_disk, after):
                where = "RAM " if result["in memory"] else "disk"
                numbers = f"{result['epoch']:10.3f} | {result['training']:14.2f} | {result['preparation']:12.2f} | {result['peak']:7.0f}"
                print(f"| {rows:9,d} | {where} | {numbers} | {result['objective']:.6f}  |", flush=True)
        upto = [result for result in disk if result["rows"] <= 1_000_000]
        for what, words in (
            ("epoch", "time of an epoch"),
            ("training", "time of all epochs"),
            ("seconds", "time of the whole fit"),
        ):
            slope = np.polyfit(
                np.log([result["rows"] for result in upto]), np.log([result[what] for result in upto]), 1
            )[0]
            print(
                f"slope of log {words} against log rows, up to 1,000,000 rows: {slope:.3f} (asked: 0.9 to 1.1)"
            )
        print(
            "seconds an epoch from disk / in memory: "
            + ", ".join(f"{ratio:.2f}" for ratio in ratios)
            + " (asked: at most 1.5)"
        )
        print(
            f"most resident memory from disk: {max(result['peak'] for result in disk):.0f} MB (asked: at most 1024)"
        )


if __name__ == "__main__":
    main()
