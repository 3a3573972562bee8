"""Tables of training rows: what a fit asks of them, whether they are in memory, on disk or on other machines.

A table is a sequence of chunks of rows as the user gave them. A fit goes over it twice: once for its
`Summary`, once to make of each chunk the blocks that the kernel reads, as the `Recipe` says. From then on
there are only sums over these blocks."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._model.basis import AnyBasis
from .._model.block import Block, Blocks, BlocksInMemory, canonical
from .._model.moments import ROWS_AT_ONCE, Moments, Rows, moments, only_weight
from .row_assignment import deal, held_out, priorities


@dataclass(frozen=True)
class Chunk:
    """Rows that follow each other in a table, from number ``first`` on.

    y is (rows, targets): numbers, or for classification one column of labels. ``validation`` marks the rows
    to be held out where that has been decided already."""

    first: int
    X: Rows
    y: np.ndarray
    weight: np.ndarray | None = None
    validation: np.ndarray | None = None


def as_chunk(first: int, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> Chunk:
    return Chunk(first, canonical(X), y.reshape(len(y), -1), weight)


class Table(Protocol):
    """``flat``: whether y has one axis.

    ``streams``: whether only a part of its blocks is in memory at a time.
    """

    @property
    def flat(self) -> bool: ...

    @property
    def streams(self) -> bool: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def feature_names(self) -> list[str] | None: ...

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """The sum over the chunks of what ``function`` gives, whatever can be added."""

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        """The rows to train on, in ``recipe.n_parts`` parts; a sample of them; and those held out."""

    def close(self) -> None:
        """Let go of what the blocks are kept in."""


@dataclass(frozen=True)
class ValidationRows:
    """Which rows are held out: a share of them, at random; or those that the chunks mark; or none."""

    fraction: float = 0.0
    seed: int = 0
    given: bool = False

    def of(self, chunk: Chunk) -> np.ndarray | None:
        if chunk.validation is not None or not self.fraction:
            return chunk.validation
        return held_out(chunk.first, len(chunk.y), self.fraction, self.seed)


# ---- the first pass

MOST_ROWS_SAMPLED = 50_000


@dataclass(frozen=True)
class RowSample:
    """Some training rows of positive weight, at random: those with the smallest priorities, at most
    MOST_ROWS_SAMPLED of them.
    """

    priority: np.ndarray
    X: np.ndarray
    weight: np.ndarray

    def __add__(self, other: RowSample) -> RowSample:
        pairs = ((self.priority, other.priority), (self.X, other.X), (self.weight, other.weight))
        return sample_rows(*(np.concatenate(pair) for pair in pairs))


def sample_rows(priority: np.ndarray, X: np.ndarray, weight: np.ndarray) -> RowSample:
    chosen = np.flatnonzero(weight > 0)
    if len(chosen) > MOST_ROWS_SAMPLED:
        chosen = np.sort(chosen[np.argpartition(priority[chosen], MOST_ROWS_SAMPLED)[:MOST_ROWS_SAMPLED]])
    return RowSample(priority[chosen], X[chosen], weight[chosen])


@dataclass(frozen=True)
class Summary:
    """What is learnt from a table by going over it once.

    ``rows`` are the moments of the training rows of X, together under the key None, or by label where the
    classes will get weights that are not known yet. ``label_weights`` is empty in regression, ``targets``
    None in classification."""

    n_rows: int
    dtype: np.dtype
    sparse: bool
    largest_weight: float
    validation_weight: float
    rows: dict[Any, Moments]
    label_weights: dict[Any, float]
    targets: Moments | None
    checksum: int
    sample: RowSample | None

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.n_rows + other.n_rows,
            self.dtype,
            self.sparse or other.sparse,
            max(self.largest_weight, other.largest_weight),
            self.validation_weight + other.validation_weight,
            _add(self.rows, other.rows),
            _add(self.label_weights, other.label_weights),
            None if self.targets is None or other.targets is None else self.targets + other.targets,
            (self.checksum + other.checksum) % (1 << 64),
            None if self.sample is None or other.sample is None else self.sample + other.sample,
        )

    def moments(self, class_factors: dict[Any, float]) -> Moments:
        """Of the training rows of X, where the weight of each class is multiplied."""
        first, *others = [moments * class_factors.get(label, 1.0) for label, moments in self.rows.items()]
        return sum(others, start=first)


def _add(ours: dict[Any, Any], theirs: dict[Any, Any]) -> dict[Any, Any]:
    both = {key: ours[key] + theirs[key] for key in ours.keys() & theirs.keys()}
    return {key: both.get(key, value) for key, value in {**ours, **theirs}.items()}


@dataclass(frozen=True)
class Summarise:
    """Chunk to Summary.

    ``fingerprint``: whether to compute a checksum of all numbers; ``sampled``: whether to keep some dense
    rows; ``measured``: whether the moments of dense columns are asked for, or only their weight. A pass for
    them takes as long as one or two iterations of a solver."""

    classification: bool
    by_label: bool
    validation: ValidationRows
    fingerprint: bool
    sampled: bool = False
    measured: bool = True

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
        of_columns = moments if self.measured or sparse.issparse(chunk.X) else only_weight
        groups = (
            {label: numbers == k for k, label in enumerate(labels.tolist())}
            if self.by_label
            else {None: slice(None)}
        )
        return Summary(
            n_rows=len(chunk.y),
            dtype=chunk.X.dtype,
            sparse=sparse.issparse(chunk.X),
            largest_weight=float(weight.max(initial=0.0)),
            validation_weight=0.0 if mask is None else float(weight[mask].sum()),
            rows={label: of_columns(chunk.X[rows], training[rows]) for label, rows in groups.items()},
            label_weights=dict(
                zip(
                    labels.tolist(),
                    np.bincount(numbers, weights=training, minlength=len(labels)).tolist(),
                    strict=True,
                )
            ),
            targets=None if self.classification else moments(chunk.y, training),
            checksum=checksum(chunk) if self.fingerprint else 0,
            sample=sample_rows(priorities(chunk.first, len(chunk.y), seed=0), chunk.X, training)
            if self.sampled and not sparse.issparse(chunk.X)
            else None,
        )

    def _check(self, y: np.ndarray) -> None:
        if self.classification and y.shape[1] != 1:
            raise ValueError(f"y must have one column of classes, got {y.shape[1]}.")
        if self.classification and y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise ValueError("y must hold classes, got real numbers: use a regressor for them.")
        if not self.classification and y.dtype.kind not in "biuf":
            raise ValueError(f"y must be numbers for regression, got the type {y.dtype}.")


def checksum(chunk: Chunk) -> int:
    """A number that almost surely changes with any of the chunk's numbers, or with its place in the table."""
    parts = [chunk.X.data, chunk.X.indices, chunk.X.indptr] if sparse.issparse(chunk.X) else [chunk.X]
    parts += [chunk.y, *([] if chunk.weight is None else [chunk.weight])]
    digest = hashlib.blake2b(
        f"{chunk.first} {chunk.X.shape} {chunk.X.dtype} {chunk.y.dtype}".encode(), digest_size=8
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


# ---- the second pass


@dataclass(frozen=True)
class Recipe:
    """Chunk to blocks: one a part; one with every ``stride``-th row of the table; and one with the rows held
    out if there are to be any.

    Targets are standardised by ``center`` and ``spread``, or, where there are ``classes``, replaced by the
    number of the class. Rows are dealt to several parts at random; a single part is the chunk as it is, with
    weight 0 for the rows held out."""

    basis: AnyBasis
    n_parts: int
    stride: int
    seed: int
    validation: ValidationRows
    center: np.ndarray
    spread: np.ndarray
    largest_weight: float = 1.0
    classes: np.ndarray | None = None
    class_factors: np.ndarray | None = None

    def __call__(self, chunk: Chunk) -> list[Block]:
        y, weight = self._targets(chunk)
        held_out = self.validation.of(chunk)
        training = weight
        if held_out is not None:
            weight = np.ones(len(y)) if weight is None else weight
            training = np.where(held_out, 0.0, weight)
        rows = self.basis.rows(chunk.X)
        block = Block(rows, self.basis, y, training)
        blocks = [
            *self._deal(chunk.first, block),
            block.rows(np.arange(-chunk.first % self.stride, len(y), self.stride)),
        ]
        if held_out is None:
            return blocks
        assert weight is not None
        return [*blocks, Block(rows[held_out], self.basis, y[held_out], weight[held_out])]

    def _targets(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        weight = (
            None if chunk.weight is None else chunk.weight / self.largest_weight
        )  # only ratios matter, and these survive in float32
        if weight is None and self.largest_weight != 1:
            weight = np.full(len(chunk.y), 1 / self.largest_weight)
        if self.classes is None:
            return (chunk.y - self.center) / self.spread, weight
        numbers = np.searchsorted(self.classes, chunk.y[:, 0]).clip(max=len(self.classes) - 1)
        unknown = self.classes[numbers] != chunk.y[:, 0]
        if unknown.any():
            raise ValueError(
                f"y has the label {chunk.y[unknown, 0].tolist()[0]!r}, which it had not when the rows were read first."
            )
        if self.class_factors is not None:
            weight = self.class_factors[numbers] * (1.0 if weight is None else weight)
        return numbers[:, None].astype(np.float64), weight

    def _deal(self, first: int, block: Block) -> list[Block]:
        if self.n_parts == 1:
            return [block]
        parts = deal(first, block.n_rows, self.n_parts, self.seed)
        order = np.argsort(parts, kind="stable")
        borders = np.searchsorted(parts[order], np.arange(self.n_parts + 1))
        return [block.rows(order[begin:end]) for begin, end in pairwise(borders)]


# ---- tables in memory


class TableInMemory:
    """One chunk. The names of its columns are scikit-learn's business."""

    streams = False
    feature_names: list[str] | None = None

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        validation: np.ndarray | None = None,
        flat: bool = True,
    ):
        self.chunk = Chunk(0, X, y, weight, validation)
        self.flat = flat
        self.n_columns = X.shape[1]

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        return function(self.chunk)

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        blocks = recipe(self.chunk)
        training, (sample, *held_out) = blocks[: recipe.n_parts], blocks[recipe.n_parts :]
        return (
            BlocksInMemory(training),
            BlocksInMemory([sample]),
            BlocksInMemory(held_out) if held_out else None,
        )

    def close(self) -> None:
        pass
