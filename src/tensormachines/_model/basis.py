"""Input bases: what happens to the rows of X before the model sees them.

There are two kinds with the same interface. A block stores ``rows(X)``, (rows, row_width), and ``lift``
converts them to their basis, (rows, width), for the NumPy kernel. The compiled kernel multiplies ``rows(X)``
by factors that it spreads over the states of splines itself (``native_tables``). ``groups``, ``names``,
``kind`` and ``describe`` say what the columns of the basis mean. The attributes ``shift``, ``scale``,
``clip``, ``constant``, ``unit_rows`` and ``zero_row`` say what the kernel does to the rows that it reads:
nothing, for splines."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .affine_basis import AffineBasis, AffineRows, inverse
from .moments import Moments
from .spline_basis import SplineBasis, SplineRows

BASES = ("unit", "standard", "scaled", "sphere")
RAW_BASES = ("spline", "auto")  # these accept categories and missing values
RARE = 1 / 512  # share of the rows that have an entry in a column which "scaled" does not centre
CLIP = 4.0  # standard deviations for "sphere", typical sizes for "scaled"

Basis: TypeAlias = AffineBasis | SplineBasis
RowsInBasis: TypeAlias = AffineRows | SplineRows


def fit_basis(name: str | None, moments: Moments, dtype: np.dtype) -> AffineBasis:
    """Return the affine basis with this name, in ``dtype``, from moments of the training rows."""
    n_columns = len(moments.mean)
    if name is None:
        return AffineBasis(n_columns)
    if not (np.isfinite(moments.mean).all() and np.isfinite(moments.squares).all()):
        raise ValueError(
            "X has values too large to be squared in float64: divide them by a power of ten first."
        )
    if name == "unit":
        scale = inverse(np.sqrt(moments.squares + moments.weight * moments.mean**2))
        return AffineBasis(n_columns, np.zeros(n_columns, dtype), scale.astype(dtype), unit_rows=True)
    if name == "scaled":
        entries_of_row = max(1.0, float(moments.present.sum() / moments.weight))
        unit = entries_of_row**-0.5
        scale = unit * inverse(moments.size_of_entries)
        mean = np.where(moments.present < RARE * moments.weight, 0.0, moments.mean)
        return AffineBasis(
            n_columns, mean.astype(dtype), scale.astype(dtype), clip=CLIP * unit, constant=unit
        )
    scale = inverse(moments.deviation)
    if name == "sphere":
        return AffineBasis(
            n_columns,
            moments.mean.astype(dtype),
            scale.astype(dtype),
            clip=CLIP,
            constant=1.0,
            unit_rows=True,
        )
    root = float(np.sqrt(n_columns))
    return AffineBasis(
        n_columns, moments.mean.astype(dtype), (scale / root).astype(dtype), constant=1.0 / root
    )
