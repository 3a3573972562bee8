"""The tables of accuracy.py: the sets in a folder of .npz files and those that come with scikit-learn, small
ones first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
CLASSES_IN_FOLDER = {"spambase", "letter", "cod_rna", "adult", "forest", "mnist"}
REGRESSION = {
    "diabetes",
    "slice_first_rows",
    "house_8L",
    "california",
    "movielens100k_user_item",
    "kin40k",
    "census_house_16H",
    "buzz_sample",
    "protein",
    "year_msd_subset",
    "indoor",
}
SETS = (
    "iris",
    "wine",
    "diabetes",
    "breast_cancer",
    "digits",
    "house_8L",
    "california",
    "movielens100k_user_item",
    "slice_first_rows",
    "spambase",
    "letter",
    "kin40k",
    "census_house_16H",
    "buzz_sample",
    "protein",
    "year_msd_subset",
    "cod_rna",
    "adult",
    "indoor",
    "forest",
    "mnist",
)


@dataclass(frozen=True)
class Table:
    """Rows and targets: X a float32 array, or a frame of categories; y float64, or class numbers from 0."""

    X: Any
    y: np.ndarray

    def rows(self, selected: np.ndarray) -> Table:
        X = self.X.iloc[selected] if hasattr(self.X, "iloc") else self.X[selected]
        return Table(X, self.y[selected])


@dataclass(frozen=True)
class Data:
    train: Table
    test: Table
    n_classes: int  # 0: regression

    @property
    def categories(self) -> bool:
        return hasattr(self.train.X, "iloc")

    @property
    def task(self) -> str:
        return "classification" if self.n_classes else "regression"


def load(name: str, folder: Path, seed: int) -> Data:
    """A set with its own split; the bundled ones, which have none, are split by the seed."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, random_state=seed, stratify=None if name in REGRESSION else y
        )
    else:
        with np.load(folder / f"{name}.npz") as file:
            X_train, y_train, X_test, y_test = (
                file[key] for key in ("X_train", "y_train", "X_test", "y_test")
            )
    if name in REGRESSION:
        n_classes, y_train, y_test = 0, y_train.astype(np.float64), y_test.astype(np.float64)
    else:
        classes, y_train = np.unique(y_train, return_inverse=True)
        n_classes, y_test = len(classes), np.searchsorted(classes, y_test)
    convert = user_and_item if name == "movielens100k_user_item" else float32
    # Some files are sorted by class, and no method should profit or suffer from that.
    order = np.random.default_rng(0).permutation(len(y_train))
    return Data(Table(convert(X_train), y_train).rows(order), Table(convert(X_test), y_test), n_classes)


def float32(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)


def user_and_item(X: np.ndarray) -> Any:
    """Both as categories, with one list of levels for training and test rows."""
    import pandas as pd

    levels = {"user": np.arange(944), "item": np.arange(1683)}
    return pd.DataFrame(
        {name: pd.Categorical(X[:, column], categories=levels[name]) for column, name in enumerate(levels)}
    )
