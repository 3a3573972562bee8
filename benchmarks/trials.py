"""Which changes to the default settings make Tensor Machines more accurate, and where are boosted trees?

    TENSORMACHINES_DATA=folder python benchmarks/trials.py run usual members-3 --half first
    python benchmarks/trials.py report

A trial is a change, written down in trial_verdicts.py with its reason before it is run. It is judged on the
first half of the tables (every other name of tables.py) by the geometric mean of the loss over that of the
usual settings, and by a sign test; what is kept is confirmed on the second half. The loss is the root mean
squared error, or the log-loss of classes. Rivals of default_rivals.py are run by their names. `run` fits
what is not yet in trials.jsonl: it may be stopped and started again. At most ROWS rows are trained on.
"""

from __future__ import annotations

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from scipy.stats import binomtest

from default_rivals import RIVALS, Predict
from measures import error_of, loss_of, pickled_bytes
from records import Line, append, facts, read, table
from tables import Table, half_of, load, names
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from trial_verdicts import KEPT, TRIALS, TRIED, TRIED_HEAD, TRIED_IN_WORDS, USUAL, Trial

RECORDS = Path(__file__).with_name("trials.jsonl")
ROWS, TEST_ROWS = 20_000, 20_000
PACKAGES = ("lightgbm", "xgboost", "catboost")


def fit_ours(trial: Trial, rows: Table, seed: int) -> tuple[Predict, Any]:
    kind = TensorMachineClassifier if rows.n_classes else TensorMachineRegressor
    model = kind(random_state=seed, **(trial.settings or {})).fit(rows.X, rows.y)
    if not rows.n_classes:
        return model.predict, model

    def probabilities(X: Any) -> np.ndarray:
        full = np.zeros((len(X), rows.n_classes))
        full[:, model.classes_] = model.predict_proba(X)
        return full

    return probabilities, model


def measure(name: str, rows: Table, seed: int) -> Line:
    fit = partial(RIVALS[name], rows, seed) if name in RIVALS else partial(fit_ours, TRIALS[name], rows, seed)
    (predict, model), seconds = timed(fit)
    outputs = predict(rows.X_test)
    loss = loss_of(outputs, rows.y_test, rows.n_classes)
    return {
        "error": error_of(outputs, rows.y_test, rows.n_classes),
        "loss": loss if rows.n_classes else math.sqrt(loss) / float(np.std(rows.y_test)),
        "seconds": seconds,
        "bytes": pickled_bytes(model),
    }


def run(arguments: argparse.Namespace) -> None:
    done = {(line["trial"], line["table"], line["seed"]) for line in read(arguments.records)}
    wanted = [name for name in names() if arguments.half in ("both", half_of(name))]
    for seed in arguments.seeds:
        for name in arguments.tables or wanted:
            missing = [trial for trial in arguments.trials if (trial, name, seed) not in done]
            rows = load(name, seed, ROWS, TEST_ROWS) if missing else None
            for trial in missing:
                assert rows is not None
                line = {"trial": trial, "table": name, "seed": seed, "classes": rows.n_classes}
                line |= {**measure(trial, rows, seed), **facts(PACKAGES)}
                append(arguments.records, line)
                print(
                    {key: line[key] for key in ("trial", "table", "seed", "error", "loss", "seconds")},
                    flush=True,
                )


# ---- the report

Means = dict[tuple[str, str], Line]  # of the seeds, by trial and table


def means(lines: list[Line]) -> Means:
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["trial"], line["table"]), []).append(line)
    numbers = ("error", "loss", "seconds", "bytes")
    return {
        key: {
            "classes": group[0]["classes"],
            **{n: float(np.mean([line[n] for line in group])) for n in numbers},
        }
        for key, group in groups.items()
    }


def compare(found: Means, trial: str, half: str, against: str = USUAL) -> list[str] | None:
    """Return a line of the table: ratios of the trial to the usual settings on the tables of one half."""
    tables = sorted({name for _, name in found})
    common = [
        name
        for name in tables
        if {(trial, name), (against, name)} <= found.keys() and half in ("both", half_of(name, tables))
    ]
    if not common:
        return None

    def ratios(number: str, tables: list[str]) -> np.ndarray:
        # An error of 0 counts as half a wrong row of a thousand.
        pairs = [(found[trial, name][number], found[against, name][number]) for name in tables]
        return np.array(
            [
                (ours + 5e-4) / (theirs + 5e-4) if number == "error" else ours / theirs
                for ours, theirs in pairs
            ]
        )

    def mean(number: str, tables: list[str]) -> str:
        return f"{np.exp(np.log(ratios(number, tables)).mean()):.3f}" if tables else ""

    classes = [name for name in common if found[trial, name]["classes"]]
    numbers = [name for name in common if name not in classes]
    losses = ratios("loss", common)
    better, worse = int((losses < 0.995).sum()), int((losses > 1.005).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return [
        trial,
        str(len(common)),
        mean("loss", common),
        mean("loss", numbers),
        mean("loss", classes),
        mean("error", classes),
        f"{better} : {worse}",
        f"{p:.2g}",
        mean("seconds", common),
        mean("bytes", common),
    ]


HEAD = (
    "trial",
    "tables",
    "loss",
    "regression",
    "log-loss",
    "error of classes",
    "better : worse",
    "p",
    "seconds",
    "bytes",
)


INTRODUCTION = """# Trials of other default settings

Made from trials.jsonl by `python benchmarks/trials.py report`. Ratios to the settings before the trials
(`usual`), geometric means: the loss is the root mean squared error or the log-loss, on at most 20,000
training rows of each of 51 tables. A trial is better or worse on a table if its loss differs by more than
0.5 %; p is that of a sign test. Changes were judged on the first half of the tables, and what was kept was
confirmed on the second. Rivals have their default settings and are stopped early on a tenth of the rows.
LightGBM diverges on shuttle. CatBoost was run on 48 tables, not on connect4, fars and poker_100k: it takes
minutes on many rows of several classes. First half: seed 0, but seeds 0 and 1 for the last five trials;
second half: seeds 0 and 1; rivals: seed 0. Machine B of RESULTS.md, 2026-11-17 (jumps on five tables:
2026-11-18); several processes at a time, so seconds are rough.

"""


def report(lines: list[Line]) -> str:
    found = means(lines)
    parts = []
    for half in ("first", "second"):
        rows = [compare(found, trial, half) for trial in (*TRIALS, *RIVALS) if trial != USUAL]
        shown = [row for row in rows if row is not None]
        if shown:
            parts.append(f"## {half.capitalize()} half\n\n{table(HEAD, shown)}")
    beside = [compare(found, rival, "both", against=KEPT) for rival in RIVALS]
    parts.append(f"## Rivals over what was kept, all tables\n\n{table(HEAD, [row for row in beside if row])}")
    verdicts = [(name, trial.why, trial.verdict) for name, trial in TRIALS.items() if name != USUAL]
    parts.append("## Reasons and verdicts\n\n" + table(("trial", "why", "verdict"), verdicts))
    parts.append("## Tried by scripts that are not kept\n\n" + TRIED_IN_WORDS + table(TRIED_HEAD, TRIED))
    return INTRODUCTION + "\n\n".join(parts)


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fit what is not recorded yet")
    reporting = commands.add_parser("report", help="print the tables of what is recorded")
    for each in (running, reporting):
        each.add_argument("--records", type=Path, default=RECORDS)
    here = [name for name, trial in TRIALS.items() if trial.settings is not None]
    running.add_argument("trials", nargs="+", choices=[*here, *RIVALS])
    running.add_argument("--half", choices=("first", "second", "both"), default="first")
    running.add_argument("--tables", nargs="+", metavar="NAME")
    running.add_argument("--seeds", nargs="+", type=int, default=(0, 1))
    return parser.parse_args()


if __name__ == "__main__":
    arguments = command_line()
    if arguments.command == "report":
        print(report(read(arguments.records)))
    else:
        warnings.simplefilter("ignore")
        run(arguments)
