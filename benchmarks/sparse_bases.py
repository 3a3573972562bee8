"""Which basis suits a sparse X: words, one-hot columns, pixels and counts?

    TENSORMACHINES_DATA=folder python benchmarks/sparse_bases.py [--sets words amazon_access] [--seeds 0]

Losses on test rows (log-loss, or the root mean squared error in standard deviations) of default fits in
several bases, and of logistic or ridge regression, whose penalty is chosen by cross-validation. "words" and
"words that meet" are generated tf-idf rows; text of tables is one-hot encoded, and their numbers are
standardised. "scaled" is the default. Its scales were chosen on the sets CHOSEN_ON, with seed 0: by the
deviation, by the root mean square of non-zero entries, and by the root of their product; rows of norm 1, 1.5,
2 and 3. That it cuts off long tails was decided on spambase, hotel_rates and MovieLens."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from timing import one_thread

one_thread()

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.preprocessing import OneHotEncoder

import sets
import tables
from measures import error_of, loss_of
from records import head, print_facts, row
from sets import Data, Sample
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

CHOSEN_ON = ("words", "amazon_access", "adult", "mnist", "spambase")
CONFIRMED_ON = ("words that meet", "connect4", sets.MOVIELENS, "hotel_rates", "fars")
ROWS = {"mnist": 6_000, "amazon_access": 16_000, "adult": 16_000, sets.MOVIELENS: 40_000}
USUAL_ROWS, TEST_ROWS = 12_000, 10_000
BASES = ("standard", None, "scaled")
WORDS, TOPICS, LENGTH = 5_000, 8, 60


def words(seed: int, n_rows: int, meet: bool) -> Data:
    """Return texts that mix topics; the class depends on topics, or on which of them meet, and on words."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, WORDS + 1) ** 1.05
    topics = frequency * np.exp(1.5 * rng.standard_normal((TOPICS, WORDS)))
    topics /= topics.sum(axis=1, keepdims=True)
    mix = rng.dirichlet(np.full(TOPICS, 0.3), n_rows)
    counts = sparse.csr_matrix([rng.multinomial(rng.poisson(LENGTH) + 5, each @ topics) for each in mix])
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts.astype(np.float64))
    z = 3 * mix @ rng.standard_normal(TOPICS)
    if meet:
        z = z / 2 + 18 * (mix[:, 0] + mix[:, 1] - mix[:, 2]) * (mix[:, 3] + mix[:, 4] - 0.4)
    telling = 20 + rng.choice(600, 60, replace=False)
    z += X[:, telling] @ (8 * rng.standard_normal(60))
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-1.5 * (z - np.median(z))))).astype(int)
    train = 3 * n_rows // 4
    return Data(Sample(X[:train], y[:train]), Sample(X[train:], y[train:]), 2)


def load(name: str, seed: int) -> Data:
    if name.startswith("words"):
        return words(seed, 4_000 if name == "words" else 6_000, meet=name != "words")
    n_rows = ROWS.get(name, USUAL_ROWS)
    if name in tables.mixed():
        table = tables.load(name, seed, n_rows, TEST_ROWS)
        X, X_test = one_hot(table.X, table.X_test, everything=name == "amazon_access")
        return Data(Sample(X, table.y), Sample(X_test, table.y_test), table.n_classes)
    data = sets.load(name, seed)
    train, test = data.train.first(n_rows), data.test.first(TEST_ROWS)
    if data.categories:
        X, X_test = one_hot(train.X, test.X, everything=True)
    else:
        X, X_test = sparse.csr_matrix(train.X), sparse.csr_matrix(test.X)
    return Data(Sample(X, train.y), Sample(X_test, test.y), data.n_classes)


def one_hot(X: Any, X_test: Any, everything: bool) -> tuple[Any, Any]:
    """Return text, or everything, one-hot encoded, and numbers standardised; missing ones become 0."""
    numbers = [] if everything else [name for name in X if X[name].dtype.kind in "fiub"]
    text = X.columns.difference(numbers)
    encoder = OneHotEncoder(handle_unknown="ignore", min_frequency=2).fit(X[text].astype(str))
    mean, deviation = X[numbers].mean(), X[numbers].std().replace(0, 1)

    def encode(rows: Any) -> Any:
        scaled = ((rows[numbers] - mean) / deviation).fillna(0).to_numpy(np.float64)
        return sparse.hstack([encoder.transform(rows[text].astype(str)), sparse.csr_matrix(scaled)]).tocsr()

    return encode(X), encode(X_test)


def loss(model: Any, data: Data) -> float:
    model.fit(data.train.X, data.train.y)
    if data.n_classes:
        return loss_of(model.predict_proba(data.test.X), data.test.y, data.n_classes)
    return error_of(model.predict(data.test.X), data.test.y, 0)


def losses(name: str, seed: int) -> list[float]:
    data = load(name, seed)
    ours = TensorMachineClassifier if data.n_classes else TensorMachineRegressor
    linear = (
        LogisticRegressionCV(Cs=[0.01, 0.1, 1, 10, 100], cv=3, max_iter=300)
        if data.n_classes
        else RidgeCV(np.logspace(-2, 3, 8))
    )
    return [*(loss(ours(basis=basis, random_state=seed), data) for basis in BASES), loss(linear, data)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=(*CHOSEN_ON, *CONFIRMED_ON))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(head(["set", *(f"basis={basis!r}" for basis in BASES), "linear", "scaled / standard"]))
    for name in arguments.sets:
        found = np.array([losses(name, seed) for seed in arguments.seeds])
        ratio = np.exp(np.mean(np.log(found[:, 2] / found[:, 0])))
        print(row([name, *(f"{mean:.4f}" for mean in found.mean(axis=0)), f"{ratio:.3f}"]), flush=True)
    print_facts(arguments.seeds)


if __name__ == "__main__":
    main()
