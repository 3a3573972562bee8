"""How much memory do a fit and a prediction need besides X?

    python benchmarks/memory.py

The peak of a process that fits, or loads a model and predicts, with the default settings, less its size just
before, in units of X: ROWS rows of COLUMNS columns in float64. Each is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from functools import partial

from timing import one_thread, rise_of_memory

one_thread()

import numpy as np

import tensormachines
from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

ROWS, COLUMNS, SEED = 1_000_000, 50, 0
TASKS = ("regression", "ten classes")


def rows(task: str) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(SEED).standard_normal((ROWS, COLUMNS))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    return X, y if task == "regression" else np.searchsorted(np.quantile(y, np.linspace(0, 1, 11)[1:-1]), y)


def measure(task: str, step: str, path: str) -> None:
    """Print the peak of the step, in units of X."""
    X, y = rows(task)
    kind = TensorMachineRegressor if task == "regression" else TensorMachineClassifier
    model = kind(random_state=SEED) if step == "fit" else tensormachines.load(path)
    call = partial(model.fit, X, y) if step == "fit" else partial(model.predict, X)
    print(rise_of_memory(call) * 2**20 / X.nbytes)
    if step == "fit":
        model.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return measure(*options.one)
    lines = []
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for step in ("fit", "predict"):
                command = [sys.executable, __file__, "--one", task, step, f"{folder}/model.tm"]
                run = subprocess.run(command, capture_output=True, check=True, text=True)
                found.append(f"{float(run.stdout):.2f}")
        lines.append((task, *found))
    print(table(("task", "fit / X", "predict / X"), lines))
    print_facts((SEED,))


if __name__ == "__main__":
    main()
