"""Are Tensor Machines, as they come and selected by cross-validation, as accurate as tuned rivals?

    TENSORMACHINES_DATA=folder python benchmarks/accuracy.py run [--sets kin40k] [--methods lightgbm]
    python benchmarks/accuracy.py report

and the same with --tables: on tables of mixed columns, with budgets of 60 seconds.

`run` fits what is not yet in accuracy.jsonl, so it may be stopped and started again; two of them may run side
by side on different sets. Fits that failed are tried again, and --again repeats all that are named; where a
fit has several lines, the last one counts. `report` prints Markdown and fits nothing. The sets are those of
sets.py and the mixed tables of tables.py. Everything runs on one thread and is measured in CPU seconds.
accuracy_search.py says how rivals are tuned, accuracy_rivals.py and accuracy_boosting.py hold their search
spaces. Needs `pip install tensormachines[accuracy]`."""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np

import tensormachines
from accuracy_boosting import (
    CatBoostRival,
    ExplainableBoostingRival,
    HistGradientBoostingRival,
    LightGBMRival,
    XGBoostRival,
)
from accuracy_report import report, report_of_tables
from accuracy_rivals import KernelRidgeRival, LinearRival, NystroemRival, PolynomialRival
from accuracy_search import Fitted, Rival, SkipError, budget_seconds, search
from default_rivals import with_categories
from measures import error_of, loss_of, pickled_bytes
from records import Line, append, facts, read
from sets import SETS, Data, Sample, load
from tables import load as load_table
from tables import mixed

RECORDS, RECORDS_OF_TABLES = (
    Path(__file__).with_name(name) for name in ("accuracy.jsonl", "accuracy_tables.jsonl")
)
LEAST_SECONDS, LEAST_SECONDS_OF_TABLES = 3.0, 60.0
OF_MIXED_TABLES = ("tensormachine", "tensormachine-cv", "linear", "lightgbm", "xgboost", "catboost")
RIVALS: dict[str, type[Rival]] = {
    "linear": LinearRival,
    "polynomial": PolynomialRival,
    "nystroem": NystroemRival,
    "kernel-ridge": KernelRidgeRival,
    "ebm": ExplainableBoostingRival,
    "hist-gradient-boosting": HistGradientBoostingRival,
    "lightgbm": LightGBMRival,
    "xgboost": XGBoostRival,
    "catboost": CatBoostRival,
}
OURS, OURS_CV = "tensormachine", "tensormachine-cv"
METHODS = (OURS, OURS_CV, *RIVALS)
PACKAGES = ("interpret-core", "lightgbm", "xgboost", "catboost", "pandas")
MOST_ROWS = 10**9
MANY, MANY_SECONDS = 1_000_000, 10.0


def data_of(name: str, seed: int) -> Data:
    """Return a set, or a mixed table with its text as pandas categories."""
    if name in SETS:
        return load(name, seed)
    rows = load_table(name, seed, MOST_ROWS, MOST_ROWS)
    X, convert = with_categories(rows)
    return Data(Sample(X, rows.y), Sample(convert(rows.X_test), rows.y_test), rows.n_classes)


def fit_ours(method: str, data: Data, seed: int, budget: float) -> tuple[Fitted, Line]:
    name = f"TensorMachine{'Classifier' if data.n_classes else 'Regressor'}{'CV' * (method == OURS_CV)}"
    settings = {"time_budget": budget} if method == OURS_CV else {}
    model = getattr(tensormachines, name)(**settings, random_state=seed)
    if method == OURS_CV:
        model._clock = time.process_time  # the rivals' budgets count CPU seconds too
    _, seconds = timed(partial(model.fit, data.train.X, data.train.y))
    vars(model).pop("_clock", None)
    fitted = Fitted(model.predict_proba if data.n_classes else model.predict, least_bytes(model))
    params = getattr(model, "best_params_", {})
    return fitted, {"candidates": 1, "refit_seconds": seconds, "params": params}


def least_bytes(model: Any) -> int:
    """Return the size of a model's own file or of its pickle, whichever is smaller, as for the rivals."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.tm")
        model.save(path)
        return min(path.stat().st_size, pickled_bytes(model))


def fit_rival(method: str, data: Data, seed: int, budget: float) -> tuple[Fitted, Line]:
    fitted, best, tried, seconds = search(RIVALS[method](data, seed, budget))
    line = {"candidates": tried, "refit_seconds": seconds, "params": best.params, "held_out_loss": best.loss}
    rounds = {"rounds": best.rounds, "stopped_early": best.reach == 1} if best.rounds else {}
    return fitted, {**line, **rounds}


def measure(method: str, data: Data, seed: int, budget: float, speed: bool) -> Line:
    """Return everything that is recorded about a fit, except what it was a fit of."""
    fit = fit_rival if method in RIVALS else fit_ours
    (fitted, line), seconds = timed(partial(fit, method, data, seed, budget))
    outputs, y = in_calls(fitted, data.test.X), data.test.y
    line |= {"fit_seconds": seconds, "log_loss": None}
    line["error"] = error_of(outputs, y, data.n_classes, 0.5 if fitted.has_probabilities else 0.0)
    if data.n_classes and fitted.has_probabilities:
        line["log_loss"] = loss_of(outputs, y, data.n_classes)
    line["model_bytes"] = fitted.n_bytes
    if not speed:
        return line
    one, many, rows = microseconds(fitted, data.test.X)
    return {**line, "microseconds_one": one, "microseconds_many": many, "rows_many": rows}


def in_calls(fitted: Fitted, X: Any) -> np.ndarray:
    """Return predictions, made in calls of as many rows as memory allows."""
    size = max(1000, int(1e8 / max(X.shape[1], fitted.width)))
    return np.concatenate([fitted.predict(X[start : start + size]) for start in range(0, len(X), size)])


def microseconds(fitted: Fitted, X: Any) -> tuple[float, float, int]:
    """Return the CPU time of a row, one row a call (median of 200) and many at once, and how many."""
    singles = [X[row : row + 1] for row in range(min(len(X), 200))]
    seconds = [timed(partial(fitted.predict, singles[call % len(singles)]))[1] for call in range(210)]
    one = float(np.median(seconds[10:]))
    rows = 2000
    # A million if time and memory allow; otherwise no more than tells the time of a row well.
    most = min(MANY, int(1e9 / X.shape[1]))
    while True:
        tiled = np.arange(rows) % len(X)
        repeated = X.iloc[tiled] if hasattr(X, "iloc") else X[tiled]
        _, many = timed(partial(in_calls, fitted, repeated))
        affordable = MANY_SECONDS * rows / max(many, 1e-6)
        following = most if affordable >= most else int(affordable / 5)
        if rows >= most or following < 2 * rows:
            return 1e6 * one, 1e6 * many / rows, rows
        rows = following if rows >= 20_000 else min(following, 20_000)


def run(arguments: argparse.Namespace) -> None:
    for seed in arguments.seeds:
        for name in arguments.sets:
            done = set() if arguments.again else finished(arguments.records)
            wanted = [method for method in arguments.methods if (name, method, seed) not in done]
            if not wanted:
                continue
            data = data_of(name, seed)
            rows, columns = data.train.X.shape
            of_set = {"task": data.task, "classes": data.n_classes, "rows": rows, "columns": columns}
            budget = budget_seconds(data, LEAST_SECONDS_OF_TABLES if arguments.tables else LEAST_SECONDS)
            of_set["budget"] = round(budget, 2)
            for method in wanted:
                line = {"set": name, "method": method, "seed": seed, **of_set}
                line |= {**attempt(method, data, seed, budget, arguments), **facts(PACKAGES)}
                shown = ("set", "method", "seed", "error", "log_loss", "fit_seconds", "status")
                print({key: line.get(key) for key in shown}, flush=True)
                append(arguments.records, line)


def attempt(method: str, data: Data, seed: int, budget: float, arguments: argparse.Namespace) -> Line:
    try:
        return {"status": "ok", **measure(method, data, seed, budget, speed=not arguments.tables)}
    except SkipError as reason:
        return {"status": f"skipped: {reason}"}
    except Exception as error:  # one method's failure is a line of the table, not its end
        if arguments.fail_fast:
            raise
        return {"status": f"{type(error).__name__}: {error}"[:500]}


def finished(path: Path) -> set[tuple[str, str, int]]:
    last = {(line["set"], line["method"], line["seed"]): line["status"] for line in read(path)}
    return {key for key, status in last.items() if status == "ok" or status.startswith("skipped")}


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fit what is not recorded yet")
    reporting = commands.add_parser("report", help="print the tables of what is recorded")
    for each in (running, reporting):
        each.add_argument("--records", type=Path)
        each.add_argument("--tables", action="store_true", help="tables of mixed columns instead of the sets")
    running.add_argument("--sets", nargs="+", choices=(*SETS, *mixed()))
    running.add_argument("--methods", nargs="+", choices=METHODS)
    running.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    running.add_argument("--again", action="store_true", help="repeat fits that are finished")
    running.add_argument("--fail-fast", action="store_true", help="raise instead of recording a failure")
    arguments = parser.parse_args()
    arguments.records = arguments.records or (RECORDS_OF_TABLES if arguments.tables else RECORDS)
    if arguments.command == "run":
        arguments.sets = arguments.sets or (mixed() if arguments.tables else SETS)
        arguments.methods = arguments.methods or (OF_MIXED_TABLES if arguments.tables else METHODS)
    return arguments


if __name__ == "__main__":
    arguments = command_line()
    if arguments.command == "report":
        lines = read(arguments.records)
        print(report_of_tables(lines) if arguments.tables else report(lines))
    else:
        warnings.simplefilter("ignore")
        run(arguments)
