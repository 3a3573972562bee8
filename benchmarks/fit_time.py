"""Does the default fit take as long as LightGBM's, and is it disturbed by other work on the machine?

    python benchmarks/fit_time.py           CPU seconds of default fits, one thread, in interleaved rounds
    python benchmarks/fit_time.py --busy    CPU seconds of a fit next to two busy processes, with the threads
                                            of BLAS limited by hand and not

LightGBM has its default settings and stops when the error on a tenth of the rows has not improved for 50
trees, of at most 2,000; the time includes the split. The tables are those of TENSORMACHINES_DATA/tables, and
the sets beside them, at most ROWS rows of each. `--sets` names some of them. A run over all of them draws
fit_time.png.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from timing import one_thread, timed

if "--unlimited" not in sys.argv:
    one_thread()

import numpy as np
from sklearn.model_selection import train_test_split

from records import print_facts, table
from sets import load as load_set
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

ROWS, ROUNDS, SEED = 100_000, 3, 0
SETS = (
    *("california", "house_8L", "kin40k", "protein", "census_house_16H", "year_msd_subset", "buzz_sample"),
    *("slice_first_rows", "spambase", "letter", "cod_rna", "adult", "digits"),
)
Rows = tuple[Any, np.ndarray, bool]  # X, y, whether y holds classes


def tables() -> list[str]:
    index = Path(os.environ.get("TENSORMACHINES_DATA", ".")) / "tables" / "index.json"
    return list(json.loads(index.read_text())) if index.exists() else []


def load(name: str) -> Rows:
    """Return the training rows of a table or set."""
    if name in SETS:
        data = load_set(name)
        train = data.train.first(ROWS)
        return train.X.astype(np.float64), train.y, data.n_classes > 0
    folder = Path(os.environ["TENSORMACHINES_DATA"]) / "tables"
    sys.path.insert(0, str(folder))
    from load import load as load_table  # type: ignore[import-not-found]

    X, y, _, _, entry = load_table(name)
    return X[:ROWS], y[:ROWS], entry["task"] == "classification"


def fit_ours(rows: Rows) -> Any:
    X, y, classes = rows
    return (TensorMachineClassifier if classes else TensorMachineRegressor)(random_state=SEED).fit(X, y)


def fit_lightgbm(rows: Rows) -> Any:
    import lightgbm

    X, y, classes = rows
    if hasattr(X, "iloc"):
        text = [name for name in X if X[name].dtype.kind not in "fiub"]
        X = X.astype(dict.fromkeys(text, "category"))
    split = train_test_split(X, y, test_size=0.1, random_state=SEED, stratify=y if classes else None)
    X_train, X_held_out, y_train, y_held_out = split
    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    model = kind(n_estimators=2000, n_jobs=1, verbose=-1, random_state=SEED)
    stop = lightgbm.early_stopping(50, verbose=False)
    return model.fit(X_train, y_train, eval_set=[(X_held_out, y_held_out)], callbacks=[stop])


def compare(names: list[str], picture: Path | None) -> None:
    lines, ratios, kinds = [], [], []
    for name in names:
        rows = load(name)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(timed(partial(fit_ours, rows))[1])
            theirs.append(timed(partial(fit_lightgbm, rows))[1])
        ratios.append(median(ours) / median(theirs))
        n_classes = len(np.unique(rows[1])) if rows[2] else 0
        kinds.append("regression" if not n_classes else "two classes" if n_classes == 2 else "more classes")
        seconds = (f"{median(ours):.2f}", f"{median(theirs):.2f}", f"{ratios[-1]:.2f}")
        lines.append((name, f"{rows[0].shape[0]:,} x {rows[0].shape[1]}", str(n_classes or ""), *seconds))
        print(*lines[-1], file=sys.stderr, flush=True)
    print(table(("table", "rows x columns", "classes", "ours, s", "LightGBM, s", "ratio"), lines))
    above = sum(ratio > 3 for ratio in ratios)
    print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}; above 3: {above}.")
    print_facts((SEED,), ("lightgbm",))
    if picture is not None:
        draw(names, ratios, kinds, picture)


def draw(names: list[str], ratios: list[float], kinds: list[str], path: Path) -> None:
    """Draw the ratios in their order, coloured by the kind of target."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = np.argsort(ratios)
    figure, axis = plt.subplots(figsize=(7, 9), layout="constrained")
    for kind in ("regression", "two classes", "more classes"):
        places = [place for place, number in enumerate(order) if kinds[number] == kind]
        axis.plot([ratios[order[place]] for place in places], places, "o", label=kind)
    axis.set_yticks(range(len(names)), [names[number] for number in order], fontsize=7)
    axis.set_xscale("log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 3)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_xlabel("CPU seconds of the default fit / those of LightGBM")
    axis.legend()
    figure.savefig(path, dpi=80)


def busy(names: list[str]) -> None:
    """Fit in processes of their own, next to two that only count."""
    others = [multiprocessing.Process(target=_count, daemon=True) for _ in range(2)]
    for process in others:
        process.start()
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    lines = []
    for name in names:
        seconds = {}
        for label, option in (("limited", []), ("not limited", ["--unlimited"])):
            command = [sys.executable, __file__, "--one", name, *option]
            runs = [subprocess.run(command, env=free, capture_output=True, check=True) for _ in range(3)]
            seconds[label] = median(float(run.stdout) for run in runs)
        ratio = seconds["not limited"] / seconds["limited"]
        cells = (name, f"{seconds['limited']:.2f}", f"{seconds['not limited']:.2f}", f"{ratio:.2f}")
        lines.append(cells)
        print(*cells, file=sys.stderr, flush=True)
    for process in others:
        process.terminate()
    print(table(("table", "limited by hand, s", "not limited, s", "ratio"), lines))
    print_facts((SEED,))


def _count() -> None:
    while True:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--unlimited", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        rows = load(options.one)
        print(timed(partial(fit_ours, rows))[1])
        return
    names = options.sets or [*tables(), *SETS]
    if options.busy:
        return busy(names)
    compare(names, None if options.sets else Path(__file__).with_name("fit_time.png"))


if __name__ == "__main__":
    main()
