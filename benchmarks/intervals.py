"""Do intervals contain as many new targets as they should, and how wide are they beside those of trees?

    TENSORMACHINES_DATA=folder python benchmarks/intervals.py [--rows 10000] [--seeds 0 1 2]

The intervals of TensorMachineRegressor(intervals=True) with its default settings beside two of LightGBM: a
pair of quantile models, stopped early on a tenth of the rows each, and the conformal intervals of MAPIE
(CrossConformalRegressor, method "plus", five folds) around as many trees as a model of the mean had when it
was stopped early on a tenth of the rows. Widths are means over test rows in standard deviations of the test
target. The score counts both: the mean width, plus 20 times the distance of each row outside from its
interval, divided by that of constant intervals between two quantiles of the training targets; less is better.
Needs `pip install tensormachines[accuracy] mapie`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from timing import one_thread

one_thread()

import numpy as np

import tables
from default_rivals import MOST_TREES, PATIENCE, Split, split, with_categories
from records import head, print_facts, row
from tables import Table
from tensormachines import TensorMachineRegressor

TABLES = (
    *("abalone", "beijing_pm25", "brazilian_rent", "concrete", "cps_wages"),
    *("deliveries", "gas_turbine_nox", "hotel_rates", "loan_rates", "metro_traffic"),
)
COVERAGE, MOST_TEST_ROWS = 0.9, 10_000


def ours(table: Table, seed: int) -> np.ndarray:
    model = TensorMachineRegressor(intervals=True, random_state=seed).fit(table.X, table.y)
    return model.predict_interval(table.X_test, COVERAGE)


def trees(rows: Split, seed: int, **settings: Any) -> Any:
    """Return LightGBM, stopped early."""
    import lightgbm

    model = lightgbm.LGBMRegressor(
        n_estimators=MOST_TREES, n_jobs=1, verbose=-1, random_state=seed, **settings
    )
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    return model.fit(rows.X, rows.y, eval_set=[(rows.X_stop, rows.y_stop)], callbacks=[stop])


def quantiles(table: Table, seed: int) -> np.ndarray:
    X, convert = with_categories(table)
    rows, X_test = split(table, X, seed), convert(table.X_test)
    levels = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    bounds = [trees(rows, seed, objective="quantile", alpha=level).predict(X_test) for level in levels]
    return np.sort(np.column_stack(bounds), axis=1)


def mapie(table: Table, seed: int) -> np.ndarray:
    import lightgbm
    from mapie.regression import CrossConformalRegressor

    X, convert = with_categories(table)
    number = trees(split(table, X, seed), seed).best_iteration_
    alike = lightgbm.LGBMRegressor(n_estimators=number, n_jobs=1, verbose=-1, random_state=seed)
    conformal = CrossConformalRegressor(alike, confidence_level=COVERAGE, method="plus", cv=5)
    _, bounds = conformal.fit_conformalize(X, table.y).predict_interval(convert(table.X_test))
    return bounds[:, :, 0]


METHODS: dict[str, Callable[[Table, int], np.ndarray]] = {
    "Tensor Machine": ours,
    "LightGBM quantiles": quantiles,
    "MAPIE": mapie,
}


def score(bounds: np.ndarray, y: np.ndarray) -> float:
    low, high = bounds.T
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return float(np.mean(high - low + 2 / (1 - COVERAGE) * outside))


def measure(name: str, seed: int, n_rows: int) -> dict[str, np.ndarray]:
    """Return coverage, width and score of each method."""
    table = tables.load(name, seed, n_rows, MOST_TEST_ROWS)
    y = table.y_test
    levels = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    constant = score(np.tile(np.quantile(table.y, levels), (len(y), 1)), y)
    found = {}
    for method, predict in METHODS.items():
        bounds = predict(table, seed)
        inside = np.mean((bounds[:, 0] <= y) & (y <= bounds[:, 1]))
        width = np.mean(bounds[:, 1] - bounds[:, 0]) / y.std()
        found[method] = np.array([inside, width, score(bounds, y) / constant])
    return found


def cells(found: Iterable[np.ndarray]) -> list[str]:
    return [cell for inside, *others in found for cell in (f"{inside:.1%}", *(f"{x:.3f}" for x in others))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000, help="most training rows")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(head(["table", *(cell for method in METHODS for cell in (f"{method}: inside", "width", "score"))]))
    all_of_it = []
    for name in options.tables:
        found = [measure(name, seed, options.rows) for seed in options.seeds]
        means = {method: np.mean([each[method] for each in found], axis=0) for method in METHODS}
        all_of_it.append(list(means.values()))
        print(row([name, *cells(means.values())]), flush=True)
    inside, width, scores = np.moveaxis(np.array(all_of_it), 2, 0)
    overall = [inside.mean(axis=0), *(np.exp(np.log(each).mean(axis=0)) for each in (width, scores))]
    print(row(["mean", *cells(np.array(overall).T)]))
    print_facts(options.seeds)


if __name__ == "__main__":
    main()
