"""`tensormachines reproduce`."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill

from ..datasets import SETS
from ..experiments.methods import METHODS
from ..experiments.parallel import run_all
from ..experiments.profiles import PROFILES
from ..experiments.records import read
from ..experiments.report import write_report
from ..experiments.report.figure_style import MATPLOTLIB_MISSING
from ..experiments.run import EXPERIMENTS, SETS_TO_RUN, Run
from .options import Command, Parser, positive

REPRODUCE = """Run the paper's experiments (Yang and Gittens, 2015) on the available data sets.
Every fit becomes a line of OUTPUT/lines.jsonl; the results are in
OUTPUT/report.html and report.md, those for practitioners in summary.html. A run
that was stopped continues where it ended when it is started again."""
REPRODUCE_EXAMPLES = f"""examples:
  tensormachines reproduce --profile quick        # everything in five minutes, on few rows
  tensormachines reproduce                        # two hours; continues a stopped run
  tensormachines reproduce --sets adult indoor    # some sets; such runs may share an output folder
  tensormachines reproduce --report               # fit nothing, write the report of the existing lines

{fill("sets:        " + " ".join(SETS), 80, subsequent_indent=13 * " ", break_on_hyphens=False)}
{fill("methods:     " + " ".join(METHODS), 80, subsequent_indent=13 * " ", break_on_hyphens=False)}
experiments: {" ".join(EXPERIMENTS)}

Data are read from the folder given by TENSORMACHINES_DATA or --data, else
downloaded (not by quick). Sets that are not available are skipped, with a
message; the eBay-like set is generated, and so always available."""


def add_reproduce(parser: Parser) -> None:
    parser.add_argument(
        "--profile", choices=list(PROFILES), default="standard", help="how much to run (default: standard)"
    )
    parser.add_argument("--output", type=Path, help="folder for lines and report (default: results/PROFILE)")
    parser.add_argument("--data", type=Path, help="folder with the data sets (default: TENSORMACHINES_DATA)")
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=list(SETS),
        default=SETS_TO_RUN,
        metavar="SET",
        help="only these (default: the paper's)",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(METHODS),
        default=list(METHODS),
        metavar="METHOD",
        help="only these (default: all)",
    )
    parser.add_argument(
        "--experiments",
        nargs="+",
        choices=list(EXPERIMENTS),
        default=list(EXPERIMENTS),
        metavar="EXPERIMENT",
        help="only these (default: all)",
    )
    cores = min(2, os.cpu_count() or 1)
    parser.add_argument(
        "--jobs",
        type=positive,
        default=cores,
        help=f"sets to run at a time, each on one core (default: {cores})",
    )
    parser.add_argument(
        "--report", action="store_true", help="fit nothing, write the report of the existing lines"
    )
    parser.add_argument(
        "--retry", action="store_true", help="repeat fits that failed, crashed or took too long"
    )
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first fit that fails")
    parser.set_defaults(run=reproduce)


def reproduce(options: argparse.Namespace) -> int:
    profile = PROFILES[options.profile]
    folder = options.output or Path("results") / profile.name
    if options.data is not None and not options.data.is_dir():
        raise ValueError(f"--data is not a folder: {options.data}")
    if options.report and not (folder / "lines.jsonl").exists():
        raise ValueError(
            f"--report needs the lines of a run, and there is no lines.jsonl in {folder}: "
            "give the folder of the run with --output."
        )
    if find_spec("matplotlib") is None:  # report it now, not after the last fit
        raise ImportError(MATPLOTLIB_MISSING)
    if not options.report:
        run = Run(profile, folder, options.data, retry=options.retry, fail_fast=options.fail_fast)
        run_all(run, options.sets, options.methods, options.experiments, options.jobs)
    for path in write_report(read(folder / "lines.jsonl"), folder):
        print(path)
    return 0


COMMANDS = {"reproduce": Command(REPRODUCE, REPRODUCE_EXAMPLES, add_reproduce)}
