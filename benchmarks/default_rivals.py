"""Rivals as they come: boosted trees with their default settings, stopped early on a tenth of the rows, and
linear models. Each is a function of a table and a seed that returns a function of rows: values, or
probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tables import Table

PATIENCE, MOST_TREES = 50, 2000
Predict = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Split:
    """Rows to fit and to stop on; classes are numbered 0, 1, ... among those of the rows to fit."""

    X: Any
    y: np.ndarray
    X_stop: Any
    y_stop: np.ndarray
    classes: np.ndarray


def split(table: Table, X: Any, seed: int) -> Split:
    """Hold out a tenth, but for classes that would then be unknown; they keep their shares if they can."""
    y = table.y
    stratify = y if table.n_classes and np.bincount(y)[np.unique(y)].min() >= 2 else None
    if stratify is not None and len(np.unique(y)) > len(y) // 10:
        stratify = None
    fit, stop = train_test_split(np.arange(len(y)), test_size=0.1, random_state=seed, stratify=stratify)
    classes = np.unique(y[fit]) if table.n_classes else np.zeros(0)
    if table.n_classes:
        stop = stop[np.isin(y[stop], classes)]
        y = np.searchsorted(classes, y)
    rows = [X.iloc[part] if hasattr(X, "iloc") else X[part] for part in (fit, stop)]
    return Split(rows[0], y[fit], rows[1], y[stop], classes)


def text_columns(X: Any) -> list[str]:
    return [name for name in X if X[name].dtype.kind not in "fiub"] if hasattr(X, "iloc") else []


def with_categories(table: Table) -> tuple[Any, Callable[[Any], Any]]:
    """Return the training rows with pandas categories, and how other rows get the same ones."""
    import pandas

    levels = {
        name: pandas.CategoricalDtype(sorted(table.X[name].dropna().unique()))
        for name in text_columns(table.X)
    }

    def convert(X: Any) -> Any:
        return X.astype(levels) if levels else X

    return convert(table.X), convert


def outputs(model: Any, table: Table, classes: np.ndarray, convert: Callable[[Any], Any]) -> Predict:
    """Return the function of rows: values, or probabilities of all classes, 0 for those never fitted."""
    if not table.n_classes:
        return lambda X: np.asarray(model.predict(convert(X)))

    def probabilities(X: Any) -> np.ndarray:
        full = np.zeros((len(X), table.n_classes))
        full[:, classes] = model.predict_proba(convert(X))
        return full

    return probabilities


def lightgbm(table: Table, seed: int) -> tuple[Predict, Any]:
    import lightgbm as library

    X, convert = with_categories(table)
    rows = split(table, X, seed)
    kind = library.LGBMClassifier if table.n_classes else library.LGBMRegressor
    model = kind(n_estimators=MOST_TREES, n_jobs=1, verbose=-1, random_state=seed)
    stop = library.early_stopping(PATIENCE, verbose=False)
    model.fit(rows.X, rows.y, eval_set=[(rows.X_stop, rows.y_stop)], callbacks=[stop])
    return outputs(model, table, rows.classes, convert), model


def xgboost(table: Table, seed: int) -> tuple[Predict, Any]:
    import xgboost as library

    X, convert = with_categories(table)
    rows = split(table, X, seed)
    kind = library.XGBClassifier if table.n_classes else library.XGBRegressor
    model = kind(
        n_estimators=MOST_TREES,
        early_stopping_rounds=PATIENCE,
        enable_categorical=True,
        n_jobs=1,
        random_state=seed,
    )
    model.fit(rows.X, rows.y, eval_set=[(rows.X_stop, rows.y_stop)], verbose=False)
    return outputs(model, table, rows.classes, convert), model


def text_for_catboost(X: Any, text: list[str]) -> Any:
    """Return the rows with categories as text, none missing."""
    as_text = {name: X[name].astype(object).fillna("missing").astype(str) for name in text}
    return X.assign(**as_text) if text else X


def catboost(table: Table, seed: int) -> tuple[Predict, Any]:
    import catboost as library

    text = text_columns(table.X)
    prepare = partial(text_for_catboost, text=text)
    rows = split(table, prepare(table.X), seed)
    kind = library.CatBoostClassifier if table.n_classes else library.CatBoostRegressor
    model = kind(
        thread_count=1, random_seed=seed, verbose=False, cat_features=text or None, allow_writing_files=False
    )
    model.fit(rows.X, rows.y, eval_set=(rows.X_stop, rows.y_stop), early_stopping_rounds=PATIENCE)
    return outputs(model, table, rows.classes, prepare), model


def linear_features(X: Any) -> Any:
    """Return a transformer to standardised numbers, medians for gaps, and one-hot categories."""
    numbers = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    text = text_columns(X)
    if not text:
        return numbers
    one_hot = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    return make_column_transformer((numbers, [name for name in X if name not in text]), (one_hot, text))


def linear(table: Table, seed: int) -> tuple[Predict, Any]:
    """Ridge or logistic regression."""
    last = LogisticRegression(max_iter=500) if table.n_classes else Ridge()
    model = make_pipeline(linear_features(table.X), last).fit(table.X, table.y)
    return outputs(model, table, np.unique(table.y), lambda X: X), model


RIVALS = {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost, "linear": linear}
