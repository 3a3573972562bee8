"""`tensormachines explain`."""

from __future__ import annotations

import argparse
import json
import sys
from math import comb
from typing import Any

from .._data.plain_text import plain, shortened
from .options import Command, Parser, add_reading, positive

DESCRIPTION = """Show what a model does with its columns: how much each column moves the output on the rows
of a table, with all its interactions, and how strong the interaction of each pair is. With --row,
split one prediction into parts: with the average prediction of the training rows, they add up to it.
With --formula and rows, show the functions of one and two columns that the model
consists of, and a small polynomial of the columns that is nearly the same; without rows, the largest terms of
its exact polynomial."""
EXAMPLES = """examples:
  tensormachines explain rent.tm flats.csv                  # which columns and pairs matter
  tensormachines explain rent.tm flats.csv --row 1          # why the first row gets its prediction
  tensormachines explain rent.tm flats.csv --formula        # functions of columns and pairs
  tensormachines explain rent.tm --formula --top 20         # terms of the polynomial
  tensormachines explain iris.tm iris.csv --output setosa   # one of several classes"""
MOST_ROWS = 2000
MOST_COLUMNS = 100  # for pairs, whose number grows with the square
MOST_TERMS = 200_000


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument("data", nargs="?", help="CSV, Parquet, Arrow or svmlight; not needed for --formula")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--row", type=positive, metavar="N", help="split the prediction of this row; the first is 1"
    )
    what.add_argument("--formula", action="store_true", help="show the model as functions of its columns")
    parser.add_argument(
        "--top", type=positive, default=10, metavar="K", help="how many to show (default: 10)"
    )
    parser.add_argument(
        "--output", metavar="CLASS", help="which class or target, where there are several (default: the last)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_reading(parser)
    parser.set_defaults(run=explain)


def explain(options: argparse.Namespace) -> int:
    from .model_rows import load_model

    model = load_model(options.model, options.data)
    if options.data is None and not options.formula:
        raise ValueError("explain needs rows: name a table, or use --formula.")
    output = _output(model, options.output)
    if options.formula and options.data is not None:
        return _functions(model, output, options)
    if options.formula:
        found = {"formula": _formula(model, output, options.top)}
    elif options.row is not None:
        found = {"parts": _parts(model, output, options)}
    else:
        found = _shares(model, output, options)
    if options.json:
        entries = {
            title: [{"of": key, "value": value} for key, value in values.items()]
            for title, values in found.items()
        }
        print(json.dumps(entries, indent=2))
        return 0
    for title, values in found.items():
        _show(title, values, options.top)
    return 0


def _output(model: Any, name: str | None) -> Any:
    """Return the ``output`` to explain, as inspection selects it; None if the model has only one."""
    from ..inspection.forms import output_keys

    names = _output_names(model)
    if name is not None and name not in names:
        allowed = ("one of " if len(names) > 1 else "") + ", ".join(names)
        raise ValueError(f"--output must be {allowed}, got {name!r}.{_other_class(model)}")
    if len(names) == 1:
        if model._target_link == "log":
            print(f"values add up to the logarithm of {plain(names[0])}", file=sys.stderr)
        if hasattr(model, "classes_"):
            print(
                plain(f"positive values favour {names[0]}, negative ones {model.classes_[0]}"),
                file=sys.stderr,
            )
        return None
    if name is None:
        print(
            plain(f"output {names[-1]}, the last of {len(names)}; choose with --output: {', '.join(names)}"),
            file=sys.stderr,
        )
    place = -1 if name is None else names.index(name)
    return output_keys(model)[place]


def _output_names(model: Any) -> list[str]:
    """Name the outputs; two classes share one output, which is named after the second."""
    from .model_rows import has_labels, names_of_numbers, targets_of

    if hasattr(model, "classes_") and not has_labels(model):
        return [str(label) for label in model.classes_[-model._machine.layout.n_outputs :]]
    return names_of_numbers(model, targets_of(model))


def _other_class(model: Any) -> str:
    """Say where to look for the first of two classes, which has no output of its own."""
    if model._machine.layout.n_outputs > 1 or len(getattr(model, "classes_", ())) != 2:
        return ""
    return f" The output of {model.classes_[0]} is its negative."


def _formula(model: Any, output: Any, top: int) -> dict[tuple[str, ...], float]:
    """Return the largest coefficients, up to the highest degree whose terms are few enough to list."""
    from ..inspection import polynomial

    degree = model._machine.layout.degree
    n_variables = len(polynomial(model, [()], output=output).names)
    listed = [p for p in range(1, degree + 1) if comb(n_variables + p, p) <= MOST_TERMS]
    if not listed:
        raise ValueError("--formula: the model has too many columns to list its terms.")
    if listed[-1] < degree:
        print(f"terms up to degree {listed[-1]}: there are too many of degree {degree}", file=sys.stderr)
    found = polynomial(model, degree=listed[-1], output=output, max_terms=MOST_TERMS)
    print(plain(f"a polynomial of {found.of_what}"), file=sys.stderr)
    return {tuple(key): value for key, value in found.largest(top).items()}


def _parts(model: Any, output: Any, options: argparse.Namespace) -> dict[tuple[str, ...], float]:
    from ..inspection import explain_row
    from .model_rows import first_rows, rows_for

    X = first_rows(rows_for(model, options.data, options), options.row)[options.row - 1 : options.row]
    if X.shape[0] == 0:
        raise ValueError(f"--row {options.row}: {options.data} has fewer rows.")
    return dict(explain_row(model, X, output=output))


def _rows(model: Any, options: argparse.Namespace) -> Any:
    from .model_rows import rows_for, some_rows

    X, total = some_rows(rows_for(model, options.data, options), MOST_ROWS)
    if total > MOST_ROWS:
        print(f"using {MOST_ROWS:,} of {total:,} rows, chosen at random", file=sys.stderr)
    return X


def _functions(model: Any, output: Any, options: argparse.Namespace) -> int:
    """Print the largest functions of one and two columns, and a small polynomial of the columns."""
    from ..inspection import distil, formula

    X = _rows(model, options)
    found = formula(model, X, max_functions=options.top, output=output)
    small = distil(model, X, terms=options.top, output=output)
    if options.json:
        entries = {
            "constant": found.constant,
            "fidelity": found.fidelity,
            "functions": [
                {
                    "of": each.columns,
                    "share": each.share,
                    "points": [axis.labels for axis in each.axes],
                    "values": each.values.tolist(),
                }
                for each in found.functions
            ],
            "polynomial": {
                "fidelity": small.fidelity,
                "terms": [{"of": key, "value": value} for key, value in small.items()],
            },
        }
        print(json.dumps(entries, indent=2))
        return 0
    print(found, small, sep="\n\n")
    return 0


def _shares(model: Any, output: Any, options: argparse.Namespace) -> dict[str, dict[tuple[str, ...], float]]:
    from ..inspection import importance, interaction_strength

    X = _rows(model, options)
    found: dict[str, dict[tuple[str, ...], float]] = {
        "columns": {(key,): value for key, value in importance(model, X, output=output).largest().items()}
    }
    if model._machine.layout.degree > 1 and X.shape[1] > 1:
        columns = [key for (key,) in found["columns"]][:MOST_COLUMNS]
        if len(columns) < X.shape[1]:
            print(f"pairs among the {MOST_COLUMNS} most important columns", file=sys.stderr)
        pairs = interaction_strength(model, X, columns=columns, output=output)
        found["pairs"] = {tuple(key): value for key, value in pairs.largest().items()}
    return found


def _show(title: str, values: dict[tuple[str, ...], float], top: int) -> None:
    titles = {
        "columns": "importance of columns, with all their interactions:",
        "pairs": "interactions of pairs, shares of the variance of all parts:",
        "parts": f"parts of the output {sum(values.values()):.5g}:",
        "formula": "the largest terms:",
    }
    print(titles[title])
    start = {(): values[()]} if title == "parts" else {}  # always comes first
    largest = sorted(values.items(), key=lambda entry: -abs(entry[1]))
    shown = dict([*start.items(), *(entry for entry in largest if entry[0] not in start)][:top])
    labels = [_label(key, title == "formula") or ("average" if start else "constant") for key in shown]
    width = max(map(len, labels), default=0)
    for label, value in zip(labels, shown.values(), strict=True):
        number = f"{100 * value:8.1f} %" if title in ("columns", "pairs") else f"{value:12.5g}"
        print(f"  {label:<{width}}  {number}")
    rest = sum(values.values()) - sum(shown.values())
    if len(shown) < len(values):
        number = f"{100 * rest:.1f} %" if title in ("columns", "pairs") else f"{rest:.5g}"
        print(f"  and {len(values) - len(shown)} smaller, {number} together")


def _label(key: tuple[str, ...], product: bool) -> str:
    from ..inspection.ranked import powers

    if not product:
        return " & ".join(_shown(name) for name in key)
    return " * ".join(
        _shown(name) if power == 1 else f"{_shown(name)}^{power}" for name, power in powers(key)
    )


def _shown(name: str) -> str:
    return shortened(plain(name))


COMMANDS = {"explain": Command(DESCRIPTION, EXAMPLES, add_arguments)}
