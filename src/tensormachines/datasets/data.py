"""Training and test rows of a data set, ready for the methods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from .._model.basis import AffineBasis, fit_basis
from .._model.moments import moments
from .._model.rows import Rows
from .catalogue import SETS, DataSet
from .parsers import Arrays

Origin: TypeAlias = Literal["folder", "cache", "download", "generated"]

SPARSE_BELOW = 0.1  # share of non-zeros; dense rows are twice as fast for Forest (0.22) and Adult (0.11)
ORDER_SEED = 0
ROWS_AT_ONCE = 4096
NOT_HEARD, WEAKEST = 100, -104  # codes of the access points of Indoor


@dataclass(frozen=True)
class Data:
    """Training and test rows.

    X is float32 and C-contiguous, or a csr_array if less than a tenth of the training entries are non-zero. y
    is float64 in regression, and int64 with -1 or +1 for two classes. ``faithful`` says whether errors may be
    compared with the paper's figures, and ``origin`` says where the rows come from."""

    name: str
    X_train: Rows
    y_train: np.ndarray
    X_test: Rows
    y_test: np.ndarray
    faithful: bool
    origin: Origin


def prepare(known: DataSet, arrays: Arrays, origin: Origin, rows: int | None, test_rows: int | None) -> Data:
    """Shuffle the training rows, take the requested number, and convert all rows to the types of `Data`."""
    order = _shuffled(len(arrays["X_train"]))[:rows]
    test_order = _shuffled(len(arrays["X_test"]))[:test_rows] if test_rows else slice(None)
    as_sparse = bool(np.count_nonzero(arrays["X_train"]) < SPARSE_BELOW * arrays["X_train"].size)
    dtype = np.dtype(np.float64 if known.task == "regression" else np.int64)
    X_train, X_test = (
        _in_float32(X, as_sparse) for X in (arrays["X_train"][order], arrays["X_test"][test_order])
    )
    y_train, y_test = arrays["y_train"][order].astype(dtype), arrays["y_test"][test_order].astype(dtype)
    # Downloads are the paper's own files: facts about a file of the folder do not apply to them.
    faithful = known.faithful if origin == "folder" else known.name == known.paper_name
    return Data(known.name, X_train, y_train, X_test, y_test, faithful, origin)


def heard_signals(indoor: Data) -> Data:
    """Return Indoor with signals from 0: an access point that is not heard is 0, and the weakest signal, -104
    dBm, is 1.

    Access points that are never heard in training are removed from the test rows: nothing can be learned
    about them, and they have no scale."""
    train, test = (
        np.where(X == NOT_HEARD, 0.0, X - WEAKEST + 1).astype(np.float32)
        for X in (indoor.X_train, indoor.X_test)
    )
    test *= train.any(axis=0)
    known = SETS["indoor_heard"]
    X_train, X_test = sparse.csr_array(train), sparse.csr_array(test)
    return replace(indoor, name=known.name, faithful=known.faithful, X_train=X_train, X_test=X_test)


def unit_scaling(data: Data) -> Data:
    """Apply the paper's preprocessing: scale training columns, and then every row, to unit Euclidean norm.

    Zeros stay zeros. ``basis="unit"`` does the same inside a Tensor Machine; this is for other methods.
    """
    basis = fit_basis("unit", moments(data.X_train), np.dtype(np.float32))
    return replace(data, X_train=_scaled(basis, data.X_train), X_test=_scaled(basis, data.X_test))


def _shuffled(n_rows: int) -> np.ndarray:
    return np.random.default_rng(ORDER_SEED).permutation(n_rows)


def _in_float32(X: np.ndarray, as_sparse: bool) -> Rows:
    return sparse.csr_array(X, dtype=np.float32) if as_sparse else np.ascontiguousarray(X, dtype=np.float32)


def _scaled(basis: AffineBasis, X: Rows) -> Rows:
    if sparse.issparse(X):
        return sparse.csr_array(basis.lift(X).explicit())
    scaled = np.empty(X.shape, dtype=np.float32)
    for start in range(0, len(X), ROWS_AT_ONCE):  # the largest X may not fit into memory twice
        rows = slice(start, start + ROWS_AT_ONCE)
        scaled[rows] = basis.lift(X[rows]).explicit()
    return scaled
