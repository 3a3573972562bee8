"""Are the default alpha and init_scale near the best of a grid?

    TENSORMACHINES_DATA=folder python benchmarks/defaults.py alpha|init_scale [--sets california ...]

One parameter is varied, the others keep their defaults (splines, Adam, 30 epochs); at most 10,000 training
rows of each set, three seeds. A cell is the mean test error, the last column the standard deviation over
seeds at the default. The best of a grid is chosen by test error, so it is flattered a little."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import sets
from measures import error
from records import head, print_facts, row
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

# fmt: off
SETS = (
    "california", "house_8L", "kin40k", "protein", "census_house_16H", "year_msd_subset", "buzz_sample",
    "slice_first_rows", "spambase", "adult", "cod_rna", "forest",
)
# fmt: on
MOST_ROWS, SEEDS = 10_000, (0, 1, 2)
GRIDS: dict[str, tuple[Any, ...]] = {
    "alpha": ("auto", "rows", 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3),
    "init_scale": ("auto", 0.01, 0.03, 0.1, 0.3, 1.0),
}


def errors(name: str, parameter: str) -> np.ndarray:
    """Return the test errors, (values of the parameter, seeds)."""
    data = sets.load(name)
    machine: Any = TensorMachineClassifier if data.n_classes else TensorMachineRegressor
    train = data.train.first(MOST_ROWS)
    return np.array(
        [
            [
                error(machine(**{parameter: value}, random_state=seed).fit(train.X, train.y), data.test)
                for seed in SEEDS
            ]
            for value in GRIDS[parameter]
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parameter", choices=GRIDS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(head(["set", *map(str, GRIDS[options.parameter]), "auto / best", "spread of auto"]))
    ratios = []
    for name in options.sets:
        found = errors(name, options.parameter)
        means = found.mean(axis=1)
        ratios.append(means / means.min())
        cells = [f"{value:.4f}" for value in means]
        print(row([name, *cells, f"{ratios[-1][0]:.3f}", f"{found[0].std(ddof=1):.4f}"]), flush=True)
    means = np.exp(np.mean(np.log(ratios), axis=0))
    print(row(["geometric mean / best", *(f"{value:.3f}" for value in means), "", ""]))
    print_facts(SEEDS)


if __name__ == "__main__":
    main()
