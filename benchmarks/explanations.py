"""How well do a Tensor Machine and an EBM explain data whose truth is known, Friedman's first function?

    python benchmarks/explanations.py [--folder docs]

Prints the table of docs/explain.md and draws its pictures: explain-ebm.png, and explain.png of invented
flats. Needs interpret-core and matplotlib (the extras accuracy and explain)."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from sklearn.datasets import make_friedman1

from measures import loss_of
from records import print_facts, table
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines.inspection import contributions

ROWS, TEST_ROWS, COLUMNS, NOISE = 2000, 5000, 8, 1.0
CHOSEN = "Tensor Machine, chosen"
Parts = dict[tuple[int, ...], np.ndarray]
Models = dict[str, tuple[Any, Any]]  # the model, and the function that splits its predictions into parts
PARTS: list[tuple[int, ...]] = [(0,), (1,), (2,), (3,), (4,), (5,), (0, 1), (2, 3)]


def truth(X: np.ndarray) -> Parts:
    """Return the functional ANOVA parts of Friedman's first function for uniform columns:

    10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4.
    """
    grid = (np.arange(2000) + 0.5) / 2000
    alone = {j: 10 * np.sin(np.pi * np.outer(X[:, j], grid)).mean(axis=1) for j in (0, 1)}
    mean = 10 * np.sin(np.pi * np.outer(grid, grid)).mean()
    pair = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) - alone[0] - alone[1] + mean
    known = {
        (0,): alone[0] - mean,
        (1,): alone[1] - mean,
        (2,): 20 * (X[:, 2] - 0.5) ** 2 - 20 / 12,
        (3,): 10 * X[:, 3] - 5,
    }
    return {part: np.zeros(len(X)) for part in PARTS} | known | {(4,): 5 * X[:, 4] - 2.5, (0, 1): pair}


def parts_of_machine(model: Any, X: np.ndarray) -> Parts:
    split = contributions(model, X)
    return {part: _centred(split[tuple(f"x{j}" for j in part)]) for part in PARTS}


def parts_of_ebm(model: Any, X: np.ndarray) -> Parts:
    scores = dict(zip(model.term_features_, model.eval_terms(X).T, strict=True))
    return {part: _centred(scores.get(part, np.zeros(len(X)))) for part in PARTS}


def parts_of(models: Models, name: str, X: np.ndarray) -> Parts:
    if name == "truth":
        return truth(X)
    model, parts = models[name]
    return parts(model, X)


def _centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean()


def draw(models: Models, path: Path) -> None:
    """Draw curves of three columns, and the pair of the first two on a grid."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9.6, 5.4), layout="constrained")
    steps = (np.arange(60) + 0.5) / 60
    colours = {"truth": "#222222", CHOSEN: "#1f5fa8", "EBM": "#d9822b"}
    for ax, column in zip(axes[0], (0, 2, 5), strict=True):
        rows = np.full((len(steps), COLUMNS), 0.5)
        rows[:, column] = steps
        for name, colour in colours.items():
            style = (
                {"linestyle": "--", "linewidth": 1.3, "zorder": 3} if name == "truth" else {"linewidth": 2.0}
            )
            ax.plot(steps, parts_of(models, name, rows)[column,], color=colour, label=name, **style)
        ax.set(xlabel=f"x{column}", ylim=(-6, 4))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    axes[0, 0].set_ylabel("effect of the column")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    rows = np.full((len(steps) ** 2, COLUMNS), 0.5)
    rows[:, 0], rows[:, 1] = (axis.ravel() for axis in np.meshgrid(steps, steps))
    for ax, name in zip(axes[1], colours, strict=True):
        surface = parts_of(models, name, rows)[0, 1].reshape(len(steps), -1)
        image = ax.pcolormesh(steps, steps, surface, cmap="RdBu_r", vmin=-5, vmax=5)
        ax.set(title=name, xlabel="x0", ylabel="x1")
    figure.colorbar(image, ax=axes[1], label="effect of the pair")
    figure.savefig(path, dpi=80)


def draw_flats(path: Path) -> None:
    """Draw the pictures of the flats in docs/explain.md."""
    import matplotlib.pyplot as plt
    import pandas as pd

    from tensormachines import plots

    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": random.uniform(30, 150, 1000),
            "district": random.choice(["north", "south", "harbour"], 1000),
            "floor": random.integers(0, 9, 1000).astype(float),
            "lift": random.random(1000) < 0.5,
        }
    )
    price = (
        frame["area"] * np.where(frame["district"] == "harbour", 3, 2)
        + np.where(frame["lift"], 4, -6) * frame["floor"]
    )
    frame.loc[random.random(1000) < 0.1, "district"] = None
    model = TensorMachineRegressor(degree=3, alpha="rows", random_state=0).fit(
        frame, price + random.normal(0, 5, 1000)
    )
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.3), layout="constrained")
    plots.interaction_heat_map(model, frame, ax=axes[0])
    plots.effect_curve(model, "district", frame, ax=axes[1])
    plots.effect_surface(model, ("floor", "lift"), frame, ax=axes[2])
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="for the pictures")
    folder = parser.parse_args().folder
    from interpret.glassbox import ExplainableBoostingRegressor

    draw_flats(folder / "explain.png")
    X, y = make_friedman1(ROWS, COLUMNS, noise=NOISE, random_state=0)
    X_test, y_test = make_friedman1(TEST_ROWS, COLUMNS, noise=0.0, random_state=1)
    expected = truth(X_test)
    models: Models = {
        "Tensor Machine": (TensorMachineRegressor(degree=2, alpha="rows", random_state=0), parts_of_machine),
        CHOSEN: (TensorMachineRegressorCV(degrees=[2], random_state=0), parts_of_machine),
        "EBM": (ExplainableBoostingRegressor(random_state=0, n_jobs=1), parts_of_ebm),
    }
    found = {}
    for name, (model, parts) in models.items():
        _, seconds = timed(partial(model.fit, X, y))
        found[name] = parts(model, X_test)
        error = loss_of(model.predict(X_test), y_test, 0) ** 0.5
        print(f"{name}: root mean square error {error:.3f} (without noise), {seconds:.1f} s CPU to fit")
    rows = []
    for part in PARTS:
        errors = [loss_of(found[name][part], expected[part], 0) ** 0.5 for name in models]
        cells = [f"{value:.3f}" for value in (expected[part].std(), *errors)]
        rows.append([" ".join(f"x{j}" for j in part), *cells])
    print("\n" + table(["part", "deviation of the truth", *(f"error of {name}" for name in models)], rows))
    draw(models, folder / "explain-ebm.png")
    print_facts([0], ("interpret-core",))


if __name__ == "__main__":
    main()
