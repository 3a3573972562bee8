"""The rows of a report, wherever they are: a sample that the page shows, and errors on all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._data.files.source import Chunk, Source
from .._data.masked import refuse_masked
from .._data.open import is_in_memory
from .._data.row_sample import RowSample
from .._model.compiled import predictions
from .._model.description import Description, describe
from ..estimators.regression_losses import unknown_part
from ..estimators.sklearn_private import check_sample_weight
from ..estimators.sum_over_rows import fitted_alone, require_y
from ..estimators.validation import require_some_weight
from ..inspection.drawn_rows import Draw, draw_rows
from ..inspection.forms import boolean_columns, check_rows
from .measures import ABSENT_OR_PRESENT, class_codes
from .summed_errors import SummedErrors

FEWEST_ROWS = 10
MOST_ROWS = 20_000  # in the page
MOST_TRAINING_ROWS = 100_000  # from a source or a Dask collection, to fit baselines to
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class ReportRows:
    """Rows with their targets, their weights or None, their indices ``numbers`` among the ``n_rows`` given,
    the boolean columns, and the errors of the model on all rows (None if these are all rows).
    """

    rows: Any
    y: np.ndarray
    weight: np.ndarray | None
    numbers: np.ndarray
    n_rows: int
    booleans: set[int]
    errors: SummedErrors | None = None


def targets_and_weights(
    model: Any, X: Any, y: Any, sample_weight: Any, exposure: Any, offset: Any
) -> tuple[Any, Any]:
    """Return the targets and weights of a report for an exposure of 1 and an offset of 0."""
    if exposure is None and offset is None:
        return y, sample_weight
    if hasattr(model, "classes_") or not hasattr(model, "loss"):
        raise ValueError(
            "exposure and offset are for reports on TensorMachineRegressor and TensorMachineRegressorCV, got "
            f"{type(model).__name__}: leave them out."
        )
    if is_in_memory(X):
        require_y(y)
    return unknown_part(model._loss(), X, y, sample_weight, exposure, offset)


def rows_of_report(model: Any, X: Any, y: Any, most: int, seed: int, sample_weight: Any = None) -> ReportRows:
    """Draw the rows of the page, and measure errors on all rows if there are more."""
    described = describe(model)
    measure = MeasureChunk(fitted_alone(model))
    if is_in_memory(X):
        checked = _checked(model, described, X, y, sample_weight, "y")
        sample, booleans, errors = RowSample.of(checked, 0, most, seed), boolean_columns(model, X), None
        if sample.n_rows > most:
            errors = measure.in_pieces(*checked)
    else:
        drawn = draw_rows(model, X, y, Draw(most, seed, measure), sample_weight=sample_weight)
        sample, booleans = drawn.sample, set(drawn.booleans)
        errors = drawn.sums if sample.n_rows > most else None
    if sample.n_rows < FEWEST_ROWS:
        raise ValueError(f"A report needs at least {FEWEST_ROWS} rows, got {sample.n_rows}.")
    rows, y, weight = sample.parts
    if weight is not None:
        require_some_weight(weight, "sample_weight")
    y = checked_targets(described, _flat(described, y), "y")
    return ReportRows(rows, y, weight, sample.numbers, sample.n_rows, booleans, errors)


def training_rows(model: Any, X: Any, y: Any, sample_weight: Any = None) -> ReportRows:
    """Return the rows that baselines are fitted to: all rows in memory, otherwise a sample."""
    if X is None or (y is None) != isinstance(X, Source):
        raise ValueError("X_train and y_train must be given together; a source brings its own targets.")
    described = describe(model)
    if is_in_memory(X):
        rows, y, weight = _checked(model, described, X, y, sample_weight, "y_train")
        return ReportRows(rows, y, weight, np.arange(len(y)), len(y), boolean_columns(model, X))
    drawn = draw_rows(model, X, y, Draw(MOST_TRAINING_ROWS), sample_weight=sample_weight)
    rows, y, weight = drawn.sample.parts
    y = checked_targets(described, _flat(described, y), "y_train")
    return ReportRows(rows, y, weight, drawn.sample.numbers, drawn.sample.n_rows, set(drawn.booleans))


@dataclass(frozen=True)
class MeasureChunk:
    """Measure the errors of a model on checked rows."""

    model: Any

    def __call__(self, chunk: Chunk) -> SummedErrors:
        described = describe(self.model)
        y = checked_targets(described, _flat(described, chunk.y), "y")
        outputs = described.machine.outputs(chunk.X.astype(np.float64, copy=False))
        return SummedErrors.of(self.model, y, predictions_of(described, outputs), chunk.first, chunk.weight)

    def in_pieces(self, rows: Any, y: np.ndarray, weight: np.ndarray | None) -> SummedErrors:
        """Measure rows in memory, some at a time."""
        pieces = (slice(start, start + ROWS_AT_ONCE) for start in range(0, len(y), ROWS_AT_ONCE))
        chunks = (
            Chunk(rows[some], y[some], None if weight is None else weight[some], first=some.start)
            for some in pieces
        )
        return reduce(add, map(self, chunks))


def _flat(described: Description, y: np.ndarray) -> np.ndarray:
    """Return a single target without an axis of targets."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 and described.n_targets == 1 else y


def _checked(
    model: Any, described: Description, X: Any, y: Any, sample_weight: Any, name: str
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return X as a matrix, y as `checked_targets`, and weights, if there are any."""
    rows = check_rows(model, X)
    if y is None:
        raise ValueError(f"{name} is needed: only a source of blocks brings its own targets.")
    targets = checked_targets(described, y, name)
    check_consistent_length(rows, targets)
    if sample_weight is None:
        return rows, targets, None
    weight = check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    require_some_weight(weight, name.replace("y", "sample_weight", 1))
    return rows, targets, weight


def checked_targets(described: Description, y: Any, name: str) -> np.ndarray:
    """Return y as known labels or as finite numbers, with an axis of targets if there are several."""
    refuse_masked(y, name)
    if described.classes is not None:
        labels = column_or_1d(y)
        class_codes(labels, described.classes)
        return labels
    y = y.toarray() if sparse.issparse(y) else y
    numbers, n_targets = np.asarray(y, dtype=np.float64), described.n_targets
    if n_targets == 1:
        numbers = column_or_1d(numbers)
    elif numbers.ndim != 2 or numbers.shape[1] != n_targets:
        raise ValueError(
            f"{name} must have {n_targets} columns, one per output of the model, got an array of shape "
            f"{numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must hold finite numbers: leave out the rows where it is missing.")
    if described.link == "sigmoid" and not np.isin(numbers, ABSENT_OR_PRESENT).all():
        raise ValueError(f"{name} must hold 0 and 1, a column for each label of the model.")
    return numbers


def predictions_of(described: Description, outputs: np.ndarray) -> np.ndarray:
    """Return predictions (rows,) or (rows, n_outputs), or probabilities (rows, n_classes or n_labels)."""
    if not np.isfinite(outputs).all():
        raise ValueError(
            "Some predictions overflow, because rows of X lie far outside of the training data: "
            "leave these rows out."
        )
    found = predictions(outputs, described.link, described.largest_outputs)
    return found[:, 0] if described.kind == "regressor" and described.layout.n_outputs == 1 else found
