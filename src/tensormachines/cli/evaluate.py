"""`tensormachines evaluate`."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from .options import Parser, add_reading

EVALUATE = """The errors of a model on the rows of a table, each with its 95 % interval,
beside those of a constant prediction. Rows without a target are left out."""
EVALUATE_EXAMPLES = """examples:
  tensormachines evaluate rent.tm flats-new.csv
  tensormachines evaluate rent.tm flats-new.csv --json
  tensormachines evaluate old.tm flats-new.csv --target rent          # a model that does not remember its target"""


def add_evaluate(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument("data", help="CSV, Parquet, Arrow or svmlight")
    parser.add_argument("--target", action="append", metavar="COLUMN", help="default: that of the fit")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    add_reading(parser)
    parser.set_defaults(run=evaluate)


def evaluate(options: argparse.Namespace) -> int:
    from .error_table import errors_on, show_errors
    from .model_rows import load_model, rows_for

    model = load_model(options.model, options.data)
    n_rows, errors = errors_on(model, rows_for(model, options.data, options))
    if options.json:
        print(json.dumps({"rows": n_rows, "errors": _without_nan(errors)}, indent=2, allow_nan=False))
    else:
        show_errors(errors, f"{n_rows:,} row{'' if n_rows == 1 else 's'} of {options.data}")
    return 0


def _without_nan(value: Any) -> Any:
    """Measures that few rows leave undefined are null: JSON knows no NaN."""
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    return value if math.isfinite(value) else None
