"""Error against number of features: random ones of the polynomial kernel, and those that a Tensor Machine
learns.

    # fits what is not yet in features.jsonl, then draws docs/features.png
    python benchmarks/features.py
    python benchmarks/features.py --draw    # draws only
    python benchmarks/features.py --only forest    # fits for one set only

Needs TENSORMACHINES_DATA. Forest (the paper's 50,000 training rows, all test rows) and Cod-rna (all training
rows, 40,000 test rows), both of degree 4 and with the paper's scaling: columns, then rows, to unit norm. All
models end in logistic loss. Penalties are chosen on a fifth of the training rows: for Tensor Machines at rank
3; for random features, which all stand for the same kernel, with 200, 800 and 1,600 features of TensorSketch,
each for the sizes up to it."""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from tensormachines import TensorMachineClassifier
from tensormachines.peers import CRAFTMapsClassifier, KarKarnickClassifier, TensorSketchClassifier

RECORDS = Path(__file__).with_name("features.jsonl")
FIGURE = Path(__file__).parent.parent / "docs" / "features.png"
DEGREE = 4
COUNTS, RANKS = (25, 50, 100, 200, 400, 800, 1600), (1, 2, 3, 5, 8)
RANDOM = {
    "Kar-Karnick": lambda n, **options: KarKarnickClassifier(n, DEGREE, **options),
    "TensorSketch": lambda n, **options: TensorSketchClassifier(n, DEGREE, **options),
    "CRAFTMaps, Kar-Karnick": lambda n, **options: CRAFTMapsClassifier(
        n, DEGREE, up="kar-karnick", **options
    ),
    "CRAFTMaps, TensorSketch": lambda n, **options: CRAFTMapsClassifier(
        n, DEGREE, up="tensor-sketch", **options
    ),
}
LEARNT = "Tensor Machine"
ALPHAS, ALPHAS_LEARNT = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6), (1e-6, 1e-5, 1e-4)
SETS = {"forest": "Forest (50,000 rows)", "cod_rna": "Cod-rna"}
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@cache
def load(name: str) -> Data:
    file = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{name}.npz")
    X, y, X_test, y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    if "paper_small_train_idx" in file:
        X, y = X[file["paper_small_train_idx"]], y[file["paper_small_train_idx"]]
    if name == "cod_rna":
        some = np.sort(np.random.default_rng(0).choice(len(y_test), 40_000, replace=False))
        X_test, y_test = X_test[some], y_test[some]
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    norms = np.linalg.norm(X, axis=0)
    X, X_test = (rows / np.where(norms > 0, norms, 1) for rows in (X, X_test))
    X, X_test = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, X_test))
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def model(method: str, size: int, alpha: float, seed: int) -> Any:
    if method == LEARNT:  # of rank `size`; the rows are scaled already
        return TensorMachineClassifier(
            DEGREE, size, alpha, basis=None, max_iter=1000, tol=1e-5, random_state=seed
        )
    return RANDOM[method](size, alpha=alpha, random_state=seed)


def alpha(name: str, method: str, size: int) -> float:
    if method == LEARNT:
        return best_alpha(name, method, 3, ALPHAS_LEARNT)
    return best_alpha(
        name, "TensorSketch", next(count for count in (200, 800, 1600) if size <= count), ALPHAS
    )


@cache
def best_alpha(name: str, method: str, size: int, alphas: tuple[float, ...]) -> float:
    X, y, *_ = load(name)
    X, X_held_out, y, y_held_out = train_test_split(X, y, test_size=0.2, random_state=0)
    scores = {
        strength: model(method, size, strength, 0).fit(X, y).score(X_held_out, y_held_out)
        for strength in alphas
    }
    print(
        f"validation errors of {name}, {method}, {size}: { {strength: round(1 - score, 4) for strength, score in scores.items()} }",
        flush=True,
    )
    return max(scores, key=lambda strength: scores[strength])


def wanted() -> Iterator[tuple[str, str, int, int]]:
    """Set, method, size and seed of each fit: small ones first."""
    for count, rank in zip(COUNTS, [*RANKS, None, None], strict=True):
        for seed in range(2 if count <= 800 else 1):
            for name in SETS:
                if rank is not None:
                    yield name, LEARNT, rank, seed
                for method in RANDOM:
                    yield name, method, count, seed


def fit_all(only: str | None) -> None:
    done = {(line["set"], line["method"], line["size"], line["seed"]) for line in records()}
    for name, method, size, seed in wanted():
        if (name, method, size, seed) in done or only not in (None, name):
            continue
        X, y, X_test, y_test = load(name)
        estimator = model(method, size, alpha(name, method, size), seed)
        began = time.process_time()
        estimator.fit(X, y)
        seconds = time.process_time() - began
        features = size * (DEGREE - 1) if method == LEARNT else size
        line = {
            "set": name,
            "method": method,
            "size": size,
            "seed": seed,
            "alpha": alpha(name, method, size),
            "features": features,
        }
        line |= {"error": 1 - estimator.score(X_test, y_test), "seconds": seconds}
        with RECORDS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def draw() -> None:
    figure, axes = plt.subplots(1, len(SETS), figsize=(10, 4.2), constrained_layout=True)
    for axis, (name, title) in zip(axes, SETS.items(), strict=True):
        for number, method in enumerate([*RANDOM, LEARNT]):
            lines = [line for line in records() if line["set"] == name and line["method"] == method]
            counts = sorted({line["features"] for line in lines})
            errors = [[line["error"] for line in lines if line["features"] == count] for count in counts]
            style = (
                {"color": "black", "linewidth": 2.2, "marker": "o"}
                if method == LEARNT
                else {"color": f"C{number}", "marker": "os^v"[number]}
            )
            axis.plot(counts, [np.mean(each) for each in errors], label=method, **style)
            axis.fill_between(
                counts,
                [min(each) for each in errors],
                [max(each) for each in errors],
                alpha=0.15,
                color=style["color"],
            )
        axis.set(xscale="log", title=title, xlabel="number of features", ylabel="test error")
        axis.grid(alpha=0.3, which="both")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(FIGURE, dpi=150)


def table() -> None:
    for name, title in SETS.items():
        print(f"\n{title}\n\n| method | features: mean error |\n|---|---|")
        for method in [*RANDOM, LEARNT]:
            lines = [line for line in records() if line["set"] == name and line["method"] == method]
            counts = sorted({line["features"] for line in lines})
            cells = (
                f"{count}: {np.mean([line['error'] for line in lines if line['features'] == count]):.4f}"
                for count in counts
            )
            print(f"| {method} | {', '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--only", choices=SETS)
    warnings.simplefilter("ignore", ConvergenceWarning)
    arguments = parser.parse_args()
    if not arguments.draw:
        fit_all(arguments.only)
    draw()
    table()
