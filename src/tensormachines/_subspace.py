"""A few directions in which all happens."""

from __future__ import annotations

import numpy as np


class Subspace:
    """Points origin + coordinates @ directions, where the directions are orthonormal and grow up to a capacity.

    Coordinates are float64, (size,); vectors have the length and type of ``origin``. Where the capacity is all of the space, the
    coordinates are the vector itself, and nothing is stored.
    """

    def __init__(self, origin: np.ndarray, capacity: int):
        self.whole = capacity >= len(origin)
        self.capacity = len(origin) if self.whole else capacity
        self.origin = np.zeros_like(origin) if self.whole else origin.copy()
        self.directions = np.empty((0 if self.whole else capacity, len(origin)), dtype=origin.dtype)
        self.size = len(origin) if self.whole else 0

    @property
    def full(self) -> bool:
        return not self.whole and self.size == self.capacity

    def point(self, coordinates: np.ndarray) -> np.ndarray:
        if self.whole:
            return coordinates.astype(self.origin.dtype)
        return coordinates.astype(self.origin.dtype) @ self.directions[: self.size] + self.origin

    def vector(self, coordinates: np.ndarray) -> np.ndarray:
        """Like `point`, of a difference: without the origin."""
        return coordinates if self.whole else coordinates @ self.directions[: self.size]

    def coordinates(self, vector: np.ndarray) -> np.ndarray:
        """Coordinates of a difference, after adding the direction that it lacks: the last of them may be new."""
        if self.whole:
            return vector.astype(np.float64)
        known = self.directions[: self.size]
        inside = known @ vector
        rest = vector - inside @ known
        once = float(np.linalg.norm(rest))
        # Once is not enough: the new share of a gradient is small, and what one round leaves of the old would grow from step to step.
        again = known @ rest
        rest -= again @ known
        inside += again
        left = float(np.linalg.norm(rest))
        if not left > 0.5 * once:  # nothing but rounding is left
            return inside.astype(np.float64)
        np.multiply(rest, 1 / left, out=self.directions[self.size])
        self.size += 1
        return np.append(inside.astype(np.float64), left)

    def rotate(self, kept: np.ndarray, center: np.ndarray) -> None:
        """Keep the directions that the columns of ``kept`` (size, fewer) name, and move the origin to the coordinates ``center``."""
        self.origin = self.point(center)
        self.directions[: kept.shape[1]] = kept.T.astype(self.origin.dtype) @ self.directions[: self.size]
        self.size = kept.shape[1]
