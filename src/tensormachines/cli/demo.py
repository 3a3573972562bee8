"""`tensormachines demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import Command, Parser, require_place

DEMO = """Without options: Tensor Machines beside what scikit-learn offers, on data that
need no download; under a minute. With --table: write a table of flats to try
the other commands on, with categories, booleans and missing values; invented,
and always the same."""
DEMO_EXAMPLES = """examples:
  tensormachines demo                        # compares, and draws demo.png; needs pip install "tensormachines[demo]"
  tensormachines demo --table flats.csv      # writes flats.csv (3,000 rows) and flats-new.csv (1,000 rows)"""


def add_demo(parser: Parser) -> None:
    parser.add_argument(
        "--output", type=Path, default=Path("demo.png"), help="where the figure goes (default: demo.png)"
    )
    parser.add_argument(
        "--table", metavar="FILE", help="write a table instead, as CSV, and NAME-new.csv beside it"
    )
    parser.set_defaults(run=demo)


def demo(options: argparse.Namespace) -> int:
    if options.table is not None:
        return _write_tables(options.table)
    require_place(str(options.output), option="--output")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ImportError('demo draws a figure, which needs matplotlib: pip install "tensormachines[demo]".')
    from ..experiments.demo import main

    main(["--output", str(options.output)])
    return 0


def _write_tables(path: str) -> int:
    from ..datasets.flats import NEW_ROWS, ROWS, flats
    from .output import open_output

    if not path.lower().endswith(".csv"):
        raise ValueError(f"--table must name a file that ends with .csv, got {path}.")
    new = str(Path(path).with_name(Path(path).stem + "-new.csv"))
    require_place(path, option="--table")
    require_place(new, option="--table")
    for name, n_rows, seed in ((path, ROWS, 0), (new, NEW_ROWS, 1)):
        table = flats(n_rows, seed)
        with open_output(name, list(table)) as write:
            write(table)
        print(f"{name}: {n_rows:,} rows")
    return 0


COMMANDS = {"demo": Command(DEMO, DEMO_EXAMPLES, add_demo)}
