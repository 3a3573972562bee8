"""`tensormachines export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import Command, Parser, require_place

DESCRIPTION = """Write a model in another language, so that it predicts without this package:
Python that needs only NumPy, C99, one SQL query, ONNX or JSON."""
EXAMPLES = """examples:
  tensormachines export rent.tm -o rent.py
  tensormachines export rent.tm -o rent.onnx                # needs pip install "tensormachines[onnx]"
  tensormachines export rent.tm --format sql --table flats  # to standard output"""
FORMATS = ("py", "c", "sql", "json", "onnx")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=".py, .c, .sql, .json or .onnx (default: standard output)"
    )
    parser.add_argument("--format", choices=FORMATS, help="default: the ending of the output's name")
    parser.add_argument("--table", help="for SQL: the table that the query reads (default: rows)")
    parser.add_argument("--name", help="for C: the prefix of all names (default: model)")
    parser.set_defaults(run=export)


def export(options: argparse.Namespace) -> int:
    format_ = options.format or (
        "" if options.output is None else Path(options.output).suffix.lower().removeprefix(".")
    )
    if format_ not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(
            f"export needs a format: give --format or a file name for -o that ends with one of {known}."
        )
    for option, of_format in (("table", "sql"), ("name", "c")):
        if getattr(options, option) is not None and format_ != of_format:
            raise ValueError(f"--{option} is for the format {of_format}, got {format_}: leave it out.")
    if options.output is None and format_ == "onnx":
        raise ValueError("ONNX is binary: give a file with -o.")
    if options.output is not None:
        require_place(options.output, options.model)
    from .._data.atomic_file import complete_or_not
    from ..export import to_c, to_json, to_onnx, to_python, to_sql
    from .model_rows import load_model
    from .output import write_text

    model = load_model(options.model)
    if format_ == "onnx":
        with complete_or_not(options.output) as unfinished:
            unfinished.write_bytes(to_onnx(model).SerializeToString())
        return 0
    if format_ == "sql":
        text = to_sql(model, options.table or "rows")
    elif format_ == "c":
        text = to_c(model, options.name or "model")
    else:
        text = to_python(model) if format_ == "py" else to_json(model)
    text = text.removesuffix("\n") + "\n"
    if options.output is None:
        print(text, end="")
    else:
        write_text(options.output, text)
    return 0


COMMANDS = {"export": Command(DESCRIPTION, EXAMPLES, add_arguments)}
