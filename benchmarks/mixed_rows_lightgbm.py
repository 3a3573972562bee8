"""LightGBM on the table of mixed_rows.py, from files larger than memory; mixed_rows_on_disk.py calls this.

    python benchmarks/mixed_rows_lightgbm.py fit 'FOLDER/*.parquet' MODEL --seconds 600 [--most-levels 1000]
    python benchmarks/mixed_rows_lightgbm.py test FILE MODEL

Rows are read through `lightgbm.Sequence`, a file at a time: LightGBM draws its sample for the bins, then
keeps one byte for a number. Text becomes categories, by one pass over the files before, or numbers if it has
more than `--most-levels`, as LightGBM's documentation advises for very many. Settings are the defaults; trees
are added until the time is over, reading included, or 2,000 of them are there."""

from __future__ import annotations

import argparse
import json
import time
from glob import glob
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyarrow import parquet

from mixed_rows import TARGET, names

MOST_TREES = 2000
TEXT = [name for name in names() if name.startswith("text")]


def matrix(path: str, levels: dict[str, pa.Array]) -> np.ndarray:
    """Return the columns of a file as floats: numbers, and numbers of levels; NaN for gaps."""
    table = parquet.read_table(path, columns=names())
    rows = np.empty((table.num_rows, len(names())))
    for j, name in enumerate(names()):
        column = table[name]
        if name in levels:
            column = pyarrow.compute.index_in(column, levels[name])
        rows[:, j] = column.to_numpy()
    return rows


def targets(paths: list[str]) -> np.ndarray:
    return np.concatenate([parquet.read_table(path, columns=[TARGET])[TARGET].to_numpy() for path in paths])


def find_levels(paths: list[str]) -> dict[str, pa.Array]:
    """Return the levels of the columns of text."""
    found: dict[str, list[Any]] = {name: [] for name in TEXT}
    for path in paths:
        table = parquet.read_table(path, columns=TEXT)
        for name in TEXT:
            both = pa.chunked_array([*found[name], table[name].unique().drop_null()])
            found[name] = [both.unique()]
    return {name: levels[0] for name, levels in found.items()}


class Rows(lightgbm.Sequence):
    """The rows of a file, which is read when one of them is asked for; one file is kept."""

    batch_size = 50_000
    kept: tuple[str, np.ndarray] | None = None

    def __init__(self, path: str, levels: dict[str, pa.Array]):
        self.path, self.levels = path, levels
        self.n_rows = parquet.read_metadata(path).num_rows

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: Any) -> np.ndarray:
        if Rows.kept is None or Rows.kept[0] != self.path:
            Rows.kept = self.path, matrix(self.path, self.levels)
        return Rows.kept[1][rows]


def fit(paths: list[str], model: str, seconds: float, threads: int, most_levels: int) -> None:
    began = time.perf_counter()
    levels = find_levels(paths)
    settings = {"objective": "regression", "num_threads": threads, "verbosity": -1, "force_col_wise": True}
    rows = lightgbm.Dataset(
        [Rows(path, levels) for path in paths],
        targets(paths),
        feature_name=names(),
        categorical_feature=[name for name in TEXT if len(levels[name]) <= most_levels],
        params=settings,
    ).construct()
    Rows.kept = None

    def stop_in_time(environment: Any) -> None:
        if time.perf_counter() - began > seconds:
            raise lightgbm.callback.EarlyStopException(environment.iteration, [])

    booster = lightgbm.train(settings, rows, MOST_TREES, callbacks=[stop_in_time])
    booster.save_model(model)
    Path(f"{model}.levels").write_text(json.dumps({name: each.to_pylist() for name, each in levels.items()}))
    print(f"{booster.num_trees()} trees, {time.perf_counter() - began:.0f} s")


def fitted(model: str) -> tuple[lightgbm.Booster, dict[str, pa.Array]]:
    levels = json.loads(Path(f"{model}.levels").read_text())
    return lightgbm.Booster(model_file=model), {name: pa.array(each) for name, each in levels.items()}


def test(paths: list[str], model: str) -> None:
    booster, levels = fitted(model)
    errors = [booster.predict(matrix(path, levels)) - targets([path]) for path in paths]
    print(json.dumps({"rmse": float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step", choices=("fit", "test"))
    parser.add_argument("files")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--most-levels", type=int, default=10**9, help="of a category")
    arguments = parser.parse_args()
    paths = sorted(glob(arguments.files))
    if arguments.step == "fit":
        fit(paths, arguments.model, arguments.seconds, arguments.threads, arguments.most_levels)
    else:
        test(paths, arguments.model)


if __name__ == "__main__":
    main()
