"""What others make of the same rows: a constant, a linear model, and gradient-boosted trees, with
scikit-learn's default settings.

They are fitted to the training rows where these are given; otherwise each part of the rows is predicted by a
fit to the others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

CONSTANT, LINEAR, TREES = "constant", "linear", "boosted trees"
FOLDS = 5
MOST_LEVELS = 255  # that scikit-learn's trees take as categories
MOST_DENSE = 20_000_000  # entries of a sparse matrix that are filled for the trees
LARGEST = 1e100  # number that others are given: the variance of larger ones may overflow, and then they fail


def baseline_predictions(
    model: Any, rows: Any, y: np.ndarray, train: tuple[Any, np.ndarray] | None
) -> dict[str, np.ndarray]:
    """Predictions of the rows, or probabilities in the order of ``model.classes_``.

    Rows are numbers, as the model encodes them.
    """
    found = {}
    for name, baseline in _baselines(model, rows).items():
        wide = name == TREES and sparse.issparse(rows)
        if (
            wide
            and rows.shape[0] * rows.shape[1]
            + (0 if train is None else train[0].shape[0] * train[0].shape[1])
            > MOST_DENSE
        ):
            continue
        full = _filled if wide else _as_is
        with (
            warnings.catch_warnings(),
            threadpool_limits(1, user_api="openmp"),
        ):  # threads of a busy machine wait for each other
            warnings.simplefilter("ignore", ConvergenceWarning)
            if train is None:
                found[name] = _cross_predictions(baseline, full(rows), y, model)
            else:
                found[name] = _predictions(baseline, full(train[0]), train[1], full(rows), model)
    return found


def _baselines(model: Any, rows: Any) -> dict[str, Any]:
    columns = model._columns
    kinds = ["number"] * rows.shape[1] if columns is None else columns.kinds
    numbers = [j for j, kind in enumerate(kinds) if kind == "number"]
    categories = [j for j, kind in enumerate(kinds) if kind == "category"]
    few = [j for j in categories if columns.columns[j].n_codes <= MOST_LEVELS]
    if sparse.issparse(rows):
        prepared = MaxAbsScaler()
    else:
        prepared = make_column_transformer(
            (
                make_pipeline(SimpleImputer(keep_empty_features=True, add_indicator=True), StandardScaler()),
                numbers,
            ),
            (OneHotEncoder(handle_unknown="ignore"), categories),
        )
    if is_classifier(model):
        trees = HistGradientBoostingClassifier(categorical_features=few, random_state=0)
        return {
            CONSTANT: DummyClassifier(strategy="prior"),
            LINEAR: make_pipeline(prepared, LogisticRegression(max_iter=1000)),
            TREES: trees,
        }
    trees = HistGradientBoostingRegressor(categorical_features=few, random_state=0)
    linear = make_pipeline(prepared, RidgeCV(alphas=np.logspace(-3, 4, 15)))
    return {
        CONSTANT: DummyRegressor(),
        LINEAR: linear,
        TREES: trees if model._machine.layout.n_outputs == 1 else MultiOutputRegressor(trees),
    }


def _cross_predictions(baseline: Any, rows: Any, y: np.ndarray, model: Any) -> np.ndarray:
    n_folds = min(FOLDS, len(y))
    folds: Any = KFold(n_folds, shuffle=True, random_state=0)
    if is_classifier(model) and np.unique(y, return_counts=True)[1].min() >= n_folds:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    parts = list(folds.split(rows, y))
    predicted = np.concatenate(
        [_predictions(baseline, rows[kept], y[kept], rows[left_out], model) for kept, left_out in parts]
    )
    return predicted[np.argsort(np.concatenate([left_out for _, left_out in parts]))]


def _predictions(baseline: Any, train: Any, y: np.ndarray, rows: Any, model: Any) -> np.ndarray:
    """Of a fit to the training rows."""
    if not sparse.issparse(train):
        empty = np.isnan(train).all(axis=0)  # scikit-learn's trees fail where nothing is known of a column
        train, rows = (np.clip(np.where(empty, 0.0, table), -LARGEST, LARGEST) for table in (train, rows))
    if not is_classifier(model):
        return np.asarray(clone(baseline).fit(train, y).predict(rows))
    if len(np.unique(y)) == 1:
        baseline = DummyClassifier(strategy="prior")  # others refuse to learn from one class
    fitted = clone(baseline).fit(train, y)
    probabilities = np.zeros((rows.shape[0], len(model.classes_)))
    probabilities[:, np.searchsorted(model.classes_, fitted.classes_)] = fitted.predict_proba(rows)
    return probabilities


def _filled(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray())


def _as_is(rows: Any) -> Any:
    return rows
