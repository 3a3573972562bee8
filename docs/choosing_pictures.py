"""Draw the pictures of docs/choosing.md from docs/choosing.jsonl: python docs/choosing_pictures.py.

With --fit, the models are fitted and recorded first: `PYTHONPATH=benchmarks python docs/choosing_pictures.py
--fit`, with the data sets in the folder that TENSORMACHINES_DATA names. Pictures are readable on light and on
dark pages: they have no background, and colours in between."""

import json
import sys
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineRegressor

FOLDER = Path(__file__).parent
RECORDS = FOLDER / "choosing.jsonl"
RESULTS = FOLDER.parent / "benchmarks" / "RESULTS.md"
SETS, SEEDS = ("california", "kin40k"), (0, 1)
TITLES = {"california": "california: prices of houses", "kin40k": "kin40k: a simulated robot arm"}
RANKS, DEGREES, ROWS_OF_RANKS = (1, 2, 5, 10, 20), (1, 2, 3, 4), 8_000
ROWS = (300, 1_000, 3_000, 10_000, 30_000)
ROWS_OF_LOSSES = 400
LARGEST = 1.05  # error in the picture; the text names those beyond
GREY = "#808080"
COLOURS = ("#3b82c4", "#d9822b", "#3a9d5d", "#9a6fc0", "#c4524a", "#808080")


def models(seed: int) -> dict:
    return {
        "default (splines)": TensorMachineRegressor(random_state=seed),
        'basis="standard"': TensorMachineRegressor(basis="standard", random_state=seed),
        "HistGradientBoosting": HistGradientBoostingRegressor(random_state=seed),
        "ridge regression": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 9))),
    }


def fits():
    """Yield what is drawn: picture, curve, number along the axis, and an unfitted model."""
    for seed, rank, degree in product(SEEDS, RANKS, DEGREES):
        if degree > 1 or rank == RANKS[0]:
            model = TensorMachineRegressor(degree=degree, rank=rank, random_state=seed)
            yield seed, "rank", f"degree {degree}", rank, ROWS_OF_RANKS, model
    for seed, rows in product(SEEDS, ROWS):
        for name, model in models(seed).items():
            yield seed, "rows", name, rows, rows, model


def fit_all() -> None:
    from sets import load

    with RECORDS.open("w", encoding="utf-8") as file:
        for name in SETS:
            data = load(name)
            order = {seed: np.random.default_rng(seed).permutation(len(data.train.y)) for seed in SEEDS}
            for seed, picture, curve, number, rows, model in fits():
                train = data.train.rows(order[seed][:rows])
                errors = model.fit(train.X, train.y).predict(data.test.X) - data.test.y
                number = len(train.y) if picture == "rows" else number  # a set may have fewer
                line = {"picture": picture, "set": name, "curve": curve, "number": number, "seed": seed}
                line["error"] = round(float(np.sqrt(np.mean(errors**2)) / data.test.y.std()), 5)
                print(json.dumps(line), file=file, flush=True)


def draw(picture: str, xlabel: str) -> None:
    lines = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    figure, panels = plt.subplots(1, len(SETS), figsize=(9, 3.2), layout="constrained")
    for name, ax in zip(SETS, panels, strict=True):
        chosen = [line for line in lines if (line["picture"], line["set"]) == (picture, name)]
        curves = list(dict.fromkeys(line["curve"] for line in chosen))
        for curve, colour in zip(curves, COLOURS, strict=False):
            of_curve = [line for line in chosen if line["curve"] == curve]
            numbers = sorted({line["number"] for line in of_curve})
            errors = [[line["error"] for line in of_curve if line["number"] == number] for number in numbers]
            if len(numbers) == 1:
                ax.axhline(np.mean(errors), color=GREY, linestyle=":", linewidth=1.5, label=curve)
                continue
            ax.plot(numbers, np.mean(errors, axis=1), "o-", color=colour, markersize=4, label=curve)
        ax.set(xscale="log", title=TITLES[name], xlabel=xlabel)
        ticks = sorted({line["number"] for line in chosen})
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.set_ylim(top=min(ax.get_ylim()[1], LARGEST))
        ax.minorticks_off()
    panels[0].set_ylabel("test error / deviation of y")
    finish(figure, panels, f"choosing-{picture}.svg")


def draw_penalties() -> None:
    """Draw the table of errors against alpha in benchmarks/RESULTS.md."""
    section = RESULTS.read_text(encoding="utf-8").split("`python benchmarks/defaults.py alpha`")[1]
    table = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    alphas = [float(cell) for cell in table[0][3:9]]
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
    chosen = (("forest", "protein", "california"), ("cod_rna", "house_8L", "year_msd_subset"))
    for ax, names, title in zip(
        panels, chosen, ("small penalties are best", "large ones are best"), strict=True
    ):
        for name, colour in zip(names, COLOURS, strict=False):
            cells = next([float(cell) for cell in row[1:9]] for row in table if row[0] == name)
            least = min(cells)
            ax.plot(alphas, np.array(cells[2:]) / least, "o-", color=colour, markersize=4, label=name)
            ax.axhline(cells[0] / least, color=colour, linestyle=":", linewidth=1.5)
        ax.axvline(5e-4, color=GREY, linestyle="--", linewidth=1, label='alpha="rows"')
        ax.set(xscale="log", xlabel="alpha", title=title)
    panels[0].set_ylabel("test error / lowest")
    finish(figure, panels, "choosing-alpha.svg")


def draw_losses() -> None:
    """Draw fits of one column by several losses, with what they should predict."""
    rng = np.random.default_rng(0)
    x, line = np.sort(rng.uniform(0, 1, ROWS_OF_LOSSES)), np.linspace(0, 1, 200)
    wave, size = (lambda at: np.sin(2 * np.pi * at)), (lambda at: 0.2 + 1.3 * at**2)
    outliers = (rng.uniform(size=len(x)) < 0.1) * rng.uniform(8, 16, len(x))
    noise = rng.standard_normal(len(x))
    panels_of_losses = {
        "counts": (rng.poisson(np.exp(3 * wave(x))), np.exp(3 * wave(line)), {
            "squared_error": {}, "poisson": {"loss": "poisson"},
        }),
        "outliers in a tenth of the rows": (2 * wave(x) + 0.5 * noise + outliers, 2 * wave(line), {
            "squared_error": {}, "huber": {"loss": "huber"}, "absolute_error": {"loss": "absolute_error"},
        }),
        "noise that grows": (wave(x) + size(x) * noise, wave(line), {
            "quantile 0.9": {"loss": "quantile", "quantile": 0.9},
            "quantile 0.5": {"loss": "quantile", "quantile": 0.5},
            "quantile 0.1": {"loss": "quantile", "quantile": 0.1},
        }),
    }  # fmt: skip
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for ax, (title, (y, truth, curves)) in zip(panels, panels_of_losses.items(), strict=True):
        ax.scatter(x, y, s=4, color=GREY, alpha=0.4, linewidth=0)
        for (name, settings), colour in zip(curves.items(), COLOURS, strict=False):
            model = TensorMachineRegressor(**settings, random_state=0).fit(x[:, None], y)
            ax.plot(line, model.predict(line[:, None]), color=colour, label=name)
        ax.plot(line, truth, "--", color=GREY, linewidth=1, label="without noise")
        ax.set(title=title, xlabel="x")
    panels[0].set_ylabel("y")
    finish(figure, panels, "choosing-loss.svg")


def finish(figure, panels, name: str) -> None:
    for ax in panels:
        ax.legend(frameon=False, labelcolor=GREY, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(GREY)
        ax.tick_params(colors=GREY, which="both")
        ax.grid(axis="y", color=GREY, alpha=0.3)
        for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
            text.set_color(GREY)
    figure.savefig(FOLDER / name, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams.update(
        {"font.size": 9, "axes.titlesize": 10, "svg.fonttype": "none", "svg.hashsalt": "choosing"}
    )
    if "--fit" in sys.argv:
        fit_all()
    draw("rank", "rank")
    draw("rows", "training rows")
    draw_penalties()
    draw_losses()
