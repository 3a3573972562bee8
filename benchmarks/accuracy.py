"""The table of accuracy: Tensor Machines as they come, and selected by cross-validation, against tuned
rivals.

    python benchmarks/accuracy.py run [--sets kin40k letter] [--methods lightgbm] [--seeds 0 1 2] [--data
    folder] [--records file] python benchmarks/accuracy.py report [--records file]

`run` fits what is not yet in accuracy.jsonl, so it may be stopped and started again; two of them may run side
by side on different sets. Fits that failed are tried again, and `--again` repeats all that are named; of
several lines the last counts. `report` prints Markdown and fits nothing. The sets are those in the folder of
TENSORMACHINES_DATA, with their own split, and scikit-learn's bundled ones, a quarter of which is held out for
the test. Everything runs on one thread and is measured in CPU seconds. How rivals are tuned is told in
accuracy_search.py, their search spaces are in accuracy_rivals.py and accuracy_boosting.py. Needs `pip install
tensormachines[accuracy]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from threadpoolctl import threadpool_limits

import tensormachines
from accuracy_boosting import ExplainableBoostingRival, HistGradientBoostingRival, LightGBMRival, XGBoostRival
from accuracy_report import report
from accuracy_rivals import KernelRidgeRival, LinearRival, NystroemRival, PolynomialRival
from accuracy_search import Fitted, Rival, SkipError, budget_seconds, error_of, loss_of, pickled_bytes, search
from accuracy_sets import SETS, Data, load

RECORDS = Path(__file__).with_name("accuracy.jsonl")
RIVALS: dict[str, type[Rival]] = {
    "linear": LinearRival,
    "polynomial": PolynomialRival,
    "nystroem": NystroemRival,
    "kernel-ridge": KernelRidgeRival,
    "ebm": ExplainableBoostingRival,
    "hist-gradient-boosting": HistGradientBoostingRival,
    "lightgbm": LightGBMRival,
    "xgboost": XGBoostRival,
}
OURS, OURS_CV = "tensormachine", "tensormachine-cv"
METHODS = (OURS, OURS_CV, *RIVALS)
PACKAGES = (
    "tensormachines",
    "numpy",
    "scipy",
    "scikit-learn",
    "interpret-core",
    "lightgbm",
    "xgboost",
    "pandas",
)
MANY, MANY_SECONDS = 1_000_000, 10.0
Line = dict[str, Any]


def fit_ours(method: str, data: Data, seed: int) -> tuple[Fitted, Line]:
    kind = "Classifier" if data.n_classes else "Regressor"
    name, settings = (
        (f"TensorMachine{kind}", {})
        if method == OURS
        else (f"TensorMachine{kind}CV", {"time_budget": budget_seconds(data)})
    )
    if not hasattr(tensormachines, name):
        raise SkipError("not there yet")
    began = time.process_time()
    wall_clock, time.monotonic = (
        time.monotonic,
        time.process_time,
    )  # the budget is one of CPU time, as for the rivals
    try:
        model = getattr(tensormachines, name)(**settings, random_state=seed).fit(data.train.X, data.train.y)
    finally:
        time.monotonic = wall_clock
    seconds = time.process_time() - began
    fitted = Fitted(model.predict_proba if data.n_classes else model.predict, pickled_bytes(model))
    facts = {"candidates": 1, "refit_seconds": seconds, "params": getattr(model, "best_params_", {})}
    return fitted, facts


def fit_rival(method: str, data: Data, seed: int) -> tuple[Fitted, Line]:
    fitted, best, tried, seconds = search(RIVALS[method](data, seed, budget_seconds(data)))
    rounds = {"rounds": best.rounds, "stopped_early": best.reach == 1} if best.rounds else {}
    return fitted, {
        "candidates": tried,
        "refit_seconds": seconds,
        "params": best.params,
        "held_out_loss": best.loss,
        **rounds,
    }


def measure(method: str, data: Data, seed: int) -> Line:
    """Everything that is recorded of a fit, except what it was a fit of."""
    began = time.process_time()
    fitted, facts = (fit_rival if method in RIVALS else fit_ours)(method, data, seed)
    facts["fit_seconds"] = time.process_time() - began
    outputs, y = in_calls(fitted, data.test.X), data.test.y
    facts["error"] = error_of(outputs, y, data.n_classes, 0.5 if fitted.has_probabilities else 0.0)
    facts["log_loss"] = (
        loss_of(outputs, y, data.n_classes) if data.n_classes and fitted.has_probabilities else None
    )
    one, many, rows = microseconds(fitted, data.test.X)
    return {
        **facts,
        "model_bytes": fitted.n_bytes,
        "microseconds_one": one,
        "microseconds_many": many,
        "rows_many": rows,
    }


def in_calls(fitted: Fitted, X: Any) -> np.ndarray:
    """Predictions, in calls of as many rows as memory allows."""
    size = max(1000, int(1e8 / max(X.shape[1], fitted.width)))
    return np.concatenate([fitted.predict(X[start : start + size]) for start in range(0, len(X), size)])


def microseconds(fitted: Fitted, X: Any) -> tuple[float, float, int]:
    """CPU time a row: one row a call (median of 200), and up to a million rows at once; and how many those
    were.
    """
    singles = [X[row : row + 1] for row in range(min(len(X), 200))]
    seconds = []
    for call in range(210):
        began = time.process_time()
        fitted.predict(singles[call % len(singles)])
        seconds.append(time.process_time() - began)
    one = float(np.median(seconds[10:]))

    rows, many = 2000, 0.0
    while True:
        tiled = np.arange(rows) % len(X)
        table = X.iloc[tiled] if hasattr(X, "iloc") else X[tiled]
        began = time.process_time()
        in_calls(fitted, table)
        many = time.process_time() - began
        affordable = MANY_SECONDS * rows / max(many, 1e-6)
        # A million if time and memory allow; otherwise no more than tells the time a row well.
        most = min(MANY, int(1e9 / X.shape[1]))
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
            data = load(name, arguments.data, seed)
            for method in wanted:
                line = {
                    "set": name,
                    "method": method,
                    "seed": seed,
                    "task": data.task,
                    "classes": data.n_classes,
                }
                line |= {
                    "rows": data.train.X.shape[0],
                    "columns": data.train.X.shape[1],
                    "budget": round(budget_seconds(data), 2),
                }
                line |= attempt(method, data, seed, arguments.fail_fast)
                line |= {
                    "versions": versions(),
                    "machine": machine(),
                    "when": time.strftime("%Y-%m-%d %H:%M"),
                }
                print(
                    {
                        key: line.get(key)
                        for key in ("set", "method", "seed", "error", "log_loss", "fit_seconds", "status")
                    },
                    flush=True,
                )
                if line["status"] != "skipped: not there yet":
                    append(arguments.records, line)


def attempt(method: str, data: Data, seed: int, fail_fast: bool) -> Line:
    try:
        return {"status": "ok", **measure(method, data, seed)}
    except SkipError as reason:
        return {"status": f"skipped: {reason}"}
    except Exception as error:  # one method's failure is a line of the table, not its end
        if fail_fast:
            raise
        return {"status": f"{type(error).__name__}: {error}"[:500]}


def append(path: Path, line: Line) -> None:
    """One write of one line to a file opened for appending, so that runs side by side do not mix theirs."""
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(line, default=to_json).encode() + b"\n")
        os.fsync(file.fileno())


def to_json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def records(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finished(path: Path) -> set[tuple[str, str, int]]:
    last = {(line["set"], line["method"], line["seed"]): line["status"] for line in records(path)}
    return {key for key, status in last.items() if status == "ok" or status.startswith("skipped")}


def versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(
                f"{package} {tensormachines.__version__}" if package == "tensormachines" else f"{package} -"
            )
    return ", ".join(found)


def machine() -> str:
    try:
        name = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        name = None
    return f"{name.group(1) if name else platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running, reporting = commands.add_parser("run"), commands.add_parser("report")
    for each in (running, reporting):
        each.add_argument("--records", type=Path, default=RECORDS)
    running.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    running.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    running.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    running.add_argument("--data", type=Path, default=Path(os.environ.get("TENSORMACHINES_DATA", ".")))
    running.add_argument("--again", action="store_true", help="repeat fits that are finished")
    running.add_argument("--fail-fast", action="store_true", help="raise instead of recording a failure")
    return parser.parse_args()


def main() -> None:
    arguments = command_line()
    if arguments.command == "report":
        print(report(records(arguments.records)))
        return
    warnings.simplefilter("ignore")
    limited: Callable[..., Any] = threadpool_limits
    with limited(limits=1):
        run(arguments)


if __name__ == "__main__":
    main()
