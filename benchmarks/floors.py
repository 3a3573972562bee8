"""Floors of accuracy, and the default penalty, on real data.

TENSORMACHINES_DATA=folder python benchmarks/floors.py floors|alpha
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from init_scale import CLASSES, error
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.experiments.demo import dense_target, sparse_target

SETS = [
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
    *("spambase", "adult", "cod_rna", "forest"),
]


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All rows, but of forest the paper's 50,000."""
    data = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{name}.npz")
    X, y, X_test, y_test = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    rows = data["paper_small_train_idx"] if name == "forest" else slice(None)
    return X[rows].astype(np.float32), y[rows], X_test.astype(np.float32), y_test


def floors() -> None:
    for name, degree, rank in (("adult", 3, 4), ("forest", 4, 5)):
        X, y, X_test, y_test = load(name)
        for basis in ("standard", "sphere"):
            model = TensorMachineClassifier(degree=degree, rank=rank, basis=basis, random_state=0)
            search = GridSearchCV(model, {"alpha": [1e-6, 1e-5, 1e-4, 1e-3]}, cv=3).fit(X, y)
            print(
                f"{name}, {basis}: alpha {search.best_params_['alpha']:g}, test error {error(search.best_estimator_, X_test, y_test):.4f}"
            )
    for target in (sparse_target, dense_target):
        X, y = target(25_000)
        for alpha in (1e-4, 1e-6, 1e-8):
            for seed in range(3):
                model = TensorMachineRegressor(
                    degree=6, rank=3, alpha=alpha, basis=None, max_iter=2000, random_state=seed
                )
                residual = model.fit(X[:20_000], y[:20_000]).predict(X[20_000:]) - y[20_000:]
                print(
                    f"{target.__name__}, alpha {alpha:g}: relative error {np.linalg.norm(residual) / np.linalg.norm(y[20_000:]):.5f}"
                )


def alphas() -> None:
    grid = [3e-5, 1e-4, 3e-4, 1e-3, 3e-3]
    ratios = []
    for name in SETS:
        X, y, X_test, y_test = load(name)
        machine: Any = TensorMachineClassifier if name in CLASSES else TensorMachineRegressor
        errors = [error(machine(alpha=alpha, random_state=0).fit(X, y), X_test, y_test) for alpha in grid]
        ratios.append(np.array(errors) / min(errors))
        print(f"{name}: {', '.join(f'{value:.4f}' for value in errors)}", flush=True)
    print(
        "geometric means over best:",
        np.exp(np.mean(np.log(ratios), axis=0)).round(2),
        "medians:",
        np.median(ratios, axis=0).round(2),
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    {"floors": floors, "alpha": alphas}[sys.argv[1]]()
