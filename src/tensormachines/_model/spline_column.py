"""The functions of one column in the spline basis: those of a number, or the indicators of a category.

A number is replaced by up to ``waves`` smooth functions,

    sqrt(2 strength_k) cos(pi k u),  strength_k proportional to 1 / (1 + (pi k / roughness)^2),  k = 1, 2, ...

where u is the rank of the number, from 0 to 1, made continuous by straight lines between knots at quantiles;
so they are piecewise linear functions of the number. An equal penalty on the coefficients of these waves is a
prior on functions: it favours smooth ones, as an Ornstein-Uhlenbeck process of the rank does. A straight line
is added, because a rank forgets how far apart numbers are. If a trend was fitted (`_fit.trend`), a second
straight line follows, which is not clipped; only the linear parts use it. Where the target jumps
(`_fit.jumps`), an indicator of the numbers above the threshold is added. A number with a monotonic constraint
(`_fit.constraints`) has ramps instead of all these functions: each rises from one knot to the next. A
periodic number has only periodic waves: cosines and sines of whole cycles. A category is replaced by one
indicator per level. Missing entries also have an indicator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RAMP_HEIGHT = 3.0  # of one of many ramps, whose coefficients are all penalised


@dataclass(frozen=True)
class SplineShape:
    """The numbers that the functions of all columns share, see above.

    ``line`` is the standard deviation of a straight line, which is clipped at ``line_clip`` deviations from
    the mean; ``constant`` is the appended constant function."""

    constant: float = 0.5
    roughness: float = 3.0
    line: float = 0.6
    line_clip: float = 10.0


USUAL_SHAPE = SplineShape()


@dataclass(frozen=True)
class SplineColumn:
    """A column: its states, see `_model.spline_states.StateColumn`, and the functions of them.

    A category has one function per level; a number has ``waves``, and a line through ``mean`` unless its
    ``deviation`` is 0. The line of a ``trend`` extends to the first and the last knot if these are ``outer``
    knots, added outside the range of the training rows, where all other functions are constant. After each
    knot in ``jumps`` there is a jump: a function that rises from -1/2 to 1/2 before the next knot. The knots
    of a ``periodic`` number span one period, and its waves are the same at the first and the last knot."""

    knots: np.ndarray
    category: bool
    missing: bool
    reference: int
    waves: int
    mean: float
    deviation: float
    trend: bool = False
    outer: bool = False
    jumps: tuple[int, ...] = ()
    periodic: bool = False

    @property
    def n_states(self) -> int:
        return len(self.knots) + self.missing

    @property
    def n_lines(self) -> int:
        return int(self.deviation > 0)

    @property
    def trend_function(self) -> int | None:
        """Return the index of the function that is a straight line: the trend, or the only wave."""
        if self.trend:
            return self.waves + 1
        return 0 if self.waves == 1 and not (self.category or self.periodic) else None

    @property
    def ranks(self) -> np.ndarray:
        """Return the ranks of the knots: equally spaced, with the ranks of outer knots at the ends."""
        inner = np.linspace(0, 1, len(self.knots) - 2 * self.outer)
        return np.concatenate([[0.0], inner, [1.0]]) if self.outer else inner

    @property
    def width(self) -> int:
        return (len(self.knots) if self.category else self.first_jump + len(self.jumps)) + self.missing

    @property
    def n_numbers(self) -> int:
        """Return the number of functions that do not indicate a level or missing entries."""
        return 0 if self.category else self.width - self.missing

    @property
    def first_jump(self) -> int:
        """Return the index of the first jump among the functions, after waves and lines."""
        return self.waves + self.n_lines + self.trend

    def table(self, shape: SplineShape) -> np.ndarray:
        """Return the functions of a number at its states, (n_states, width).

        (Every state of a category has its own function.)
        """
        n_knots = len(self.knots)
        table = np.zeros((self.n_states, self.width))
        table[:n_knots, : self.waves] = self.waves_at_knots(shape.roughness)
        if self.n_lines:
            distance = (self.knots - self.mean) / self.deviation
            inner = np.clip(distance, *distance[[1, -2]]) if self.outer else distance
            table[:n_knots, self.waves] = shape.line * np.clip(inner, -shape.line_clip, shape.line_clip)
            if self.trend:
                table[:n_knots, self.waves + 1] = distance
        above = np.arange(n_knots)[:, None] > np.array(self.jumps, dtype=np.int64)
        # From -1/2 to 1/2: a missing entry is halfway if the fit had no missing entries.
        height = RAMP_HEIGHT if self.n_ramps else 1.0
        table[:n_knots, self.first_jump : self.first_jump + len(self.jumps)] = height * (above - 0.5)
        table[n_knots:, self.width - self.missing :] = 1.0
        return table

    def waves_at_knots(self, roughness: float) -> np.ndarray:
        """Return the waves (knots, waves)."""
        if not self.periodic:
            return cosines(self.ranks, self.waves, roughness)
        number = np.arange(self.waves)
        angles = 2 * np.pi * (number // 2 + 1) * (self.ranks % 1)[:, None]
        waves = np.where(number % 2 == 0, np.cos(angles), np.sin(angles))
        return np.sqrt(2 * self.strengths(roughness)) * waves

    def strengths(self, roughness: float) -> np.ndarray:
        """Return the strengths of the waves; the strengths of infinitely many waves would add up to 1."""
        if not self.periodic:
            return strengths(self.waves, roughness)
        # A cycle is as long as two half waves, and has a cosine and a sine.
        return np.repeat(strengths(-(-self.waves // 2), roughness / 2) / 2, 2)[: self.waves]

    @property
    def thresholds(self) -> list[float]:
        """Return the number with the fewest digits between the two knots of each jump."""
        jumps = () if self.n_ramps else self.jumps
        return [_between(self.knots[knot], self.knots[knot + 1]) for knot in jumps]

    @property
    def n_ramps(self) -> int:
        """Return the number of functions of a number that has only jumps, from each knot to the next."""
        return len(self.jumps) if not self.category and self.waves == 0 else 0

    def names(self, name: str, levels: Sequence[str] | None) -> list[str]:
        if self.category:
            functions = [f"{name} = {level}" for level in levels or [f"{knot:g}" for knot in self.knots]]
        else:
            functions = [f"{name} {wave}" for wave in self._wave_names()]
            functions += [f"{name} line"] * self.n_lines + [f"{name} trend"] * self.trend
            if self.n_ramps:
                pairs = zip(self.knots, self.knots[1:], strict=False)
                functions += [f"{name} from {low:g} to {high:g}" for low, high in pairs]
            else:
                functions += [f"{name} > {threshold:.15g}" for threshold in self.thresholds]
        return functions + [f"{name} missing"] * self.missing

    def _wave_names(self) -> list[str]:
        if not self.periodic:
            return [f"wave {k}" for k in range(1, self.waves + 1)]
        return [f"{('cosine', 'sine')[k % 2]} {k // 2 + 1}" for k in range(self.waves)]


def cosines(ranks: np.ndarray, waves: int, roughness: float) -> np.ndarray:
    """Return the waves (ranks, waves)."""
    k = np.arange(1, waves + 1)
    return np.sqrt(2 * strengths(waves, roughness)) * np.cos(np.pi * k * ranks[:, None])


def strengths(waves: int, roughness: float) -> np.ndarray:
    """Return the strengths of the first waves; the strengths of infinitely many waves add up to 1."""
    k = np.arange(1, waves + 1)
    # sum over k of 1 / (1 + (pi k / a)^2) is (a coth(a) - 1) / 2
    total = (roughness / np.tanh(roughness) - 1) / 2
    return 1 / (1 + (np.pi * k / roughness) ** 2) / total


def _between(low: float, high: float) -> float:
    """Return the number with the fewest digits that is at least ``low`` and below ``high``."""
    middle = 0.5 * low + 0.5 * high
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return float(low)
