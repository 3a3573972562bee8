"""The tables to develop on: mixed columns with gaps, and the numeric sets beside them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sets import load as load_set

SETS = (
    *("california", "house_8L", "kin40k", "protein", "census_house_16H", "year_msd_subset", "buzz_sample"),
    *("slice_first_rows", "spambase", "letter", "cod_rna", "adult", "digits"),
)


@dataclass(frozen=True)
class Table:
    """Rows to train on and to test; y holds numbers, or the numbers of ``n_classes`` classes."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    n_classes: int  # 0: regression


def mixed() -> list[str]:
    """Return the names of the tables in the folder ``tables`` of the data."""
    index = Path(os.environ.get("TENSORMACHINES_DATA", ".")) / "tables" / "index.json"
    return sorted(json.loads(index.read_text()) if index.exists() else [])


def names() -> list[str]:
    """Return all names in order; those of every other one are the first half, the rest the second."""
    return sorted([*mixed(), *SETS])


def half_of(name: str, among: Sequence[str] | None = None) -> str:
    """Return the half of a table; ``among`` are the names of all, if the data may not be there."""
    return "first" if (among or names()).index(name) % 2 == 0 else "second"


def load(name: str, seed: int, most_rows: int, most_test_rows: int) -> Table:
    """Return a table, of which at most so many rows, drawn by the seed, are trained on and tested."""
    if name in SETS:
        data = load_set(name, seed)
        X, y, X_test, y_test = data.train.X, data.train.y, data.test.X, data.test.y
        X, X_test, classes = X.astype(np.float64), X_test.astype(np.float64), data.n_classes > 0
    else:
        folder = Path(os.environ["TENSORMACHINES_DATA"]) / "tables"
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        from load import load as load_table  # type: ignore[import-not-found]

        X, y, X_test, y_test, entry = load_table(name)
        classes = entry["task"] == "classification"
    if classes:
        labels, numbers = np.unique(np.concatenate([y, y_test]), return_inverse=True)
        y, y_test, n_classes = numbers[: len(y)], numbers[len(y) :], len(labels)
    else:
        y, y_test, n_classes = y.astype(np.float64), y_test.astype(np.float64), 0
    X, y = _some(X, y, most_rows, seed)
    X_test, y_test = _some(X_test, y_test, most_test_rows, seed)
    return Table(name, X, y, X_test, y_test, n_classes)


def _some(X: Any, y: np.ndarray, most: int, seed: int) -> tuple[Any, np.ndarray]:
    if len(y) <= most:
        return X, y
    chosen = np.sort(np.random.default_rng(seed).choice(len(y), most, replace=False))
    return (X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]), y[chosen]
