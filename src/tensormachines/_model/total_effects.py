"""Total effects: how much each column of X moves the outputs of a model, including all interactions.

Let x' be another row, drawn at random, and x(j) the row x with its entry in column j taken from x':

    effect of column j on output k  =  mean over rows x of  (f_k(x(j)) - f_k(x))^2

The effect is never negative. Half of it is the variance of the output due to column j if all other columns
stay fixed: the total Sobol index, if the columns are independent (Jansen 1999). Permutation importance with
squared errors measures the same, as far as the errors are independent of the change.

Models are read as rows of *states* times a table of factors: the states of a spline basis, or the columns of
an affine basis. The change that a column makes in the projections of a row is then a sparse product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from .affine_basis import AffineBasis, AffineRows
from .block import Block
from .layout import AnovaLayout, Layout
from .numpy_kernel import AnovaRows
from .packed_shares import PackedShares
from .spline_basis import SplineBasis

ENTRIES_AT_ONCE = 1 << 20
FEWEST_ROWS = 32


def total_effects(
    block: Block, layout: Layout, params: np.ndarray, most_entries: int | None = None, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Return the sums over a block of weighted effects of rows, (n_outputs, columns), and of the weights.

    ``params`` (layout.size) are the params of one model. ``most_entries`` limits the number of projections by
    leaving out rows, but some rows are always used. For rows of unit norm, the constant varies, so it is one
    more column after those of X."""
    block = block if most_entries is None else some_rows(block, layout, most_entries)
    weight = block.row_weights
    groups = _groups(block)
    n_groups = int(groups.max(initial=-1)) + 1
    rows = _changing(block, layout, params.astype(np.float64))
    total = np.zeros((layout.n_outputs, n_groups))
    others = np.random.default_rng(seed).permutation(block.n_rows)
    moved = sparse.coo_array(rows.states[others] - rows.states)
    kept = (groups[moved.col] >= 0) & (moved.data != 0)
    row, state, change = (entries[kept] for entries in (moved.row, moved.col, moved.data))
    # An event is a column of X in a row: all states that change there.
    keys, event = np.unique(row.astype(np.int64) * n_groups + groups[state], return_inverse=True)
    events = sparse.csr_array((change, (event, state)), shape=(len(keys), len(groups)))
    at_once = max(1, ENTRIES_AT_ONCE // layout.n_columns)
    for start in range(0, len(keys), at_once):
        some = slice(start, start + at_once)
        of_row, column = np.divmod(keys[some], n_groups)
        squares = weight[of_row, None] * rows.changes(of_row, events[some]) ** 2
        for k in range(layout.n_outputs):
            total[k] += np.bincount(column, squares[:, k], minlength=n_groups)
    return total, float(weight.sum())


def shares(effects: np.ndarray) -> np.ndarray:
    """Return effects (..., columns) as shares of their sum; zeros where the sum is 0 or overflows."""
    total = effects.sum(axis=-1, keepdims=True)
    return np.divide(effects, total, out=np.zeros_like(effects), where=(total > 0) & np.isfinite(total))


def some_rows(block: Block, layout: Layout, most_entries: int) -> Block:
    """Return evenly spaced rows, as many as change about ``most_entries`` projections."""
    X, in_row = block.X, float(block.basis.n_columns)
    if sparse.issparse(X) and not isinstance(block.basis, SplineBasis):
        in_row = 2 * X.nnz / max(1, X.shape[0])
    n_rows = max(FEWEST_ROWS, int(most_entries / (max(1, in_row) * layout.n_columns)))
    if block.n_rows <= n_rows:
        return block
    return block.rows(np.linspace(0, block.n_rows - 1, n_rows).astype(np.intp))


def _groups(block: Block) -> np.ndarray:
    """Return the column of X that each state belongs to; -1 for what is the same in all rows."""
    basis = block.basis
    if isinstance(basis, SplineBasis):
        sizes = np.diff(basis.states.first)
        return np.append(np.repeat(np.arange(len(sizes)), sizes), -1)
    groups = basis.groups
    return np.where(groups < 0, basis.n_columns, groups) if basis.unit_rows else groups


class Changing(Protocol):
    """Rows of one model in which single columns change: ``states`` is (rows, states)."""

    @property
    def states(self) -> sparse.csr_array: ...

    def changes(self, rows: np.ndarray, events: sparse.csr_array) -> np.ndarray:
        """Return the change of the outputs (events, n_outputs) if the states of these rows change by
        ``events``, (events, states).
        """


def _changing(block: Block, layout: Layout, params: np.ndarray) -> Changing:
    if isinstance(block.basis, SplineBasis):
        shares = block.X.tocsr() if isinstance(block.X, PackedShares) else block.X
        states = sparse.csr_array(shares.astype(np.float64))
        table = block.basis.spread(layout.factors(params))
        return ChangingProducts(states, table, states @ table, layout, params)
    lifted = block.basis.astype(np.dtype(np.float64)).lift(block.X.astype(np.float64))
    states = sparse.csr_array(_without_what_all_share(block.basis, lifted))
    if isinstance(layout, AnovaLayout):
        return ChangingAnova(states, AnovaRows(lifted, layout, params), layout, params)
    table = layout.factors(params)
    return ChangingProducts(states, table, lifted.times(table), layout, params)


def _without_what_all_share(basis: AffineBasis, lifted: AffineRows) -> sparse.csr_array | np.ndarray:
    """Return rows in their basis minus what all rows share, so that sparse rows stay sparse."""
    return lifted.explicit() if basis.unit_rows or lifted.zero_row is None else lifted.matrix


@dataclass(frozen=True)
class ChangingProducts:
    """Rows of a Tensor Machine: their projections are those of the states plus those that all rows share."""

    states: sparse.csr_array
    table: np.ndarray
    projections: np.ndarray
    layout: Layout
    params: np.ndarray

    def changes(self, rows: np.ndarray, events: sparse.csr_array) -> np.ndarray:
        before = self.projections[rows]
        return self._outputs(before + events @ self.table) - self._outputs(before)

    def _outputs(self, projections: np.ndarray) -> np.ndarray:
        """Return the outputs without their biases, (events, n_outputs)."""
        layout = self.layout
        outputs = projections[:, : layout.n_outputs].copy()
        of_sets = layout.by_set(projections)
        for p, columns in layout.degrees():
            factors = of_sets[:, :, columns].reshape(*of_sets.shape[:2], p, layout.rank)
            outputs += _summed(factors.prod(axis=2), layout, self.params, p)
        return outputs


@dataclass(frozen=True)
class ChangingAnova:
    """Rows of a factorization machine, each of whose states is a column of X.

    A_p = A_p without j + u_j A_{p-1} without j, with u_j = v_j x_j. So A_p changes by the change of u_j times
    A_{p-1} without j, and A_m without j is A_m - u_j (A_{m-1} without j).
    """

    states: sparse.csr_array
    rows: AnovaRows
    layout: Layout
    params: np.ndarray

    def changes(self, rows: np.ndarray, events: sparse.csr_array) -> np.ndarray:
        column, change = events.indices, events.data[:, None, None]
        now = np.asarray(self.rows.matrix[rows, column]).reshape(-1, 1, 1)
        outputs = change[:, 0] * self.layout.linear(self.params)[column]
        factors = self.layout.terms(self.params)[column]  # (events, n_sets, set_columns)
        for p, columns in self.layout.degrees():
            of_degree = factors[:, :, columns]
            without = np.ones_like(of_degree)
            for m in range(1, p):
                without = self.rows.polynomials[p][m][rows] - of_degree * now * without
            outputs += _summed(of_degree * change * without, self.layout, self.params, p)
        return outputs


def _summed(terms: np.ndarray, layout: Layout, params: np.ndarray, p: int) -> np.ndarray:
    """Return the sums (events, n_outputs) of terms of degree p, (events, n_sets, rank)."""
    return terms[:, 0] @ layout.weights(params)[:, p - 2].T if layout.shared else terms.sum(axis=2)
