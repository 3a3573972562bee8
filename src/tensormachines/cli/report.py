"""`tensormachines report`."""

from __future__ import annotations

import argparse
import os

from .options import Parser, add_reading, require_place

REPORT = """One HTML file that needs no network: what a model is, its errors, what its
columns do, and the model itself to play with."""
REPORT_EXAMPLES = """examples:
  tensormachines report rent.tm flats-new.csv -o report.html
  tensormachines report rent.tm flats-new.csv --train flats.csv -o report.html   # shows the rows of the fit, too"""


def add_report(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument(
        "data", help="CSV, Parquet, Arrow or svmlight, with the target: better rows that were not fitted"
    )
    parser.add_argument("--train", metavar="FILE", help="the rows that were fitted")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the page to write")
    parser.add_argument("--target", action="append", metavar="COLUMN", help="default: that of the fit")
    parser.add_argument("--title", help="of the page")
    add_reading(parser)
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    require_place(options.output, options.data, options.model, options.train)
    from ..report import html_report
    from .model_rows import load_model, rows_for, targets_of
    from .output import write_text

    model = load_model(options.model, options.data)
    rows = rows_for(model, options.data, options).all()
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
    )
    write_text(options.output, page)
    print(
        f"{options.output}: {os.path.getsize(options.output) / 1000:.0f} kB, {len(rows.y):,} rows of {options.data}"
    )
    return 0
