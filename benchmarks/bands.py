"""Do bands around effects contain the true effects as often as they should?

    python benchmarks/bands.py [--folder docs] [--seeds 0 1 2 3 4]

The bands of `inspection.effect_band` with 20 members around the effects of default models, beside bands
between two quantiles of the members' effects. The truth is a sum of functions of single columns, two of which
have no effect, as numbers with noise or as log-odds, and Friedman's first function. Effects are at 50 points
from 0.01 to 0.99 of columns that are uniform between 0 and 1. Prints the table of docs/explain.md, whose
shares and widths are those of columns with an effect, and draws its picture, bands.png (needs the extra
explain)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from scipy.special import expit
from sklearn.datasets import make_friedman1

from explanations import truth
from records import head, print_facts, row
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import bootstrap, effect, effect_band

MEMBERS, COVERAGE, COLUMNS = 20, 0.9, 6
POINTS = np.linspace(0.01, 0.99, 50)
PEAK = 6.0 * np.sqrt(np.pi / 200)  # mean of the last function

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "wave": lambda x: 2 * np.sin(2 * np.pi * x),
    "parabola": lambda x: 20 * (x - 0.5) ** 2 - 20 / 12,
    "line": lambda x: 5 * x - 2.5,
    "peak": lambda x: 6 * np.exp(-200 * (x - 0.5) ** 2) - PEAK,
}
Data = tuple[Any, np.ndarray, np.ndarray, np.ndarray]  # model, X, y, true effects (columns, points)


def effects_of_sum() -> np.ndarray:
    nothing = np.zeros((COLUMNS - len(FUNCTIONS), len(POINTS)))
    return np.vstack([[function(POINTS) for function in FUNCTIONS.values()], nothing])


def rows_of_sum(n_rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = random.random((n_rows, COLUMNS))
    return X, np.sum([function(X[:, j]) for j, function in enumerate(FUNCTIONS.values())], axis=0)


def numbers(n_rows: int, noise: float, seed: int) -> Data:
    random = np.random.default_rng(seed)
    X, z = rows_of_sum(n_rows, random)
    y = z + noise * random.normal(size=n_rows)
    return TensorMachineRegressor(random_state=seed), X, y, effects_of_sum()


def classes(n_rows: int, scale: float, seed: int) -> Data:
    random = np.random.default_rng(seed)
    X, z = rows_of_sum(n_rows, random)
    y = random.random(n_rows) < expit(z / scale)
    return TensorMachineClassifier(random_state=seed), X, y, effects_of_sum() / scale


def friedman(n_rows: int, noise: float, seed: int) -> Data:
    X, y = make_friedman1(n_rows, COLUMNS, noise=noise, random_state=seed)
    parts = truth(np.tile(POINTS[:, None], COLUMNS))
    return TensorMachineRegressor(degree=2, random_state=seed), X, y, np.array([parts[j,] for j in range(6)])


SETS: dict[str, tuple[Callable[[int, float, int], Data], int, float]] = {
    "sum of functions, 500 rows, noise 1": (numbers, 500, 1.0),
    "sum of functions, 500 rows, noise 2": (numbers, 500, 2.0),
    "sum of functions, 2,000 rows, noise 1": (numbers, 2000, 1.0),
    "two classes, 1,500 rows": (classes, 1500, 2.0),
    "Friedman's first function, 1,000 rows, noise 1": (friedman, 1000, 1.0),
}


def rows_along(column: int) -> np.ndarray:
    rows = np.full((len(POINTS), COLUMNS), 0.5)
    rows[:, column] = POINTS
    return rows


def measure(data: Data, seed: int) -> np.ndarray:
    """Return for each column the shares of points inside of both bands, and their mean widths."""
    model, X, y, expected = data
    members = bootstrap(model.fit(X, y), X, y, n_members=MEMBERS, random_state=seed)
    levels = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    found = []
    for column in range(COLUMNS):
        rows = rows_along(column)
        band = effect_band(model, column, rows, members, coverage=COVERAGE).T
        quantiles = np.quantile([effect(member, column, rows) for member in members], levels, axis=0)
        inside = [
            np.mean((low <= expected[column]) & (expected[column] <= high)) for low, high in (band, quantiles)
        ]
        found.append([*inside, *(np.mean(high - low) for low, high in (band, quantiles))])
    return np.array(found)


def draw(path: Path) -> None:
    """Draw the bands of a wave and of a peak, and the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from tensormachines import plots

    model, X, y, expected = numbers(500, 1.0, 0)
    members = bootstrap(model.fit(X, y), X, y, n_members=MEMBERS, random_state=0)
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.3), layout="constrained")
    for ax, column in zip(axes, (0, 3, 4), strict=True):
        plots.effect_curve(model, column, X, members=members, ax=ax)
        ax.plot(POINTS, expected[column], "--", color="#222222", linewidth=1.2, label="truth")
        ax.legend(frameon=False)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="for the picture")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    options = parser.parse_args()
    if options.folder is not None:
        draw(options.folder / "bands.png")
    names = [f"x{j}" for j in range(COLUMNS)]
    print(head(["truth", "with an effect", *names, "width", "quantiles: with an effect", "width"]))
    for name, (make, n_rows, noise) in SETS.items():
        sets = [make(n_rows, noise, seed) for seed in options.seeds]
        found = np.mean([measure(*each) for each in zip(sets, options.seeds, strict=True)], axis=0)
        inside, of_quantiles, width, width_of_quantiles = found[sets[0][-1].any(axis=1)].mean(axis=0)
        each = [f"{share:.0%}" for share in found[:, 0]]
        others = [f"{width:.2f}", f"{of_quantiles:.0%}", f"{width_of_quantiles:.2f}"]
        print(row([name, f"{inside:.0%}", *each, *others]), flush=True)
    print_facts(options.seeds)


if __name__ == "__main__":
    main()
