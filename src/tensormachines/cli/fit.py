"""`tensormachines fit` and `tensormachines tune`."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .._data.plain_text import plain
from .column_settings import add_column_settings, column_settings, options_named
from .options import (
    CLASSIFICATION,
    Command,
    Parser,
    add_cluster,
    add_reading,
    add_training,
    auto_yes_no,
    number_from,
    penalty,
    positive,
    require_place,
    seed,
    threads,
    whole,
)

FIT = """Fit a Tensor Machine to a table and write it to a file. What each column holds
is told from its cells, and shown: numbers, categories, booleans, and missing
values, which need no treatment. The target is a column, by its name."""
FIT_EXAMPLES = """examples:
  tensormachines fit flats.csv --target rent --ignore id -o rent.tm
  tensormachines fit flats.csv --target rent --holdout 0.2 -o rent.tm    # shows errors on a fifth of the rows
  tensormachines fit shops.csv --target visits --loss poisson -o visits.tm
  tensormachines fit flats.csv --target rent --loss quantile --quantile 0.1 0.5 0.9 -o range.tm
  tensormachines fit claims.csv --target claims --loss poisson --exposure years -o claims.tm
  tensormachines fit flats.csv --target rent --increasing size rooms --intervals -o rent.tm
  tensormachines fit sales.parquet --target sold --category shop --ignore id -o sold.tm
  tensormachines fit 'sales/*.parquet' --target sold --cluster tcp://host:8786 -o sold.tm
  tensormachines fit news20.svm.gz --degree 2 --rank 4 -o news.tm        # rows without names of columns"""
TUNE = """Like fit, but degree, rank, penalty and the rest are chosen by cross-validation,
within the seconds that --time-budget gives."""
TUNE_EXAMPLES = """examples:
  tensormachines tune flats.csv --target rent --time-budget 60 -o rent.tm
  tensormachines tune flats.csv --target rent --degrees 2 3 --test flats-new.csv -o rent.tm"""

LOSS = ("loss", "power", "quantile", "intervals")
ONE_LOSS = {"power": "tweedie", "quantile": "quantile"}  # by setting: the only loss that has it
FIRST_SETTINGS = ("degree", "rank", "alpha", "trend", "jumps")
MOST_JUMPS_SHOWN = 8


def add_fit(parser: Parser) -> None:
    _add_common(parser)
    settings = parser.add_argument_group(
        "settings", "As those of TensorMachineRegressor and TensorMachineClassifier."
    )
    _add_loss(settings)
    settings.add_argument("--degree", type=positive, help="of the polynomial (default: auto)")
    settings.add_argument("--rank", type=positive, help="terms for each degree (default: auto)")
    settings.add_argument("--alpha", type=penalty, help="the penalty, from 0 on (default: auto)")
    settings.add_argument(
        "--basis", choices=["auto", "spline", "standard", "scaled", "sphere", "unit"], help="default: auto"
    )
    switch: dict[str, Any] = {"type": auto_yes_no, "metavar": "{auto,yes,no}"}
    settings.add_argument(
        "--trend",
        **switch,
        help="fit a linear model first (default: auto, if that is better on held-out rows)",
    )
    settings.add_argument(
        "--jumps",
        **switch,
        help="add steps at thresholds of numbers (default: auto, if that is better on held-out rows)",
    )
    settings.add_argument("--solver", choices=["adam", "kfac", "lbfgs", "sfo"], help="default: adam")
    settings.add_argument(
        "--max-iter",
        type=positive,
        help="maximum number of iterations; for adam, passes over the rows (default: 30 for adam, else 1000)",
    )
    settings.add_argument(
        "--members", dest="n_members", type=positive, help="models whose mean is the result (default: 1)"
    )
    _add_running(settings, "default: 0, so that results can be reproduced")
    parser.set_defaults(run=fit)


def add_tune(parser: Parser) -> None:
    _add_common(parser)
    settings = parser.add_argument_group(
        "settings", "As those of TensorMachineRegressorCV and TensorMachineClassifierCV."
    )
    _add_loss(settings)
    settings.add_argument(
        "--time-budget",
        type=number_from(0),
        metavar="SECONDS",
        help="time limit for the search and the final fit (default: 60)",
    )
    settings.add_argument(
        "--degrees", nargs="+", type=positive, metavar="DEGREE", help="to choose from (default: 1 2 3 4 6)"
    )
    settings.add_argument(
        "--ranks", nargs="+", type=positive, metavar="RANK", help="to choose from (default: auto)"
    )
    settings.add_argument(
        "--cv",
        type=whole(2),
        metavar="FOLDS",
        help="default: 5; from 10,000 rows on, a fifth is held out once",
    )
    settings.add_argument(
        "--members", dest="n_members", type=positive, help="models whose mean is the result (default: 3)"
    )
    _add_running(settings, "default: 0; results also depend on what the time budget suffices for")
    parser.set_defaults(run=tune)


def _add_common(parser: Parser) -> None:
    add_training(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="the file to write, usually .tm"
    )
    testing = parser.add_mutually_exclusive_group()
    testing.add_argument(
        "--holdout",
        type=number_from(0, 1),
        metavar="SHARE",
        help="hold out these rows at random and show errors on them",
    )
    testing.add_argument("--test", metavar="FILE", help="show errors on the rows of this file")
    parser.add_argument(
        "--holdout-output",
        metavar="FILE",
        help="write the held-out rows, all columns as they are: .csv, .csv.gz, .tsv, .parquet or .arrow",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read the file a block at a time, as files of 200 MB and more are",
    )
    add_cluster(parser)
    add_reading(parser)


def _add_loss(settings: Any) -> None:
    settings.add_argument(
        "--loss",
        choices=["squared_error", "poisson", "gamma", "tweedie", "absolute_error", "huber", "quantile"],
        help="of a regression: poisson for counts, gamma and tweedie for costs (default: squared_error)",
    )
    settings.add_argument(
        "--power", type=number_from(1, 2), help="of --loss tweedie, between 1 and 2 (default: 1.5)"
    )
    settings.add_argument(
        "--quantile",
        nargs="+",
        type=number_from(0, 1),
        metavar="LEVEL",
        help="of --loss quantile, between 0 and 1; several, in rising order, never cross (default: 0.5)",
    )
    settings.add_argument(
        "--intervals",
        action="store_true",
        default=None,
        help="calibrate intervals, for predict --interval; fit takes about six times as long",
    )
    add_column_settings(settings)


def _add_running(settings: Any, default_seed: str) -> None:
    settings.add_argument(
        "--random-state",
        type=seed,
        default=0,
        metavar="SEED",
        help=f"seed of the random numbers ({default_seed})",
    )
    settings.add_argument(
        "--n-jobs",
        type=threads,
        metavar="THREADS",
        help="-1 for all cores (default: 1); the result of a fit is the same",
    )


def fit(options: argparse.Namespace) -> int:
    of_model = ("degree", "rank", "alpha", "basis", "trend", "jumps", "n_members")
    names = (*of_model, "solver", "max_iter", "random_state", "n_jobs")
    return _fit(options, "", _settings(options, names))


def tune(options: argparse.Namespace) -> int:
    names = ("time_budget", "degrees", "ranks", "cv", "n_members", "random_state", "n_jobs")
    return _fit(options, "CV", _settings(options, names))


def _settings(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    for name, loss in ONE_LOSS.items():
        if getattr(options, name) is not None and options.loss != loss:
            raise ValueError(f"--{name} needs --loss {loss}: give it, or leave out --{name}.")
    settings = {name: getattr(options, name) for name in (*names, *LOSS)}
    if settings["quantile"] is not None and len(settings["quantile"]) == 1:
        (settings["quantile"],) = settings["quantile"]
    return settings


def _fit(options: argparse.Namespace, search: str, settings: dict[str, Any]) -> int:
    from .._data.files.paths import find_files
    from .held_out_rows import require_held_out_place, require_second_reading

    require_place(options.output, options.data, options.test)
    if options.test is not None and options.cluster is None:
        find_files(options.test)
    if options.holdout_output is not None:
        require_held_out_place(options)
    if options.cluster is None:
        from .training_rows import read_training

        training = read_training(options, stream=options.stream or None)
        if options.holdout_output is not None:
            require_second_reading(training, options)
        if options.test is not None:
            _require_columns(options, training)
        return _fit_rows(options, search, settings, training)
    from .cluster import connected, read_on_cluster

    with connected(options.cluster):
        return _fit_rows(options, search, settings, *read_on_cluster(options))


def _fit_rows(
    options: argparse.Namespace, search: str, settings: dict[str, Any], training: Any, held_out: Any = None
) -> int:
    """Fit a model to training rows, which include the held-out rows unless these are given."""
    import tensormachines

    from .held_out_errors import show_errors_of_fit
    from .held_out_rows import write_held_out
    from .progress import progress_of_a_fit

    name = f"TensorMachine{'Classifier' if training.task == CLASSIFICATION else 'Regressor'}{search}"
    given = {key: value for key, value in settings.items() if value is not None}
    if training.task == CLASSIFICATION and (training.known_columns or any(each in given for each in LOSS)):
        raise ValueError(
            "--loss, --power, --quantile, --intervals, --exposure and --offset are for regression, and the "
            "target holds classes: leave them out, or give --task regression."
        )
    given |= column_settings(options, training)
    model = getattr(tensormachines, name)(**given)
    if training.streams and training.known_columns:
        training.X.loss = model._loss()
    if options.holdout is not None and training.streams:
        training.X.holdout = options.holdout, options.random_state
    elif options.holdout is not None and held_out is None:
        training, held_out = _split(training, options.holdout, options.random_state)
    began = time.perf_counter()
    with progress_of_a_fit() as verbose, options_named(options):
        model.set_params(verbose=verbose)
        model.fit(training.X, training.y, sample_weight=training.weight, **training.known)
    seconds = time.perf_counter() - began
    model.set_params(verbose=0)
    for each in (model, *([model.best_estimator_] if search else [])):
        _remember(each, training)
    model.save(options.output)
    n_rows = training.X.given if training.streams else training.n_rows
    print(_summary(options.output, model, n_rows, seconds))
    if options.holdout_output is not None:
        n_held = write_held_out(training if held_out is None else held_out, options)
        print(f"{options.holdout_output}: {n_held:,} held-out rows")
    if options.holdout is not None or options.test is not None:
        show_errors_of_fit(model, options, held_out)
    return 0


def _remember(model: Any, training: Any) -> None:
    """Store facts about the file of the fit in a model, for the files of later commands."""
    from .training_rows import notations_of

    if training.target is not None:
        model.target_name_ = training.target
    if training.known_columns:
        model._known_part = dict(training.known_columns)
    names = {*training.targets, *(training.names or ()), *training.known_columns.values()}
    found = {name: str(each) for name, each in notations_of(training.file).items() if name in names}
    if found:
        model._notations = found
    sketch = training.sketch()
    if sketch is not None:
        model._rows_of_fit = sketch.hashes


def _require_columns(options: argparse.Namespace, training: Any) -> None:
    """Refuse a test file without all columns, before the fit."""
    from .._data.files.open import open_columns
    from .._data.files.paths import is_svmlight
    from .named_columns import require_column

    if is_svmlight(options.test) != (training.names is None):
        raise ValueError(
            f"--test {options.test}: only one of the two files has column names; give both as CSV, "
            "Parquet or Arrow."
        )
    if training.names is not None:
        file = open_columns(options.test, options.delimiter, options.decimal, options.encoding)
        weight = [] if options.weight is None else [options.weight]
        for column in (*training.names, *training.targets, *training.known_columns.values(), *weight):
            require_column(file, "--test", column)


def _split(training: Any, share: float, random_state: int) -> tuple[Any, Any]:
    import numpy as np
    from sklearn.model_selection import train_test_split

    from .svmlight_rows import nothing_left

    n_rows = len(training.y)
    n_held = math.ceil(share * n_rows)
    if round(share * n_rows) < 1 or n_held >= n_rows:
        raise nothing_left(share, n_rows)
    counts = np.unique(training.y, return_counts=True)[1]
    classes = training.task == CLASSIFICATION and training.y.ndim == 1
    enough = counts.min() > 1 and min(n_held, n_rows - n_held) >= len(counts)
    stratify = training.y if classes and enough else None
    train, test = train_test_split(
        np.arange(n_rows), test_size=share, random_state=random_state, stratify=stratify
    )
    return training[np.sort(train)], training[np.sort(test)]


def _summary(path: str, model: Any, n_rows: int, seconds: float) -> str:
    layout, kilobytes = model._machine.layout, os.path.getsize(path) / 1000
    rank = f", rank {layout.rank}" if layout.degree > 1 else ""
    shape = f"degree {layout.degree}{rank}, {model.n_parameters_:,} parameters"
    summary = (
        f"{path}: {type(model).__name__} of {n_rows:,} rows, {shape}; {seconds:.1f} s, {kilobytes:.1f} kB"
    )
    summary += _jumps_in_words(model.jumps_)
    if not hasattr(model, "best_params_"):
        return summary
    return f"{summary}\n{choice_in_words(model)}"


def choice_in_words(model: Any) -> str:
    """Return what a search has chosen: the settings of its model, or of each model that it averages."""
    members, chosen = model.members_, f"chosen among {len(model.cv_results_['params'])} fits"
    if len(members) > 1:
        total = sum(member["weight"] for member in members)
        each = [f"\n  {member['weight'] / total:4.0%}  {_settings_in_words(member)}" for member in members]
        return f"mean of {len(members)} models, {chosen}:{''.join(each)}"
    starts = model.best_estimator_.n_members
    alike = f"mean of {starts} models that differ in their starts, " if starts > 1 else ""
    return f"{alike}{chosen}: {_settings_in_words(members[0])}"


def _settings_in_words(settings: Mapping[str, Any]) -> str:
    """Return settings without their weight, the most important ones first."""
    others = (name for name in settings if name not in (*FIRST_SETTINGS, "weight"))
    return ", ".join(f"{name} {_value_in_words(settings[name])}" for name in (*FIRST_SETTINGS, *others))


def _value_in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _jumps_in_words(jumps: Mapping[str, Sequence[float]]) -> str:
    """Return a line with the first thresholds at which the model jumps; nothing if there are none."""
    all_of_them = [f"{plain(name)} > {threshold:.6g}" for name, each in jumps.items() for threshold in each]
    more = f", and {len(all_of_them) - MOST_JUMPS_SHOWN} more" if len(all_of_them) > MOST_JUMPS_SHOWN else ""
    return f"\njumps at {', '.join(all_of_them[:MOST_JUMPS_SHOWN])}{more}" if all_of_them else ""


COMMANDS = {"fit": Command(FIT, FIT_EXAMPLES, add_fit), "tune": Command(TUNE, TUNE_EXAMPLES, add_tune)}
