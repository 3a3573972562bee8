"""The parts of a described model: see `_model.description`. Plain Python values and NumPy arrays, nothing of
the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

FORMAT = 1  # of the description: it changes when an older reader would misread it

Kind: TypeAlias = Literal["regressor", "classifier", "features"]
Link: TypeAlias = Literal["identity", "logistic", "softmax"]


@dataclass(frozen=True)
class Column:
    """A column of the input: a number where ``levels`` is None, otherwise a category.

    ``name`` is that in the table of the fit, or the number of the column (0, 1, ...) if it had none.

    Levels are known by name, so that 3, 3.0 and "3" are the same level: see `level_name`. Level ``levels[l]``
    becomes the number l. All other levels become len(levels) if there were ``rare`` ones in the fit, which
    stand together for that; otherwise they are missing.

    ``missing`` is "own" where missing entries are a state of their own. Where the fit had none, it is
    "commonest" if they count as the commonest value, and "zero" if the functions of the column are 0 for
    them, before their means are taken off. It is "refused" where the model takes no missing entries
    (`evaluate` gives NaN)."""

    name: str | int
    levels: tuple[str, ...] | None
    rare: bool
    missing: Literal["own", "commonest", "zero", "refused"]

    @property
    def kind(self) -> Literal["number", "category"]:
        return "number" if self.levels is None else "category"

    @property
    def n_codes(self) -> int:
        """The numbers that a category becomes are less than that."""
        return 0 if self.levels is None else len(self.levels) + self.rare


@dataclass(frozen=True)
class AffineBasis:
    """t_j = clip((x_j - center_j) * scale_j, -clip, clip); then ``constant`` is appended unless it is 0;
    then, with ``unit_rows``, the row is divided by its Euclidean norm unless that is 0.

    ``name`` is None ("columns as they are": center 0, scale 1), "unit", "standard" or "sphere". ``clip`` is
    inf where nothing is clipped."""

    name: str | None
    center: np.ndarray
    scale: np.ndarray
    clip: float
    constant: float
    unit_rows: bool

    @property
    def width(self) -> int:
        return len(self.center) + (self.constant != 0)


@dataclass(frozen=True)
class SplineNumber:
    """A number becomes ``width`` functions of it, given by ``values`` (n_knots, width) at its ``knots``
    (n_knots, in order, at least one).

    Between two knots they are straight lines, beyond the outermost ones they stay as they are there. A
    missing number has ``at_missing`` (width). Scale and mean are in these values: they are the entries of t.
    The rest tells where they come from:

    ``waves`` cosines of the rank, a line if ``deviation`` > 0, an indicator if ``missing`` entries were in
    the fit; each times `SplineBasis.size`, minus its mean ``center``. ``only_missing``: the fit saw no number
    here, and one now is as good as any other. ``reference`` is the commonest state (the number of a knot,
    n_knots for missing, -1 where none is very common), and is already in ``at_missing``: otherwise it matters
    to speed and rounding alone."""

    knots: np.ndarray
    values: np.ndarray
    at_missing: np.ndarray
    waves: int
    mean: float
    deviation: float
    missing: bool
    only_missing: bool
    reference: int
    center: np.ndarray

    @property
    def width(self) -> int:
        return len(self.center)


@dataclass(frozen=True)
class SplineCategory:
    """Level l of ``n_levels`` becomes -center, but for entry l, which has ``size`` more; ``center`` has an
    entry a level.

    Where ``missing`` entries were in the fit, center has one more, and missing is a level like others, the
    last; otherwise a missing entry is -center."""

    n_levels: int
    size: float
    missing: bool
    center: np.ndarray

    @property
    def width(self) -> int:
        return len(self.center)


@dataclass(frozen=True)
class SplineBasis:
    """The functions of all columns side by side, in their order, and ``constant`` as the last entry.

    A wave is sqrt(2 s_k) cos(pi k u) with s_k = 1 / (1 + (pi k / roughness)^2), divided by the sum of all
    s_k, and u = 0..1 the rank of the knot; the line is ``line`` times the distance from the mean in
    deviations, which ends at ``line_clip`` of these."""

    columns: tuple[SplineNumber | SplineCategory, ...]
    size: float
    constant: float
    roughness: float
    line: float
    line_clip: float

    @property
    def name(self) -> str:
        return "spline"

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns) + 1


@dataclass(frozen=True)
class Portable:
    """A fitted model. Arrays are of the type that the model was fitted in, float64 or float32 (``dtype``);
    those of splines, which are computed from them, and knots are always float64.

    ``intercept`` (n_outputs), ``coef`` (n_outputs, width), and for ``terms``

        "products"   factors[p] (n_outputs, rank, p, width):  term_kpi(t) = product over j = 1..p of <factors[p][k, i, j], t>
        "anova"      factors[p] (n_outputs, rank, width):     term_kpi(t) = sum over t1 < ... < tp of the products of factors[p][k, i] * t

    ``classes`` in the order of the outputs (NumPy array of their own type), None in regression. ``squeeze``:
    a regressor of one output whose predictions have one axis."""

    kind: Kind
    link: Link
    classes: np.ndarray | None
    columns: tuple[Column, ...]
    basis: AffineBasis | SplineBasis
    terms: Literal["products", "anova"]
    degree: int
    rank: int
    intercept: np.ndarray
    coef: np.ndarray
    factors: Mapping[int, np.ndarray]
    squeeze: bool
    format: int = FORMAT

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def dtype(self) -> np.dtype:
        return self.intercept.dtype
