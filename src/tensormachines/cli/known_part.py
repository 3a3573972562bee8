"""`--exposure` and `--offset`: columns with a known part of the predictions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._data.files.cells import CellBlock
from .._data.files.checks import Where
from .._data.files.column_kinds import read_column
from .._data.files.paths import Chosen
from .._data.frame import Frame, RawColumn
from .._data.plain_text import plain
from .named_columns import Named, require_column

NONE = "none"
LOG_LINKS = ("poisson", "gamma", "tweedie")
ALLOWED = {
    "exposure": "an exposure must be a positive number",
    "offset": "an offset must be a number",
}
ALLOWED_WEIGHT = "a weight must be a number from 0 on"
NEUTRAL = {"exposure": 1, "offset": 0}


def asked_for(options: argparse.Namespace) -> dict[str, str]:
    """Return the columns that options name, by their use."""
    given = {kind: getattr(options, kind, None) for kind in ALLOWED}
    return {kind: name for kind, name in given.items() if name is not None}


def refuse_known_part(columns: Mapping[str, str], option: str) -> None:
    for kind in columns:
        raise ValueError(f"{option} cannot be combined with --{kind}: leave one of them out.")


def columns_of_fit(
    options: argparse.Namespace, file: Named, taken: dict[str, str], categories: Sequence[str]
) -> dict[str, str]:
    """Return the columns of a fit; refuse columns that are already ``taken`` for something else."""
    found: dict[str, str] = {}
    if options.exposure is not None and options.loss not in LOG_LINKS:
        raise ValueError(
            f"--exposure needs --loss {', '.join(LOG_LINKS)}: give one of them, or leave it out."
        )
    for kind, name in asked_for(options).items():
        require_column(file, f"--{kind}", name)
        others = taken | {other: f"the {what}" for what, other in found.items()}
        if name in others:
            raise ValueError(f"--{kind} {name}: that is {others[name]}.")
        if name in categories:
            raise ValueError(f"--category {name}: that is the {kind}, which cannot be a category.")
        found[kind] = name
    return found


def columns_of_model(model: Any, file: Named, options: argparse.Namespace) -> dict[str, str]:
    """Return the columns for new rows: the requested ones, or those of the fit, which the file must have."""
    found = {}
    fitted, asked = getattr(model, "_known_part", {}), asked_for(options)
    for kind, name in (fitted | asked).items():
        if asked.get(kind) == NONE:
            continue
        _require_regressor(model, kind)
        if kind not in asked and name not in file.names:
            raise ValueError(
                f"{file.label} has no column {name!r}, the {kind} of the fit: give --{kind} COLUMN, or "
                f"--{kind} {NONE} to predict for an {kind} of {NEUTRAL[kind]}."
            )
        found[kind] = require_column(file, f"--{kind}", name)
    return found


def show_measured(columns: Mapping[str, str], weight: str | None = None) -> None:
    """Say what errors refer to, if there is an exposure, an offset or a weight."""
    for kind, name in columns.items():
        column = plain(name)
        how = f"divided by {column}, and weighted by it" if kind == "exposure" else f"without {column}"
        print(f"note: errors are those of the target {how}", file=sys.stderr)
    if weight is not None:
        print(f"note: errors are weighted by {plain(weight)}", file=sys.stderr)


def _require_regressor(model: Any, kind: str) -> None:
    if hasattr(model, "classes_") or not hasattr(model, "loss"):
        raise ValueError(f"--{kind} is for models of fit and tune that predict numbers: leave it out.")


def read_known(
    block: CellBlock, columns: Mapping[str, str], present: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the exposures or offsets of the rows of a block that are ``present``."""
    return {
        kind: _checked(kind, name, read_column(block, name, "number"), block.where, present)
        for kind, name in columns.items()
    }


def read_weight(block: CellBlock, name: str | None, present: np.ndarray) -> np.ndarray | None:
    """Return the weights of the rows of a block that are ``present``."""
    if name is None:
        return None
    weight = np.asarray(read_column(block, name, "number"), dtype=np.float64)
    return _require(np.isfinite(weight) & (weight >= 0), ALLOWED_WEIGHT, name, weight, block.where, present)


def known_of_fit(
    frame: Frame, chosen: Chosen, where: Where, present: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the exposures or offsets of the rows that are ``present``, from a frame of all columns."""
    return {
        kind: _checked(kind, name, frame.columns[chosen.all.index(name)], where, present)
        for kind, name in chosen.known.items()
    }


def _checked(
    kind: str, name: str, column: RawColumn, where: Where, present: np.ndarray | None = None
) -> np.ndarray:
    """Return the numbers of the rows that are ``present``, by default all rows; refuse invalid numbers."""
    numbers = np.asarray(column, dtype=np.float64)
    allowed = np.isfinite(numbers) & ((numbers > 0) | (kind != "exposure"))
    return _require(allowed, ALLOWED[kind], name, numbers, where, present)


def _require(
    allowed: np.ndarray, rule: str, name: str, numbers: np.ndarray, where: Where, present: np.ndarray | None
) -> np.ndarray:
    """Return the numbers of the rows that are ``present``, which must be ``allowed``."""
    wrong = ~allowed if present is None else ~allowed & present
    if wrong.any():
        row = int(np.argmax(wrong))
        got = "a missing value" if np.isnan(numbers[row]) else f"{numbers[row]:g}"
        raise ValueError(
            f"{where.cell(row, f'column {name!r}')}: {rule}, got {got}. Correct it, or leave out the row."
        )
    return numbers if present is None else numbers[present]
