"""Training rows as a fit sees them, whether they are in memory, on disk or on other machines.

Training rows are a sequence of chunks. A fit reads them twice: once for their `Summary`, and once to turn
each chunk into blocks for the kernel, according to the `Recipe`. Afterwards there are only sums over these
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._model.basis import Basis
from .._model.block import Block, Blocks, BlocksInMemory
from .._model.rows import Rows
from .._model.threads import in_threads
from .encoding import Columns
from .files.source import Chunk
from .row_assignment import deal
from .summary import Summarise, Summary, ValidationRows

LARGEST_SORTED = 1 << 16  # entries of X
NEGLIGIBLE_WEIGHT = 2.0**-120  # of a row, relative to the largest


@dataclass(frozen=True)
class Recipe:
    """Turn a chunk into blocks: one per part, then one with every ``stride``-th row, then one with the
    held-out rows, if any.

    Targets are shifted by ``center`` and divided by ``deviation``, or, if there are ``classes``, replaced by
    the class index. Rows are dealt to several parts at random; a single part is the whole chunk, with weight
    0 for the held-out rows. After ``most_parts`` parts, the other rows are ``n_others`` parts. Shares of
    splines may be ``packed``, if the model reads packed shares."""

    basis: Basis
    n_parts: int
    stride: int
    seed: int
    validation: ValidationRows
    center: np.ndarray
    deviation: np.ndarray
    largest_weight: float = 1.0
    classes: np.ndarray | None = None
    class_factors: np.ndarray | None = None
    packed: bool = False
    threads: int = 1  # they share the parts
    most_parts: int | None = None
    n_others: int = 1

    @property
    def n_blocks(self) -> int:
        """Return the number of parts, where those after ``most_parts`` count as ``n_others``."""
        if self.most_parts is None or self.n_parts <= self.most_parts:
            return self.n_parts
        return self.most_parts + self.n_others

    def __call__(self, chunk: Chunk) -> list[Block]:
        y, weight = self._targets(chunk)
        held_out = self.validation.of(chunk)
        training = weight
        if held_out is not None:
            weight = np.ones(len(y)) if weight is None else weight
            training = np.where(held_out, 0.0, weight)

        def block(rows: np.ndarray | slice, weight: np.ndarray | None) -> Block:
            # Only these rows are converted to the basis: all rows at once would be in memory twice.
            X = chunk.X if isinstance(rows, slice) else chunk.X[rows]
            return self._block(X, y[rows], None if weight is None else weight[rows])

        sampled = np.arange(-chunk.first % self.stride, len(y), self.stride)
        parts = [*self._deal(chunk.first, len(y)), sampled]
        blocks = in_threads(lambda rows: block(rows, training), parts, self.threads)
        return blocks if held_out is None else [*blocks, block(np.flatnonzero(held_out), weight)]

    def whole(self, chunk: Chunk) -> Block:
        """Return all rows of a chunk as one block; weights above the largest get their own unit."""
        own = 1.0 if chunk.weight is None else float(chunk.weight.max(initial=0.0))
        recipe = replace(self, largest_weight=max(self.largest_weight, own))
        return self._block(chunk.X, *recipe._targets(chunk))

    def _block(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> Block:
        return Block(self.basis.rows(X, self.packed), self.basis, y, weight)

    def _targets(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        # Only ratios matter, and these survive in float32.
        weight = None if chunk.weight is None else _without_negligible(chunk.weight / self.largest_weight)
        if weight is None and self.largest_weight != 1:
            weight = np.full(len(chunk.y), 1 / self.largest_weight)
        if self.classes is None:
            return (chunk.y - self.center) / self.deviation, weight
        numbers = np.searchsorted(self.classes, chunk.y[:, 0]).clip(max=len(self.classes) - 1)
        unknown = self.classes[numbers] != chunk.y[:, 0]
        if unknown.any():
            raise ValueError(
                f"y has the label {chunk.y[unknown, 0].tolist()[0]!r}, which it did not have when the rows "
                "were read first."
            )
        if self.class_factors is not None:
            weight = self.class_factors[numbers] * (1.0 if weight is None else weight)
        return numbers[:, None].astype(np.float64), weight

    def _deal(self, first: int, n_rows: int) -> list[np.ndarray | slice]:
        """Return the rows of each part; a single part has all rows, without copying."""
        if self.n_parts == 1:
            return [slice(None)]
        parts = deal(first, n_rows, self.n_parts, self.seed)
        if self.most_parts is not None:
            other = parts >= self.most_parts
            others = deal(first, n_rows, self.n_others, self.seed + 1)
            parts = np.where(other, self.most_parts + others, parts)
        order = np.argsort(parts, kind="stable")
        borders = np.searchsorted(parts[order], np.arange(self.n_blocks + 1))
        return [order[begin:end] for begin, end in pairwise(borders)]


def _without_negligible(weight: np.ndarray) -> np.ndarray:
    """Return weights relative to the largest, and 0 for negligible weights: such rows are left out.

    If one row has almost all the weight w, the target's deviation is that of the other rows times sqrt(1 -
    w). In this unit, the squares of their targets are up to 1 / (1 - w), which must be finite in float32."""
    return np.where(weight < NEGLIGIBLE_WEIGHT, 0.0, weight)


class TrainingRows(Protocol):
    """Rows of X with targets and weights, read in chunks.

    ``flat`` says whether y has one axis, ``streams`` whether only some of the blocks are in memory at a time,
    and ``distant`` whether a sum over a part takes much longer than its rows need, because other machines are
    involved. ``columns`` are the columns of frames, known after the first pass; None if the rows are
    matrices.
    """

    @property
    def flat(self) -> bool: ...

    @property
    def streams(self) -> bool: ...

    @property
    def distant(self) -> bool: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def feature_names(self) -> list[str] | None: ...

    @property
    def columns(self) -> Columns | None: ...

    def total(self, function: Summarise) -> Summary:
        """Return the sum of the summaries of the chunks."""

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        """Return the training rows in ``recipe.n_parts`` parts, a sample of them, and the held-out rows."""

    def close(self) -> None:
        """Release the storage of the blocks."""


class RowsElsewhere(TrainingRows, Protocol):
    """Training rows that are not in memory."""

    def sum(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of a function of all chunks."""


class RowsInMemory:
    """One chunk that is a matrix: the estimator has encoded its ``columns``, and knows their names.

    Rows ``held_out`` are a separate chunk."""

    streams = distant = False
    feature_names: list[str] | None = None

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        held_out: Chunk | None = None,
        flat: bool = True,
        columns: Columns | None = None,
    ):
        self.chunk = Chunk(X, y, weight)
        self.held_out = held_out
        self.flat = flat
        self.n_columns = X.shape[1]
        self.columns = columns

    def total(self, function: Summarise) -> Summary:
        summary = function(self.chunk)
        if self.held_out is not None:
            summary = function.beside(summary, self.held_out)
        return summary if self.columns is None else replace(summary, n_codes=self.columns.n_codes)

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        *training, sample = recipe(self.chunk)
        held_out = None if self.held_out is None else BlocksInMemory([recipe.whole(self.held_out)])
        return BlocksInMemory(training), BlocksInMemory([sample]), held_out

    def close(self) -> None:
        pass


def merge_rows(
    X: Rows, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """Leave out rows without weight; sort the other rows of a small data set, and add the weights of equal
    rows.

    The objective has many minima, and after hundreds of iterations a difference in the last bit leads to
    another minimum. After sorting and merging, a small data set gives a bit-identical model for any order of
    its rows, and whether a row is given twice or with weight 2. Large data sets are not sorted, because that
    would cost too much."""
    if weight is not None and (largest := weight.max(initial=0)) > 0:
        present = np.flatnonzero(_without_negligible(weight / largest))
        if len(present) < len(weight):
            X, y, weight = X[present], y[present], weight[present]
    if X.shape[0] * X.shape[1] > LARGEST_SORTED:
        return X, y, weight
    weights = np.ones(len(y)) if weight is None else weight
    keys = np.hstack([X.toarray() if sparse.issparse(X) else X, y])
    missing = np.isnan(keys)
    if missing.any():  # NaN is not equal to itself and cannot be sorted
        keys = np.hstack([np.where(missing, 0, keys), missing])
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(number.ravel(), weights=weights)
    return X[first], y[first], None if (merged == 1).all() else merged
