"""Options of fits that name columns: monotonic effects, periods, and columns that may interact."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

WORDS = {"pairwise": "pairwise", "none": "no_interactions"}


def add_column_settings(settings: Any) -> None:
    names: dict[str, Any] = {"action": "extend", "nargs": "+", "metavar": "COLUMN", "default": []}
    settings.add_argument("--increasing", **names, help="predictions may only rise with these; also as a,b,c")
    settings.add_argument("--decreasing", **names, help="predictions may only fall with these")
    settings.add_argument(
        "--periodic",
        action="extend",
        nargs="+",
        metavar="COLUMN=PERIOD",
        default=[],
        help="numbers that start again after a period, such as hour=24 weekday=7",
    )
    settings.add_argument(
        "--interactions",
        nargs="+",
        metavar="SET",
        help="columns that may meet in a term: pairwise, none, or sets such as size,rooms floor,lift "
        "(default: all)",
    )


def column_settings(options: argparse.Namespace, training: Any) -> dict[str, Any]:
    """Return the estimator parameters for these options."""
    settings: dict[str, Any] = {}
    signs = {"--increasing": 1, "--decreasing": -1}
    given = {"--increasing": options.increasing, "--decreasing": options.decreasing}
    if any(given.values()):
        by_option = {option: _columns(option, names, training) for option, names in given.items()}
        twice = set(by_option["--increasing"]) & set(by_option["--decreasing"])
        if twice:
            raise ValueError(f"--increasing and --decreasing both name {sorted(twice)[0]}.")
        settings["monotonic_cst"] = {
            name: signs[option] for option, names in by_option.items() for name in names
        }
    if options.periodic:
        settings["periodic_features"] = _periods(options.periodic, training)
    if options.interactions is not None:
        word = options.interactions[0] if len(options.interactions) == 1 else ""
        settings["interaction_cst"] = WORDS.get(word) or [
            _columns("--interactions", [each], training) for each in options.interactions
        ]
    return settings


@contextmanager
def options_named(options: argparse.Namespace) -> Iterator[None]:
    """Name options in place of the estimator parameters that errors name."""
    signed = [f"--{name}" for name in ("increasing", "decreasing") if getattr(options, name)]
    names = {
        "monotonic_cst has a sign for": f"{' or '.join(signed)} names",
        "monotonic_cst": " or ".join(signed),
        "periodic_features": "--periodic",
        "interaction_cst": "--interactions",
    }
    try:
        yield
    except ValueError as error:
        message = str(error)
        for parameter, option in names.items():
            message = message.replace(parameter, option)
        if message == str(error):
            raise
        raise ValueError(message) from error


def _periods(given: Sequence[str], training: Any) -> dict[str, float]:
    """Return the periods of columns, each given as COLUMN=PERIOD."""
    periods: dict[str, float] = {}
    for each in given:
        name, _, text = each.rpartition("=")
        try:
            period = float(text)
        except ValueError:
            period = math.nan
        if not name or not 0 < period < math.inf:
            raise ValueError(
                f"--periodic takes a column and its period, a positive number, such as hour=24, got {each!r}."
            )
        for column in _columns("--periodic", [name], training):
            if column in periods:
                raise ValueError(f"--periodic names {column} twice.")
            periods[column] = period
    return periods


def _columns(option: str, names: Sequence[str], training: Any) -> list[str]:
    """Return the columns that an option names; refuse columns that the model is not fitted to."""
    from .named_columns import require_columns

    if training.names is None:
        raise ValueError(f"{option} names a column, and columns of svmlight files have no names.")
    found = require_columns(training.file, option, names)
    for name in found:
        if name not in training.names:
            raise ValueError(f"{option} {name}: the model is not fitted to this column.")
    return found
