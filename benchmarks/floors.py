"""Does the method reach the errors asked of it, at the paper's degrees and ranks?

    TENSORMACHINES_DATA=folder python benchmarks/floors.py

L-BFGS, float32, tol=1e-4. Adult and Forest (the paper's 50,000 rows): at most 1,000 iterations, alpha by
three-fold cross-validation, one start. Generated targets of degree 6: at most 2,000 iterations, three starts
for each alpha. tests/benchmarks/test_accuracy.py guards the same floors."""

from __future__ import annotations

import argparse
import warnings

from timing import one_thread

one_thread()

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import sets
from measures import error
from records import head, print_facts, row
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.experiments.demo import dense_target, sparse_target

CASES = (("adult", 3, 4, {"sphere": 0.151}), ("forest", 4, 5, {"sphere": 0.161, "standard": 0.170}))
ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3)
TARGETS, SEEDS, ROWS, TEST_ROWS = (sparse_target, dense_target), (0, 1, 2), 20_000, 5_000


def real_data() -> None:
    print(head(["set", "basis", "alpha", "test error", "asked"]))
    for name, degree, rank, asked in CASES:
        data = sets.load(name, small=name == "forest")
        for basis in ("sphere", "standard"):
            model = TensorMachineClassifier(
                degree,
                rank,
                shared_factors=False,
                basis=basis,
                solver="lbfgs",
                max_iter=1000,
                tol=1e-4,
                random_state=0,
            )
            search = GridSearchCV(model, {"alpha": ALPHAS}, cv=3).fit(data.train.X, data.train.y)
            cells = [f"{search.best_params_['alpha']:g}", f"{error(search, data.test):.4f}"]
            print(row([name, basis, *cells, str(asked.get(basis, ""))]), flush=True)


def generated() -> None:
    print("\n" + head(["target", "alpha", "relative test errors", "asked"]))
    for target in TARGETS:
        X, y = target(ROWS + TEST_ROWS)
        for alpha in (1e-4, 1e-6, 1e-8):
            errors = []
            for seed in SEEDS:
                model = TensorMachineRegressor(
                    6, 3, alpha, basis=None, solver="lbfgs", max_iter=2000, tol=1e-4, random_state=seed
                ).fit(X[:ROWS], y[:ROWS])
                errors.append(np.linalg.norm(model.predict(X[ROWS:]) - y[ROWS:]) / np.linalg.norm(y[ROWS:]))
            cells = ", ".join(f"{value:.5f}" for value in errors)
            print(row([target.__name__, f"{alpha:g}", cells, "0.003"]), flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    real_data()
    generated()
    print_facts(SEEDS)
