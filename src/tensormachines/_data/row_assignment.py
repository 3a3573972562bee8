"""Assignment of rows: to the minibatches of a sum, to the held-out rows, or to a sample.

The assignment depends only on a seed and the number of a row, so that any range of rows, on any machine, can
be assigned without knowing the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PAGE = 1 << 16  # rows whose random numbers are drawn together
DEAL, HOLD_OUT, SAMPLE = 0, 1, 2  # streams of random numbers


def part_count(n_rows: int) -> int:
    """Return the number of minibatches of Yang & Gittens, max(30, sqrt(rows) / 10), or of rows if smaller."""
    return max(1, min(max(30, int(np.sqrt(n_rows) / 10)), n_rows))


def deal(first: int, n_rows: int, n_parts: int, seed: int) -> np.ndarray:
    """Return the part of each of the rows first, ..., first + n_rows - 1.

    As with cards, of every n_parts consecutive rows each part gets one, at random. So parts are equally
    large, and represent the rows evenly even if these are sorted."""
    rounds = max(PAGE // n_parts, 1)

    def page(number: int) -> np.ndarray:
        keys = np.random.default_rng([seed, DEAL, number]).random((rounds, n_parts), dtype=np.float32)
        return keys.argsort(axis=1).ravel()

    return _stretch(page, rounds * n_parts, first, n_rows)


def held_out(first: int, n_rows: int, fraction: float, seed: int) -> np.ndarray:
    """Tell whether each of the rows first, ..., first + n_rows - 1 is held out."""

    def page(number: int) -> np.ndarray:
        return np.random.default_rng([seed, HOLD_OUT, number]).random(PAGE) < fraction

    return _stretch(page, PAGE, first, n_rows)


def priorities(first: int, n_rows: int, seed: int) -> np.ndarray:
    """Return a random number for each of the rows first, ..., first + n_rows - 1: the rows with the smallest
    numbers are a sample of all rows.
    """

    def page(number: int) -> np.ndarray:
        return np.random.default_rng([seed, SAMPLE, number]).random(PAGE)

    return _stretch(page, PAGE, first, n_rows)


def smallest(keys: np.ndarray, most: int) -> np.ndarray:
    """Return the positions of the ``most`` smallest keys, in order."""
    if len(keys) <= most:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, most)[:most])


def _stretch(page: Callable[[int], np.ndarray], length: int, first: int, n_rows: int) -> np.ndarray:
    numbers = range(first // length, (first + max(n_rows, 1) - 1) // length + 1)
    offset = first - numbers[0] * length
    return np.concatenate([page(number) for number in numbers])[offset : offset + n_rows]
