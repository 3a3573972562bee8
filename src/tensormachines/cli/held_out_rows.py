"""The rows that `fit --holdout` leaves out of the fit, written to a separate file."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from .._data.files.paths import is_svmlight
from .._data.row_assignment import held_out
from .options import require_place
from .output import open_output, require_output
from .training_rows import Training, rows_with_targets


def require_held_out_place(options: argparse.Namespace) -> None:
    """Refuse, before the fit, a file that could not be written after it."""
    option, path = "--holdout-output", options.holdout_output
    if options.holdout is None:
        raise ValueError(f"{option} {path}: say with --holdout which share of the rows to hold out.")
    if options.cluster is not None:
        raise ValueError(f"{option}: rows on a cluster cannot be written; leave out {option} or --cluster.")
    if is_svmlight(options.data):
        raise ValueError(f"{option}: rows of svmlight files cannot be written; give CSV, Parquet or Arrow.")
    require_place(path, options.data, options.output, option=option)
    require_output(path, option)


def require_second_reading(training: Training, options: argparse.Namespace) -> None:
    """Refuse, before the fit, rows that cannot be read again."""
    if not training.file.rereadable:
        raise ValueError(f"--holdout-output: {options.data} can be read once only; give a file.")


def write_held_out(held: Training, options: argparse.Namespace) -> int:
    """Write the rows with all columns of the file, unchanged, and return their number.

    ``held`` are the held-out rows, or, if rows are streamed, the rows of the fit."""
    file, n_rows = held.file, 0
    with open_output(options.holdout_output, file.names) as write:
        first = 0
        for block in file.blocks(file.names):
            if held.places is not None:
                rows = np.isin(np.arange(first, first + block.n_rows), held.places)
            else:
                rows = held_out(first, block.n_rows, options.holdout, options.random_state)
                rows &= rows_with_targets(block, held)
            chosen = np.flatnonzero(rows)
            if len(chosen):
                write({name: _some(cells.as_they_are(), chosen) for name, cells in block.cells.items()})
            n_rows += len(chosen)
            first += block.n_rows
    return n_rows


def _some(column: Any, rows: np.ndarray) -> Any:
    return column.take(rows) if hasattr(column, "take") else [column[row] for row in rows.tolist()]
