"""Rows in svmlight text: a number and entries ``index:value`` in each line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from .gzip import GZIP, whole_gzip
from .open import require_file

ROWS = 20_000


def svmlight_blocks(
    path: str, n_columns: int | None, zero_based: bool, rows: int = ROWS
) -> Iterator[tuple[Any, np.ndarray]]:
    """Sparse rows and their first numbers; blocks are as wide as their largest index where ``n_columns`` is
    None.
    """
    from sklearn.datasets import load_svmlight_file

    require_file(path)
    before = 0
    with (
        whole_gzip(path),
        open(path, "rb") as raw,
        gzip.open(raw) if raw.peek(2).startswith(GZIP) else raw as file,
    ):
        while lines := list(islice(file, rows)):
            try:
                X, y = load_svmlight_file(
                    BytesIO(b"".join(lines)), n_features=n_columns, zero_based=zero_based
                )
            except (ValueError, UnicodeDecodeError) as error:
                what = " ".join(str(error).split()).rstrip(".")
                hint = (
                    " If its first index is 0, give --zero-based."
                    if "index" in what and not zero_based
                    else ""
                )
                raise ValueError(
                    f"{path}, lines {before + 1} to {before + len(lines)}: no svmlight rows that fit: {what}.{hint}"
                ) from error
            if len(y):  # there may be comments alone
                yield X, y
            before += len(lines)


def read_svmlight(path: str, n_columns: int | None, zero_based: bool) -> tuple[Any, np.ndarray]:
    blocks = list(svmlight_blocks(path, n_columns, zero_based))
    if not blocks:
        raise ValueError(f"{path} has no rows.")
    width = max(X.shape[1] for X, _ in blocks)
    parts = [sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X, _ in blocks]
    return sparse.vstack(parts, format="csr"), np.concatenate([y for _, y in blocks])
