"""What does a category of very many levels cost, and how well is it learnt?

    python benchmarks/levels.py [--tables zipf even] [--methods tensormachines lightgbm catboost]

Generated rows of one category and five numbers. Each level has an effect of its own and a slope of one of the
numbers, both normal; two more terms have no part of it, and the noise has a deviation of 0.5. In "zipf" the
k-th of 100,000 levels has a share of the rows proportional to 1 / k, in "even" all of 30,000 levels have the
same. The error is the root mean squared one on 50,000 other rows; "rare" is that of rows whose level has less
than 20 training rows. Boosted trees are stopped early on a tenth of the rows. Each method runs in a process
of its own, and "MB" is how far its memory rises above the rows. Needs `pip install tensormachines[accuracy]`.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from timing import one_thread, rise_of_memory, timed

one_thread()

import numpy as np
import pandas as pd

from default_rivals import catboost, lightgbm, outputs
from records import head, print_facts, row
from tables import Table
from tensormachines import TensorMachineRegressor

TEST_ROWS, NUMBERS, NOISE, SEED = 50_000, 5, 0.5, 0
LEVELS = {"zipf": (100_000, 1.0), "even": (30_000, 0.0)}  # their number, and the power of their ranks
FEW = 20  # training rows of a rare level


def generated(name: str, n_rows: int) -> Table:
    random = np.random.default_rng(SEED)
    n_levels, power = LEVELS[name]
    shares = np.arange(1.0, n_levels + 1) ** -power
    level = random.choice(n_levels, n_rows + TEST_ROWS, p=shares / shares.sum())
    X = random.standard_normal((len(level), NUMBERS))
    effect, slope = random.standard_normal((2, n_levels))
    y = effect[level] + 0.5 * slope[level] * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
    y += NOISE * random.standard_normal(len(y))
    names = np.array([f"level {k}" for k in random.permutation(n_levels)], dtype=object)
    frame = pd.DataFrame({"category": names[level], **{f"x{j}": X[:, j] for j in range(NUMBERS)}})
    return Table(name, frame[:n_rows], y[:n_rows], frame[n_rows:], y[n_rows:], 0)


def ours(table: Table, seed: int) -> tuple[Callable[[Any], np.ndarray], Any]:
    model = TensorMachineRegressor(random_state=seed).fit(table.X, table.y)
    return outputs(model, table, np.zeros(0), lambda X: X), model


METHODS = {"tensormachines": ours, "lightgbm": lightgbm, "catboost": catboost}


def size_of(model: Any, path: Path) -> int:
    """Return the bytes of the model in the format of its library."""
    if hasattr(model, "booster_"):
        model.booster_.save_model(path)
    elif hasattr(model, "save_model"):
        model.save_model(path)
    else:
        model.save(path)
    return path.stat().st_size


def measure(name: str, method: str, n_rows: int) -> list[str]:
    """Return the cells of a line."""
    table = generated(name, n_rows)
    found: dict[str, Any] = {}

    def fit() -> None:
        found["fitted"], found["seconds"] = timed(lambda: METHODS[method](table, SEED))

    megabytes = rise_of_memory(fit)
    predict, model = found["fitted"]
    predictions, seconds = timed(lambda: predict(table.X_test))
    squares = (predictions - table.y_test) ** 2
    counts = table.X_test.category.map(table.X.category.value_counts()).fillna(0).to_numpy()
    with TemporaryDirectory() as folder:
        size = size_of(model, Path(folder) / "model")
    errors = [f"{np.sqrt(each.mean()):.3f}" for each in (squares, squares[counts < FEW])]
    costs = [f"{found['seconds']:.1f}", f"{seconds:.2f}", f"{megabytes:.0f}", f"{size / 1e6:.1f}"]
    return [name, method, *errors, *costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000, help="training rows")
    parser.add_argument("--tables", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        name, method = options.one
        sys.stdout.buffer.write(pickle.dumps(measure(name, method, options.rows)))
        return
    print(head(["table", "method", "error", "rare", "fit s", "predict s", "MB", "file MB"]))
    for name in options.tables:
        for method in options.methods:
            command = [sys.executable, __file__, "--one", name, method, "--rows", str(options.rows)]
            run = subprocess.run(command, capture_output=True, check=True)
            print(row(pickle.loads(run.stdout)), flush=True)
    print_facts((SEED,))


if __name__ == "__main__":
    main()
