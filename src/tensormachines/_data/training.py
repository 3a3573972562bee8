"""Training rows as a fit sees them, whether they are in memory, on disk or on other machines.

Training rows are a sequence of chunks. A fit reads them twice: once for their `Summary`, once to turn each
chunk into the blocks that the kernel reads, as the `Recipe` says. From then on there are only sums over these
blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from .._model.block import Blocks, BlocksInMemory
from .._model.rows import Rows
from .encoding import Columns
from .files.source import Chunk
from .recipe import Recipe
from .summary import Summarise, Summary, ValidationRows

__all__ = ["Chunk", "Recipe", "RowsInMemory", "Summarise", "Summary", "TrainingRows", "ValidationRows"]


class TrainingRows(Protocol):
    """Rows of X with targets and weights, read in chunks.

    ``flat`` says whether y has one axis, ``streams`` whether only some of the blocks are in memory at a time.
    ``columns`` are those of frames, known after the first pass; None where the rows are matrices.
    """

    @property
    def flat(self) -> bool: ...

    @property
    def streams(self) -> bool: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def feature_names(self) -> list[str] | None: ...

    @property
    def columns(self) -> Columns | None: ...

    def total(self, function: Summarise) -> Summary:
        """Return the sum of the summaries of the chunks."""

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        """Return the rows to train on, in ``recipe.n_parts`` parts; a sample of them; and those held out."""

    def close(self) -> None:
        """Let go of what the blocks are kept in."""


class RowsInMemory:
    """One chunk, a matrix: the estimator has encoded its ``columns``, and knows their names."""

    streams = False
    feature_names: list[str] | None = None

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        validation: np.ndarray | None = None,
        flat: bool = True,
        columns: Columns | None = None,
    ):
        self.chunk = Chunk(X, y, weight, validation=validation)
        self.flat = flat
        self.n_columns = X.shape[1]
        self.columns = columns

    def total(self, function: Summarise) -> Summary:
        summary = function(self.chunk)
        return summary if self.columns is None else replace(summary, n_codes=self.columns.n_codes)

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
