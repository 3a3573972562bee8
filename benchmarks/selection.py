"""What choosing by successive halving costs, and whether it chooses as well as an exhaustive search.

    python benchmarks/selection.py    # prints a table

Needs TENSORMACHINES_DATA. 8,000 training rows of each set, 10 folds, 4 alphas x 3 ranks; two seeds, which
decide the starts and the rows of the lower rungs. A single fit is that of a Tensor Machine on all rows, in
the mean over the 12 candidates: CPU seconds, one thread. The exhaustive search is scikit-learn's
GridSearchCV. Errors are root mean squares in units of the target's standard deviation, on the test rows, of
the chosen candidate fitted to all training rows; "spread" is how far the errors of the 12 candidates lie
apart."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV

ROWS, SEEDS, FOLDS = 8000, (0, 1), KFold(10)
RANKS, ALPHAS, BASIS = (3, 5, 10), (1e-6, 1e-5, 1e-4, 1e-3), "sphere"


@dataclass(frozen=True)
class Case:
    file: str
    degree: int


CASES = (Case("california", 3), Case("kin40k", 4), Case("protein", 3), Case("house_8L", 3))


def load(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    file = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{case.file}.npz")
    rows = np.random.RandomState(0).permutation(len(file["y_train"]))[:ROWS]
    X, y = file["X_train"][rows].astype(np.float64), file["y_train"][rows].astype(np.float64)
    return X, y, file["X_test"].astype(np.float64), file["y_test"].astype(np.float64)


def timed(fit: Any, *arguments: Any) -> tuple[Any, float]:
    began = time.process_time()
    return fit(*arguments), time.process_time() - began


def row(case: Case, seed: int) -> str:
    X, y, X_test, y_test = load(case)

    def error(model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y_test.std())

    settings: dict[str, Any] = {"degree": case.degree, "basis": BASIS, "random_state": seed}
    singles = [
        timed(TensorMachineRegressor(rank=rank, alpha=alpha, **settings).fit, X, y)
        for rank in RANKS
        for alpha in ALPHAS
    ]
    errors = [error(model) for model, _ in singles]
    single = float(np.mean([seconds for _, seconds in singles]))
    grid = GridSearchCV(
        TensorMachineRegressor(**settings),
        {"rank": RANKS, "alpha": ALPHAS},
        cv=FOLDS,
        scoring="neg_mean_squared_error",
    )
    grid, exhaustive_seconds = timed(grid.fit, X, y)
    search = TensorMachineRegressorCV((case.degree,), RANKS, ALPHAS, (BASIS,), cv=FOLDS, random_state=seed)
    search, seconds = timed(search.fit, X, y)
    cells = [
        case.file,
        str(seed),
        f"{single:.2f}",
        f"{seconds / single:.1f}",
        f"{exhaustive_seconds / single:.0f}",
    ]
    for params in (search.best_params_, grid.best_params_):
        cells.append(f"{params['rank']}, {params['alpha']:g}")
    cells += [f"{error(search):.4f}", f"{error(grid):.4f}", f"{min(errors):.4f}-{max(errors):.4f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = [
        "set",
        "seed",
        "single fit, CPU s",
        "search, single fits",
        "GridSearchCV",
        "rank, alpha chosen",
        "by GridSearchCV",
    ]
    print("| " + " | ".join([*names, "error", "of GridSearchCV", "spread"]) + " |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        for seed in SEEDS:
            print(row(case, seed), flush=True)


if __name__ == "__main__":
    main()
