"""Models of every task fitted to small tables, and rows that are hard to predict."""

import warnings

import numpy as np
import pytest

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
)

NAN = np.nan


N_ROWS = 120


QUICK = {"degree": 3, "rank": 2, "solver": "lbfgs", "max_iter": 8, "random_state": 0}


def numbers(rng):
    X = rng.standard_normal((N_ROWS, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 3]
    X[:, 2] = np.where(rng.random(N_ROWS) < 0.7, 0, X[:, 2])
    X[:, 3] = np.round(X[:, 3])
    return X


def targets(rng, X):
    """By name: y of a regressor of one output, of two, and of classifiers with two and four classes."""
    z = X[:, 0] * X[:, 1] + X[:, 3] + 0.1 * rng.standard_normal(len(X))
    quarter = np.searchsorted(np.quantile(z, [0.25, 0.5, 0.75]), z)
    return {
        "single": 100 * z + 7,
        "several": np.column_stack([z, 50 - 3 * X[:, 2]]),
        "binary": np.where(z > np.median(z), "yes", "no"),
        "multiclass": np.array([1.0, -2.0, 3.0, 8.0])[quarter],
    }


def fitted(rng, task, X, **settings):
    y = targets(rng, numbers(np.random.default_rng(1)))[task]
    machine = TensorMachineRegressor if task in ("single", "several") else TensorMachineClassifier
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        return machine(**{**QUICK, **settings}).fit(X, y)


def frame(rng, n_rows=N_ROWS):
    """Every kind of column that a table may have."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(numbers(np.random.default_rng(1)), columns=["plain", "gaps", "zeros", "counts"])[
        :n_rows
    ]
    table.loc[rng.random(n_rows) < 0.2, "gaps"] = NAN
    table["flag"] = rng.random(n_rows) < 0.4
    table["text"] = rng.choice(["red", "green", "blue, dark", 'quo"te', ""], n_rows)
    table["sparse text"] = pd.Series(rng.choice(["a", "b", None], n_rows), dtype=object)
    table["graded"] = pd.Categorical(
        rng.choice(["low", "mid", "high"], n_rows), ["low", "mid", "high", "never"], ordered=True
    )
    table["code"] = pd.Categorical(rng.choice([3, 10, 200], n_rows))
    table["mostly"] = rng.choice(["x", "y"], n_rows)
    table.loc[:1, "mostly"] = ["rare one", "rare two"]
    table["constant"] = 4.0
    table["nothing"] = pd.Series([None] * n_rows, dtype=object)
    table["no number"] = np.full(n_rows, NAN)
    table["nullable"] = pd.Series(rng.integers(0, 5, n_rows), dtype="Int64").where(rng.random(n_rows) < 0.8)
    return table


def strange_rows(table):
    """Unknown and rare levels, gaps where the fit had none, numbers far outside."""
    rows = table[:16].astype(object)
    rows.loc[0, ["text", "sparse text", "graded", "code", "mostly"]] = [
        "unknown",
        "unknown",
        "never",
        77,
        "rare one",
    ]
    rows.loc[1] = None
    rows.loc[2, "code"] = 10.0
    rows.loc[3, "code"] = "10"
    rows.loc[4, ["plain", "gaps", "zeros", "counts"]] = [1e300, -1e300, 1e9, -1e9]
    rows.loc[5, ["plain", "nothing", "no number", "constant"]] = [None, "something", 5.0, -3.0]
    rows.loc[6, "mostly"] = "unknown"
    return rows
