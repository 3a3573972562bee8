"""Models and rows that every export is tested on."""

import warnings
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor

pd = pytest.importorskip("pandas")

# In "multiclass" the classes share their factors, in "separate" they do not.
TASKS = ["single", "several", "binary", "multiclass", "separate"]
# Regressors with one and with two targets whose outputs are logarithms, several labels of a row, and several
# quantiles, whose outputs cross.
LINK_TASKS = ["log", "logs", "labels", "quantiles"]
NAMED_TASKS = ["several", "logs", "labels"]
NUMBERS = {
    "single": "squared_error",
    "several": "squared_error",
    "log": "gamma",
    "logs": "poisson",
    "quantiles": "quantile",
}
LEVELS = [0.1, 0.45, 0.5, 0.9]
AFFINE = [None, "unit", "standard", "sphere"]
N_ROWS = 100  # of a fit
HOSTILE = [
    '";DROP TABLE rows;--',
    "*/ #error",
    "'''\"\"\"\n)] #",
    "??/\\",
    "naïve 数",
]  # names of columns, and levels


def targets(z):
    quarter = np.searchsorted(np.quantile(z, [0.25, 0.5, 0.75]), z)
    return {
        **dict.fromkeys(("single", "quantiles"), 100 * z + 7),
        "several": np.column_stack([z, 50 - 3 * z**2]),
        "log": np.exp(z / np.ptp(z)),
        "logs": np.column_stack([z, -z]).clip(min=0),
        "binary": np.where(z > np.median(z), "it's */ yes", 'no"'),
        "labels": np.column_stack([z > np.median(z), quarter % 2 == 0, quarter == 3]),
        **dict.fromkeys(("multiclass", "separate"), np.array([1, -2, 3, 8])[quarter]),
    }


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        return model.fit(X, y)


def machine(task, **settings):
    kind = TensorMachineRegressor if task in NUMBERS else TensorMachineClassifier
    settings = {"shared_factors": False if task == "separate" else "auto", **settings}
    if task in NUMBERS:
        settings |= {"loss": NUMBERS[task], **({"quantile": LEVELS} if task == "quantiles" else {})}
    return kind(**{"degree": 3, "rank": 2, "solver": "lbfgs", "max_iter": 20, "random_state": 0, **settings})


def labelled_model(labels):
    """A linear classifier of two columns, with these two labels."""
    X = np.random.default_rng(1).standard_normal((40, 2))
    model = TensorMachineClassifier(degree=1, basis=None, random_state=0)
    return model.fit(X, np.asarray(labels)[(X[:, 0] > 0).astype(int)]), X


def assert_close(found, expected, rtol=1e-9):
    """To so many digits of the largest."""
    atol = rtol * np.abs(expected).max()
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, rtol=rtol, atol=atol)


@cache
def numbers_model(task, basis, dtype=np.float64):
    """A model of four columns of numbers, one of them mostly 0."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N_ROWS, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 3]
    X[:, 2] *= rng.random(N_ROWS) < 0.3
    return fit(machine(task, basis=basis), X.astype(dtype), targets(X[:, 0] * X[:, 1] + X[:, 3])[task])


@cache
def model_with_empty_terms():
    """A model of four outputs without terms of degree 2; the first output has one term less of degree 3,
    because one of its factors is 0.
    """
    model = deepcopy(numbers_model("separate", "standard"))
    machine = model._machine
    places, params = machine.layout.factors_by_degree(np.arange(machine.layout.size)), machine.params.copy()
    params[places[2]] = 0
    params[places[3][0, 1, 2]] = 0
    model._machine = replace(machine, params=params)
    return model


@cache
def factorization_model(task, basis="standard"):
    X = np.random.default_rng(1).standard_normal((N_ROWS, 4))
    kind = FactorizationMachineRegressor if task in NUMBERS else FactorizationMachineClassifier
    return fit(
        kind(degree=3, rank=2, shared_factors=task == "multiclass", basis=basis, max_iter=3, random_state=0),
        X,
        targets(X[:, 0] * X[:, 1] + X[:, 3])[task],
    )


def number_rows(n_rows, reach=1e4):
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((n_rows, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 3]
    far = rng.random(rows.shape) < 0.02
    rows[far] = rng.choice([-reach, 0, reach], far.sum())
    rows[0] = 0
    return rows


def table(n_rows, seed=3):
    """Numbers and categories, with missing entries in some columns, under names that no language likes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"plain": rng.standard_normal(n_rows), HOSTILE[0]: rng.standard_normal(n_rows) * 10 + 5}
    )
    frame.loc[rng.random(n_rows) < 0.2, HOSTILE[0]] = np.nan
    frame[HOSTILE[1]] = pd.Series(rng.choice(HOSTILE, n_rows), dtype=object)
    frame[HOSTILE[2]] = pd.Series(rng.choice(["a", "b", None], n_rows), dtype=object)
    frame[HOSTILE[3]] = rng.integers(0, 3, n_rows).astype(float)
    frame[HOSTILE[4]] = pd.Series(rng.choice(["x", "y"], n_rows), dtype=object)
    frame.loc[: n_rows // 200, HOSTILE[4]] = "rare"
    frame["constant"] = 4.0
    frame["empty"] = pd.Series([None] * n_rows, dtype=object)
    return frame


@cache
def table_model(task):
    frame = table(N_ROWS)
    z = frame["plain"] * frame[HOSTILE[3]] + (frame[HOSTILE[4]] == "x") + frame[HOSTILE[0]].fillna(0) / 10
    jumps = NUMBERS.get(task) == "squared_error"  # a few rows of classes do not show any
    z += 20 * jumps * (frame["plain"] > 0.3)
    settings = {"trend": task != "several", "jumps": True, "periodic_features": {HOSTILE[3]: 3}}
    model = fit(machine(task, **settings), frame, targets(z.to_numpy())[task])
    assert model._machine.has_jumps == jumps
    return model


@cache
def named_model(task, names=tuple(HOSTILE[:3])):
    """A linear model whose targets or labels have names that no language likes, and its rows."""
    X = np.random.default_rng(1).standard_normal((N_ROWS, 2))
    y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X.sum(axis=1) > 0]).astype(int)
    model = machine(task, degree=1, basis="standard")
    return fit(model, X, pd.DataFrame(y, columns=list(names))), X


@cache
def strange_table(n_rows):
    """The same with unknown levels, with gaps in every column, and with numbers far outside."""
    rng = np.random.default_rng(4)
    frame = table(n_rows, seed=5)
    for name in frame:
        values = frame[name].to_numpy(dtype=object, copy=True)
        strange = rng.random(n_rows) < 0.05
        number = name in ("plain", HOSTILE[0], HOSTILE[3], "constant")
        values[strange] = rng.choice(
            np.array([1e300, -1e300, 0.0, 1e-300] if number else ["unknown", "", "A", "rare"], object),
            strange.sum(),
        )
        values[rng.random(n_rows) < 0.05] = None
        frame[name] = pd.Series(values, dtype=float if number else object)
    return frame
