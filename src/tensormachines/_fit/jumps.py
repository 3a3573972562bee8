"""Jumps: thresholds of numbers at which the target changes suddenly.

Splines are smooth, and blur a threshold over as many rows as a short wave covers. So thresholds are found
before a spline basis is learned, and get their own functions in it. Small regression trees find them, each
grown on the residuals of the previous trees (Friedman, "Greedy function approximation", 2001). But trees also
split where the target changes smoothly: a split is a jump only if a step adds much to a polynomial of the
rank, both among the rows of its node and among the rows near the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander

from .regression_tree import Bins, Tree

MOST_ENTRIES, FEWEST_ROWS = 1 << 19, 500  # of the rows examined: columns times rows, and rows
TREES, LEAVES, RATE = 4, 32, 0.5
LEAST_WEIGHT = 5.0  # on each side of a step, in rows
SMOOTH_DEGREE = 4  # of the polynomials that a jump is compared with
CUTOFF = 50.0  # sum of squares that a step explains, in units of the noise: about 1 where nothing jumps
NEAR, NEAR_DEGREE, CUTOFF_NEAR = 0.2, 3, 20.0  # the same among this share of the rows on each side
ROUNDING = 1e-9  # share of the sum of squares that may be rounding error
MOST_JUMPS, MOST_OF_COLUMN = 32, 8


class Jump(NamedTuple):
    """A threshold, and the sum of squares of the target that a step there explains."""

    gain: float
    threshold: float


def find_jumps(
    X: np.ndarray, targets: np.ndarray, weight: np.ndarray, n_codes: Sequence[int | None]
) -> list[np.ndarray]:
    """Return the thresholds of each column, the most important ones first.

    ``targets`` is (rows, outputs), and ``n_codes`` has the number of codes of each category, None for a
    number. Trees split categories by their codes, but only thresholds of numbers are returned."""
    n_rows = max(FEWEST_ROWS, MOST_ENTRIES // max(1, X.shape[1]))
    some = np.random.default_rng(0).permutation(len(X))[:n_rows]
    X, weight = X[some].astype(np.float64), weight[some] / weight[some].mean()
    targets = targets[some] - np.average(targets[some], axis=0, weights=weight)
    bins, left = Bins.of(X), targets
    found: list[tuple[Jump, int]] = []
    for _ in range(TREES):
        tree = Tree(bins, weight, left, LEAVES)
        # The residuals of trees jump wherever they split, so look for jumps in the targets themselves.
        jumps = [
            (find_jump(X[rows, column], targets[rows], weight[rows]), column)
            for rows, column in tree.splits
            if n_codes[column] is None
        ]
        new = [(jump, column) for jump, column in jumps if jump is not None]
        if not new:
            break
        found += new
        left = tree.left(RATE)
    thresholds: list[list[float]] = [[] for _ in n_codes]
    for jump, column in sorted(found, reverse=True):
        of_column = thresholds[column]
        room = sum(map(len, thresholds)) < MOST_JUMPS and len(of_column) < MOST_OF_COLUMN
        if room and jump.threshold not in of_column:
            of_column.append(jump.threshold)
    return [np.array(of_column) for of_column in thresholds]


def find_jump(x: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> Jump | None:
    """Return the best jump of targets (rows, outputs) as x grows; None if a smooth function explains it.

    Look for the jump between bins first, and then between rows in the two bins around it."""
    bins = Bins.of(x[:, None])
    numbers = weight[:, None] * np.column_stack([np.ones(len(x)), targets, np.sum(targets**2, axis=1)])
    sums = bins.sums(np.arange(len(x)), numbers)[:-1]  # without missing entries
    if len(sums) < SMOOTH_DEGREE + 2:
        return None
    smooth = Smooth.of(sums, SMOOTH_DEGREE)
    best, gain = smooth.steps.best(np.arange(len(sums) - 1))
    noise = smooth.noise(gain)
    if not (gain > CUTOFF * noise and _is_sudden(sums, best, noise)):
        return None
    codes = bins.codes[:, 0]
    near = np.flatnonzero((codes == best) | (codes == best + 1))
    near = near[np.argsort(x[near], kind="stable")]
    values = x[near]
    before = smooth.steps.up_to(best)
    within = before.followed_by(numbers[near, :-1], smooth.Q[codes[near]], smooth.values[codes[near]])
    end, _ = within.best(np.flatnonzero(np.diff(values) > 0))
    return Jump(gain, float(0.5 * values[end] + 0.5 * values[end + 1]))


def _is_sudden(sums: np.ndarray, jump: int, noise: float) -> bool:
    """Tell whether the jump is also visible among nearby bins, where a curve is nearly a straight line."""
    reached = np.cumsum(sums[:, 0])
    around = np.flatnonzero(np.abs(reached - reached[jump]) <= NEAR * reached[-1])
    some, place = sums[around[0] : around[-1] + 1], jump - around[0]
    if min(place + 1, len(some) - place - 1) < 2:
        return True  # too few values to tell
    _, gain = Smooth.of(some, NEAR_DEGREE).steps.best(np.array([place]))
    return gain > CUTOFF_NEAR * noise


class Sums(NamedTuple):
    """Cumulative sums of the weight, of residuals and of Q (see `Smooth`) after each bin or row in order, and
    the ``total`` of the weight."""

    weight: np.ndarray
    residual: np.ndarray
    Q: np.ndarray
    total: float

    def up_to(self, place: int) -> Sums:
        """Return the sums before one place; 0 before the first."""
        if not place:
            return Sums(self.weight[:1] * 0, self.residual[:1] * 0, self.Q[:1] * 0, self.total)
        before = slice(place - 1, place)
        return Sums(self.weight[before], self.residual[before], self.Q[before], self.total)

    def followed_by(self, numbers: np.ndarray, Q: np.ndarray, smooth: np.ndarray) -> Sums:
        """Return the sums after each of some more bins or rows, with their weights and targets."""
        weight, targets = numbers[:, 0], numbers[:, 1:]
        return Sums(
            self.weight + np.cumsum(weight),
            self.residual + np.cumsum(targets - weight[:, None] * smooth, axis=0),
            self.Q + np.cumsum(weight[:, None] * Q, axis=0),
            self.total,
        )

    def best(self, ends: np.ndarray) -> tuple[int, float]:
        """Return the place after which a step explains most, and how much it explains."""
        weight = self.weight[ends]
        rest = weight - np.sum(self.Q[ends] ** 2, axis=1)
        possible = np.minimum(weight, self.total - weight) >= LEAST_WEIGHT
        possible &= rest > 1e-6 * self.total
        explained = np.zeros(len(ends))
        np.divide(np.sum(self.residual[ends] ** 2, axis=1), rest, out=explained, where=possible)
        best = int(np.argmax(explained))
        return int(ends[best]), float(explained[best])


@dataclass(frozen=True)
class Smooth:
    """The polynomial of the rank that best fits the targets, and what steps explain of the residuals.

    With an orthonormal basis Q of polynomials and residuals r, a step s that is 1 up to a threshold explains
    (s'r)^2 / (s's - |Q's|^2). ``Q`` and the ``values`` of the polynomial are for a row of weight 1 in each
    bin; ``of_targets`` is the sum of squares of the targets, and ``squares`` the part that the polynomial
    does not explain."""

    Q: np.ndarray
    values: np.ndarray
    of_targets: float
    squares: float
    steps: Sums

    @classmethod
    def of(cls, sums: np.ndarray, degree: int) -> Smooth:
        """Return the polynomial for the sums of weight, targets and squares in bins, (bins, outputs + 2)."""
        weight, targets = sums[:, 0], sums[:, 1:-1]
        root, total = np.sqrt(weight)[:, None], float(weight.sum())
        rank = 2 * (np.cumsum(weight) - weight / 2) / total - 1
        orthonormal = np.linalg.qr(root * legvander(rank, degree))[0]
        coef = orthonormal.T @ (targets / root)
        Q, values = orthonormal / root, (orthonormal @ coef) / root
        none = Sums(np.zeros(1), np.zeros((1, targets.shape[1])), np.zeros((1, degree + 1)), total)
        squares = float(sums[:, -1].sum())
        return cls(
            Q, values, squares, squares - float(np.sum(coef**2)), none.followed_by(sums[:, :-1], Q, values)
        )

    def noise(self, gain: float) -> float:
        """Return the mean square of the targets that neither the polynomial nor a step explains. Allow for
        rounding errors: if all targets are equal, every step explains some of these."""
        freedom = self.steps.total - self.Q.shape[1] - 1
        return max(self.squares - gain, ROUNDING * self.of_targets) / max(1.0, freedom)
