"""The errors that `fit` shows after the fit: on held-out rows, or on a file of `--test`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from .._data.row_assignment import held_out
from .error_table import Errors, errors_in, errors_on, show_errors
from .known_part import asked_for, show_measured
from .known_rows import KnownRows
from .model_rows import Rows, rows_for
from .training_rows import Training


def show_errors_of_fit(model: Any, options: argparse.Namespace, held: Training | None) -> None:
    """Show errors on the rows of `--test`, or on those of `--holdout`: ``held``, or the rows that a streamed
    fit left out."""
    known = KnownRows(model)
    if options.cluster is None:
        n_rows, errors = _errors(model, options, held, known)
    else:
        n_rows, errors = _errors_on_cluster(model, options, held)
    if options.cluster is None or held is not None:  # otherwise the cluster has reported it
        show_measured(asked_for(options), options.weight)
    of_what = "held-out rows" if options.test is None else f"rows of {options.test}"
    if options.test is not None and (warning := known.warning(options.test)) is not None:
        print(warning)
    show_errors(errors, f"{n_rows:,} {of_what}")


def _errors(
    model: Any, options: argparse.Namespace, held: Training | None, known: KnownRows
) -> tuple[int, dict[str, Errors]]:
    if held is not None:
        return len(held.y), errors_in(model, Rows(held.X, held.y, known=held.known, weight=held.weight))
    if options.test is not None:
        return errors_on(model, rows_for(model, options.test, options), known)
    only = partial(_are_held_out, options.holdout, options.random_state)
    return errors_on(model, rows_for(model, options.data, options, only), known)


def _errors_on_cluster(
    model: Any, options: argparse.Namespace, held: Training | None
) -> tuple[int, dict[str, Errors]]:
    from .cluster import errors_of_frame, errors_on_cluster

    if held is not None:
        return errors_of_frame(model, held.X, held.y, held.known, held.weight)
    return errors_on_cluster(model, options.test, options, options.target)


def _are_held_out(share: float, seed: int, first: int, n_rows: int) -> np.ndarray:
    return held_out(first, n_rows, share, seed)
