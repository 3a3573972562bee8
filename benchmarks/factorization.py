"""Factorization machines on MovieLens-100k: error by validation, and seconds to an error against the FM
packages that install.

    python benchmarks/factorization.py [--repeats 5]

Needs TENSORMACHINES_DATA with movielens100k_user_item.npz. Rivals that are not installed are left out: myFM
(pip install myfm "setuptools<81") has a Gibbs sampler and a variational method; xLearn (pip install xlearn,
which builds it) has AdaGrad. Ranks, penalties and rates are chosen on a tenth of the training rows; test rows
are only looked at in the end. One thread each, CPU seconds of the fit alone, repeats interleaved, medians.
xLearn reads its rows from a text file, which its fit cannot do without: so that is in its time."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from tensormachines.peers import FactorizationMachineRegressor

RANKS, ALPHAS = (2, 4, 8, 16), (5e-5, 8e-5, 1.2e-4, 1.8e-4)
SEEDS = (0, 1, 2)
ITERATIONS = {
    "tensormachines": (6, 8, 10, 12, 14, 16, 20, 24, 32, 48),
    "variational": (4, 6, 7, 8, 9, 10, 12, 14, 20),
    "gibbs": (20, 40, 60, 80, 120),
    "xLearn": (2, 3, 4, 5, 6, 8, 12, 20),
}
ERRORS = (0.930, 0.923, 0.920, 0.918)

Matrix = Any  # a CSR matrix


@dataclass(frozen=True)
class Ratings:
    X: Matrix
    y: np.ndarray

    def rows(self, selected: np.ndarray) -> Ratings:
        return Ratings(self.X[selected], self.y[selected])


def load(features: bool) -> tuple[Ratings, Ratings]:
    """Training and test rows: one column a user and an item; with features the genres of the item, and age,
    sex and trade of the user.
    """
    data = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / "movielens100k_user_item.npz")
    users, genres = data["user_feats"].astype(np.float32), data["item_genres"].astype(np.float32)
    users[:, 0] /= 100  # age

    def ratings(pairs: np.ndarray, y: np.ndarray) -> Ratings:
        parts = [_one_hot(pairs[:, 0], len(users)), _one_hot(pairs[:, 1], len(genres))]
        if features:
            parts += [sparse.csr_array(users)[pairs[:, 0]], sparse.csr_array(genres)[pairs[:, 1]]]
        return Ratings(sparse.csr_array(sparse.hstack(parts)), y.astype(np.float64))

    return ratings(data["X_train"], data["y_train"]), ratings(data["X_test"], data["y_test"])


def _one_hot(numbers: np.ndarray, count: int) -> Matrix:
    return sparse.csr_array(
        (np.ones(len(numbers), np.float32), (np.arange(len(numbers)), numbers)), shape=(len(numbers), count)
    )


def rmse(model: Any, test: Ratings) -> float:
    return float(np.sqrt(np.mean((np.clip(model.predict(test.X), 1, 5) - test.y) ** 2)))


def ours(
    rank: int, alpha: float, max_iter: int = 1000, tol: float = 1e-4, seed: int = 0
) -> FactorizationMachineRegressor:
    return FactorizationMachineRegressor(
        rank=rank, alpha=alpha, max_iter=max_iter, tol=tol, random_state=seed
    )


def halves(training: Ratings) -> tuple[Ratings, Ratings]:
    kept, held_out = train_test_split(np.arange(len(training.y)), test_size=0.1, random_state=0)
    return training.rows(kept), training.rows(held_out)


def choose(training: Ratings) -> tuple[int, float]:
    """Rank and penalty with the lowest error on a tenth of the training rows."""
    kept, held_out = halves(training)
    errors = {
        (rank, alpha): rmse(ours(rank, alpha).fit(kept.X, kept.y), held_out)
        for rank, alpha in product(RANKS, ALPHAS)
    }
    return min(errors, key=lambda settings: errors[settings])


def accuracy() -> None:
    print(
        "## Error by validation\n\n| columns | rank | alpha | test RMSE, 3 seeds | iterations | CPU s |\n|---|---|---|---|---|---|"
    )
    for name, features in [("user, item", False), ("with genres and user features", True)]:
        training, test = load(features)
        rank, alpha = choose(training)
        errors, seconds, iterations = [], [], []
        for seed in SEEDS:
            model = ours(rank, alpha, seed=seed)
            began = time.process_time()
            model.fit(training.X, training.y)
            seconds.append(time.process_time() - began)
            errors.append(rmse(model, test))
            iterations.append(model.n_iter_)
        print(
            f"| {name} | {rank} | {alpha:g} | {np.mean(errors):.4f} ({min(errors):.4f}-{max(errors):.4f}) "
            f"| {min(iterations)}-{max(iterations)} | {np.median(seconds):.2f} |",
            flush=True,
        )


Fit = Callable[[Ratings, int, int], Any]  # rows, iterations, seed


class XLearn:
    """xLearn between files: one of rows for each fit, written before, one of the model, one of predictions."""

    def __init__(self, rank: int, penalty: float, rate: float):
        self.settings = {
            "task": "reg",
            "k": rank,
            "lambda": penalty,
            "lr": rate,
            "nthread": 1,
            "opt": "adagrad",
        }
        self.folder = Path(mkdtemp())

    def fit(self, rows: Ratings, epochs: int) -> XLearn:
        model = self._model()
        model.setTrain(_text_file(rows))
        model.fit({**self.settings, "epoch": epochs}, str(self.folder / "model"))
        return self

    def predict(self, X: Matrix) -> np.ndarray:
        model = self._model()
        model.setTest(_text_file(Ratings(X, np.zeros(X.shape[0]))))
        model.predict(str(self.folder / "model"), str(self.folder / "predictions"))
        return np.loadtxt(self.folder / "predictions")

    def _model(self) -> Any:
        import xlearn

        os.environ.setdefault("USER", "somebody")  # without which it aborts
        model = xlearn.create_fm()
        model.setQuiet()
        model.disableEarlyStop()
        return model


_files: dict[int, tuple[Matrix, str]] = {}


def _text_file(rows: Ratings) -> str:
    if id(rows.X) not in _files:
        path = Path(mkdtemp()) / "rows.txt"
        X = rows.X
        entries = (
            " ".join(f"{j}:{x:g}" for j, x in zip(X.indices[a:b], X.data[a:b], strict=True))
            for a, b in pairwise(X.indptr)
        )
        path.write_text("\n".join(f"{y:g} {row}" for y, row in zip(rows.y, entries, strict=True)) + "\n")
        _files[id(rows.X)] = rows.X, str(path)
    return _files[id(rows.X)][1]


def choose_xlearn(training: Ratings) -> XLearn:
    kept, held_out = halves(training)
    candidates = [XLearn(*settings) for settings in product((4, 8, 16), (0.005, 0.01, 0.02), (0.2, 0.5))]
    return min(
        candidates, key=lambda model: min(rmse(model.fit(kept, epochs), held_out) for epochs in (5, 12))
    )


def methods(training: Ratings) -> dict[str, Fit]:
    rank, alpha = choose(training)
    found: dict[str, Fit] = {
        f"tensormachines, rank {rank}": lambda rows, n, seed: ours(rank, alpha, n, 0.0, seed).fit(
            rows.X, rows.y
        )
    }
    if find_spec("xlearn"):
        chosen = choose_xlearn(training)
        found[f"xLearn, {chosen.settings}"] = lambda rows, n, seed: chosen.fit(rows, n)
    else:
        print("xLearn is not installed: left out.\n")
    if not find_spec("myfm"):
        print("myFM is not installed: left out.\n")
        return found
    import myfm

    def rival(kind: Any, rank: int) -> Fit:
        return lambda rows, n, seed: kind(rank=rank, random_seed=seed).fit(rows.X, rows.y, n_iter=n)

    for r in (4, 8):
        found[f"myFM variational, rank {r}"] = rival(myfm.VariationalFMRegressor, r)
        found[f"myFM gibbs, rank {r}"] = rival(myfm.MyFMRegressor, r)
    return found


def race(repeats: int) -> None:
    training, test = load(False)
    rivals = methods(training)
    wide = {True: Ratings(sparse.csr_matrix(training.X.astype(np.float64)), training.y), False: training}
    wide_test = Ratings(sparse.csr_matrix(test.X.astype(np.float64)), test.y)
    runs: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for repeat in range(repeats):
        for name, fit in rivals.items():
            theirs = name.startswith("myFM")  # which wants matrices of float64
            for n in next(counts for key, counts in ITERATIONS.items() if key in name):
                began = time.process_time()
                model = fit(wide[theirs], n, repeat)
                seconds = time.process_time() - began
                runs.setdefault(name, {}).setdefault(n, []).append(
                    (seconds, rmse(model, wide_test if theirs else test))
                )
    print(
        "\n## Seconds to an error\n\nCPU seconds of the shortest fit whose median error over the repeats is at most this.\n"
    )
    print(
        "| | "
        + " | ".join(f"{error:.3f}" for error in ERRORS)
        + " | lowest error (s) |\n|---|"
        + "---|" * (len(ERRORS) + 1)
    )
    for name, by_count in runs.items():
        medians = [tuple(np.median(results, axis=0)) for results in by_count.values()]
        cells = [
            min((seconds for seconds, reached in medians if reached <= error), default=np.inf)
            for error in ERRORS
        ]
        lowest = min(medians, key=lambda point: point[1])
        row = " | ".join(f"{cell:.3f}" if np.isfinite(cell) else "-" for cell in cells)
        print(f"| {name} | {row} | {lowest[1]:.4f} ({lowest[0]:.2f}) |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    accuracy()
    race(arguments.repeats)
