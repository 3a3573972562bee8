"""How soon is one row predicted, and how many rows a second, beside boosted trees?

Models with default settings of a synthetic regression (products, waves and kinks of a few columns, noise in
the rest). LightGBM, XGBoost and HistGradientBoosting stop when the error on a tenth of the rows has not
improved for 50 trees, at `--trees` at most; the table says how many they kept. One thread each, interleaved
rounds.

    one row      microseconds of wall-clock time, medians of batches of calls: an array of shape
                 (1, columns), a frame of pandas and of polars, and a row for `compiled()`
    categories   the same for one row of a frame of which half the columns are categories, in every dtype
                 that text may have; LightGBM takes those of pandas that are categorical
    many         CPU nanoseconds a row for ROWS rows in one call, as many as keep a round short
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

from timing import interleaved, one_thread

one_thread()

import numpy as np

from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

SEED, TRAINING_ROWS, ROWS = 0, 10_000, 50_000
PATIENCE, LEVELS = 50, 8
Predict = Callable[[Any], Any]


def rows_and_target(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_rows, n_columns))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3] + np.abs(X[:, 4])
    return X, y + 0.3 * rng.standard_normal(n_rows)


def rivals(X: np.ndarray, y: np.ndarray, most_trees: int) -> dict[str, tuple[Predict, int]]:
    """Return how each rival predicts, and its number of trees."""
    import lightgbm
    import xgboost
    from sklearn.ensemble import HistGradientBoostingRegressor

    cut = len(X) // 10
    training = lightgbm.Dataset(X[cut:], y[cut:])
    light = lightgbm.train(
        {"objective": "l2", "num_threads": 1, "verbose": -1, "seed": SEED},
        training,
        most_trees,
        valid_sets=[lightgbm.Dataset(X[:cut], y[:cut], reference=training)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    extreme = xgboost.train(
        {"objective": "reg:squarederror", "nthread": 1, "seed": SEED},
        xgboost.DMatrix(X[cut:], y[cut:]),
        most_trees,
        evals=[(xgboost.DMatrix(X[:cut], y[:cut]), "held_out")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    extreme = extreme[: extreme.best_iteration + 1]
    hist = HistGradientBoostingRegressor(
        max_iter=most_trees,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        validation_fraction=0.1,
        random_state=SEED,
    ).fit(X, y)
    return {
        "LightGBM": (lambda rows: light.predict(rows, num_threads=1), light.best_iteration),
        "XGBoost": (extreme.inplace_predict, extreme.num_boosted_rounds()),
        "HistGradientBoosting": (hist.predict, hist.n_iter_),
    }


def latency(calls: Mapping[str, Callable[[], Any]], batch: int = 100, rounds: int = 9) -> dict[str, float]:
    """Return the median microseconds of a call, in interleaved batches."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(batch):
                call()
            seconds[name].append((time.perf_counter() - began) / batch)
    return {name: 1e6 * median(times) for name, times in seconds.items()}


def compare(n_columns: int, most_trees: int) -> tuple[list[str], list[str]]:
    """Return a line of each table."""
    import pandas
    import polars

    X, y = rows_and_target(TRAINING_ROWS, n_columns)
    names = [f"x{j}" for j in range(n_columns)]
    model = TensorMachineRegressor(alpha="rows", random_state=SEED).fit(X, y)
    named = TensorMachineRegressor(alpha="rows", random_state=SEED).fit(pandas.DataFrame(X, columns=names), y)
    others = rivals(X, y, most_trees)
    row, function = X[:1].copy(), model.compiled()
    in_pandas, in_polars = pandas.DataFrame(row, columns=names), polars.DataFrame(row, schema=names)
    one = latency(
        {
            "compiled": lambda: function(row[0]),
            "array": lambda: model.predict(row),
            "pandas": lambda: named.predict(in_pandas),
            "polars": lambda: named.predict(in_polars),
            **{name: partial(predict, row) for name, (predict, _) in others.items()},
        }
    )
    many = np.random.default_rng(1).standard_normal((ROWS, n_columns))
    calls = {"ours": partial(model.predict, many)}
    calls |= {name: partial(predict, many) for name, (predict, _) in others.items()}
    seconds = interleaved(calls, rounds=3, threaded=[*others])
    fastest = min(seconds[name] for name in others)
    return (
        [str(n_columns), *(f"{value:.1f}" for value in one.values())],
        [
            str(n_columns),
            f"{1e9 * seconds['ours'] / ROWS:.0f}",
            *(f"{1e9 * seconds[name] / ROWS:.0f} ({trees} trees)" for name, (_, trees) in others.items()),
            f"{fastest / seconds['ours']:.1f}",
        ],
    )


def mixed_frames(n_columns: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return frames of which half the columns are categories, by the type of these, and a target."""
    import pandas
    import polars

    X, y = rows_and_target(TRAINING_ROWS, n_columns)
    numbers = pandas.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    names = list(numbers)[1::2]
    levels = {name: np.digitize(numbers[name], np.linspace(-2, 2, LEVELS - 1)) for name in names}
    text = numbers.assign(**{name: [f"level {code}" for code in codes] for name, codes in levels.items()})
    in_polars = polars.from_pandas(text)
    frames = {dtype: text.astype(dict.fromkeys(names, dtype)) for dtype in ("object", "category", "str")}
    frames |= {
        "polars String": in_polars,
        "polars Categorical": in_polars.with_columns(polars.col(names).cast(polars.Categorical)),
        "polars Enum": in_polars.with_columns(
            polars.col(names).cast(polars.Enum([f"level {code}" for code in range(LEVELS)]))
        ),
    }
    return frames, y


def compare_categories(n_columns: int, most_trees: int) -> list[list[str]]:
    """Return the lines of the table of one row with categories: predict, and predict_proba of two classes."""
    import lightgbm

    frames, y = mixed_frames(n_columns)
    settings = {"n_estimators": most_trees, "n_jobs": 1, "verbose": -1, "random_state": SEED}
    regressors = {
        "ours": TensorMachineRegressor(alpha="rows", random_state=SEED).fit(frames["category"], y),
        "LightGBM": lightgbm.LGBMRegressor(**settings).fit(frames["category"], y),
    }
    classifiers = {
        "ours": TensorMachineClassifier(alpha="rows", random_state=SEED).fit(frames["category"], y > 0),
        "LightGBM": lightgbm.LGBMClassifier(**settings).fit(frames["category"], y > 0),
    }
    rows = {name: frame[:1] for name, frame in frames.items()}
    methods = {"predict": regressors, "predict_proba": classifiers}
    lines = []
    for method, models in methods.items():
        calls = {name: partial(getattr(models["ours"], method), row) for name, row in rows.items()}
        calls["LightGBM"] = partial(getattr(models["LightGBM"], method), rows["category"])
        lines.append([str(n_columns), method, *(f"{value:.1f}" for value in latency(calls).values())])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", nargs="*", type=int, default=[10, 50, 100, 400])
    parser.add_argument("--mixed-columns", nargs="*", type=int, default=[20], help="half of them categories")
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [compare(n_columns, options.trees) for n_columns in options.columns]
    rival_names = ("LightGBM", "XGBoost", "HistGradientBoosting")
    print(
        table(("columns", "compiled", "array", "pandas", "polars", *rival_names), [one for one, _ in lines])
    )
    print()
    mixed = [
        line for n_columns in options.mixed_columns for line in compare_categories(n_columns, options.trees)
    ]
    dtypes = ("object", "category", "str", "polars String", "polars Categorical", "polars Enum")
    print(table(("columns", "method", *dtypes, "LightGBM, category"), mixed))
    print()
    print(table(("columns", "ours", *rival_names, "fastest rival / ours"), [many for _, many in lines]))
    print_facts((SEED,), ("lightgbm", "xgboost", "pandas", "polars"))


if __name__ == "__main__":
    main()
