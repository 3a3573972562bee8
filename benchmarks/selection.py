"""Does successive halving choose as well as an exhaustive search, and what does it cost?

    TENSORMACHINES_DATA=folder python benchmarks/selection.py [--sets california ...] [--seconds]

8,000 training rows of each set, 5 folds, 4 alphas x 3 ranks at one degree, all else at its default: splines,
Adam, and for both searches one member and 30 epochs. The exhaustive search is scikit-learn's GridSearchCV.
Errors are those of the chosen candidate, fitted to all training rows; the last column has the least and the
largest test error of the 12 candidates. With --seconds, the CPU seconds of both searches follow, in units of
the mean fit of a candidate to all rows: to be read on a quiet machine only."""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from typing import Any

from timing import one_thread, timed

one_thread()

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

import sets
from measures import error
from records import head, print_facts, row
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV

ROWS, SEEDS, FOLDS = 8000, (0, 1), KFold(5)
RANKS, ALPHAS, EPOCHS = (3, 5, 10), (1e-5, 1e-4, 1e-3, 1e-2), 30
DEGREES = {"california": 3, "kin40k": 4, "protein": 3, "house_8L": 3}


def compare(name: str, seed: int, seconds: bool) -> list[str]:
    data, degree = sets.load(name), DEGREES[name]
    X, y = data.train.first(ROWS).X, data.train.first(ROWS).y
    fixed: dict[str, Any] = {"max_iter": EPOCHS, "random_state": seed}
    singles = [
        timed(partial(TensorMachineRegressor(degree, rank, alpha, **fixed).fit, X, y))
        for rank in RANKS
        for alpha in ALPHAS
    ]
    errors = [error(model, data.test) for model, _ in singles]
    halving = TensorMachineRegressorCV(
        (degree,),
        RANKS,
        ALPHAS,
        relevances=(0,),
        roughnesses=(3.0,),
        time_budget=None,
        cv=FOLDS,
        n_members=1,
        max_iters=(EPOCHS,),
        random_state=seed,
    )
    exhaustive = GridSearchCV(
        TensorMachineRegressor(degree, **fixed),
        {"rank": RANKS, "alpha": ALPHAS},
        cv=FOLDS,
        scoring="neg_mean_squared_error",
    )
    searches = [timed(partial(search.fit, X, y)) for search in (halving, exhaustive)]
    cells = [name, str(seed)]
    cells += [f"{found.best_params_['rank']}, {found.best_params_['alpha']:g}" for found, _ in searches]
    cells += [f"{error(found, data.test):.4f}" for found, _ in searches]
    cells.append(f"{min(errors):.4f} - {max(errors):.4f}")
    if seconds:
        single = sum(spent for _, spent in singles) / len(singles)
        cells += [f"{spent / single:.1f}" for _, spent in searches]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=DEGREES, default=tuple(DEGREES))
    parser.add_argument("--seconds", action="store_true", help="print what the searches cost as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = [
        "set",
        "seed",
        "rank, alpha: halving",
        "exhaustive",
        "error: halving",
        "exhaustive",
        "candidates",
    ]
    print(head(names + ["single fits: halving", "exhaustive"] * options.seconds))
    for name in options.sets:
        for seed in SEEDS:
            print(row(compare(name, seed, options.seconds)), flush=True)
    print_facts(SEEDS)


if __name__ == "__main__":
    main()
