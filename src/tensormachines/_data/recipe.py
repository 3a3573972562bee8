"""The second pass of a fit over its rows: chunks become the blocks that the kernel reads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._model.basis import Basis
from .._model.block import Block
from .files.source import Chunk
from .row_assignment import deal
from .summary import ValidationRows


@dataclass(frozen=True)
class Recipe:
    """Turn a chunk into blocks: one per part, then one with every ``stride``-th row, then one with the rows
    held out, if there are to be any.

    Targets are standardised by ``center`` and ``deviation``, or, where there are ``classes``, replaced by the
    number of the class. Rows are dealt to several parts at random; a single part is the whole chunk, with
    weight 0 for the rows held out."""

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
        # Only ratios matter, and these survive in float32.
        weight = None if chunk.weight is None else chunk.weight / self.largest_weight
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

    def _deal(self, first: int, block: Block) -> list[Block]:
        if self.n_parts == 1:
            return [block]
        parts = deal(first, block.n_rows, self.n_parts, self.seed)
        order = np.argsort(parts, kind="stable")
        borders = np.searchsorted(parts[order], np.arange(self.n_parts + 1))
        return [block.rows(order[begin:end]) for begin, end in pairwise(borders)]
