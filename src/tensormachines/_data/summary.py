"""The first pass of a fit over its rows: facts for basis, targets and columns, as sums over chunks."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from .._model.losses import SQUARED, Loss, require_targets
from .._model.moments import ROWS_AT_ONCE, Moments, moments, only_weight
from .._model.rows import Rows
from .column_counts import FrameCounts, count_columns
from .dates import is_dates
from .encoding import Columns, matrix_type
from .files.source import Chunk, require_numbers
from .frame import Frame, Levels, concatenate
from .row_assignment import held_out, priorities, smallest

T = TypeVar("T")

MOST_ROWS_SAMPLED = 50_000


@dataclass(frozen=True)
class ValidationRows:
    """The rows of chunks that are held out: a random share of them, or none."""

    fraction: float = 0.0
    seed: int = 0

    def of(self, chunk: Chunk) -> np.ndarray | None:
        if not self.fraction:
            return None
        return held_out(chunk.first, len(chunk.y), self.fraction, self.seed)


@dataclass(frozen=True)
class TrainingSample:
    """Random training rows of positive weight: the rows with the smallest priorities, at most
    MOST_ROWS_SAMPLED.
    """

    priority: np.ndarray
    X: Any  # an array, or a Frame until its columns are known
    weight: np.ndarray

    def __add__(self, other: TrainingSample) -> TrainingSample:
        priority, weight = (
            np.concatenate(pair) for pair in ((self.priority, other.priority), (self.weight, other.weight))
        )
        if isinstance(self.X, Frame) and isinstance(other.X, Frame):
            return sample_rows(priority, concatenate([self.X, other.X]), weight)
        return sample_rows(priority, np.concatenate([self.X, other.X]), weight)


def sample_rows(priority: np.ndarray, X: np.ndarray | Frame, weight: np.ndarray) -> TrainingSample:
    present = np.flatnonzero(weight > 0)
    chosen = present[smallest(priority[present], MOST_ROWS_SAMPLED)]
    rows = X[chosen]
    return TrainingSample(
        priority[chosen], rows.compact() if isinstance(rows, Frame) else rows, weight[chosen]
    )


@dataclass(frozen=True)
class Summary:
    """What a fit learns from its rows in one pass.

    ``validation_weight`` is the weight of the held-out rows, None if no rows are held out.
    ``moments_by_label`` are the moments of the training rows of X, all under the key None, unless classes
    will get weights that are not known yet. ``label_weights`` is empty in regression, and ``targets`` is None
    in classification. ``target_sample`` holds some targets, if the loss is robust or the user's own, or if
    jumps are sought (then the targets of the rows of ``sample``). ``largest_targets`` is set if the loss has
    a log link. ``counts`` are the counts of frames. ``n_codes``, known once all rows have been seen, holds
    for each column the number of codes of a category, or None for a number; it is None if all columns are
    numbers."""

    n_rows: int
    dtype: np.dtype
    sparse: bool
    largest_weight: float
    validation_weight: float | None
    moments_by_label: dict[Any, Moments]
    label_weights: dict[Any, float]
    targets: Moments | None
    checksum: int
    sample: TrainingSample | None
    target_sample: TrainingSample | None = None
    largest_targets: np.ndarray | None = None
    counts: FrameCounts | None = None
    n_codes: tuple[int | None, ...] | None = None

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.n_rows + other.n_rows,
            self.dtype,
            self.sparse or other.sparse,
            max(self.largest_weight, other.largest_weight),
            both(self.validation_weight, other.validation_weight),
            _add(self.moments_by_label, other.moments_by_label),
            _add(self.label_weights, other.label_weights),
            both(self.targets, other.targets),
            (self.checksum + other.checksum) % (1 << 64),
            both(self.sample, other.sample),
            both(self.target_sample, other.target_sample),
            both(self.largest_targets, other.largest_targets, np.maximum),
            both(self.counts, other.counts),
        )

    def encoded(self, columns: Columns) -> Summary:
        """Return the summary of the matrix that a frame becomes when encoded by its columns."""
        sample = self.sample
        if sample is not None and isinstance(sample.X, Frame):
            sample = replace(sample, X=columns.encode(sample.X, self.dtype))
        return replace(self, sample=sample, n_codes=columns.n_codes)

    def moments(self, class_factors: dict[Any, float]) -> Moments:
        """Return the moments of the training rows, with class weights applied."""
        weighted = [each * class_factors.get(label, 1.0) for label, each in self.moments_by_label.items()]
        return sum(weighted[1:], start=weighted[0])


def both(ours: T | None, theirs: T | None, join: Callable[[T, T], T] = add) -> T | None:
    """Return the sum of two facts, or what ``join`` makes of them; None if either is None."""
    return None if ours is None or theirs is None else join(ours, theirs)


def _add(ours: dict[Any, Any], theirs: dict[Any, Any]) -> dict[Any, Any]:
    both = {key: ours[key] + theirs[key] for key in ours.keys() & theirs.keys()}
    return {key: both.get(key, value) for key, value in {**ours, **theirs}.items()}


@dataclass(frozen=True)
class Summarise:
    """Compute the Summary of a chunk.

    ``fingerprint``: whether to compute a checksum of all numbers. ``sampled``: whether to keep a sample of
    dense rows, which splines need; only then may chunks be frames. ``measured``: whether the moments of dense
    columns are needed, or only their weight. A pass for them takes as long as one or two iterations. ``loss``
    is the loss of numbers: it may refuse some, and needs a sample of targets if it is robust or the user's
    own; ``targets`` also requests such a sample."""

    classification: bool
    by_label: bool
    validation: ValidationRows
    fingerprint: bool
    sampled: bool = False
    measured: bool = True
    loss: Loss = SQUARED
    targets: bool = False

    def __call__(self, chunk: Chunk) -> Summary:
        self._check(chunk.y)
        mask = self.validation.of(chunk)
        weight = np.ones(len(chunk.y)) if chunk.weight is None else chunk.weight
        training = weight if mask is None else np.where(mask, 0.0, weight)
        labels, numbers = (
            np.unique(chunk.y[:, 0], return_inverse=True)
            if self.classification
            else (np.empty(0), np.empty(0, dtype=np.intp))
        )
        is_frame = isinstance(chunk.X, Frame)
        priority = priorities(chunk.first, len(chunk.y), seed=0)
        measured = not is_frame and (self.measured or sparse.issparse(chunk.X))
        of_columns = moments if measured else only_weight
        groups = (
            {label: numbers == k for k, label in enumerate(labels.tolist())}
            if self.by_label
            else {None: slice(None)}
        )
        return Summary(
            n_rows=len(chunk.y),
            dtype=_dtype(chunk.X),
            sparse=sparse.issparse(chunk.X),
            largest_weight=float(weight.max(initial=0.0)),
            validation_weight=None if mask is None else float(weight[mask].sum()),
            moments_by_label={
                label: of_columns(chunk.X[rows], training[rows]) for label, rows in groups.items()
            },
            label_weights=dict(
                zip(
                    labels.tolist(),
                    np.bincount(numbers, weights=training, minlength=len(labels)).tolist(),
                    strict=True,
                )
            ),
            targets=None if self.classification else moments(chunk.y, training),
            checksum=checksum(chunk) if self.fingerprint else 0,
            sample=sample_rows(priority, chunk.X, training)
            if self.sampled and not sparse.issparse(chunk.X)
            else None,
            target_sample=sample_rows(priority, chunk.y, training)
            if self.targets or self.loss.level is not None or self.loss.code is None
            else None,
            largest_targets=chunk.y[training > 0].max(axis=0, initial=0) if self.loss.log_link else None,
            counts=count_columns(chunk.X, weight) if is_frame else None,
        )

    def beside(self, summary: Summary, held_out: Chunk) -> Summary:
        """Return the summary of training rows and of a chunk that is held out entirely."""
        weight = len(held_out.y) if held_out.weight is None else held_out.weight.sum()
        both = (summary.checksum + checksum(held_out)) % (1 << 64) if self.fingerprint else summary.checksum
        return replace(summary, validation_weight=float(weight), checksum=both)

    def _check(self, y: np.ndarray) -> None:
        if self.classification and y.shape[1] != 1:
            raise ValueError(
                f"y must have one column of classes, got {y.shape[1]}. For several labels per row (a column "
                "of 0 and 1 each), use TensorMachineClassifier with data in memory, on Dask, or in files "
                "with column names."
            )
        if self.classification and y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise ValueError("y must hold classes, got real numbers: use a regressor for them.")
        if not self.classification and y.dtype.kind not in "biuf":
            raise ValueError(f"y must be numbers for regression, got the type {y.dtype}.")
        if not self.classification and self.loss.of_classes and not np.isin(y, (0, 1)).all():
            raise ValueError(
                "y must hold 0 and 1, a column for each label of a row, or one column of classes, got "
                f"{y.shape[1]} columns with other values."
            )
        if not self.classification:
            require_targets(self.loss, y)


NUMBERS_NEEDED = ' Use basis="auto" of a Tensor Machine, which takes categories and missing values.'


def summarised(function: Summarise, names: Sequence[str] | None, chunk: Chunk) -> Summary:
    """Return the summary of a chunk from a source, whose columns may have ``names``; refuse other values if
    numbers are needed."""
    if not function.sampled:
        require_numbers(chunk, names, missing=False, hint=NUMBERS_NEEDED)
    return function(chunk)


def _dtype(X: Rows | Frame) -> np.dtype:
    """Return the float type to compute in."""
    if not isinstance(X, Frame):
        return X.dtype
    numbers = [column for column in X.columns if isinstance(column, np.ndarray)]
    return matrix_type([np.dtype(np.float64) if is_dates(column) else column.dtype for column in numbers])


def checksum(chunk: Chunk) -> int:
    """Return a number that almost surely changes with any number of the chunk, or with its position."""
    parts = [*_arrays(chunk.X), chunk.y, *([] if chunk.weight is None else [chunk.weight])]
    digest = hashlib.blake2b(
        f"{chunk.first} {chunk.X.shape} {_dtype(chunk.X)} {chunk.y.dtype}".encode(), digest_size=8
    )
    for part in parts:
        if part.dtype.hasobject:
            digest.update(repr(part.tolist()).encode())
            continue
        for start in range(0, len(part), ROWS_AT_ONCE):
            digest.update(
                zlib.crc32(
                    np.ascontiguousarray(part[start : start + ROWS_AT_ONCE]).view(np.uint8).data
                ).to_bytes(4, "little")
            )
    return int.from_bytes(digest.digest(), "little")


def _arrays(X: Rows | Frame) -> list[np.ndarray]:
    if isinstance(X, Frame):
        levels = [column for column in X.columns if isinstance(column, Levels)]
        names = [np.array([column.names for column in levels], dtype=object)] if levels else []
        return [each.codes if isinstance(each, Levels) else each for each in X.columns] + names
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
