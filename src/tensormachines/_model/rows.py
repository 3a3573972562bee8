"""What rows are: a matrix of numbers, dense or sparse."""

from __future__ import annotations

from typing import Any, TypeAlias

Rows: TypeAlias = Any  # an ndarray, or a CSR matrix or array, of shape (rows, columns)

ROWS_AT_ONCE = 4096  # rows per pass in NumPy
