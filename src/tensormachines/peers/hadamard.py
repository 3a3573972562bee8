"""The fast Walsh-Hadamard transform of rows, in place."""

from __future__ import annotations

import numpy as np
from scipy.linalg import hadamard

from .._model import native

BY_PRODUCT = 64  # in NumPy, one matrix product is cheaper than the stages below this distance


def walsh_hadamard(rows: np.ndarray) -> None:
    """Multiply every row, in place, by the Hadamard matrix H of its length, in Sylvester's order and
    unnormalised: H H = length I.

    ``rows`` must be C-contiguous, float32 or float64, of shape (n_rows, length), where length is a power of
    two. A row costs length * log2(length) additions."""
    length = rows.shape[1]
    if length < 1 or length & (length - 1):
        raise ValueError(f"The length of the rows must be a power of two, got {length}.")
    (numpy_walsh_hadamard if native.extension is None else native.extension.walsh_hadamard)(rows)


def numpy_walsh_hadamard(rows: np.ndarray) -> None:
    length = rows.shape[1]
    distance = min(length, BY_PRODUCT)
    rows[...] = (rows.reshape(-1, distance) @ hadamard(distance).astype(rows.dtype)).reshape(rows.shape)
    while distance < length:
        pairs = rows.reshape(len(rows), -1, 2, distance)  # a view: rows are C-contiguous
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        difference = low - high
        low += high
        high[...] = difference
        distance *= 2
