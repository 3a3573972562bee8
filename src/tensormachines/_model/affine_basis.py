"""The affine bases: columns shifted and scaled, with numbers learned from the training rows.

    column j  ->  clip((x_j - shift_j) * scale_j);  a constant is appended;  the row is divided by its norm

They are applied block by block inside the kernel, so that X is never copied as a whole, and a sparse X never
becomes dense: the transformed row is t(x) = (t(0) + change) / norm, where only ``change`` depends on the
non-zero entries. (Factorization machines need every entry of t(x): for them, a few rows at a time become
dense unless t(0) is 0.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from .rows import Rows


@dataclass(frozen=True)
class AffineRows:
    """Rows in their basis: (zero_row + matrix) * row_scale.

    ``zero_row`` is None for dense rows, and if it is zero; ``row_scale`` is None if rows are not divided.
    """

    matrix: Rows
    zero_row: np.ndarray | None = None
    row_scale: np.ndarray | None = None

    def times(self, factors: np.ndarray) -> np.ndarray:
        product = self.matrix @ factors
        if self.zero_row is not None:
            product += self.zero_row @ factors
        return product if self.row_scale is None else product * self.row_scale[:, None]

    def transposed_times(self, slopes: np.ndarray) -> np.ndarray:
        if self.row_scale is not None:
            slopes = slopes * self.row_scale[:, None]
        product = self.matrix.T @ slopes
        return product if self.zero_row is None else product + np.outer(self.zero_row, slopes.sum(axis=0))

    def squared_norms(self) -> np.ndarray:
        """Return the squared norm of each row."""
        if self.zero_row is None:
            squares = _squares_of_rows(self.matrix)
        else:
            zero = self.zero_row
            squares = _squares_of_rows(self.matrix) + 2 * (self.matrix @ zero) + zero @ zero
            squares = np.maximum(squares, 0)
        return squares if self.row_scale is None else squares * self.row_scale**2

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of weight times square."""
        if self.row_scale is not None:
            weight = weight * self.row_scale**2
        squares = weight @ (self.matrix.power(2) if sparse.issparse(self.matrix) else self.matrix**2)
        if self.zero_row is None:
            return squares
        return np.maximum(
            squares + 2 * self.zero_row * (weight @ self.matrix) + weight.sum() * self.zero_row**2, 0
        )

    def absolute_sums(self, units: np.ndarray) -> np.ndarray:
        """Return the sum of absolute values of each row, with its columns multiplied by ``units``."""
        if self.zero_row is None:
            sums = abs(self.matrix) @ units
        else:  # what each entry adds to the zero row: columns may be far from 0
            sizes, entries = np.abs(self.zero_row), self.matrix.copy()
            entries.data = np.abs(entries.data + self.zero_row[entries.indices]) - sizes[entries.indices]
            sums = sizes @ units + entries @ units
        return sums if self.row_scale is None else sums * self.row_scale

    def explicit(self) -> Rows:
        """Return the rows as one matrix, which is dense if there is a ``zero_row``."""
        matrix = self.matrix if self.zero_row is None else self.matrix.toarray() + self.zero_row
        if self.row_scale is None:
            return matrix
        scale = self.row_scale[:, None]
        return matrix * scale if isinstance(matrix, np.ndarray) else sparse.csr_array(matrix.multiply(scale))


@dataclass(frozen=True)
class AffineBasis:
    """A fitted affine basis: see the formula in the module docstring.

    ``shift`` and ``scale`` are None, or of shape (n_columns,).
    """

    native_tables: ClassVar[None] = None  # the kernel reads the factors directly

    n_columns: int
    shift: np.ndarray | None = None
    scale: np.ndarray | None = None
    clip: float = np.inf
    constant: float = 0.0
    unit_rows: bool = False

    @property
    def width(self) -> int:
        return self.n_columns + (self.constant != 0)

    @property
    def kind(self) -> tuple[bool, float, float, bool]:
        """Return what two bases must share so that the params of one make sense with the other."""
        return self.shift is None, self.clip, self.constant, self.unit_rows

    @cached_property
    def zero_row(self) -> np.ndarray | None:
        """Return an all-zero row in the basis, before it is divided by its norm; None if it is zero."""
        if self.shift is None or self.scale is None:
            return None
        row = np.full(self.width, self.constant, dtype=self.shift.dtype)
        row[: self.n_columns] = np.clip(-self.shift * self.scale, -self.clip, self.clip)
        return row if row.any() else None

    @property
    def groups(self) -> np.ndarray:
        """Return the column of X that each column of the basis comes from; -1 for the constant."""
        return np.append(np.arange(self.n_columns), np.full(self.width - self.n_columns, -1))

    @property
    def row_width(self) -> int:
        """Return the number of columns of the result of `rows`."""
        return self.n_columns

    def rows(self, X: Rows, packed: bool = False) -> Rows:
        """Return what a block stores of rows: here the rows themselves, which cannot be packed."""
        return X

    def names(self, columns: Sequence[str], levels: Sequence[Sequence[str] | None]) -> list[str]:
        return [*columns, *["constant"] * (self.width - self.n_columns)]

    def describe(self) -> str:
        if self.scale is None:
            return "columns as they are"
        constant = ", with a constant" if self.constant else ""
        return f"columns scaled{constant}{', rows of unit norm' if self.unit_rows else ''}"

    def astype(self, dtype: np.dtype) -> AffineBasis:
        if self.shift is None or self.scale is None:
            return self
        return replace(self, shift=self.shift.astype(dtype), scale=self.scale.astype(dtype))

    def lift(self, X: Rows) -> AffineRows:
        return self._lift_sparse(X) if sparse.issparse(X) else AffineRows(self._lift_dense(X))

    def _lift_dense(self, X: np.ndarray) -> np.ndarray:
        rows = X
        if self.shift is not None and self.scale is not None:
            rows = np.clip((X - self.shift) * self.scale, -self.clip, self.clip)
        if self.constant:
            rows = np.hstack([rows, np.full((len(rows), 1), self.constant, dtype=rows.dtype)])
        return rows * inverse(np.linalg.norm(rows, axis=1))[:, None] if self.unit_rows else rows

    def _lift_sparse(self, X: Rows) -> AffineRows:
        zero = self.zero_row
        change = X.data
        if self.shift is not None and self.scale is not None:
            # Unless something is clipped, the change is x * scale, which keeps the digits that the difference
            # of two shifted values would lose.
            scale = self.scale[X.indices]
            moved, origin = (X.data - self.shift[X.indices]) * scale, -self.shift[X.indices] * scale
            inside = (np.abs(moved) <= self.clip) & (np.abs(origin) <= self.clip)
            clipped = np.clip(moved, -self.clip, self.clip) - np.clip(origin, -self.clip, self.clip)
            change = np.where(inside, X.data * scale, clipped)
        matrix = sparse.csr_array((change, X.indices, X.indptr), shape=(X.shape[0], self.width))
        if not self.unit_rows:
            return AffineRows(matrix, zero)
        return AffineRows(matrix, zero, inverse(np.sqrt(AffineRows(matrix, zero).squared_norms())))


def _squares_of_rows(matrix: Rows) -> np.ndarray:
    if not sparse.issparse(matrix):
        return np.einsum("ij,ij->i", matrix, matrix)
    with np.errstate(over="ignore"):  # as for dense rows: the norm is infinite
        return matrix.power(2).sum(axis=1)


def inverse(x: np.ndarray) -> np.ndarray:
    """Return 1 / x, and 1 where x is 0."""
    return 1 / np.where(x > 0, x, 1)
