"""Types of options, options that several commands have, and checks that come before the work."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

Parser: TypeAlias = argparse.ArgumentParser

REGRESSION, CLASSIFICATION = "regression", "classification"


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """A whole number from one to the other."""

    def number(text: str) -> int:
        value = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else least - 1
        if not least <= value <= most:
            limits = f"from {least} on" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be a whole number {limits}, got {text!r}")
        return value

    return number


positive = whole(1)
seed = whole(0, 2**32 - 1)


def threads(text: str) -> int:
    number = whole(-(2**31))(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be a number of threads, or -1 for all cores, got '0'")
    return number


def number_from(least: float, most: float = math.inf) -> Callable[[str], float]:
    """A number strictly between the two."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least < value < most:
            limits = f"between {least:g} and {most:g}" if math.isfinite(most) else f"greater than {least:g}"
            raise argparse.ArgumentTypeError(f"must be a number {limits}, got {text!r}")
        return value

    return number


def penalty(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be auto or a number from 0 on, got {text!r}")
    return value


def delimiter(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, or tab, got {text!r}")
    return character


def add_training(parser: Parser) -> None:
    parser.add_argument(
        "data",
        help="CSV (.csv, .tsv), Parquet, Arrow (.arrow, .feather) or svmlight (.svm); text also gzipped (.gz)",
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="COLUMN",
        help="the column to predict; given twice or more, several numbers at once",
    )
    parser.add_argument(
        "--task",
        choices=[REGRESSION, CLASSIFICATION],
        help="default: classification of text or of two values",
    )
    parser.add_argument("--weight", metavar="COLUMN", help="a column of weights of the rows")
    columns = parser.add_argument_group(
        "columns", "What a column holds is seen from its cells; these options know better."
    )
    columns.add_argument("--columns", action="extend", nargs="+", metavar="COLUMN", help="use these only")
    columns.add_argument(
        "--ignore", action="extend", nargs="+", metavar="COLUMN", default=[], help="leave these out"
    )
    columns.add_argument(
        "--category",
        action="extend",
        nargs="+",
        metavar="COLUMN",
        default=[],
        help="these are categories, even if they look like numbers",
    )
    columns.add_argument(
        "--number",
        action="extend",
        nargs="+",
        metavar="COLUMN",
        default=[],
        help="these are numbers; a cell that is none is an error",
    )


def add_reading(parser: Parser) -> None:
    """How files are read."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--delimiter",
        type=delimiter,
        help="of CSV (default: that of , ; tab | which the first line has most of)",
    )
    reading.add_argument(
        "--decimal",
        choices=[".", ","],
        default=".",
        help="what decimals of CSV begin with (default: a point)",
    )
    reading.add_argument(
        "--zero-based", action="store_true", help="the first index of svmlight files is 0 (default: 1)"
    )


def require_place(path: str, *sources: str | None, option: str = "-o") -> None:
    """That a file can be written there, and is none of those that are read; said before any work is done."""
    for source in sources:
        if (
            source is not None
            and os.path.exists(path)
            and os.path.exists(source)
            and os.path.samefile(path, source)
        ):
            raise ValueError(f"{option} {path}: that is the file that is read, and would be gone.")
    folder = Path(path).absolute().parent
    if os.path.isdir(path):
        raise IsADirectoryError(f"{option} must name a file, got the folder {path}.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(
            f"{option} must name a file, got {path}, which is a device or a pipe: a file would take its place."
        )
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} {path}: there is no folder {folder}; make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} {path}: the folder {folder} cannot be written to.")
