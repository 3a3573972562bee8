"""The data sets: .npz files in the folder that TENSORMACHINES_DATA names, and scikit-learn's bundled ones."""

from __future__ import annotations

import os
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
CLASSES = {
    "iris",
    "wine",
    "breast_cancer",
    "digits",
    "spambase",
    "letter",
    "cod_rna",
    "adult",
    "forest",
    "mnist",
}
MOVIELENS = "movielens100k_user_item"
# fmt: off
SETS = (  # small ones first
    "iris", "wine", "diabetes", "breast_cancer", "digits", "house_8L", "california", MOVIELENS,
    "slice_first_rows", "spambase", "letter", "kin40k", "census_house_16H", "buzz_sample", "protein",
    "year_msd_subset", "cod_rna", "adult", "indoor", "forest", "mnist",
)
# fmt: on


@dataclass(frozen=True)
class Sample:
    """Rows and their targets: X a float32 array, or a frame of categories; y float64, or class numbers."""

    X: Any
    y: np.ndarray

    def rows(self, selected: np.ndarray) -> Sample:
        X = self.X.iloc[selected] if hasattr(self.X, "iloc") else self.X[selected]
        return Sample(X, self.y[selected])

    def first(self, count: int) -> Sample:
        return self.rows(np.arange(min(count, len(self.y))))


@dataclass(frozen=True)
class Data:
    train: Sample
    test: Sample
    n_classes: int  # 0: regression

    @property
    def categories(self) -> bool:
        return hasattr(self.train.X, "iloc")

    @property
    def task(self) -> str:
        return "classification" if self.n_classes else "regression"


def arrays(name: str, folder: Path | None = None) -> dict[str, np.ndarray]:
    """Return everything that the file of a set holds."""
    folder = folder or Path(os.environ.get("TENSORMACHINES_DATA", "."))
    path = folder / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: set TENSORMACHINES_DATA to the folder of the data sets.")
    with np.load(path) as file:
        return dict(file)


def load(name: str, seed: int = 0, *, folder: Path | None = None, small: bool = False) -> Data:
    """Return a set with its own split; the bundled ones, which have none, are split by the seed.

    Training rows are in random order, the same at every call: some files are sorted by class. ``small``: of
    Forest the 50,000 training rows that the paper takes."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, random_state=seed, stratify=y if name in CLASSES else None
        )
    else:
        file = arrays(name, folder)
        X_train, y_train, X_test, y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        if small:
            X_train, y_train = (values[file["paper_small_train_idx"]] for values in (X_train, y_train))
    if name in CLASSES:
        classes, y_train = np.unique(y_train, return_inverse=True)
        n_classes, y_test = len(classes), np.searchsorted(classes, y_test)
    else:
        n_classes, y_train, y_test = 0, y_train.astype(np.float64), y_test.astype(np.float64)
    convert = _user_and_item if name == MOVIELENS else _float32
    order = np.random.default_rng(0).permutation(len(y_train))
    return Data(Sample(convert(X_train), y_train).rows(order), Sample(convert(X_test), y_test), n_classes)


def _float32(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)


def _user_and_item(X: np.ndarray) -> Any:
    """Both as categories, with one list of levels for training and test rows."""
    import pandas as pd

    levels = {"user": np.arange(944), "item": np.arange(1683)}
    return pd.DataFrame(
        {name: pd.Categorical(X[:, column], categories=levels[name]) for column, name in enumerate(levels)}
    )
