"""`tensormachines report`."""

from __future__ import annotations

import argparse
import os

from .options import Command, Parser, add_reading, require_place

DESCRIPTION = """Write one HTML file that needs no network: what the model is, its errors, what its
columns do, and the model itself with inputs to change."""
EXAMPLES = """examples:
  tensormachines report rent.tm flats-new.csv -o report.html
  tensormachines report rent.tm flats-new.csv --train flats.csv -o report.html  # rivals see the same rows"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument(
        "data",
        help="CSV, Parquet, Arrow or svmlight, with the target; ideally rows that the fit has not seen",
    )
    parser.add_argument(
        "--train", metavar="FILE", help="the rows of the fit; rival models are fitted to them, too"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the page to write")
    parser.add_argument("--target", action="append", metavar="COLUMN", help="default: the target of the fit")
    parser.add_argument("--title", help="the title of the page")
    add_reading(parser)
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    require_place(options.output, options.data, options.model, options.train)
    from ..report import html_report
    from .known_rows import KnownRows
    from .model_rows import load_model, rows_for, targets_of
    from .output import write_text

    model = load_model(options.model, options.data)
    rows = rows_for(model, options.data, options).all()
    known = KnownRows(model)
    known.add(rows.X, rows.y)
    warning = known.warning(os.path.basename(options.data))
    train = None if options.train is None else rows_for(model, options.train, options).all()
    targets = options.target or targets_of(model)
    page = html_report(
        model,
        rows.X,
        rows.y,
        X_train=None if train is None else train.X,
        y_train=None if train is None else train.y,
        target=targets[0] if len(targets) == 1 else None,
        title=options.title,
        data_name=os.path.basename(options.data),
        note=warning,
    )
    write_text(options.output, page)
    kilobytes = os.path.getsize(options.output) / 1000
    print(f"{options.output}: {kilobytes:.0f} kB, {len(rows.y):,} rows of {options.data}")
    if warning is not None:
        print(warning)
    return 0


COMMANDS = {"report": Command(DESCRIPTION, EXAMPLES, add_arguments)}
