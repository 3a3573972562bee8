"""Does anybody need to tune init_scale? Test error of "auto" against the best of a grid, on real data.

    TENSORMACHINES_DATA=folder python benchmarks/init_scale.py [name ...]

For every start the penalty is chosen on a fifth of the training rows; errors are means over seeds. Sets with
more than 20,000 training rows are thinned to that. Regression: root mean square error in units of the
target's standard deviation; classes: misclassified share."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from tensormachines import TensorMachineClassifier, TensorMachineRegressor

CLASSES = {"adult", "forest", "cod_rna", "spambase", "letter", "mnist"}
NAMES = [
    *(
        "california",
        "kin40k",
        "protein",
        "house_8L",
        "census_house_16H",
        "year_msd_subset",
        "buzz_sample",
        "slice_first_rows",
    ),
    *("spambase", "adult", "cod_rna", "forest", "letter", "indoor", "mnist"),
]
STARTS: list[Any] = ["auto", 0.03, 0.1, 0.3, 1.0, 3.0]
ALPHAS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
MOST_ROWS = 20_000


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{name}.npz")
    X, y, X_test, y_test = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    most = 5000 if name == "mnist" else MOST_ROWS
    chosen = np.random.default_rng(0).permutation(len(X))[:most]
    return X[chosen].astype(np.float32), y[chosen], X_test.astype(np.float32), y_test


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    predicted = model.predict(X)
    return float(
        np.mean(predicted != y)
        if hasattr(model, "classes_")
        else np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y)
    )


def test_error(name: str, basis: str, start: Any, seed: int, data: Any) -> float:
    """Fit with every alpha to four fifths of the rows; the test error of the one best on the last fifth."""
    X, y, X_test, y_test = data
    train, held_out, y_train, y_held_out = train_test_split(X, y, test_size=0.2, random_state=seed)
    machine: Any = TensorMachineClassifier if name in CLASSES else TensorMachineRegressor
    errors = []
    for alpha in ALPHAS:
        model = machine(
            alpha=alpha,
            basis=basis,
            init_scale=start,
            random_state=seed,
            max_iter=200 if name == "mnist" else 1000,
        )
        model.fit(train, y_train)
        errors.append((error(model, held_out, y_held_out), error(model, X_test, y_test)))
    return min(errors)[1]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        f"| set | basis | auto / best | {' | '.join(str(start) for start in STARTS)} |\n|{'---|' * (3 + len(STARTS))}"
    )
    for name in sys.argv[1:] or NAMES:
        data = load(name)
        seeds = range(1) if name in ("letter", "mnist", "indoor") else range(3)
        for basis in ("standard", "sphere"):
            means, spreads = {}, {}
            for start in STARTS:
                errors = [test_error(name, basis, start, seed, data) for seed in seeds]
                means[start], spreads[start] = np.mean(errors), np.std(errors)
            best = min(value for start, value in means.items() if start != "auto")
            cells = [f"{means[start]:.4f} +- {spreads[start]:.4f}" for start in STARTS]
            print(f"| {name} | {basis} | {means['auto'] / best:.3f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
