"""`tensormachines evaluate`."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from .options import Command, Parser, add_cluster, add_known_part, add_reading, add_weight_of_errors

DESCRIPTION = """Measure the errors of a model on the rows of a table, with 95 % intervals and the
errors of a constant prediction for comparison. Rows without a target are left out."""
EXAMPLES = """examples:
  tensormachines evaluate rent.tm flats-new.csv
  tensormachines evaluate rent.tm flats-new.csv --json
  tensormachines evaluate sold.tm 'new/*.parquet' --cluster tcp://host:8786
  tensormachines evaluate old.tm flats-new.csv --target rent    # for models fitted in Python"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument("data", help="CSV, Parquet, Arrow or svmlight")
    parser.add_argument("--target", action="append", metavar="COLUMN", help="default: the target of the fit")
    add_weight_of_errors(parser)
    add_known_part(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_cluster(parser)
    add_reading(parser)
    parser.set_defaults(run=evaluate)


def evaluate(options: argparse.Namespace) -> int:
    from .error_table import errors_on, show_errors
    from .known_part import show_measured
    from .known_rows import KnownRows
    from .model_rows import load_model, rows_for

    model = load_model(options.model, options.data)
    known = KnownRows(model)
    if options.cluster is None:
        rows = rows_for(model, options.data, options)
        show_measured(getattr(rows, "known", {}), options.weight)
        n_rows, errors = errors_on(model, rows, known)
    else:
        from .cluster import connected, errors_on_cluster

        with connected(options.cluster):
            n_rows, errors = errors_on_cluster(model, options.data, options, options.target)
    if options.json:
        found = {"rows": n_rows, "share_in_fit": known.share, "errors": _without_nan(errors)}
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        if (warning := known.warning(options.data)) is not None:
            print(warning)
        show_errors(errors, f"{n_rows:,} row{'' if n_rows == 1 else 's'} of {options.data}")
    return 0


def _without_nan(value: Any) -> Any:
    """Replace measures that are undefined, as on few rows, by None: JSON has no NaN."""
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    return value if math.isfinite(value) else None


COMMANDS = {"evaluate": Command(DESCRIPTION, EXAMPLES, add_arguments)}
