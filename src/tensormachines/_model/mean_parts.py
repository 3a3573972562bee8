"""Mean parts: what each column of X adds to the mean output, relative to the output at a reference row.

Let t be a row in its basis, m the reference and f the output of a model. Then

    f(t) - f(m) = sum over columns g of X of  integral over s = 0..1 of <df(m + s (t - m)) / dt_g, t_g - m_g>

So each product of entries of the row is shared among their columns, in proportion to the number of entries
from each column; a function of one column belongs to it entirely (Aumann and Shapley 1974). The mean over
rows is the part of each column in the difference between the mean output and the output at the reference. The
integrands are polynomials, for which a few points are exact (Gauss)."""

from __future__ import annotations

import numpy as np

from .affine_basis import AffineRows
from .basis import Basis
from .block import Block
from .layout import Layout
from .numpy_kernel import TensorRows, sum_up
from .packed_shares import PackedShares
from .spline_basis import SplineBasis
from .total_effects import some_rows


def knows_mean(basis: Basis) -> bool:
    """Tell whether a basis knows the mean of the training rows, which is then at 0."""
    return isinstance(basis, SplineBasis) or (basis.shift is not None and not basis.unit_rows)


def at_mean(basis: Basis) -> np.ndarray:
    """Return the mean of the training rows in a basis that knows it, (width,)."""
    value = basis.always[-1] if isinstance(basis, SplineBasis) else basis.constant
    return np.where(basis.groups < 0, value, 0.0)


def outputs_at(row: np.ndarray, layout: Layout, params: np.ndarray) -> np.ndarray:
    """Return the outputs (n_outputs,) of one Tensor Machine at a row in its basis (width)."""
    return sum_up(TensorRows(AffineRows(row[None]), layout, params), layout, params)[0]


def mean_parts(
    block: Block, layout: Layout, params: np.ndarray, center: np.ndarray, most_entries: int | None = None
) -> tuple[np.ndarray, float]:
    """Return the sums over a block of the weighted parts of rows, (n_outputs, columns), and of the weights.

    ``params`` (layout.size) are the params of one Tensor Machine, and ``center`` (width) is the reference.
    ``most_entries`` limits the work by leaving out rows, see `total_effects`. For rows of unit norm, the
    constant varies, so it is one more column after those of X."""
    block = block if most_entries is None else some_rows(block, layout, most_entries)
    weight = block.row_weights
    basis, params = block.basis.astype(np.dtype(np.float64)), params.astype(np.float64)
    shares = block.X.tocsr() if isinstance(block.X, PackedShares) else block.X
    rows = TensorRows(basis.lift(shares.astype(np.float64)), layout, params)
    factors = layout.factors(params)
    at_row, at_center = rows.projections, center @ factors
    slopes = np.zeros_like(at_row)
    points, point_weights = np.polynomial.legendre.leggauss((layout.degree + 1) // 2)
    for point, point_weight in zip((points + 1) / 2, point_weights / 2, strict=True):
        rows.projections = at_center + point * (at_row - at_center)
        slopes += point_weight * rows.others()
    slopes = np.where(weight[:, None] > 0, weight[:, None] * slopes, 0.0)  # other rows may overflow
    moved = rows.lifted.transposed_times(slopes) - np.outer(center, slopes.sum(axis=0))
    return _of_outputs(_by_column(basis, factors * moved), layout, params), float(weight.sum())


def _by_column(basis: Basis, entries: np.ndarray) -> np.ndarray:
    """Return the sums (columns, k) of the entries (width, k) that belong to each column of X."""
    varies = basis.unit_rows and (basis.groups < 0).any()
    groups = np.where(basis.groups < 0, basis.n_columns, basis.groups)
    sums = np.zeros((basis.n_columns + 1, entries.shape[1]))
    np.add.at(sums, groups, entries)
    return sums if varies else sums[:-1]


def _of_outputs(of_columns: np.ndarray, layout: Layout, params: np.ndarray) -> np.ndarray:
    """Return the sums (n_outputs, columns) over the linear part and the factors of all terms."""
    outputs = of_columns[:, : layout.n_outputs].T.copy()
    of_sets = layout.by_set(of_columns)
    for p, columns in layout.degrees():
        terms = of_sets[:, :, columns].reshape(*of_sets.shape[:2], p, layout.rank).sum(axis=2)
        outputs += layout.weights(params)[:, p - 2] @ terms[:, 0].T if layout.shared else terms.sum(axis=2).T
    return outputs
