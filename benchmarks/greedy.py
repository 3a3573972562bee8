"""Do terms fitted one at a time come close to terms fitted together, and are they a good start?

    TENSORMACHINES_DATA=folder python benchmarks/greedy.py    # prints a table, draws docs/greedy.png

Objective and test error for each rank: fitted greedily, together from random starts, and together from the
greedy start. L-BFGS, basis "sphere", tol=1e-4, at most 1,000 iterations; 20,000 training rows of each set and
at most 20,000 test rows, three seeds."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import sets
from measures import error, prediction_error
from records import head, print_facts, row
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.peers import GreedyTensorMachineClassifier, GreedyTensorMachineRegressor

FIGURE = Path(__file__).parent.parent / "docs" / "greedy.png"
ROWS, SEEDS, RANKS = 20_000, (0, 1, 2), (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    degree: int
    alpha: float


CASES = (
    Case("forest", "Forest, degree 4", 4, 1e-5),
    Case("kin40k", "kin40k, degree 4", 4, 1e-5),
    Case("california", "california, degree 3", 3, 1e-4),
)


def measure(case: Case) -> dict[str, np.ndarray]:
    """Return for each way (seeds, ranks, 3): objective, error and CPU seconds.

    One greedy fit has all ranks."""
    data = sets.load(case.name)
    train, test = data.train.first(ROWS), data.test.first(ROWS)
    together, greedy = (
        (TensorMachineClassifier, GreedyTensorMachineClassifier)
        if data.n_classes
        else (TensorMachineRegressor, GreedyTensorMachineRegressor)
    )
    options: dict[str, Any] = {"degree": case.degree, "alpha": case.alpha, "basis": "sphere", "tol": 1e-4}
    results: dict[str, Any] = {"greedy": [], "random start": [], "greedy start": []}
    for seed in SEEDS:
        model = greedy(rank=max(RANKS), max_iter=1000, random_state=seed, **options)
        _, seconds = timed(partial(model.fit, train.X, train.y))
        stages = zip(model.objective_path_[1:], list(model.staged_predict(test.X))[1:], strict=True)
        results["greedy"].append(
            [(value, prediction_error(predicted, test.y), seconds) for value, predicted in stages]
        )
        for way in ("random start", "greedy start"):
            path = []
            for rank in RANKS:
                model = together(
                    rank=rank,
                    shared_factors=False,
                    init=way.split()[0],
                    solver="lbfgs",
                    max_iter=1000,
                    random_state=seed,
                    **options,
                )
                _, seconds = timed(partial(model.fit, train.X, train.y))
                path.append((model.objective_, error(model, test), seconds))
            results[way].append(path)
    return {way: np.array(paths) for way, paths in results.items()}


def draw(axes: Any, paths: np.ndarray, way: str, number: int) -> None:
    for axis, values in zip(axes, np.moveaxis(paths, 2, 0), strict=False):
        axis.plot(
            RANKS, values.mean(axis=0), marker="o^s"[number], color=f"C{number}", label=way, markersize=5
        )
        axis.fill_between(RANKS, values.min(axis=0), values.max(axis=0), color=f"C{number}", alpha=0.15)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    figure, axes = plt.subplots(2, len(CASES), figsize=(11, 6), constrained_layout=True, sharex=True)
    print("Mean objective / test error over the seeds; CPU seconds of all ranks, or of the last.\n")
    print(head(["set", "way", *(f"rank {rank}" for rank in RANKS), "CPU s"]))
    for column, case in zip(axes.T, CASES, strict=True):
        for number, (way, paths) in enumerate(measure(case).items()):
            cells = [f"{value:.4f} / {test:.4f}" for value, test, _ in paths.mean(axis=0)]
            print(row([case.title, way, *cells, f"{np.median(paths[:, -1, 2]):.1f}"]), flush=True)
            draw(column, paths, way, number)
        column[0].set(title=case.title)
        column[1].set(xlabel="rank")
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel("test error")
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.savefig(FIGURE, dpi=150)
    print_facts(SEEDS)


if __name__ == "__main__":
    main()
