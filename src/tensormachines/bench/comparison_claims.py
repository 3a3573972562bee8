"""The claims of the paper about methods side by side: their errors, seconds and sizes, from the lines of the experiment "compare".

Each function states one claim, and the parts that it has: it is confirmed if all of these hold, refuted if none does.
"""

from __future__ import annotations

from math import inf, sqrt

from .paper import PRINTED
from .summary import Cell, Line, path, selected
from .verdicts import (
    CENSUS,
    FOREST,
    RIVALS,
    SLICE,
    TENSOR_MACHINES,
    TITLES,
    YEAR,
    Claim,
    claim,
    listing,
    missing,
    number,
    percent,
    quartiles,
    sentences,
    soonest,
    span,
    untested_sets,
    with_spread,
)

LARGEST_RANK, MOST_PER_COLUMN, CRAFTMAPS_PER_COLUMN = 5, 72, 400  # the paper's numbers; parameters in multiples of d
FEWEST_SETS = 3  # a median or a worst case over fewer says nothing of sets in general
NEAR = 1.05  # times the best error of a rival: paths of fits end in steps, none of which need come nearer
MUCH_LOWER = 0.8  # times it: on Slice the paper calls half "much lower"; a fifth less is the least that its plot would show
TARGETS = ("indoor", "adult", "forest")  # the sets whose errors may stand beside the printed ones
FASTER = 10.0  # times the printed ratio of seconds to those of KRR: what was set as the aim


def parsimony(lines: list[Line]) -> Claim:
    statement = (
        f"Tensor Machines are parsimonious: rank at most {LARGEST_RANK} and at most {MOST_PER_COLUMN} d parameters on every set, where "
        f"CRAFTMaps needs hundreds to thousands of random features, at least {CRAFTMAPS_PER_COLUMN} d parameters, and mostly errs more."
    )
    best = [cell for cell in selected(lines).values() if cell.parameters is not None]
    machines, features = ([cell for cell in best if cell.method in methods] for methods in (TENSOR_MACHINES, ("craftmaps",)))
    pairs = [(rival, min((cell for cell in machines if cell.set == rival.set), key=_error, default=None)) for rival in features]
    better = [machine.mean_error <= rival.mean_error for rival, machine in pairs if machine]
    if not better:
        return claim(statement, [], missing(lines, "compare", (), (*TENSOR_MACHINES, "craftmaps")), "Table 2")
    ranks = [cell.lines[0].get("param_rank") or 0 for cell in machines]
    tried = max([line.get("param_rank") or 0 for line in lines if line["experiment"] == "select"], default=0) or max(ranks)
    sizes, rival_sizes = ([_per_column(cell) for cell in found] for found in (machines, features))
    parts = [
        max(ranks) <= LARGEST_RANK and max(sizes) <= MOST_PER_COLUMN,
        min(rival_sizes) >= CRAFTMAPS_PER_COLUMN,
        2 * sum(better) > len(better),
    ]
    figures = (
        f"Tensor Machines: rank {span(ranks)} (the largest tried was {tried}), {span(sizes)} times d parameters. "
        f"CRAFTMaps: {span([cell.major or 0 for cell in features])} features, {span(rival_sizes)} times d parameters. "
        f"The better Tensor Machine errs at most as much as CRAFTMaps on {sum(better)} of {len(better)} sets."
    )
    return claim(statement, parts, figures, "Table 2")


def _error(cell: Cell) -> float:
    return cell.mean_error


def _per_column(cell: Cell) -> float:
    return float((cell.parameters or 0) / cell.lines[0]["columns"])


Relative = dict[str, dict[str, tuple[float, float]]]  # {method: {set: (relative error, relative time)}}


def _relative(lines: list[Line], methods: tuple[str, ...]) -> tuple[Relative, str]:
    """On the sets where KRR and all of the methods have finished; and a remark on those that are left out."""
    best = selected(lines)
    sets = list(dict.fromkeys(name for name, _ in best))
    complete = [name for name in sets if all((name, method) in best for method in ("krr", *methods))]
    relative = {
        method: {
            name: (best[name, method].relative_error(best[name, "krr"]), best[name, method].relative_time(best[name, "krr"]))
            for name in complete
        }
        for method in methods
    }
    left_out = [name for name in sets if name not in complete]
    return relative, f"{len(complete)} sets" + (f"; not all methods finished on {listing(left_out)}" if left_out else "")


def worst_case(lines: list[Line]) -> Claim:
    statement = "TM-Batch and TM-SFO have the lowest worst-case relative errors of all methods."
    relative, sets = _relative(lines, (*TENSOR_MACHINES, *RIVALS))
    if len(relative["tm-batch"]) < FEWEST_SETS:
        needed = missing(lines, "compare", (), ("krr", *TENSOR_MACHINES, *RIVALS))
        return claim(statement, [], f"{FEWEST_SETS} sets with all methods are needed, there are {sets}. {needed}", "Figure 1")
    worst = {method: max((error, name) for name, (error, _) in of_set.items()) for method, of_set in relative.items()}
    parts = [worst[machine][0] < min(worst[rival][0] for rival in RIVALS) for machine in TENSOR_MACHINES]
    in_order = sorted(worst.items(), key=lambda item: item[1])
    figures = ", ".join(f"{TITLES[method]} {error:+.2f} ({name})" for method, (error, name) in in_order)
    return claim(statement, parts, f"The worst (error - KRR's) / KRR's, lowest first: {figures}. ({sets})", "Figure 1")


def solvers(lines: list[Line]) -> Claim:
    statement = "TM-SFO is faster than TM-Batch and less variable in time; TM-Batch is more accurate."
    relative, sets = _relative(lines, TENSOR_MACHINES)
    if len(relative["tm-sfo"]) < FEWEST_SETS:
        needed = missing(lines, "compare", (), ("krr", *TENSOR_MACHINES))
        return claim(statement, [], f"{FEWEST_SETS} sets with both are needed, there are {sets}. {needed}", "Figure 1")
    errors, times = ({method: quartiles([pair[k] for pair in relative[method].values()]) for method in TENSOR_MACHINES} for k in (0, 1))
    widths, error_widths = ({method: third - first for method, (first, _, third) in found.items()} for found in (times, errors))
    parts = [
        times["tm-sfo"][1] < times["tm-batch"][1],
        widths["tm-sfo"] < widths["tm-batch"],
        errors["tm-batch"][1] < errors["tm-sfo"][1],
    ]
    figures = "; ".join(
        f"{TITLES[method]}: median relative time {number(times[method][1])}, {number(widths[method])} between its quartiles, "
        f"median relative error {errors[method][1]:+.3f}, {number(error_widths[method])} between its quartiles"
        for method in TENSOR_MACHINES
    )
    return claim(statement, parts, f"{figures}. ({sets})", "Figure 1")


def time_and_error(lines: list[Line]) -> Claim:
    statement = "Tensor Machines reach a much lower error than the other methods (on Slice), or reach theirs sooner (on Forest)."
    parts, figures, tested = [], [], []
    for name in (*SLICE, *FOREST):
        machines, rivals = ([cell for method in methods for cell in path(lines, name, method)] for methods in (TENSOR_MACHINES, RIVALS))
        if not machines or not rivals:
            continue
        best, rival = min(machines, key=_error), min(rivals, key=_error)
        level = NEAR * rival.mean_error
        ours, theirs = soonest(machines, level), soonest(rivals, level)
        sooner = ours is not None and theirs is not None and ours.mean_seconds < theirs.mean_seconds
        parts.append(sooner or best.mean_error < MUCH_LOWER * rival.mean_error)
        tested.append(name)
        figures.append(
            f"{name}: lowest error {number(best.mean_error)} ({TITLES[best.method]}) against {number(rival.mean_error)} "
            f"({TITLES[rival.method]}); seconds to within {percent(NEAR - 1)} of the latter: {_seconds(ours)} against {_seconds(theirs)}"
        )
    figure = sentences(figures) or missing(lines, "compare", (*SLICE, *FOREST), (*TENSOR_MACHINES, *RIVALS))
    return claim(statement, parts, figure, "Figure 3", untested_sets((SLICE, FOREST), tested))


def _seconds(cell: Cell | None) -> str:
    return "never" if cell is None else f"{number(cell.mean_seconds)} ({TITLES[cell.method]})"


def factorization_machines(lines: list[Line]) -> Claim:
    statement = "Tensor Machines are more accurate than factorization machines at degree 2 (on Census and Year)."
    best = selected(lines)
    parts, figures, tested = [], [], []
    for name in (*CENSUS, *YEAR):
        machines = [best[name, method] for method in TENSOR_MACHINES if (name, method) in best]
        if machines and (name, "fm") in best:
            parts += [cell.mean_error < best[name, "fm"].mean_error for cell in machines]
            tested.append(name)
            figures.append(f"{name}: " + ", ".join(f"{TITLES[cell.method]} {with_spread(cell)}" for cell in (*machines, best[name, "fm"])))
    figure = sentences(figures) or missing(lines, "compare", (*CENSUS, *YEAR), (*TENSOR_MACHINES, "fm"))
    return claim(statement, parts, figure, "Table 2 and Figure 2", untested_sets((CENSUS, YEAR), tested))


def printed_error(lines: list[Line], name: str) -> Claim:
    """At the three digits that the paper gives."""
    statement = f"Our errors reach the printed ones on {name.capitalize()}."
    found = [cell for (of_set, method), cell in selected(lines).items() if of_set == name and method in TENSOR_MACHINES and _faithful(cell)]
    if not found:
        return claim(statement, [], missing(lines, "compare", (name,), TENSOR_MACHINES), "Table 2")
    printed = PRINTED[name]
    lowest = min((method for method in printed if method != "krr"), key=lambda method: printed[method].error)  # KRR is the baseline
    beaten = min(_as_printed(cell) for cell in found) < printed[lowest].error
    errors = [f"{TITLES[cell.method]} {with_spread(cell)} (printed: {number(printed[cell.method].error)})" for cell in found]
    figures = (
        f"{', '.join(errors)}; {found[0].lines[0]['rows']:,} training rows{_chance(found[0])}. The lowest that is printed, "
        f"{number(printed[lowest].error)} ({TITLES[lowest]}), is {'beaten' if beaten else 'not beaten'}."
    )
    parts = [_as_printed(cell) <= printed[cell.method].error for cell in found]
    return claim(statement, parts, figures, "Table 2", [TITLES[m] for m in TENSOR_MACHINES if m not in [cell.method for cell in found]])


def _faithful(cell: Cell) -> bool:
    return all(line.get("faithful", True) for line in cell.lines)


def _as_printed(cell: Cell) -> float:
    return float(f"{cell.mean_error:.3g}")


def _chance(cell: Cell) -> str:
    line = cell.lines[0]
    if line.get("task") != "binary" or not line.get("test_rows") or cell.mean_error > 1:
        return ""
    deviation = sqrt(cell.mean_error * (1 - cell.mean_error) / line["test_rows"])
    return f", and {line['test_rows']:,} test rows, which leave a standard error of {deviation:.1g}"


def printed_time(lines: list[Line]) -> Claim:
    """Of the fit that stands in the table, which has the lowest error, and of the fastest one that reaches the printed error."""
    statement = f"Relative to KRR, Tensor Machines take at least {FASTER:g} times less time than printed."
    best = selected(lines)
    parts, figures, untested = [], [], []
    for name, method in ((name, method) for name in TARGETS for method in TENSOR_MACHINES):
        if (name, method) not in best or (name, "krr") not in best:
            untested.append(f"{TITLES[method]} on {name}")
            continue
        cell, krr, printed = best[name, method], best[name, "krr"], PRINTED[name][method]
        ratio = printed.relative_time(PRINTED[name]["krr"])
        reached = soonest([cell for cell in path(lines, name, method) if _as_printed(cell) <= printed.error], inf)
        gain, gain_where_reached = _gain(ratio, cell, krr), _gain(ratio, reached, krr) if reached else 0.0
        parts += [gain >= FASTER, gain_where_reached >= FASTER]
        also = (
            f"{number(gain_where_reached)} times where the printed error is first reached"
            if reached
            else "the printed error is not reached"
        )
        figures.append(
            f"{TITLES[method]} on {name}: {number(cell.relative_time(krr))} of the time of KRR on {krr.lines[0]['rows']:,} rows, "
            f"printed {number(ratio)}: a gain of {number(gain)} times, {also}"
        )
    figure = sentences(figures) or missing(lines, "compare", TARGETS, ("krr", *TENSOR_MACHINES))
    return claim(statement, parts, figure, "Table 2", untested)


def _gain(printed_ratio: float, cell: Cell, krr: Cell) -> float:
    ratio = cell.relative_time(krr)
    return printed_ratio / ratio if ratio > 0 else inf
