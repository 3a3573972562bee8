"""The features of feature_table.py, each with the check that it has to pass.

A check takes what a library offers, most often a function ``fit(X, y)`` that returns ``predict(X)``, tries it
on generated rows, and returns the mark in the table. It raises an error if the feature does not do what it
says.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from timing import memory

ROWS, TEST = 800, slice(800, 2400)
TRAIN = slice(0, ROWS)
COLOURS = np.array(["blue", "green", "red", "white", "yellow"])
Fit = Callable[..., Any]


def random() -> np.random.Generator:
    return np.random.default_rng(0)


def uniform(n_columns: int) -> np.ndarray:
    return random().uniform(0, 1, (TEST.stop, n_columns))


def noise(deviation: float) -> np.ndarray:
    return deviation * np.random.default_rng(1).standard_normal(TEST.stop)


def r2(predicted: Any, y: np.ndarray) -> float:
    """Return the share of variance explained; predictions must have the shape of y."""
    predicted = np.asarray(predicted, dtype=float)
    assert predicted.shape == y.shape, f"shape {predicted.shape} for targets of shape {y.shape}"
    return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean(axis=0)) ** 2))


def above(value: float, least: float) -> None:
    assert value > least, f"{value:.3f} is not above {least}"


def between(value: float, least: float, most: float) -> None:
    assert least <= value <= most, f"{value:.3f} is not between {least} and {most}"


def learns(fit: Fit, X: Any, y: np.ndarray, least: float = 0.8) -> None:
    above(r2(fit(X[TRAIN], y[TRAIN])(X[TEST]), y[TEST]), least)


def coloured() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return columns of text and of numbers, and a target in which the colours are in no order."""
    size, colour = uniform(1)[:, 0], random().integers(0, 5, TEST.stop)
    return {"size": size, "colour": COLOURS[colour]}, size + np.array([0.0, 3, 1, 4, 2])[colour] + noise(0.2)


def text(fit: Fit) -> str:
    import pandas

    columns, y = coloured()
    learns(fit, pandas.DataFrame(columns), y)
    return "yes"


def missing(fit: Fit) -> str:
    """Missing numbers that tell something."""
    X, gone = uniform(3), random().random(TEST.stop) < 0.3
    y = np.where(gone, 1.0, 2 * X[:, 0]) + X[:, 1] + noise(0.1)
    X[gone, 0] = np.nan
    learns(fit, X, y)
    return "yes"


def dates(fit: Fit) -> str:
    """Half of the variance is a change over time, half depends on the day of the week."""
    import pandas

    days = random().integers(0, 1000, TEST.stop)
    frame = pandas.DataFrame({"size": uniform(1)[:, 0], "when": pandas.Timestamp("2023-01-02")})
    frame["when"] += pandas.to_timedelta(days, unit="D")
    y = days / 300 + 2.0 * (days % 7 > 4) + noise(0.1)
    found = r2(fit(frame[TRAIN], y[TRAIN])(frame[TEST]), y[TEST])
    above(found, 0.3)
    return "yes" if found > 0.9 else "as one number"


def polars(fit: Fit) -> str:
    import polars

    columns, y = coloured()
    frame = polars.DataFrame(columns)
    numbers = polars.DataFrame(uniform(3), schema=["a", "b", "c"])
    learns(fit, numbers, numbers["a"].to_numpy() + numbers["b"].to_numpy() ** 2)
    try:
        learns(fit, frame, y)
    except Exception:  # whatever a library raises
        return "numbers only"
    return "yes"


def sparse(fit: Fit) -> str:
    from scipy.sparse import csr_matrix

    dense = np.where(random().random((TEST.stop, 50)) < 0.1, uniform(50), 0.0)
    learns(fit, csr_matrix(dense), 5 * dense[:, 0] - 5 * dense[:, 1], 0.7)
    return "yes"


def weights(fit: Fit) -> str:
    """Half of the training rows are wrong, and have next to no weight: some libraries refuse weights of 0."""
    X = uniform(3)
    y, wrong = 3 * X[:, 0] + X[:, 1] + noise(0.1), random().random(ROWS) < 0.5
    given = np.where(wrong, -20.0, y[TRAIN])
    above(r2(fit(X[TRAIN], given, np.where(wrong, 1e-6, 1.0))(X[TEST]), y[TEST]), 0.8)
    return "yes"


def targets(fit: Fit) -> str:
    X = uniform(3)
    y = np.column_stack([3 * X[:, 0] + X[:, 1], X[:, 1] - 3 * X[:, 2]]) + noise(0.1)[:, None]
    learns(fit, X, y)
    return "yes"


def classes(fit: Fit) -> str:
    """Probabilities of three classes."""
    X = uniform(2)
    y = np.digitize(X[:, 0] + X[:, 1], [0.7, 1.3])
    found = fit(X[TRAIN], y[TRAIN])(X[TEST])
    assert found.shape == (TEST.stop - ROWS, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    above(np.mean(found.argmax(axis=1) == y[TEST]), 0.85)
    return "yes"


def labels(fit: Fit) -> str:
    """Probabilities of three labels, of which a row may have all or none."""
    X = uniform(3)
    y = np.column_stack([X[:, 0] + X[:, 1] > 1, X[:, 1] > 0.4, X[:, 2] < 0.6]).astype(int)
    found = fit(X[TRAIN], y[TRAIN])(X[TEST])
    assert found.shape == y[TEST].shape, f"shape {found.shape} for labels of shape {y[TEST].shape}"
    between(float(found.min()), 0, 0.5)
    between(float(found.max()), 0.5, 1)
    above(np.mean((found > 0.5) == y[TEST], axis=0).min(), 0.9)
    return "yes"


def own_loss(fit: Fit) -> str:
    """An asymmetric squared error: the function takes y and z, and returns losses and two derivatives."""

    def loss(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size = np.where(y > z, 0.8, 0.2)
        return size * (y - z) ** 2, 2 * size * (z - y), 2 * size

    X = uniform(2)
    y = 3 * X[:, 0] + random().exponential(0.5, TEST.stop)
    error = y[TEST] - fit(loss)(X[TRAIN], y[TRAIN])(X[TEST])
    between(0.8 * np.maximum(error, 0).sum() / (0.2 * np.maximum(-error, 0).sum()), 0.5, 2)
    above(np.var(y[TEST]) / np.var(error), 2)
    return "yes"


def ranking(fit: Fit) -> str:
    """Order rows within groups of ten, each with a level of its own that does not matter."""
    X, groups = uniform(2), np.repeat(np.arange(TEST.stop // 10), 10)
    y = np.digitize(X[:, 0] + noise(0.05), [0.25, 0.5, 0.75])
    scores = fit(X[TRAIN], y[TRAIN], groups[TRAIN])(X[TEST]).reshape(-1, 10)
    truth = y[TEST].reshape(-1, 10)
    higher = truth[:, :, None] > truth[:, None, :]
    above(np.mean((scores[:, :, None] > scores[:, None, :])[higher]), 0.85)
    return "yes"


def counts_and_costs(fit: Fit) -> str:
    """``fit(loss)`` is a fit with that loss, or None. Predictions are means, and above 0."""
    from sklearn.metrics import mean_tweedie_deviance

    X = uniform(2)
    mean = np.exp(3 * X[:, 0] + X[:, 1] - 1)
    count, cost = random().poisson(mean), random().gamma(2, mean / 2)
    claims = np.where(random().random(TEST.stop) < 0.6, cost / 0.6, 0.0)
    found = []
    for loss, y, power in (("Poisson", count, 1.0), ("gamma", cost, 2.0), ("Tweedie", claims, 1.5)):
        model = fit(loss)
        if model is None:
            continue
        predicted = np.asarray(model(X[TRAIN], y[TRAIN].astype(float))(X[TEST]), dtype=float)
        assert predicted.min() > 0
        constant = np.full(len(predicted), y[TRAIN].mean())
        deviances = [mean_tweedie_deviance(y[TEST], each, power=power) for each in (predicted, constant)]
        above(deviances[1] / deviances[0], 1.05)
        between(predicted.mean() / mean[TEST].mean(), 0.75, 1.25)
        found.append(loss)
    return "yes" if len(found) == 3 else " and ".join(found)


def spread() -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets with skewed noise, four times as large where the first column is large."""
    X = uniform(2)
    return X, 2 * X[:, 1] + (0.2 + 0.6 * (X[:, 0] > 0.5)) * random().exponential(size=TEST.stop)


def shares_below(predicted: np.ndarray, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the shares of targets below the predictions, among rows with little and with much noise."""
    return [float(np.mean(y[part] <= predicted[part])) for part in (X[:, 0] < 0.5, X[:, 0] >= 0.5)]


def quantile(fit: Fit) -> str:
    """``fit(level)`` is a fit: 80 % of the rows are below."""
    X, y = spread()
    predicted = np.asarray(fit(0.8)(X[TRAIN], y[TRAIN])(X[TEST]))
    for share in shares_below(predicted, X[TEST], y[TEST]):
        between(share, 0.68, 0.92)
    return "yes"


def quantiles(fit: Fit) -> str:
    """``fit(levels)`` is a fit that predicts (n_samples, n_levels)."""
    X, y = spread()
    levels = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9]
    predict = fit(levels)(X[TRAIN], y[TRAIN])
    for level, column in zip(levels, np.asarray(predict(X[TEST])).T, strict=True):
        between(float(np.mean(y[TEST] <= column)), level - 0.12, level + 0.12)
    anywhere = np.asarray(predict(np.random.default_rng(2).uniform(0, 1, (10_000, 2))))
    crossed = np.mean((np.diff(anywhere, axis=1) < -1e-9).any(axis=1))
    return "yes" if crossed == 0 else f"{100 * crossed:.2g} % of rows cross"


def intervals(fit: Fit) -> str:
    """Intervals that contain nine of ten new targets, whether there is little noise or much."""
    X, y = spread()
    bounds = np.asarray(fit(0.9)(X[TRAIN], y[TRAIN])(X[TEST]))
    inside = (bounds[:, 0] <= y[TEST]) & (y[TEST] <= bounds[:, 1])
    between(float(inside.mean()), 0.85, 0.96)
    halves = [float(inside[part].mean()) for part in (X[TEST, 0] < 0.5, X[TEST, 0] >= 0.5)]
    return "yes" if min(halves) > 0.8 and max(halves) < 0.98 else "same width everywhere"


def offset(fit: Fit) -> str:
    """Counts of rows that were seen for a longer or a shorter time."""
    X, logarithm = uniform(2), random().uniform(-1.5, 1.5, TEST.stop)
    rate = np.exp(2 + X[:, 0])
    y = random().poisson(rate * np.exp(logarithm)).astype(float)
    predict = fit(X[TRAIN], y[TRAIN], logarithm[TRAIN])
    none, factor = np.zeros(len(X[TEST])), np.full(len(X[TEST]), np.log(2))
    try:
        found, doubled = np.asarray(predict(X[TEST], none)), np.asarray(predict(X[TEST], factor))
    except TypeError:  # no argument for it
        found, doubled = np.asarray(predict(X[TEST])), None
    between(float(np.mean(np.log(found) - np.log(rate[TEST]))), -0.1, 0.1)
    above(0.2, float(np.std(np.log(found) - np.log(rate[TEST]))))
    if doubled is None:
        return "in the fit only"
    np.testing.assert_allclose(doubled, 2 * found, rtol=1e-5)
    return "yes"


def joint(predict: Fit, X: np.ndarray, first: int, second: int) -> float:
    """Return the largest difference by which two columns do not add up: 0 if they do not interact."""

    def at(*columns: int) -> np.ndarray:
        rows = X.copy()
        rows[:, columns] = X[::-1, columns]
        return np.asarray(predict(rows), dtype=float)

    return float(np.abs(at(first, second) - at(first) - at(second) + at()).max())


def monotonic(fit: Fit) -> str:
    """The first column may only raise predictions, although at its end the targets fall."""
    X = uniform(3)
    y = 4 * X[:, 0] * X[:, 1] - 6 * np.maximum(X[:, 0] - 0.8, 0) + X[:, 2] + noise(0.1)
    predict = fit(X[TRAIN], y[TRAIN])
    above(r2(predict(X[TEST]), y[TEST]), 0.5)
    grid = np.repeat(X[TEST][:40], 101, axis=0)
    grid[:, 0] = np.tile(np.linspace(0, 1, 101), 40)
    steps = np.diff(np.asarray(predict(grid), dtype=float).reshape(40, 101), axis=1)
    above(float(steps.min()), -1e-5)
    above(float(steps.max()), 1e-3)
    return "yes" if joint(predict, X[TEST], 0, 1) > 0.1 else "not in interactions"


def limits(fit: Fit) -> str:
    """Columns 0 and 1 may interact, and 2 and 3, but not 0 and 2, although they do in the targets."""
    X = uniform(4)
    y = 4 * X[:, 0] * X[:, 1] + 4 * X[:, 2] * X[:, 3] + 4 * X[:, 0] * X[:, 2] + noise(0.1)
    predict = fit(X[TRAIN], y[TRAIN])
    above(r2(predict(X[TEST]), y[TEST]), 0.7)
    for pair in ((0, 1), (2, 3)):
        above(joint(predict, X[TEST], *pair), 0.2)
    for pair in ((0, 2), (0, 3), (1, 2), (1, 3)):
        above(1e-4, joint(predict, X[TEST], *pair))
    return "yes"


def validation(fit: Fit) -> str:
    """``fit(X, y, X_val, y_val)`` returns a number of iterations, which falls if y_val is mixed up."""
    X = uniform(3)
    y = np.sin(6 * X[:, 0]) + X[:, 1] + noise(0.1)
    rows = X[TRAIN], y[TRAIN], X[TEST]
    helped, mixed_up = fit(*rows, y[TEST]), fit(*rows, random().permutation(y[TEST]))
    assert mixed_up < helped, f"{mixed_up} iterations, {helped} with validation rows that help"
    return "yes"


def warm_start(fit: Fit) -> str:
    """``fit(X, y)`` returns predictions of a short fit, and of the same model after it went on."""
    X = uniform(3)
    y = np.exp(3 * X[:, 0] + X[:, 1])
    first, second = (np.mean((np.asarray(each) - y) ** 2) for each in fit(X, y))
    above(first / second, 1.1)
    return "yes"


def files(fit: Fit) -> str:
    """``fit(paths)`` gets files, target in the first column. Memory may grow by half of the rows added."""
    n_parts, shape = 16, (40_000, 16)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:02}.npy" for number in range(n_parts)]
        for number, path in enumerate(paths):
            rows = np.random.default_rng(number).uniform(0, 1, shape)
            rows[:, 0] = 3 * rows[:, 1] + rows[:, 2]
            np.save(path, rows)
        _, of_few = with_peak(lambda: fit(paths[:4]))
        predict, of_all = with_peak(lambda: fit(paths))
        above(r2(predict(rows[:2000, 1:]), rows[:2000, 0]), 0.5)
    added = (n_parts - 4) * rows.nbytes / 2**20
    assert of_all - of_few < added / 2, f"{of_all - of_few:.0f} MB more for {added:.0f} MB more of rows"
    return "yes"


def with_peak(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the call returns, and the most memory that this process had meanwhile, in MB, without pages
    of files, which the system may drop."""
    seen, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.append(memory("RssAnon"))
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = call()
    finally:
        done.set()
        watcher.join()
    return result, max(seen)


def parts(fit: Fit) -> str:
    """``fit(X, y)`` returns predict and a function that splits predictions into parts by columns."""
    X = uniform(4)
    y = 4 * X[:, 0] * X[:, 1] + np.sin(6 * X[:, 2]) + noise(0.1)
    predict, split = fit(X[TRAIN], y[TRAIN])
    rows = X[TEST]
    above(r2(predict(rows), y[TEST]), 0.5)
    found = split(rows)
    np.testing.assert_allclose(sum(found.values()), predict(rows), atol=1e-4)
    above(float(max(np.std(part) for part in found.values())), 0.1)
    for columns in found:  # a function of these columns does not change if the others do
        others = [column for column in range(4) if column not in columns]
        changed = rows.copy()
        changed[:, others] = rows[::-1, others]
        if np.abs(split(changed)[columns] - found[columns]).max() > 1e-6:
            return "SHAP values"
    return "functions of columns"


def export(fit: Fit) -> str:
    """``fit(X, y, folder)`` returns predict, and functions that run the exported model by language."""
    X = uniform(3).astype(np.float32).astype(float)
    y = X[:, 0] + np.sin(6 * X[:, 1])
    with tempfile.TemporaryDirectory() as folder:
        predict, languages = fit(X[TRAIN], y[TRAIN], Path(folder))
        for run in languages.values():
            np.testing.assert_allclose(run(X[TEST]), predict(X[TEST]), rtol=1e-6, atol=1e-6)
    return ", ".join(languages)
