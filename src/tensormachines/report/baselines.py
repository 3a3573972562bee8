"""Baselines for the same rows: a constant, a linear model, and gradient-boosted trees, with scikit-learn's
default settings.

Baselines are fitted to the training rows if these are given. Otherwise they are cross-validated: each fold is
predicted by a fit to the other folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

CONSTANT, LINEAR, TREES = "constant", "linear model", "boosted trees"
FOLDS = 5
MOST_LEVELS = 255  # maximum for a category in scikit-learn's trees
MOST_DENSE = 20_000_000  # entries of a sparse matrix that is made dense for the trees
MOST_EXACT = 3000  # rows or functions for which ridge regression is solved exactly, for many penalties
SHARE_TO_STOP = 0.1  # of the rows, by which scikit-learn's trees decide when to stop
LARGEST = 1e100  # larger numbers are clipped: if their variance overflows, baselines fail


def baseline_predictions(
    rows: Any,
    y: np.ndarray,
    train: tuple[Any, np.ndarray] | None,
    n_codes: Sequence[int],
    classes: np.ndarray | None,
    quantile: float | None = None,
    weight: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Return the predictions of each baseline for rows, or its probabilities in the order of ``classes``.

    ``n_codes`` is the number of levels of each column, 0 for a numeric column. ``classes`` is None in
    regression; a ``quantile`` may then replace the mean. ``weight`` holds the weights of the rows that
    baselines are fitted to."""
    found = {}
    entries = sum(of.shape[0] * of.shape[1] for of in (rows, *(train or ())[:1]))
    most_rows = max(of.shape[0] for of in (rows, *(train or ())[:1]))
    for name, baseline in _baselines(rows, y, n_codes, classes, quantile, most_rows).items():
        dense = name == TREES and sparse.issparse(rows)
        if dense and entries > MOST_DENSE:
            continue
        given = rows.toarray() if dense else rows
        # One thread: on a busy machine, threads wait for each other.
        with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            if train is None:
                found[name] = _cross_predictions(baseline, given, y, classes, weight)
            else:
                fitted_to = train[0].toarray() if dense else train[0]
                found[name] = _predictions(baseline, (fitted_to, train[1], weight), given, classes)
    return found


def _baselines(
    rows: Any,
    y: np.ndarray,
    n_codes: Sequence[int],
    classes: np.ndarray | None,
    quantile: float | None,
    most_rows: int,
) -> dict[str, Any]:
    numbers = [j for j, count in enumerate(n_codes) if count == 0]
    categories = [j for j, count in enumerate(n_codes) if count > 0]
    few = [j for j in categories if n_codes[j] <= MOST_LEVELS]
    if sparse.issparse(rows):
        prepared = MaxAbsScaler()
    else:
        imputed = SimpleImputer(keep_empty_features=True, add_indicator=True)
        prepared = make_column_transformer(
            (make_pipeline(imputed, StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), categories),
        )
    if classes is not None:
        return {
            CONSTANT: DummyClassifier(strategy="prior"),
            LINEAR: make_pipeline(prepared, LogisticRegression(max_iter=1000)),
            TREES: HistGradientBoostingClassifier(categorical_features=few, random_state=0),
        }
    if quantile is not None:  # without QuantileRegressor, which takes 40 seconds for 20,000 rows
        options = {"loss": "quantile", "quantile": quantile, "random_state": 0}
        return {
            CONSTANT: DummyRegressor(strategy="quantile", quantile=quantile),
            TREES: HistGradientBoostingRegressor(categorical_features=few, **options),
        }
    trees = HistGradientBoostingRegressor(categorical_features=few, random_state=0)
    exact = min(most_rows, len(numbers) + sum(n_codes)) <= MOST_EXACT
    ridge = RidgeCV(alphas=np.logspace(-3, 4, 15)) if exact else Ridge(solver="lsqr")
    return {
        CONSTANT: DummyRegressor(),
        LINEAR: make_pipeline(prepared, ridge),
        TREES: trees if y.ndim == 1 else MultiOutputRegressor(trees),
    }


def _cross_predictions(
    baseline: Any, rows: Any, y: np.ndarray, classes: np.ndarray | None, weight: np.ndarray | None
) -> np.ndarray:
    n_folds = min(FOLDS, len(y))
    folds: Any = KFold(n_folds, shuffle=True, random_state=0)
    if classes is not None and np.unique(y, return_counts=True)[1].min() >= n_folds:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    splits = list(folds.split(rows, y))
    predicted = np.concatenate(
        [
            _predictions(
                baseline,
                (rows[kept], y[kept], None if weight is None else weight[kept]),
                rows[left_out],
                classes,
            )
            for kept, left_out in splits
        ]
    )
    return predicted[np.argsort(np.concatenate([left_out for _, left_out in splits]))]


def _predictions(
    baseline: Any,
    fitted_to: tuple[Any, np.ndarray, np.ndarray | None],
    rows: Any,
    classes: np.ndarray | None,
) -> np.ndarray:
    """Return the predictions of a fit to training rows, with their targets and weights."""
    train, y, weight = fitted_to
    if not sparse.issparse(train):
        empty = np.isnan(train).all(axis=0)  # scikit-learn's trees fail if all of a column is missing
        train, rows = (np.clip(np.where(empty, 0.0, of), -LARGEST, LARGEST) for of in (train, rows))
    if classes is None:
        return np.asarray(_fitted(baseline, train, y, weight).predict(rows))
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) == 1:
        baseline = DummyClassifier(strategy="prior")  # the others refuse to learn from one class
    elif isinstance(baseline, HistGradientBoostingClassifier) and (
        counts.min() < 2 or SHARE_TO_STOP * len(y) <= len(counts)
    ):
        baseline = clone(baseline).set_params(early_stopping=False)  # which needs two rows of each class
    fitted = _fitted(baseline, train, y, weight)
    probabilities = np.zeros((rows.shape[0], len(classes)))
    probabilities[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(rows)
    return probabilities


def _fitted(baseline: Any, rows: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
    if weight is None:
        return clone(baseline).fit(rows, y)
    of_last = f"{baseline.steps[-1][0]}__" if isinstance(baseline, Pipeline) else ""
    return clone(baseline).fit(rows, y, **{f"{of_last}sample_weight": weight})
