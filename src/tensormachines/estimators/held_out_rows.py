"""The validation rows of a fit: rows that the user gives, or a share of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from .._data.files.source import Chunk
from .._data.open import is_in_memory
from .._data.summary import ValidationRows
from .._data.training import RowsInMemory, TrainingRows, merge_rows
from .._fit.pose import Target
from .._model.losses import Loss, require_targets
from .regression_losses import unknown_part
from .validation import TakesFrames, as_columns

# Converts checked y and weight to the targets (rows, targets) and weights of a fit.
Convert = Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class GivenRows:
    """Validation rows given by the user: ``X_val``, ``y_val`` and ``sample_weight_val`` of a fit."""

    X: Any
    y: Any
    weight: Any

    def unknown_part(self, loss: Loss, exposure: Any, offset: Any) -> GivenRows:
        """Return the rows for an exposure of 1 and an offset of 0."""
        return GivenRows(self.X, *unknown_part(loss, self.X, self.y, self.weight, exposure, offset))


def given_rows(X: Any, X_val: Any, y_val: Any, sample_weight_val: Any) -> GivenRows | None:
    """Return the validation rows, if there are any; refuse rows that are incomplete or not in memory."""
    if X_val is None:
        if y_val is not None or sample_weight_val is not None:
            raise ValueError("y_val and sample_weight_val need X_val, which is missing: give them all.")
        return None
    if y_val is None:
        raise ValueError("X_val needs y_val, the targets of its rows, which is missing: give both.")
    for name, rows in (("X", X), ("X_val", X_val)):
        if not is_in_memory(rows):
            raise ValueError(
                f"X_val needs rows in memory, but {name} is a {type(rows).__name__}. Without X_val, "
                "early_stopping=True holds out a validation_fraction of the rows."
            )
    return GivenRows(X_val, y_val, sample_weight_val)


def require_pairs(given: GivenRows | None, known: dict[str, tuple[Any, Any]]) -> None:
    """Refuse an exposure or offset that only the training rows or only the validation rows have."""
    for name, (own, of_given) in known.items():
        if (of_given is not None) != (given is not None and own is not None):
            raise ValueError(
                f"{name} belongs to X and {name}_val to X_val: give both or neither. {name}_val needs X_val."
            )


def check_given(
    estimator: TakesFrames, given: GivenRows | None, X: Any, convert: Convert, **options: Any
) -> Chunk | None:
    """Return the given rows, encoded by the columns of the fit, with the type of the training rows X."""
    if given is None:
        return None
    try:
        X_val, y, weight = estimator._check_training_data(
            given.X, given.y, given.weight, reset=False, **options
        )
        return Chunk(X_val.astype(X.dtype, copy=False), *convert(y, weight))
    except ValueError as error:
        raise ValueError(f"X_val, y_val or sample_weight_val cannot be used: {error}") from error


def like(
    targets: np.ndarray, loss: Loss, y: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return y as columns; refuse another number of columns than the training targets have."""
    columns = as_columns(y)
    require_targets(loss, columns)
    if columns.shape[1] != targets.shape[1]:
        raise ValueError(f"y has {columns.shape[1]} outputs, but {targets.shape[1]} in the training rows.")
    return columns, weight


def hold_out(
    training: TrainingRows, target: Target, share: float, random_state: np.random.RandomState
) -> tuple[TrainingRows, ValidationRows]:
    """Return the training rows, and which of them are held out: in memory, a separate chunk.

    These are the rows given by the user, or a share of the training rows, stratified by class."""
    if not isinstance(training, RowsInMemory):
        return training, ValidationRows(share, random_state.randint(1 << 31))
    if training.held_out is None:
        training = _split(training, share, target.classification, random_state)
    return training, ValidationRows()


def _split(
    training: RowsInMemory, share: float, by_class: bool, random_state: np.random.RandomState
) -> RowsInMemory:
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
