"""A comparison of Tensor Machines with methods of scikit-learn, on data that need no download.

The penalty or learning rate of every method is chosen by 3-fold cross-validation on some of the training
rows; the method is then fitted to all of them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from .._data.atomic_file import complete_or_not
from .._data.terminal import Terminal
from ..estimators import TensorMachineClassifier, TensorMachineRegressor

METHODS = ["Tensor Machine", "linear", "PolynomialFeatures", "kernel ridge", "HistGradientBoosting"]
MACHINE, LINEAR, POLYNOMIAL, KERNEL, TREES = METHODS
MOST_MONOMIALS = 2500
MOST_KERNEL_ROWS = 3000
ROWS_TO_CHOOSE = 1200


@dataclass(frozen=True)
class Task:
    name: str
    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    degree: int
    estimator: Any
    alphas: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Result:
    task: str
    method: str
    error: float
    seconds: float
    parameters: int
    microseconds: float  # per predicted row


def sparse_target(rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of 20 columns with the target x1^6 - 10 x2 x3 x20."""
    X = np.random.default_rng(0).standard_normal((rows, 20))
    return X, X[:, 0] ** 6 - 10 * X[:, 1] * X[:, 2] * X[:, 19]


def dense_target(rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of 20 columns with a product of six linear forms as the target."""
    rng = np.random.default_rng(1)
    X, forms = rng.standard_normal((rows, 20)), rng.standard_normal((20, 6))
    return X, np.prod(X @ forms, axis=1)


def tasks() -> list[Task]:
    polynomial = TensorMachineRegressor(
        degree=6, rank=3, basis=None, solver="lbfgs", max_iter=2000, random_state=0
    )
    small: dict[str, Any] = {"degree": 2, "shared_factors": False, "basis": "standard", "solver": "lbfgs"}
    small |= {"random_state": 0}
    return [
        Task("sparse degree 6", sparse_target, 6, polynomial, (1e-6,)),
        Task("dense degree 6", dense_target, 6, polynomial, (1e-6,)),
        Task("diabetes", lambda: load_diabetes(return_X_y=True), 2, TensorMachineRegressor(rank=2, **small)),
        Task(
            "breast cancer",
            lambda: load_breast_cancer(return_X_y=True),
            2,
            TensorMachineClassifier(rank=2, **small),
        ),
        Task("digits", lambda: load_digits(return_X_y=True), 2, TensorMachineClassifier(rank=3, **small)),
    ]


def contestants(task: Task, columns: int) -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Return every method with the grid to choose from."""
    classify = is_classifier(task.estimator)
    degree = max(p for p in range(1, task.degree + 1) if comb(columns + p, p) <= MOST_MONOMIALS)
    linear: Any = LogisticRegression(max_iter=2000) if classify else Ridge()
    penalties: dict[str, list[Any]] = {"C": [0.01, 0.1, 1, 10]} if classify else {"alpha": [0.1, 1, 10, 100]}
    name = type(linear).__name__.lower()
    polynomial = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(degree),
        StandardScaler(),
        RidgeClassifier(solver="cholesky") if classify else Ridge(),
    )
    ridge_name = "ridgeclassifier" if classify else "ridge"
    trees: Any = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return {
        MACHINE: (task.estimator, {"alpha": list(task.alphas)}),
        LINEAR: (
            make_pipeline(StandardScaler(), linear),
            {f"{name}__{key}": values for key, values in penalties.items()},
        ),
        POLYNOMIAL: (polynomial, {f"{ridge_name}__alpha": [1, 1e2, 1e4, 1e6]}),
        KERNEL: (_KernelRidge(classify, task.degree), {"alpha": [1e-4, 1e-2, 1, 1e2, 1e4]}),
        TREES: (trees(early_stopping=True, max_iter=300, random_state=0), {"learning_rate": [0.05, 0.15]}),
    }


class _KernelRidge(KernelRidge):
    """Kernel ridge on standardised columns and at most MOST_KERNEL_ROWS rows; classes become -1 and 1."""

    def __init__(self, classify: bool = False, degree: int = 3, alpha: float = 1.0):
        super().__init__(kernel="poly", degree=degree, coef0=1, alpha=alpha)
        self.classify = classify

    def fit(self, X: np.ndarray, y: np.ndarray) -> _KernelRidge:
        rows = np.random.default_rng(0).permutation(len(X))[:MOST_KERNEL_ROWS]
        self.scaler_ = StandardScaler().fit(X[rows])
        self.center_ = 0.0 if self.classify else y[rows].mean()
        if self.classify:
            self.classes_, numbers = np.unique(y, return_inverse=True)
            y = np.where(numbers[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        return super().fit(self.scaler_.transform(X[rows]), y[rows] - self.center_)

    def predict(self, X: np.ndarray) -> np.ndarray:
        outputs = super().predict(self.scaler_.transform(X)) + self.center_
        return self.classes_[outputs.argmax(axis=1)] if self.classify else outputs

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return -error(self.predict(X), y, self.classify)


def error(predicted: np.ndarray, y: np.ndarray, classify: bool) -> float:
    """Return the misclassified share, or the RMSE over the standard deviation of the target."""
    return float(np.mean(predicted != y) if classify else np.sqrt(np.mean((predicted - y) ** 2)) / y.std())


def count_parameters(model: Any) -> int:
    """Count the numbers that a fitted model needs to predict."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "n_parameters_"):
        return int(last.n_parameters_)
    if hasattr(last, "X_fit_"):
        return int(last.X_fit_.size + last.dual_coef_.size)
    if hasattr(last, "_predictors"):  # a feature and a threshold per split, a value per leaf
        nodes = [tree.nodes for iteration in last._predictors for tree in iteration]
        return int(sum(np.where(tree["is_leaf"], 1, 2).sum() for tree in nodes))
    return int(np.size(last.coef_) + np.size(last.intercept_))


def run(task: Task, method: str, X: np.ndarray, y: np.ndarray) -> Result:
    """Tune a method on some training rows, fit it to all of them, and test it."""
    classify = is_classifier(task.estimator)
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=0, stratify=y if classify else None
    )
    model, grid = contestants(task, X.shape[1])[method]
    search = GridSearchCV(model, grid, cv=3, refit=False)
    search.fit(train[:ROWS_TO_CHOOSE], y_train[:ROWS_TO_CHOOSE])
    best = clone(model).set_params(**search.best_params_)
    began = time.perf_counter()
    best.fit(train, y_train)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    predicted = best.predict(test)
    microseconds = (time.perf_counter() - began) / len(test) * 1e6
    test_error = error(predicted, y_test, classify)
    return Result(task.name, method, test_error, seconds, count_parameters(best), microseconds)


def progress(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        bar = "#" * (30 * done // total)
        Terminal(sys.stderr).show(f"[{bar:.<30}] {done}/{total} {what}", kept=done == total)
    elif what:
        print(f"{done}/{total} {what}", file=sys.stderr, flush=True)


def print_table(results: list[Result]) -> None:
    layout = "{:<16} {:<21} {:>10} {:>9} {:>10} {:>9}"
    print("\n" + layout.format("data", "method", "test error", "s to fit", "parameters", "us a row"))
    for task in dict.fromkeys(result.task for result in results):
        own = [result for result in results if result.task == task]
        best = min(result.error for result in own)
        for r in own:
            mark = "*" if r.error == best else " "
            error_and_seconds = f"{r.error:.4f}{mark}", f"{r.seconds:.3f}"
            sizes = f"{r.parameters:,}", f"{r.microseconds:.2f}"
            print(layout.format(r.task, r.method, *error_and_seconds, *sizes))
    print(
        "\nTest error: RMSE in units of the target's standard deviation, or the misclassified share; "
        "* marks the lowest."
    )


def draw(results: list[Result], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(result.task for result in results))
    colours = dict(zip(METHODS, ["#d62728", "#7f7f7f", "#1f77b4", "#9467bd", "#2ca02c"], strict=True))
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.1 * len(names), 3.6), layout="constrained", squeeze=False
    )
    marks = {
        method: {"marker": "*" if method == MACHINE else "o", "color": colour}
        for method, colour in colours.items()
    }
    for axis, name in zip(axes[0], names, strict=True):
        own = [result for result in results if result.task == name]
        for r in own:
            size = 120 if r.method == MACHINE else 60
            axis.scatter(r.parameters, r.error, s=size, zorder=3, **marks[r.method])
        errors = [r.error for r in own]
        axis.set(xscale="log", title=name, xlabel="parameters")
        if max(errors) > 10 * min(errors):
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.1 * max(errors))
        axis.grid(which="major", alpha=0.3)
    axes[0, 0].set_ylabel("test error")
    handles = [
        plt.Line2D([], [], linestyle="", markersize=11 if m == MACHINE else 7, label=m, **marks[m])
        for m in METHODS
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(METHODS), frameon=False)
    figure.suptitle("Smaller is better, on both axes", fontsize=11)
    with complete_or_not(path) as unfinished:
        figure.savefig(unfinished, dpi=130, format=path.suffix[1:] or "png")
    plt.close(figure)


def compare(path: Path) -> None:
    """Fit every method to every task, print a table and draw a figure into ``path``."""
    began = time.perf_counter()
    results: list[Result] = []
    jobs = [(task, method) for task in tasks() for method in METHODS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for number, (task, method) in enumerate(jobs):
            progress(number, len(jobs), f"{task.name}: {method}")
            results.append(run(task, method, *task.load()))
    progress(len(jobs), len(jobs), "")
    print_table(results)
    draw(results, path)
    print(f"{time.perf_counter() - began:.0f} seconds. Figure: {path}")
