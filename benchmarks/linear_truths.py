"""Is the default no worse than a linear model where the truth is linear?

    python benchmarks/linear_truths.py

Numbers and classes are drawn from linear models of normal columns, or of columns with heavy tails (Student's
t with 3 degrees of freedom). The ratio is that of the root mean squared error or of the log-loss on 5,000
other rows to that of ridge or logistic regression with scikit-learn's default penalty on standardised
columns, for the default settings and for trend=False: the geometric mean of three seeds, and the worst.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from measures import loss_of
from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

TEST_ROWS, SEEDS = 5000, (0, 1, 2)
HEAD = ("target", "rows x columns", "columns", "default", "worst", "trend=False", "worst")
TARGETS = ("noise 0.01", "noise 0.3", "noise 1", "2 classes", "5 classes")


def draw(
    target: str, n_rows: int, n_columns: int, heavy: bool, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return X, y and the number of classes, 0 for numbers."""
    random = np.random.default_rng(seed)
    shape = n_rows + TEST_ROWS, n_columns
    X = random.standard_t(3, size=shape) if heavy else random.standard_normal(shape)
    if target.startswith("noise"):
        z = X @ random.normal(size=n_columns) / np.sqrt(n_columns)
        return X, z + float(target.split()[1]) * random.normal(size=len(X)), 0
    n_classes = int(target.split()[0])
    z = 3 * X @ random.normal(size=(n_columns, n_classes)) / np.sqrt(n_columns)
    return X, (z + random.gumbel(size=z.shape)).argmax(axis=1), n_classes


def loss(model: Any, X: np.ndarray, y: np.ndarray, n_rows: int, n_classes: int) -> float:
    model.fit(X[:n_rows], y[:n_rows])
    if n_classes:
        return loss_of(model.predict_proba(X[n_rows:]), y[n_rows:], n_classes)
    return float(np.sqrt(loss_of(model.predict(X[n_rows:]), y[n_rows:], 0)))


def ratios(target: str, n_rows: int, n_columns: int, heavy: bool, seed: int) -> list[float]:
    """Return the losses of the default settings and without a trend over that of the linear model."""
    X, y, n_classes = draw(target, n_rows, n_columns, heavy, seed)
    kind = TensorMachineClassifier if n_classes else TensorMachineRegressor
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500) if n_classes else Ridge())
    rows = X, y, n_rows, n_classes
    theirs = loss(linear, *rows)
    return [loss(kind(trend=trend, random_state=seed), *rows) / theirs for trend in ("auto", False)]


def main() -> None:
    lines = []
    for target, n_rows, n_columns, heavy in product(TARGETS, (500, 5000), (10, 50), (False, True)):
        found = np.array([ratios(target, n_rows, n_columns, heavy, seed) for seed in SEEDS])
        means, worst = np.exp(np.log(found).mean(axis=0)), found.max(axis=0)
        shown = [f"{value:.2f}" for pair in zip(means, worst, strict=True) for value in pair]
        lines.append([target, f"{n_rows:,} x {n_columns}", "heavy" if heavy else "normal", *shown])
        print(*lines[-1], flush=True)
    print(table(HEAD, lines))
    print_facts(SEEDS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
