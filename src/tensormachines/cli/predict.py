"""`tensormachines predict`: one block of rows at a time, so that files may have any size."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from .options import Command, Parser, add_known_part, add_reading, number_from, require_place, threads

PREDICT = """Predict the rows of a table by a model that fit or tune wrote. Columns are found
by their names: their order does not matter, and there may be others. Rows are
read, predicted and written a block at a time, so that files larger than memory
will do."""
PREDICT_EXAMPLES = """examples:
  tensormachines predict rent.tm flats-new.csv                             # to standard output, as CSV
  tensormachines predict rent.tm flats-new.csv --keep id -o predicted.csv  # with the column id
  tensormachines predict rent.tm flats-new.csv --interval 0.9              # with two bounds
  tensormachines predict sold.tm sales.parquet --probabilities -o sold.parquet
  zcat flats.csv.gz | tensormachines predict rent.tm - | head"""


def add_predict(parser: Parser) -> None:
    parser.add_argument("model", help="a file that fit or tune wrote")
    parser.add_argument("data", help="CSV, Parquet, Arrow or svmlight; - for CSV from standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=".csv, .csv.gz, .parquet or .arrow (default: CSV to standard output)",
    )
    parser.add_argument("--probabilities", action="store_true", help="the probability of each class, too")
    parser.add_argument(
        "--interval",
        type=number_from(0, 1),
        metavar="COVERAGE",
        help="bounds that contain this share of the targets, such as 0.9; the fit needs --intervals",
    )
    add_known_part(parser)
    keep = parser.add_mutually_exclusive_group()
    keep.add_argument(
        "--keep",
        action="extend",
        nargs="+",
        metavar="COLUMN",
        default=[],
        help="columns of the table to carry through",
    )
    keep.add_argument("--keep-all", action="store_true", help="carry all of them through")
    parser.add_argument("--n-jobs", type=threads, metavar="THREADS", help="-1 for all cores (default: 1)")
    add_reading(parser)
    parser.set_defaults(run=predict)


def predict(options: argparse.Namespace) -> int:
    from .known_part import refuse_known_part
    from .model_rows import load_model, rows_for, targets_of
    from .output import open_output, require_output
    from .progress import counting_rows

    if options.output is not None:
        require_place(options.output, options.data, options.model)
        require_output(options.output)
    model = load_model(options.model, options.data)
    if options.probabilities and not hasattr(model, "classes_"):
        raise ValueError(f"--probabilities: {options.model} predicts numbers, not classes.")
    if options.interval is not None:
        _require_intervals(model, options.model)
    for each in (model, getattr(model, "best_estimator_", model)):  # of a search, the latter predicts
        each.set_params(n_jobs=options.n_jobs)
    rows = rows_for(model, options.data, options)
    if options.interval is not None:
        refuse_known_part(getattr(rows, "known", {}), "--interval")
    keep = _kept(rows, options)
    names = _free_names(_names(model, options, targets_of(model)), keep)

    def tables() -> Iterator[dict[str, Any]]:
        for block in rows.blocks(keep):
            if block.X.shape[0] == 0:
                continue
            kept = {name: cells.as_they_are() for name, cells in block.kept.items()}
            yield kept | dict(zip(names, _columns(model, block, options), strict=True))

    with (
        open_output(options.output, [*keep, *names]) as write,
        counting_rows(options.output is not None) as rows_done,
    ):
        for table in tables():
            write(table)
            rows_done.add(len(table[names[0]]))
    return 0


def _require_intervals(model: Any, path: str) -> None:
    if hasattr(model, "classes_"):
        raise ValueError(f"--interval: {path} predicts classes; --probabilities shows how likely they are.")
    if not hasattr(getattr(model, "best_estimator_", model), "_intervals"):
        raise ValueError(f"--interval: {path} has no intervals; fit the model with --intervals.")


def _kept(rows: Any, options: argparse.Namespace) -> list[str]:
    """Return the columns of the file to copy to the output, each once."""
    from .model_rows import SparseRows
    from .named_columns import require_column

    if isinstance(rows, SparseRows):
        if options.keep or options.keep_all:
            raise ValueError(
                f"{'--keep' if options.keep else '--keep-all'}: the columns of {rows.label} have no names."
            )
        return []
    if options.keep_all:
        return rows.file.names
    return list(dict.fromkeys(require_column(rows.file, "--keep", name) for name in options.keep))


def _names(model: Any, options: argparse.Namespace, targets: list[str]) -> list[str]:
    """Return the names of the predictions, as in the SQL of an exported model."""
    from .model_rows import has_labels, names_of_numbers

    if has_labels(model):
        kinds = ["prediction", *(["probability"] if options.probabilities else [])]
        return [f"{kind}_{name}" for kind in kinds for name in names_of_numbers(model, targets)]
    if hasattr(model, "classes_"):
        return [
            "prediction",
            *([f"probability_{label}" for label in model.classes_] if options.probabilities else []),
        ]
    if model._squeezed:
        return ["prediction", *(() if options.interval is None else ("lower", "upper"))]
    return [f"prediction_{name}" for name in names_of_numbers(model, targets)]


def _free_names(names: list[str], taken: list[str]) -> list[str]:
    for name in names:
        if name in taken:
            raise ValueError(
                f"--keep: the column {name!r} has the name of a prediction; rename it, or do not keep it."
            )
    return names


def _columns(model: Any, rows: Any, options: argparse.Namespace) -> list[list[Any]]:
    """Return the predictions of some rows, column by column."""
    from .model_rows import has_labels

    X = rows.X
    if has_labels(model):
        likely = model.predict_proba(X).T.tolist() if options.probabilities else []
        return [*model.predict(X).T.tolist(), *likely]
    if not hasattr(model, "classes_"):
        bounds = [] if options.interval is None else model.predict_interval(X, options.interval).T.tolist()
        return [*model.predict(X, **rows.known).reshape(X.shape[0], -1).T.tolist(), *bounds]
    if not options.probabilities:
        return [model.predict(X).tolist()]
    outputs = model.predict_proba(X)
    return [model.classes_[outputs.argmax(axis=1)].tolist(), *outputs.T.tolist()]


COMMANDS = {"predict": Command(PREDICT, PREDICT_EXAMPLES, add_predict)}
