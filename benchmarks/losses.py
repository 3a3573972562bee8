"""Are Tensor Machines as accurate as boosted trees and linear models for counts, costs and quantiles?

    TENSORMACHINES_DATA=folder python benchmarks/losses.py [--rows 10000] [--seeds 0 1 2]

Every method has the loss that is measured, and its default settings otherwise: TensorMachineRegressor, the
same with squared error (clipped at a hundredth of the mean where a deviance needs positive predictions),
HistGradientBoostingRegressor, and a linear model of standardised numbers and one-hot categories with a small
penalty: PoissonRegressor, GammaRegressor and TweedieRegressor with alpha=1e-4, QuantileRegressor with
alpha=0. The trees have no Tweedie loss: they get "poisson" for it. "claims" is simulated, for want of a table
with zeros and costs: the claims of a policy are Poisson with a mean of about 0.2, the cost of each has a
gamma distribution."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor, TweedieRegressor
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tables
from records import head, print_facts, row
from tables import Table
from tensormachines import TensorMachineRegressor

POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
CASES = [  # table, loss, level of the quantile
    ("metro_traffic", "poisson", 0.5),
    ("abalone", "poisson", 0.5),
    ("beijing_pm25", "poisson", 0.5),
    ("cps_wages", "gamma", 0.5),
    ("brazilian_rent", "gamma", 0.5),
    ("hotel_rates", "gamma", 0.5),
    ("claims", "tweedie", 0.5),
    ("cps_wages", "quantile", 0.9),
    ("brazilian_rent", "quantile", 0.1),
    ("beijing_pm25", "quantile", 0.9),
    ("saratoga_houses", "absolute_error", 0.5),
    ("brazilian_rent", "absolute_error", 0.5),
]
METHODS = ("Tensor Machine", "with squared error", "boosted trees", "linear model")
MOST_TEST_ROWS = 10_000


def claims(seed: int, n_rows: int) -> Table:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows + MOST_TEST_ROWS, 8))
    counts = rng.poisson(0.1 * np.exp(X[:, 0] + 2 * X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])))
    costs = rng.gamma(2.0 * np.maximum(counts, 1), 500 * np.exp(X[:, 4] + X[:, 0] ** 2))
    y = np.where(counts > 0, costs, 0.0)
    return Table("claims", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], 0)


def load(name: str, loss: str, seed: int, n_rows: int) -> Table:
    if name == "claims":
        return claims(seed, n_rows)
    table = tables.load(name, seed, n_rows, MOST_TEST_ROWS)
    assert loss != "gamma" or min(table.y.min(), table.y_test.min()) > 0
    return table


def make(method: str, loss: str, level: float, X: Any, seed: int) -> Any:
    if method == "Tensor Machine":
        return TensorMachineRegressor(loss=loss, quantile=level, random_state=seed)
    if method == "with squared error":
        return TensorMachineRegressor(random_state=seed)
    if method == "boosted trees":
        of_trees = "poisson" if loss == "tweedie" else loss
        kinds = "from_dtype" if hasattr(X, "columns") else None
        return HistGradientBoostingRegressor(
            loss=of_trees, quantile=level, categorical_features=kinds, random_state=seed
        )
    linear = {
        "poisson": PoissonRegressor(alpha=1e-4, max_iter=1000),
        "gamma": GammaRegressor(alpha=1e-4, max_iter=1000),
        "tweedie": TweedieRegressor(power=1.5, link="log", alpha=1e-4, max_iter=1000),
    }.get(loss, QuantileRegressor(quantile=level, alpha=0))
    return make_pipeline(prepared(X), linear)


def prepared(X: Any) -> Any:
    if not hasattr(X, "columns"):
        return make_pipeline(SimpleImputer(), StandardScaler())
    texts = [name for name in X if X[name].dtype.kind in "OV" or str(X[name].dtype) in ("category", "str")]
    numbers = [name for name in X if name not in texts]
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=10), texts),
    )


def with_categories(table: Table) -> Table:
    """Return the table with texts as categories of pandas, which the trees need, the same in both parts."""
    import pandas as pd

    if not hasattr(table.X, "columns"):
        return table
    X, X_test = table.X.copy(), table.X_test.copy()
    for name in X:
        if not pd.api.types.is_numeric_dtype(X[name]):
            kind = pd.CategoricalDtype(sorted(set(X[name].dropna())))
            X[name], X_test[name] = X[name].astype(kind), X_test[name].astype(kind)
    return Table(table.name, X, table.y, X_test, table.y_test, 0)


def measure(y: np.ndarray, predicted: np.ndarray, loss: str, level: float, mean: float) -> float:
    """Return the deviance in units of the mean, the pinball loss, or half the absolute error."""
    if loss in POWERS:
        positive = np.maximum(predicted, 0.01 * mean)
        return float(mean_tweedie_deviance(y / mean, positive / mean, power=POWERS[loss]))
    return float(mean_pinball_loss(y / mean, predicted / mean, alpha=level))


def losses_of(name: str, loss: str, level: float, seed: int, n_rows: int) -> dict[str, float]:
    table = with_categories(load(name, loss, seed, n_rows))
    mean = float(table.y.mean())
    found = {}
    for method in METHODS:
        model = make(method, loss, level, table.X, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            predicted = model.fit(table.X, table.y).predict(table.X_test)
        found[method] = measure(table.y_test, predicted, loss, level, mean)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000, help="most training rows")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    print(head(["table", "loss", *METHODS, "spread of ours"]))
    for name, loss, level in CASES:
        found = [losses_of(name, loss, level, seed, options.rows) for seed in options.seeds]
        means = {method: np.mean([each[method] for each in found]) for method in METHODS}
        best = min(means.values())
        cells = [f"**{mean:.4f}**" if mean == best else f"{mean:.4f}" for mean in means.values()]
        spread = np.std([each[METHODS[0]] for each in found])
        label = f"quantile {level}" if loss == "quantile" else loss
        print(row([name, label, *cells, f"{spread:.4f}"]), flush=True)
    print_facts(options.seeds)


if __name__ == "__main__":
    main()
