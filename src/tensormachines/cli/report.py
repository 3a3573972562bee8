"""`tensormachines report`."""

from __future__ import annotations

import argparse
import os

from .options import Command, Parser, add_known_part, add_reading, add_weight_of_errors, require_place

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
    add_weight_of_errors(parser)
    add_known_part(parser)
    parser.add_argument("--title", help="the title of the page")
    add_reading(parser)
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    require_place(options.output, options.data, options.model, options.train)
    from ..report.findings import find
    from ..report.page import EXAMPLES as N_EXAMPLES
    from ..report.page import page_of
    from .known_part import show_measured
    from .known_rows import KnownRows
    from .model_rows import load_model, rows_for, source_of, targets_of
    from .output import write_text

    model = load_model(options.model, options.data)
    known = KnownRows(model)
    opened = rows_for(model, options.data, options)
    rows = source_of(opened, known)
    columns = getattr(opened, "known", {})
    show_measured(columns, options.weight)
    train = None if options.train is None else source_of(rows_for(model, options.train, options))
    targets = options.target or targets_of(model)
    target = targets[0] if len(targets) == 1 else None
    if target is not None and "exposure" in columns:
        target = f"{target} / {columns['exposure']}"
    found = find(model, rows, None, train, target=target, n_examples=N_EXAMPLES)
    name = os.path.basename(options.data)
    warning = known.warning(name)  # known only after the pass
    write_text(options.output, page_of(found, options.title, name, warning))
    kilobytes = os.path.getsize(options.output) / 1000
    if warning is not None:
        print(warning)
    print(f"{options.output}: {kilobytes:.0f} kB, {found.n_given:,} rows of {options.data}")
    return 0


COMMANDS = {"report": Command(DESCRIPTION, EXAMPLES, add_arguments)}
