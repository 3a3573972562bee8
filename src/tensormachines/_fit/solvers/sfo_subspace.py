"""The subspace of SFO: orthonormal directions, and coordinates along them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._model import native
from .state import FLAG, VALUE, Entry, Number, like, same

SMALL_SHARE = 1e-3  # outside the subspace: a smaller length, as a difference of squares, would lose digits
COLUMNS_AT_ONCE = 2048


class Subspace:
    """Points origin + coordinates @ directions, with orthonormal directions that grow up to a capacity.

    Coordinates are float64, (size,); vectors have the length and type of ``origin``. If the capacity is that
    of the whole space, the coordinates are the vector itself, and nothing is stored.

    A pass over the directions costs as much as everything else in a step, so there are only two: one for the
    products of a new vector with the directions, one for the next point. Gram-Schmidt done twice would take
    three more. Its second round corrects for directions that are not quite orthonormal; here this defect is
    measured instead, in a pass that is needed anyway:

        defect = directions @ directions.T - I,      inside = (I + defect)^-1 directions @ vector

    A new direction is (vector - inside @ directions) / left. It is pending until the next point is requested;
    until then its row holds the vector.
    """

    def __init__(self, origin: np.ndarray, capacity: int):
        self.whole = capacity >= len(origin)
        self.capacity = len(origin) if self.whole else capacity
        stored = 0 if self.whole else capacity
        self.origin = np.zeros_like(origin) if self.whole else origin.copy()
        self.directions = np.zeros((stored, len(origin)), dtype=origin.dtype)
        self.size = len(origin) if self.whole else 0
        self.defect = np.zeros((stored, stored))
        self.measured = 0  # directions whose defect is known: all, or all but the last
        self.pending = False
        self.inside = np.zeros(stored)  # of the pending direction
        self.left = 0.0

    def entries(self, size: int) -> dict[str, Entry]:
        """Return the allowed attributes of a space of this size, see `state`."""
        arrays = ("origin", "directions", "defect", "inside")
        return {
            **{name: like(getattr(self, name)) for name in arrays},
            "whole": same(self.whole),
            "capacity": same(self.capacity),
            "size": Number(int, low=self.size if self.whole else 0, high=self.capacity),
            "measured": Number(int, low=0, high=size),
            "pending": FLAG if size and not self.whole else same(False),
            "left": VALUE,
        }

    @property
    def full(self) -> bool:
        return not self.whole and self.size == self.capacity

    def point(self, coordinates: np.ndarray) -> np.ndarray:
        if self.whole:
            return coordinates.astype(self.origin.dtype)
        result = np.empty_like(self.origin)
        if not self.pending:
            combinations(self.directions, coordinates, self.origin, 1.0, result)
            return result
        last = self.directions[self.size - 1]
        combinations(
            self.directions, coordinates[:-1], self.origin, 1.0, result, *self._pending_combination()
        )
        self.pending = False
        result += last.dtype.type(coordinates[-1]) * last
        return result

    def vector(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the vector of a difference of coordinates: `point` without the origin."""
        if self.whole:
            return coordinates
        self._settle()
        result = np.empty_like(self.origin)
        combinations(self.directions, coordinates, self.origin, 0.0, result)
        return result

    def coordinates(self, vector: np.ndarray) -> np.ndarray:
        """Return the coordinates of a difference; the last one may belong to a newly added direction."""
        if self.whole:
            return vector.astype(np.float64)
        self._settle()
        K = self.size
        self.directions[K] = vector
        coordinates = np.empty(K + 1)
        square, rest = self._project(coordinates)
        if not rest > SMALL_SHARE**2 * square:
            return self._coordinates_in_two_rounds(coordinates[:K], math.sqrt(square))
        self.left = coordinates[K] = math.sqrt(rest)
        self.inside[:K] = coordinates[:K]
        self.pending = True
        self.size = K + 1
        return coordinates

    def rotate(self, kept: np.ndarray, center: np.ndarray) -> None:
        """Keep the directions in the columns of ``kept`` (size, fewer), and move the origin to ``center``."""
        K, fewer = kept.shape
        self.origin = self.point(center)
        # Unknown, and measured with all others below.
        self.defect[self.measured : K, :K] = self.defect[:K, self.measured : K] = 0
        # kept - defect @ kept / 2 makes the new directions orthonormal to the second order of the defect.
        turn = np.ascontiguousarray(
            (kept - 0.5 * (self.defect[:K, :K] @ kept)).T.astype(self.directions.dtype)
        )
        self._turn(turn)
        self.defect[:fewer, :fewer] = gram(self.directions, fewer) - np.eye(fewer)
        self.size = self.measured = fewer

    def _turn(self, turn: np.ndarray) -> None:
        fewer, K = turn.shape
        length = self.directions.shape[1]
        block = np.empty((fewer, min(length, COLUMNS_AT_ONCE)), dtype=turn.dtype)
        for start in range(0, length, COLUMNS_AT_ONCE):
            old = self.directions[:K, start : start + COLUMNS_AT_ONCE]
            new = block[:, : old.shape[1]]
            np.matmul(turn, old, out=new)
            old[:fewer] = new

    def _project(self, coordinates: np.ndarray) -> tuple[float, float]:
        """Write the coordinates of the vector in row ``size``; return its squared length and that of the
        rest."""
        learn, self.measured = bool(self.measured < self.size), self.size
        return (native.extension.project if native.extension is not None else numpy_project)(
            self.directions, self.size, learn, self.defect, coordinates
        )

    def _pending_combination(self) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        last = self.directions[self.size - 1]
        return self.inside[: self.size - 1] / -self.left, last, 1 / self.left, last

    def _settle(self) -> None:
        if self.pending:
            combinations(self.directions, *self._pending_combination())
            self.pending = False

    def _coordinates_in_two_rounds(self, inside: np.ndarray, length: float) -> np.ndarray:
        """Return the coordinates of the vector in row ``size`` if it lies almost inside the subspace."""
        K = self.size
        rest = self.directions[K]
        combinations(self.directions, -inside, rest, 1.0, rest)
        again = np.empty(K + 1)
        once, _ = self._project(again)
        combinations(self.directions, -again[:K], rest, 1.0, rest)
        again[:K] += inside
        again[K] = left = float(np.linalg.norm(rest))
        if not left > max(0.5 * math.sqrt(once), float(np.finfo(rest.dtype).eps) * length):
            return again[:K]  # the rest is rounding error
        rest /= left
        self.size = K + 1
        return again


# ---- passes over the directions, compiled and in NumPy: at most two results at once, sums in float64


def numpy_project(
    rows: np.ndarray, size: int, learn: bool, defect: np.ndarray, coordinates: np.ndarray
) -> tuple[float, float]:
    """Project the vector in row ``size``; if ``learn``, measure the defect of row ``size - 1`` first."""
    inner = products(rows, size + 1)
    if learn and size:
        own = products(rows, size)
        own[-1] -= 1
        defect[size - 1, :size] = defect[:size, size - 1] = own
    coordinates[:size] = inner[:size] - defect[:size, :size] @ inner[:size]
    return inner[size], inner[size] - coordinates[:size] @ inner[:size]


def products(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the products of the first ``count`` rows with the last of them."""
    result = np.zeros(count)
    for start in range(0, rows.shape[1], COLUMNS_AT_ONCE):
        wide = rows[:count, start : start + COLUMNS_AT_ONCE].astype(np.float64)
        result += wide @ wide[-1]
    return result


def gram(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the products of the first ``count`` rows with each other."""
    result = np.zeros((count, count))
    if native.extension is not None:
        native.extension.gram(rows, count, result)
    else:
        for start in range(0, rows.shape[1], COLUMNS_AT_ONCE):
            wide = rows[:count, start : start + COLUMNS_AT_ONCE].astype(np.float64)
            result += wide @ wide.T
    return result


def combinations(
    rows: np.ndarray,
    coefficients: np.ndarray,
    vector: np.ndarray,
    scale: float,
    result: np.ndarray,
    other_coefficients: Any = None,
    other_vector: Any = None,
    other_scale: float = 0.0,
    other_result: Any = None,
) -> None:
    """Set result = scale * vector + coefficients @ rows[:len(coefficients)], and the same for the others.

    A result may be its vector.
    """
    others = other_coefficients, other_vector, other_scale, other_result
    (native.extension.combinations if native.extension is not None else numpy_combinations)(
        rows, len(coefficients), coefficients, vector, scale, result, *others
    )


def numpy_combinations(
    rows: np.ndarray,
    count: int,
    coefficients: np.ndarray,
    vector: np.ndarray,
    scale: float,
    result: np.ndarray,
    *others: Any,
) -> None:
    for start in range(0, rows.shape[1], COLUMNS_AT_ONCE):
        columns = slice(start, start + COLUMNS_AT_ONCE)
        result[columns] = scale * vector[columns].astype(np.float64) + coefficients @ rows[
            :count, columns
        ].astype(np.float64)
    if others and others[0] is not None:
        numpy_combinations(rows, count, *others)
