"""Run commands as they are typed, in a folder of tables and models."""

import csv

import pytest

from tensormachines.cli import main
from tensormachines.datasets.flats import flats

pd = pytest.importorskip("pandas")

QUICK = ["--degree", "2", "--rank", "2", "--max-iter", "5"]
QUICKLY = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}


def write(path, columns):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def fitted_flats(folder):
    """Fill a folder with small tables of flats and models of them, and return it."""
    write(folder / "flats.csv", flats(400, 0))
    write(folder / "new.csv", flats(100, 1))
    for target in ("rent", "balcony", "district"):
        model = folder / f"{target}.tm"
        assert (
            run("fit", folder / "flats.csv", "--target", target, "--ignore", "id", *QUICK, "-o", model) == 0
        )
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


def error_of(capsys, *arguments):
    """Run a command that fails, and return its only line of error, which comes last on standard error."""
    capsys.readouterr()
    assert run(*arguments) == 1
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.startswith("tensormachines: ")]
    assert len(lines) == 1
    assert "Traceback" not in printed.err
    assert printed.err.endswith(lines[0] + "\n")
    return lines[0].removeprefix("tensormachines: ")


def frame(path, *dropped):
    return pd.read_csv(path).drop(columns=["id", *dropped])
