"""The rows that early stopping validates on: a share of the training rows, or rows that the user gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from .._data.files.source import Chunk
from .._data.training import RowsInMemory, merge_rows


def hold_out(
    training: RowsInMemory, share: float, by_class: bool, random_state: np.random.RandomState
) -> RowsInMemory:
    """Return training rows without a random share of them, which they hold out; stratified if ``by_class``."""
    chunk = training.chunk
    kept, others = train_test_split(
        np.arange(len(chunk.y)),
        test_size=share,
        random_state=random_state,
        stratify=chunk.y if by_class else None,
    )
    learnt_from, held_out = _rows(chunk, np.sort(kept)), _rows(chunk, np.sort(others))
    X, y, weight = merge_rows(learnt_from.X, learnt_from.y, learnt_from.weight)
    return RowsInMemory(X, y, weight, held_out, training.flat, training.columns)


def _rows(chunk: Chunk, numbers: np.ndarray) -> Chunk:
    weight = None if chunk.weight is None else chunk.weight[numbers]
    return replace(chunk, X=chunk.X[numbers], y=chunk.y[numbers], weight=weight)
