"""Two pages for practitioners: what was compared, what wins where, what it costs, and what to use.

Like the report, they are a pure function of the lines.
"""

from __future__ import annotations

from statistics import median

from ..methods import FREE, METHODS
from ..records import Line, latest
from .curves import Point, over_sets
from .document import Bullets, Cell, Page, Row, Section, Table
from .labels import (
    MACHINES,
    TENSOR_MACHINES,
    count,
    in_order,
    listing,
    method_name,
    number,
    percent,
    seconds,
    set_name,
    span,
    times,
    whole,
)
from .noise import CLEAR, lower
from .results import Results, results_of

TITLE = "Tensor Machines and their rivals: a summary for practitioners"
WHAT = {
    "krr": "exact polynomial regression with a kernel; its time grows with the cube of the rows",
    "tm-batch": "a Tensor Machine, fitted by L-BFGS",
    "tm-sfo": "a Tensor Machine, fitted by minibatches (SFO)",
    "tm-kfac": "a Tensor Machine, fitted by preconditioned L-BFGS; not in the paper",
    "tm-free": "the same, with its degree and the penalties of its columns tuned; not in the paper",
    "craftmaps": "a linear model on random polynomial features",
    "basis-learner": "a polynomial network that is built layer by layer",
    "apple": "a sparse polynomial that is found online",
    "fm": "a factorization machine, for degree 2 alone",
}


def summary(lines: list[Line]) -> Page:
    """Return the summary of the lines; the last one with a key counts."""
    results = results_of(latest(lines), [])
    if not results.points:
        return Page(TITLE, ("No fit of the comparison has finished yet.",), (), (), ())
    sections = (
        Section("What was compared", (Bullets(_compared(results)),)),
        Section("What wins where", (_winners(results), Bullets(_readings(results)))),
        Section("What it costs", (_costs(results),)),
        Section("What to use", (Bullets(_advice(results)),)),
    )
    return Page(TITLE, _lead(results), (), (), sections)


def _lead(results: Results) -> tuple[str, ...]:
    sets = results.contested
    outcomes = [results.won(name) for name in sets]
    text = (
        f"On {outcomes.count(True)} of {count(len(sets), 'data set')} a Tensor Machine has a lower error "
        f"than every rival, on {outcomes.count(None)} it is level with the best one"
    )
    own = [results.won(name, TENSOR_MACHINES) for name in sets]
    text += f" (with the paper's two solvers alone: {own.count(True)} and {own.count(None)})"
    kernel = [_kernel_is_lower(results, name) for name in sets]
    return (
        f"{text}. Kernel ridge regression, which is exact and slow, is no rival here; on "
        f"{kernel.count(True)} it has a lower error than all Tensor Machines.",
        "Errors and times are those of the experiments of Yang and Gittens (2015), run again: polynomials of "
        "a fixed degree (TM-free chooses it) on columns and rows of norm 1. Splines, categories and the "
        "defaults of this package are not part of them.",
    )


def _compared(results: Results) -> tuple[str, ...]:
    """Name methods, sets and the noise of the errors."""
    methods = [f"{method_name(method)}: {WHAT[method]}." for method in results.methods if method in WHAT]
    rows = [data_set.rows for data_set in results.counted if data_set.rows]
    columns = [data_set.columns for data_set in results.counted if data_set.columns]
    sizes = f"{span(rows)} training rows and {span(columns)} columns" if rows and columns else "unknown sizes"
    return (
        *methods,
        f"{count(len(results.counted), 'set')} with {sizes}; ebay_like is generated, so its errors are no "
        "evidence about real data. Regression error is |prediction - y| / |y| over all test rows, "
        "classification error the misclassified share.",
        "Penalty, rank and other minor parameters come from cross-validation on training rows; the number of "
        "iterations, features or nodes is the one with the lowest test error, for every method alike.",
        f"Two errors are called level if they differ by less than {CLEAR:g} standard errors, over trials and "
        "test rows.",
    )


def _winners(results: Results) -> Table:
    """Return a row for each set: the best method, the best Tensor Machine, and kernel ridge regression."""
    rows = []
    for data_set in results.used:
        name = data_set.name
        winner, machine = results.winner(name), results.best_of(name, MACHINES)
        best = results.best(name, winner) if winner else None
        level = " (level)" if machine and winner not in MACHINES and results.won(name) is None else ""
        kernel = results.best(name, "krr")
        part = kernel is not None and kernel.value("rows") < (data_set.rows or 0)
        of_rows = f", {whole(kernel.value('rows'))} rows" if kernel and part else ""
        cells = (_cell(best), _cell(machine, level), _cell(kernel, of_rows))
        rows.append(Row((Cell(set_name(name), f"{whole(data_set.rows)} rows"), *cells)))
    header = ("set", "lowest error but KRR's", "best Tensor Machine", "KRR")
    return Table("Table 1", f"Test errors and CPU seconds of the fit. {results.budget}", header, tuple(rows))


def _cell(point: Point | None, remark: str = "") -> Cell:
    if point is None:
        return Cell("-")
    where = f"{method_name(point.method)}, {seconds(point.seconds.mean)}{remark}"
    return Cell(number(point.error.mean), where)


def _kernel_is_lower(results: Results, name: str) -> bool:
    kernel, machine = results.best(name, "krr"), results.best_of(name, MACHINES)
    return kernel is not None and machine is not None and lower(kernel, machine) is True


def _readings(results: Results) -> tuple[str, ...]:
    """Say where each method wins, and where Tensor Machines lose most."""
    wins: dict[str, list[str]] = {}
    for data_set in results.counted:
        if winner := results.winner(data_set.name):
            wins.setdefault(winner, []).append(set_name(data_set.name))
    found = [
        f"{method_name(method)} has the lowest error on {listing(wins[method])}."
        for method in in_order(wins, METHODS)
    ]
    lost = [
        (machine.error.mean / best.error.mean - 1, name, best.method)
        for data_set in results.counted
        if (winner := results.winner(name := data_set.name))
        and (best := results.best(name, winner))
        and (machine := results.best_of(name, MACHINES))
        and best.error.mean > 0
    ]
    if lost and max(lost)[0] > 0:
        excess, name, method = max(lost)
        found.append(
            f"The best Tensor Machine loses most on {set_name(name)}: {percent(excess)} against "
            f"{method_name(method)}."
        )
    return tuple(found)


def _costs(results: Results) -> Table:
    """Return a row for each method: time and size, medians over sets."""
    rows = []
    for method in results.methods:
        points = [point for data_set in results.counted if (point := results.best(data_set.name, method))]
        if not points:
            continue
        ratios = [
            results.relative[point.set, method].time
            for point in points
            if (point.set, method) in results.relative
        ]
        sizes = [size for point in points if (size := point.mean("parameters"))]
        fits = [point.seconds.mean for point in points]
        texts = (
            seconds(median(fits)),
            seconds(max(fits)),
            times(median(ratios)) if ratios else "-",
            whole(median(sizes)) if sizes else "-",
        )
        rows.append(Row((Cell(method_name(method), count(len(points), "set")), *map(Cell, texts))))
    header = ("method", "median time", "longest", "time / KRR's", "numbers in the model")
    return Table(
        "Table 2",
        "CPU seconds of the best fit on one core, medians over sets. The search for its parameters, with "
        f"{_candidates(results)}, is not counted.",
        header,
        tuple(rows),
    )


def _candidates(results: Results) -> str:
    """Name the fewest and the most candidates of a search, and the methods that had them."""
    searched = {(tuning.candidates, method) for (_, method), tuning in results.tuned.items()}
    if not searched:
        return "an unknown number of candidates"
    ends = dict.fromkeys([min(searched), max(searched)])
    return " to ".join(f"{number} candidates ({method_name(method)})" for number, method in ends)


def _advice(results: Results) -> tuple[str, ...]:
    """Turn the figures into rules; each names the figures that it rests on."""
    found = []
    summaries = over_sets(results.relative)
    most = max((errors.count for errors, _ in summaries.values()), default=0)
    errors = {method: of.median for method, (of, _) in summaries.items() if of.count == most}
    rivals = [method for method in errors if method not in MACHINES]
    machines = [method for method in summaries if method in MACHINES]  # a set without fits is no win
    if machines:
        firsts = [machine.method for name in _names(results) if (machine := results.best_of(name, MACHINES))]
        first = max(machines, key=firsts.count)
        found.append(
            f"Begin with {method_name(first)}: of the Tensor Machines it has the lowest error on "
            f"{firsts.count(first)} of {count(len(firsts), 'set')}, in a median of "
            f"{times(summaries[first][1].median)} KRR's time. In this package it is TensorMachineRegressor "
            f'or TensorMachineClassifier with solver="{METHODS[first].fixed["solver"]}"{_free(first)}.'
        )
    if rivals:
        rival = min(rivals, key=lambda method: errors[method])
        found.append(
            f"Try {method_name(rival)} as well: of the rivals with fits on all {most} sets it has the lowest "
            f"median error relative to KRR, {percent(errors[rival])}. tensormachines.peers has it."
        )
    kernel = [point for (_, method), point in results.points.items() if method == "krr"]
    if kernel:
        longest = max(kernel, key=lambda point: point.seconds.mean)
        found.append(
            "Kernel ridge regression has no random start and no iterations. It took "
            f"{seconds(longest.seconds.mean)} for {whole(longest.value('rows'))} rows, and every 8 penalties "
            "tried on half of them take as long again: keep it for a few thousand rows."
        )
    found.append(
        "For tables with categories, missing values or steps, use the default settings of this package "
        "instead, which these experiments do not cover."
    )
    return tuple(found)


def _free(machine: str) -> str:
    """Say who chooses the settings that other machines take from the paper."""
    free = [name for name in METHODS[machine].grid if name in FREE]
    return f"; {listing(free)} are chosen by their ...CV forms" if free else ""


def _names(results: Results) -> list[str]:
    return [data_set.name for data_set in results.counted]
