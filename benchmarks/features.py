"""How many random features of the polynomial kernel do what a few learnt ones do?

    # fits what is not yet in features.jsonl, then draws docs/features.png and prints the errors
    TENSORMACHINES_DATA=folder python benchmarks/features.py [--only forest]
    python benchmarks/features.py --draw    # fits nothing

Forest (the paper's 50,000 training rows, all test rows) and Cod-rna (all training rows, 40,000 test rows), of
degree 4 and in the paper's scaling: columns, then rows, to unit norm. Tensor Machines are fitted by L-BFGS
(tol=1e-5, at most 1,000 iterations). All models end in logistic loss. Penalties are chosen on a fifth of the
training rows: for Tensor Machines at rank 3; for random features, which all stand for the same kernel, with
200, 800 and 1,600 features of TensorSketch, each for the sizes up to it."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import sets
from measures import error
from records import append, facts, read, table
from sets import Sample
from tensormachines import TensorMachineClassifier
from tensormachines.peers import CRAFTMapsClassifier, KarKarnickClassifier, TensorSketchClassifier

RECORDS = Path(__file__).with_name("features.jsonl")
FIGURE = Path(__file__).parent.parent / "docs" / "features.png"
DEGREE = 4
COUNTS, RANKS = (25, 50, 100, 200, 400, 800, 1600), (1, 2, 3, 5, 8)
RANDOM: dict[str, Any] = {
    "Kar-Karnick": KarKarnickClassifier,
    "TensorSketch": TensorSketchClassifier,
    "CRAFTMaps, Kar-Karnick": partial(CRAFTMapsClassifier, up="kar-karnick"),
    "CRAFTMaps, TensorSketch": partial(CRAFTMapsClassifier, up="tensor-sketch"),
}
LEARNT = "Tensor Machine"
ALPHAS, ALPHAS_LEARNT = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6), (1e-6, 1e-5, 1e-4)
SETS = {"forest": "Forest (50,000 rows)", "cod_rna": "Cod-rna"}


@cache
def load(name: str) -> tuple[Sample, Sample]:
    """Return training and test rows in the paper's scaling."""
    data = sets.load(name, small=name == "forest")
    test = data.test
    if name == "cod_rna":
        test = test.rows(np.sort(np.random.default_rng(0).choice(len(test.y), 40_000, replace=False)))
    norms = np.linalg.norm(data.train.X.astype(np.float64), axis=0)

    def scaled(sample: Sample) -> Sample:
        X = sample.X / np.where(norms > 0, norms, 1)
        return Sample((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), sample.y)

    return scaled(data.train), scaled(test)


def model(method: str, size: int, alpha: float, seed: int) -> Any:
    if method != LEARNT:
        return RANDOM[method](size, DEGREE, alpha=alpha, random_state=seed)
    return TensorMachineClassifier(  # of rank `size`; the rows are scaled already
        DEGREE,
        size,
        alpha,
        shared_factors=False,
        basis=None,
        solver="lbfgs",
        max_iter=1000,
        tol=1e-5,
        random_state=seed,
    )


def alpha(name: str, method: str, size: int) -> float:
    if method == LEARNT:
        return best_alpha(name, method, 3, ALPHAS_LEARNT)
    return best_alpha(
        name, "TensorSketch", next(count for count in (200, 800, 1600) if size <= count), ALPHAS
    )


@cache
def best_alpha(name: str, method: str, size: int, alphas: tuple[float, ...]) -> float:
    train, _ = load(name)
    X, X_held_out, y, y_held_out = train_test_split(train.X, train.y, test_size=0.2, random_state=0)
    held_out = Sample(X_held_out, y_held_out)
    errors = {strength: error(model(method, size, strength, 0).fit(X, y), held_out) for strength in alphas}
    print(f"validation errors of {name}, {method}, {size}: {errors}", flush=True)
    return min(errors, key=lambda strength: errors[strength])


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
    done = {(line["set"], line["method"], line["size"], line["seed"]) for line in read(RECORDS)}
    for name, method, size, seed in wanted():
        if (name, method, size, seed) in done or only not in (None, name):
            continue
        train, test = load(name)
        strength = alpha(name, method, size)
        fitted, seconds = timed(partial(model(method, size, strength, seed).fit, train.X, train.y))
        line = {"set": name, "method": method, "size": size, "seed": seed, "alpha": strength}
        line |= {"features": size * (DEGREE - 1) if method == LEARNT else size}
        line |= {"error": error(fitted, test), "seconds": seconds, **facts()}
        append(RECORDS, line)
        print(line, flush=True)


def errors_by_count(name: str, method: str) -> dict[int, list[float]]:
    """Return the errors of the seeds for each number of features."""
    found: dict[int, list[float]] = {}
    for line in read(RECORDS):
        if (line["set"], line["method"]) == (name, method):
            found.setdefault(line["features"], []).append(line["error"])
    return dict(sorted(found.items()))


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SETS), figsize=(10, 4.2), constrained_layout=True)
    for axis, (name, title) in zip(axes, SETS.items(), strict=True):
        for number, method in enumerate([*RANDOM, LEARNT]):
            errors = errors_by_count(name, method)
            style = (
                {"color": "black", "linewidth": 2.2, "marker": "o"}
                if method == LEARNT
                else {"color": f"C{number}", "marker": "os^v"[number]}
            )
            axis.plot([*errors], [np.mean(each) for each in errors.values()], label=method, **style)
            low, high = ([bound(each) for each in errors.values()] for bound in (min, max))
            axis.fill_between([*errors], low, high, alpha=0.15, color=style["color"])
        axis.set(xscale="log", title=title, xlabel="number of features", ylabel="test error")
        axis.grid(alpha=0.3, which="both")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(FIGURE, dpi=150)


def print_errors() -> None:
    for name, title in SETS.items():
        rows = []
        for method in [*RANDOM, LEARNT]:
            errors = errors_by_count(name, method)
            rows.append(
                [method, ", ".join(f"{count}: {np.mean(each):.4f}" for count, each in errors.items())]
            )
        print(f"\n{title}\n\n{table(['method', 'features: mean error'], rows)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draw", action="store_true", help="draw the recorded errors, fit nothing")
    parser.add_argument("--only", choices=SETS, help="fit one of the sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if not arguments.draw:
        fit_all(arguments.only)
    draw()
    print_errors()
