"""Objective and error along the rank: terms fitted greedily, together from random starts, and together from
the greedy start.

    python benchmarks/greedy.py    # prints a table, draws docs/greedy.png

Needs TENSORMACHINES_DATA. 20,000 training rows of each set, basis "sphere", three seeds. The objective is
that of the fit, the error that of the test rows (at most 20,000): misclassified share, or root mean square in
units of the target's standard deviation."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.peers import GreedyTensorMachineClassifier, GreedyTensorMachineRegressor

FIGURE = Path(__file__).parent.parent / "docs" / "greedy.png"
ROWS, SEEDS, RANKS = 20_000, (0, 1, 2), (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Case:
    file: str
    title: str
    classes: bool
    degree: int
    alpha: float


CASES = (
    Case("forest", "Forest, degree 4", True, 4, 1e-5),
    Case("kin40k", "kin40k, degree 4", False, 4, 1e-5),
    Case("california", "california, degree 3", False, 3, 1e-4),
)


def load(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    file = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{case.file}.npz")
    parts = []
    for part, seed in (("train", 0), ("test", 1)):
        X, y = file[f"X_{part}"].astype(np.float32), file[f"y_{part}"].astype(np.float64)
        rows = np.random.RandomState(seed).permutation(len(y))[:ROWS]
        parts += [X[rows], y[rows]]
    return parts[0], parts[1], parts[2], parts[3]


def error(case: Case, y: np.ndarray, predicted: np.ndarray) -> float:
    return float(
        np.mean(predicted != y) if case.classes else np.sqrt(np.mean((predicted - y) ** 2)) / y.std()
    )


def measure(case: Case) -> dict[str, np.ndarray]:
    """For each way (seeds, ranks, 3): objective, error and CPU seconds; the greedy fit passes all ranks at
    once.
    """
    X, y, X_test, y_test = load(case)
    full, greedy = (
        (TensorMachineClassifier, GreedyTensorMachineClassifier)
        if case.classes
        else (TensorMachineRegressor, GreedyTensorMachineRegressor)
    )
    options: dict[str, Any] = {"degree": case.degree, "alpha": case.alpha, "basis": "sphere"}
    results: dict[str, Any] = {"greedy": [], "random start": [], "greedy start": []}
    for seed in SEEDS:
        began = time.process_time()
        model = greedy(rank=max(RANKS), random_state=seed, **options).fit(X, y)
        seconds = time.process_time() - began
        stages = zip(model.objective_path_[1:], list(model.staged_predict(X_test))[1:], strict=True)
        results["greedy"].append(
            [(value, error(case, y_test, predicted), seconds) for value, predicted in stages]
        )
        for way, init in (("random start", "random"), ("greedy start", "greedy")):
            path = []
            for rank in RANKS:
                began = time.process_time()
                model = full(rank=rank, init=init, random_state=seed, **options).fit(X, y)
                seconds = time.process_time() - began
                path.append((model.objective_, error(case, y_test, model.predict(X_test)), seconds))
            results[way].append(path)
    return {way: np.array(paths) for way, paths in results.items()}


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    figure, axes = plt.subplots(2, len(CASES), figsize=(11, 6), constrained_layout=True, sharex=True)
    print(
        "| set | way | "
        + " | ".join(f"rank {rank}" for rank in RANKS)
        + " | CPU s at the last |\n|---|---|"
        + "---|" * (len(RANKS) + 1)
    )
    for column, case in enumerate(CASES):
        for number, (way, paths) in enumerate(measure(case).items()):
            mean = paths.mean(axis=0)
            cells = " | ".join(f"{value:.4f} / {test:.4f}" for value, test, _ in mean)
            print(f"| {case.title} | {way} | {cells} | {np.median(paths[:, -1, 2]):.1f} |", flush=True)
            for row in (0, 1):
                axis = axes[row, column]
                axis.plot(
                    RANKS, mean[:, row], marker="o^s"[number], color=f"C{number}", label=way, markersize=5
                )
                axis.fill_between(
                    RANKS,
                    paths[:, :, row].min(axis=0),
                    paths[:, :, row].max(axis=0),
                    color=f"C{number}",
                    alpha=0.15,
                )
                axis.grid(alpha=0.3)
                axis.spines[["top", "right"]].set_visible(False)
        axes[0, column].set(title=case.title)
        axes[1, column].set(xlabel="rank")
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel("test error")
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
