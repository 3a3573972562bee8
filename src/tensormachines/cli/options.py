"""Commands as records, the types of their options, options they share, and checks made before any work."""

from __future__ import annotations

import argparse
import glob
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Parser: TypeAlias = argparse.ArgumentParser

AUTO_YES_NO: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
REGRESSION, CLASSIFICATION = "regression", "classification"
LOCAL = "local"  # the address of a cluster on this machine


@dataclass(frozen=True)
class Command:
    """A command as its module offers it in COMMANDS; ``add_arguments`` also sets the function to run."""

    description: str
    examples: str
    add_arguments: Callable[[Parser], None]


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """Return a parser of integers within two limits, both included."""

    def number(text: str) -> int:
        value = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else least - 1
        if not least <= value <= most:
            limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be a whole number {limits}, got {text!r}")
        return value

    return number


positive = whole(1)
seed = whole(0, 2**32 - 1)


def threads(text: str) -> int:
    """Parse a number of threads; negative numbers count back from all cores, as in joblib."""
    number = whole(-(2**31))(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be a number of threads, or -1 for all cores, got '0'")
    return number


def number_from(least: float, most: float = math.inf) -> Callable[[str], float]:
    """Return a parser of numbers strictly between two limits."""

    def number(text: str) -> float:
        value = _float(text)
        if not least < value < most:
            limits = f"between {least:g} and {most:g}" if math.isfinite(most) else f"greater than {least:g}"
            if (least, most) == (0, 1) and 1 < value < 100:  # a percentage
                limits += f", such as {value / 100:g}"
            raise argparse.ArgumentTypeError(f"must be a number {limits}, got {text!r}")
        return value

    return number


def penalty(text: str) -> float | str:
    if text in ("auto", "rows"):
        return text
    if not 0 <= _float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be auto, rows or a number of at least 0, got {text!r}")
    return float(text)


def auto_yes_no(text: str) -> bool | str:
    if text not in AUTO_YES_NO:
        raise argparse.ArgumentTypeError(f"must be auto, yes or no, got {text!r}")
    return AUTO_YES_NO[text]


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def delimiter(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, or tab, got {text!r}")
    return character


def add_training(parser: Parser) -> None:
    parser.add_argument(
        "data",
        help="CSV (.csv, .tsv), Parquet, Arrow (.arrow, .feather) or svmlight (.svm); text also as .gz",
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="COLUMN",
        help="the column to predict; repeat the option to predict several numbers or labels at once",
    )
    parser.add_argument(
        "--task",
        choices=[REGRESSION, CLASSIFICATION],
        help="default: classification if the target is text or has two values, otherwise regression; "
        "classification of several targets, each 0 and 1, predicts labels of a row",
    )
    parser.add_argument("--weight", metavar="COLUMN", help="a column with the weights of the rows")
    parser.add_argument(
        "--exposure",
        metavar="COLUMN",
        help="how long each row was observed, with --loss poisson, gamma or tweedie; multiplies predictions",
    )
    parser.add_argument(
        "--offset",
        metavar="COLUMN",
        help="a part of the outputs that is known; with these losses outputs are logarithms",
    )
    columns = parser.add_argument_group(
        "columns", "Kinds of columns are inferred from their cells. These options override that."
    )
    names: dict[str, Any] = {"action": "extend", "nargs": "+", "metavar": "COLUMN"}
    columns.add_argument("--columns", **names, help="use only these")
    columns.add_argument("--ignore", **names, default=[], help="leave these out; also as a,b,c")
    columns.add_argument(
        "--category", **names, default=[], help="treat as categories, even if the cells look like numbers"
    )
    columns.add_argument("--number", **names, default=[], help="treat as numeric; fail on other cells")


def add_weight_of_errors(parser: Parser) -> None:
    parser.add_argument("--weight", metavar="COLUMN", help="a column with the weights of the rows in errors")


def add_known_part(parser: Parser) -> None:
    """Add the options of commands that read new rows."""
    for kind, neutral in (("exposure", 1), ("offset", 0)):
        parser.add_argument(
            f"--{kind}",
            metavar="COLUMN",
            help=f"default: the column of the fit, if it had an {kind}; none for an {kind} of {neutral}",
        )


def add_reading(parser: Parser) -> None:
    """Add the options that say how files are read."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--delimiter",
        type=delimiter,
        help="of CSV (default: whichever of , ; tab | is most frequent in the first line)",
    )
    reading.add_argument(
        "--decimal",
        choices=[".", ","],
        default=".",
        help="the decimal separator of CSV (default: a point)",
    )
    reading.add_argument(
        "--encoding",
        help="of CSV (default: UTF-8, UTF-16 if the file says so, else Western European)",
    )
    reading.add_argument(
        "--zero-based", action="store_true", help="indices of svmlight files start at 0 (default: at 1)"
    )


def add_cluster(parser: Parser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help=f"have a Dask cluster read the rows, such as tcp://host:8786, or {LOCAL}: Parquet and CSV",
    )


def require_place(path: str, *sources: str | None, option: str = "-o") -> None:
    """Refuse a path that cannot be written, or that is one of the input files, before any work is done."""
    for source in filter(None, sources):
        names = [source] if os.path.exists(source) else glob.glob(source, recursive=True)
        if os.path.exists(path) and any(os.path.samefile(path, name) for name in names):
            raise ValueError(f"{option} {path}: output would overwrite the input file.")
        if os.path.realpath(path) == os.path.realpath(source):
            raise ValueError(f"{option} {path}: another option names the same file.")
    folder = Path(path).absolute().parent
    if os.path.isdir(path):
        raise IsADirectoryError(f"{option} must name a file, got the folder {path}.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(
            f"{option} must name a file, got {path}, which is a device or a pipe and would be replaced."
        )
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} {path}: there is no folder {folder}; create it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} {path}: no permission to write to the folder {folder}.")
