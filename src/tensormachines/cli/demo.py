"""`tensormachines demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import Command, Parser, require_place

DEMO = """Without options: compare Tensor Machines with methods of scikit-learn, on data
that need no download; takes less than a minute. With --table: write an invented
table of flats to try the other commands on, with categories, booleans and
missing values; it is always the same."""
DEMO_EXAMPLES = """examples:
  tensormachines demo                      # compare, and draw demo.png; needs "tensormachines[demo]"
  tensormachines demo --table flats.csv    # write flats.csv (3,000 rows) and flats-new.csv (1,000 rows)"""


def add_demo(parser: Parser) -> None:
    parser.add_argument(
        "--output", type=Path, default=Path("demo.png"), help="file of the figure (default: demo.png)"
    )
    parser.add_argument(
        "--table", metavar="FILE", help="write a table as CSV instead, and NAME-new.csv next to it"
    )
    parser.set_defaults(run=demo)


def demo(options: argparse.Namespace) -> int:
    if options.table is not None:
        return _write_tables(options.table)
    require_place(str(options.output), option="--output")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ImportError('demo draws a figure, which needs matplotlib: pip install "tensormachines[demo]".')
    from ..experiments.demo import compare

    compare(options.output)
    return 0


def _write_tables(path: str) -> int:
    from ..datasets.flats import NEW_ROWS, ROWS, flats
    from .output import open_output

    if not path.lower().endswith(".csv"):
        raise ValueError(f"--table must be a file name that ends with .csv, got {path}.")
    new = str(Path(path).with_name(Path(path).stem + "-new.csv"))
    require_place(path, option="--table")
    require_place(new, option="--table")
    for name, n_rows, seed in ((path, ROWS, 0), (new, NEW_ROWS, 1)):
        columns = flats(n_rows, seed)
        with open_output(name, list(columns)) as write:
            write(columns)
        print(f"{name}: {n_rows:,} rows")
    return 0


COMMANDS = {"demo": Command(DEMO, DEMO_EXAMPLES, add_demo)}
