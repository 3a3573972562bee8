"""Which changes to the default settings make Tensor Machines more accurate, and where are boosted trees?

    TENSORMACHINES_DATA=folder python benchmarks/trials.py run usual members-3 --half first
    python benchmarks/trials.py report

A trial is a change, written down in TRIALS with its reason before it is run. It is judged on the first half
of the tables (every other name of tables.py) by the geometric mean of the loss over that of the usual
settings, and by a sign test; what is kept is confirmed on the second half. The loss is the root mean squared
error, or the log-loss of classes. Rivals of default_rivals.py are run by their names. `run` fits what is not
yet in trials.jsonl: it may be stopped and started again. At most ROWS rows are trained on.
"""

from __future__ import annotations

import argparse
import importlib
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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

RECORDS = Path(__file__).with_name("trials.jsonl")
ROWS, TEST_ROWS = 20_000, 20_000
PACKAGES = ("lightgbm", "xgboost", "catboost")
SETTINGS, ADAM = "tensormachines._fit.settings", "tensormachines._fit.solvers.adam"
SPLINES = "tensormachines._model.spline_basis"


@dataclass(frozen=True)
class Trial:
    """A change of settings, and of constants "module:NAME"; why it may help, and what was decided.

    ``gone``: its code is not there, so it cannot be run again."""

    why: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    gone: bool = False


USUAL = "usual"
NO_GAIN, HARMS = "no gain", "harms"
ROWS_OF_PENALTY = f"{SETTINGS}:ROWS_OF_PENALTY"


def of_rule(why: str, verdict: str, *, constants: Mapping[str, Any] | None = None, **settings: Any) -> Trial:
    """Return a trial whose penalty follows the rule of the number of rows."""
    return Trial(why, {"alpha": "rows", **settings}, constants or {}, verdict)


def gone(why: str, verdict: str) -> Trial:
    return Trial(why, verdict=verdict, gone=True)


KEPT = "race-two-stages"
NOT_YET = "better; not built in yet"
TRIALS = {
    USUAL: of_rule("the settings before these trials", ""),
    "alpha-half": of_rule(
        "The default is too strongly penalised on tables with little noise.",
        "better on some tables and worse on others: see race",
        constants={ROWS_OF_PENALTY: 2.5},
    ),
    "alpha-fifth": of_rule("The same, further.", "as above", constants={ROWS_OF_PENALTY: 1}),
    "alpha-double": of_rule("Noisy tables may want more.", HARMS, constants={ROWS_OF_PENALTY: 10}),
    "epochs-60": of_rule("Other nets take hundreds of epochs.", NO_GAIN, max_iter=60),
    "epochs-60-alpha-double": of_rule(
        "More epochs fit closer, so a larger penalty may go with them.",
        HARMS,
        max_iter=60,
        constants={ROWS_OF_PENALTY: 10},
    ),
    "epochs-15": of_rule("Searches end at 10 epochs almost always.", "a little worse, faster", max_iter=15),
    "members-3": of_rule("Means of several starts.", "better, for 2.5 times the time", n_members=3),
    "relevance-1": of_rule("Few columns matter in many tables.", "mixed", relevance=1),
    "degree-2": of_rule("Noisy tables may want fewer terms.", HARMS, degree=2),
    "degree-4": of_rule("The default degree was called its main weakness.", NO_GAIN, degree=4),
    "rank-20": of_rule("More terms.", NO_GAIN, rank=20),
    "roughness-6": of_rule(
        "Less smooth functions: thresholds.", NO_GAIN, constants={f"{SPLINES}:ROUGHNESS": 6.0}
    ),
    "roughness-1.5": of_rule("Smoother functions.", NO_GAIN, constants={f"{SPLINES}:ROUGHNESS": 1.5}),
    "constant-1": of_rule(
        "Factors nearer to lower degrees.", NOT_YET, constants={f"{SPLINES}:CONSTANT": 1.0}
    ),
    "constant-0.25": of_rule(
        "Factors nearer to pure products.", HARMS, constants={f"{SPLINES}:CONSTANT": 0.25}
    ),
    "line-0.6": of_rule(
        "Nearly linear tables are lost to Ridge.", NOT_YET, constants={f"{SPLINES}:LINE": 0.6}
    ),
    "rate-double": of_rule("Larger steps.", NO_GAIN, constants={f"{ADAM}:RATE": 0.12}),
    "rate-half": of_rule("Smaller steps.", HARMS, constants={f"{ADAM}:RATE": 0.03}),
    "group-1": gone(
        "The unsquared norm of a column's coefficients in a factor leaves out columns that do not matter: "
        "after each epoch, their squares are weighed by the inverse of their size.",
        "better than the squared one",
    ),
    "group-0.5": gone("The same with the root of that weight.", NOT_YET),
    "group-0.5-alpha-half": gone("Both at once.", "as alpha-half"),
    "group-0.5-alpha-fifth": gone("Both at once.", "as alpha-fifth"),
    "group-1-alpha-half": gone("Both at once.", "as alpha-half"),
    "group-1-alpha-fifth": gone("Both at once.", "as alpha-fifth"),
    "group-0.75-alpha-third": gone("Both at once.", "in between"),
    "race": gone(
        "The best of four penalties, table by table, would have 0.88 of the loss: choose among 1, 1/3, 1/10 "
        "and 1/30 of the rule's by fits of 10 epochs and held-out rows.",
        "chooses too small ones on noisy tables",
    ),
    "race-20-epochs": gone("Longer fits tell penalties apart better.", "better"),
    "race-no-margin": gone("The lower mean wins, however little.", NO_GAIN),
    "race-group-0.5": gone("With group-0.5.", "better"),
    "race-15-thirds-1.7-group-0.5": gone(
        "Short fits end before a small penalty harms: 1.7 times the penalty that wins.", "fewer tables harmed"
    ),
    "race-20-thirds-1.7-group-0.5": gone("The same with 20 epochs.", "better"),
    "race-20-thirds-1.7-group-0.0": gone("The same without the weights of groups.", "slower than two stages"),
    "race-20-halves-1.0-group-0.5": gone("Finer steps instead.", "harms more tables"),
    "race-15-halves-1.4-group-0.5": gone("Finer steps and a smaller factor.", "harms more tables"),
    KEPT: Trial(
        "Noisy tables, where less is not better, should not pay for long races.",
        verdict='kept, and confirmed on the second half: alpha="auto"',
    ),
    "race-two-stages-group-0.5": gone("With group-0.5.", NOT_YET),
}


@contextmanager
def changed(constants: Mapping[str, Any]) -> Iterator[None]:
    """Give constants of modules other values for a while."""
    places = [
        (importlib.import_module(module), name) for module, name in (key.split(":") for key in constants)
    ]
    before = [getattr(module, name) for module, name in places]
    try:
        for (module, name), value in zip(places, constants.values(), strict=True):
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


def fit_ours(trial: Trial, rows: Table, seed: int) -> tuple[Predict, Any]:
    kind = TensorMachineClassifier if rows.n_classes else TensorMachineRegressor
    model = kind(random_state=seed, **trial.settings).fit(rows.X, rows.y)
    if not rows.n_classes:
        return model.predict, model

    def probabilities(X: Any) -> np.ndarray:
        full = np.zeros((len(X), rows.n_classes))
        full[:, model.classes_] = model.predict_proba(X)
        return full

    return probabilities, model


def measure(name: str, rows: Table, seed: int) -> Line:
    with changed(TRIALS[name].constants if name in TRIALS else {}):  # for predictions, too
        return measure_as_it_is(name, rows, seed)


def measure_as_it_is(name: str, rows: Table, seed: int) -> Line:
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
    common = [
        name
        for name in names()
        if {(trial, name), (against, name)} <= found.keys() and half in ("both", half_of(name))
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
LightGBM diverges on shuttle. CatBoost was run on 21 tables of the first half: it takes minutes on many rows
or classes. First half: seed 0; second half: seeds 0 and 1, rivals 0. Machine B of RESULTS.md, 2026-11-17;
up to two processes at a time, so seconds are rough.

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
    return INTRODUCTION + "\n\n".join(parts)


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fit what is not recorded yet")
    reporting = commands.add_parser("report", help="print the tables of what is recorded")
    for each in (running, reporting):
        each.add_argument("--records", type=Path, default=RECORDS)
    here = [name for name, trial in TRIALS.items() if not trial.gone]
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
