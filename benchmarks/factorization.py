"""How accurate are factorization machines on MovieLens-100k, and how soon, against the packages that install?

    TENSORMACHINES_DATA=folder python benchmarks/factorization.py [--repeats 5] [--quick]

Rivals that are not installed are left out: myFM (pip install myfm "setuptools<81") has a Gibbs sampler and a
variational method; xLearn (pip install xlearn, which builds it) has AdaGrad. Ranks, penalties and rates are
chosen on a tenth of the training rows; test rows are only looked at in the end. One thread each, CPU seconds
of the fit alone, repeats interleaved, medians. xLearn can only fit to a text file: reading it is in its
time."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import sets
from measures import loss_of
from records import head, print_facts, row
from sets import Sample
from tensormachines.peers import FactorizationMachineRegressor

RANKS, ALPHAS, SEEDS = (2, 4, 8, 16), (5e-5, 8e-5, 1.2e-4, 1.8e-4), (0, 1, 2)
ITERATIONS = {
    "tensormachines": (6, 8, 10, 12, 14, 16, 20, 24, 32, 48),
    "variational": (4, 6, 7, 8, 9, 10, 12, 14, 20),
    "gibbs": (20, 40, 60, 80, 120),
    "xLearn": (2, 3, 4, 5, 6, 8, 12, 20),
}
ERRORS = (0.930, 0.923, 0.920, 0.918)

Matrix = Any  # a CSR matrix
Fit = Callable[[Sample, int, int], Any]  # rows, iterations, seed


def load(features: bool) -> tuple[Sample, Sample]:
    """Return training and test rows: one column for each user and each item.

    With features, also the genres of the item, and age, sex and occupation of the user."""
    data = sets.arrays(sets.MOVIELENS)
    users, genres = data["user_feats"].astype(np.float32), data["item_genres"].astype(np.float32)
    users[:, 0] /= 100  # age

    def ratings(pairs: np.ndarray, y: np.ndarray) -> Sample:
        parts = [_one_hot(pairs[:, 0], len(users)), _one_hot(pairs[:, 1], len(genres))]
        if features:
            parts += [sparse.csr_array(users)[pairs[:, 0]], sparse.csr_array(genres)[pairs[:, 1]]]
        return Sample(sparse.csr_array(sparse.hstack(parts)), y.astype(np.float64))

    return ratings(data["X_train"], data["y_train"]), ratings(data["X_test"], data["y_test"])


def _one_hot(numbers: np.ndarray, count: int) -> Matrix:
    entries = np.ones(len(numbers), np.float32), (np.arange(len(numbers)), numbers)
    return sparse.csr_array(entries, shape=(len(numbers), count))


def rmse(model: Any, test: Sample) -> float:
    """Root mean squared error in stars, of ratings clipped to 1 to 5."""
    return loss_of(np.clip(model.predict(test.X), 1, 5), test.y, 0) ** 0.5


def ours(rank: int, alpha: float, max_iter: int = 1000, tol: float = 1e-4, seed: int = 0) -> Any:
    return FactorizationMachineRegressor(
        rank=rank, alpha=alpha, solver="lbfgs", max_iter=max_iter, tol=tol, random_state=seed
    )


def hold_out(training: Sample) -> tuple[Sample, Sample]:
    kept, held_out = train_test_split(np.arange(len(training.y)), test_size=0.1, random_state=0)
    return training.rows(kept), training.rows(held_out)


def choose(training: Sample) -> tuple[int, float]:
    """Return rank and penalty with the lowest error on a tenth of the training rows."""
    kept, held_out = hold_out(training)
    errors = {
        (rank, alpha): rmse(ours(rank, alpha).fit(kept.X, kept.y), held_out)
        for rank, alpha in product(RANKS, ALPHAS)
    }
    return min(errors, key=lambda settings: errors[settings])


def accuracy() -> None:
    print("## Error by validation\n")
    print(head(["columns", "rank", "alpha", "test RMSE, mean (range) of 3 seeds", "iterations", "CPU s"]))
    for name, features in (("user, item", False), ("with genres and user features", True)):
        training, test = load(features)
        rank, alpha = choose(training)
        fits = [timed(partial(ours(rank, alpha, seed=seed).fit, training.X, training.y)) for seed in SEEDS]
        errors, iterations = [rmse(model, test) for model, _ in fits], [model.n_iter_ for model, _ in fits]
        cells = [f"{np.mean(errors):.4f} ({min(errors):.4f}-{max(errors):.4f})"]
        cells += [f"{min(iterations)}-{max(iterations)}", f"{np.median([s for _, s in fits]):.2f}"]
        print(row([name, str(rank), f"{alpha:g}", *cells]), flush=True)


class XLearn:
    """xLearn works on files: one of the rows for each fit, one of the model, one of predictions."""

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

    def fit(self, rows: Sample, epochs: int) -> XLearn:
        model = self._model()
        model.setTrain(_text_file(rows))
        model.fit({**self.settings, "epoch": epochs}, str(self.folder / "model"))
        return self

    def predict(self, X: Matrix) -> np.ndarray:
        model = self._model()
        model.setTest(_text_file(Sample(X, np.zeros(X.shape[0]))))
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


def _text_file(rows: Sample) -> str:
    if id(rows.X) not in _files:
        path = Path(mkdtemp()) / "rows.txt"
        X = rows.X
        entries = (
            " ".join(f"{j}:{x:g}" for j, x in zip(X.indices[a:b], X.data[a:b], strict=True))
            for a, b in pairwise(X.indptr)
        )
        path.write_text("\n".join(f"{y:g} {text}" for y, text in zip(rows.y, entries, strict=True)) + "\n")
        _files[id(X)] = X, str(path)
    return _files[id(rows.X)][1]


def choose_xlearn(training: Sample) -> XLearn:
    kept, held_out = hold_out(training)
    candidates = [XLearn(*settings) for settings in product((4, 8, 16), (0.005, 0.01, 0.02), (0.2, 0.5))]
    return min(
        candidates, key=lambda model: min(rmse(model.fit(kept, epochs), held_out) for epochs in (5, 12))
    )


def methods(training: Sample) -> dict[str, Fit]:
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


def in_float64(sample: Sample) -> Sample:
    """myFM wants matrices of float64."""
    return Sample(sparse.csr_matrix(sample.X.astype(np.float64)), sample.y)


def race(repeats: int) -> None:
    plain = load(False)
    wide = in_float64(plain[0]), in_float64(plain[1])
    runs: dict[str, dict[int, list[tuple[float, float]]]] = {}
    rivals = methods(plain[0])
    for repeat in range(repeats):
        for name, fit in rivals.items():
            training, test = wide if name.startswith("myFM") else plain
            for n in next(counts for key, counts in ITERATIONS.items() if key in name):
                model, seconds = timed(partial(fit, training, n, repeat))
                runs.setdefault(name, {}).setdefault(n, []).append((seconds, rmse(model, test)))
    print("\n## Seconds to an error\n")
    print("CPU seconds of the shortest fit whose median error over the repeats is at most this.\n")
    print(head(["", *(f"{error:.3f}" for error in ERRORS), "lowest error (s)"]))
    for name, by_count in runs.items():
        medians = [np.median(results, axis=0) for results in by_count.values()]
        cells = []
        for error in ERRORS:
            least = min((seconds for seconds, reached in medians if reached <= error), default=np.inf)
            cells.append(f"{least:.3f}" if np.isfinite(least) else "-")
        lowest = min(medians, key=lambda point: point[1])
        print(row([name, *cells, f"{lowest[1]:.4f} ({lowest[0]:.2f})"]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="the errors only, without the race")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    accuracy()
    if not arguments.quick:
        race(arguments.repeats)
    print_facts(SEEDS, ("myfm", "xlearn"))
