"""The claims of the paper about what changes with the start, the number of rows or the rank.

Each function states one claim, and the parts that it has: it is confirmed if all of these hold, refuted if none does.
"""

from __future__ import annotations

from statistics import fmean

from .summary import Cell, Line, cells, path, selected
from .verdicts import (
    CENSUS,
    EBAY,
    SLICE,
    TENSOR_MACHINES,
    TITLES,
    Claim,
    claim,
    fall,
    missing,
    number,
    percent,
    sentences,
    slope,
    span,
    untested_sets,
    with_spread,
)

STEADY = 0.05  # standard deviation over random starts in shares of the mean error: less than what usually tells two methods apart
SATURATED = 0.02  # a fall by a smaller share of the error is none: the paper's own rule for when a method has saturated
LINEAR = 1.15  # the largest power of the number of rows that is "almost linear": 2.2 times the seconds for twice the rows
MANY_ROWS = 100_000  # from which on CRAFTMaps gains nothing, as the paper has it
ENOUGH_RANK = 3  # on Census, as the paper has it
ROOT, TOLERANCE = -0.5, 0.15  # the power of 1 / sqrt(n), and how far from it a line through a few noisy points may be
SCALED = ("tm-sfo", "craftmaps")  # the methods of Figure 4
ROWS_NEEDED = 3  # numbers of rows, for a slope


def starts(lines: list[Line]) -> Claim:
    statement = "The nonconvex fit is robust: from any random start it ends at about the same error."
    begun = [cell for cell in cells(lines, "starts").values() if len(cell.errors) > 1]
    if not begun:
        return claim(statement, [], missing(lines, "starts", (), ("tm-batch",)), "Table 2")
    figures = [
        f"{len(cell.errors)} starts of {TITLES[cell.method]} on {cell.set}: errors {span(cell.errors)}, "
        f"standard deviation {percent(_share(cell))} of the mean"
        for cell in begun
    ]
    trials = [cell for (_, method), cell in selected(lines).items() if method in TENSOR_MACHINES and len(cell.errors) > 1]
    if trials:
        worst = max(trials, key=_share)
        steady = sum(_share(cell) <= STEADY for cell in trials)
        figures.append(
            f"Over the trials of Table 2 it is at most {percent(STEADY)} in {steady} of {len(trials)} cases, "
            f"and {percent(_share(worst))} in the worst ({TITLES[worst.method]} on {worst.set})"
        )
    return claim(statement, [_share(cell) <= STEADY for cell in (*begun, *trials)], sentences(figures), "Table 2")


def _share(cell: Cell) -> float:
    return cell.spread / cell.mean_error if cell.mean_error > 0 else 0.0


def _scaling(lines: list[Line]) -> tuple[list[Cell], list[Cell]]:
    """The fits of TM-SFO and of CRAFTMaps to more and more rows of the first set that has both."""
    for name in EBAY:
        ours, theirs = (path(lines, name, method, "scaling", by="rows") for method in SCALED)
        if ours and theirs:
            return ours, theirs
    return [], []


def seconds_with_rows(lines: list[Line]) -> Claim:
    statement = "The time of TM-SFO grows almost linearly with the number of rows, that of CRAFTMaps superlinearly."
    ours, theirs = _scaling(lines)
    power, rival_power = (slope({cell.lines[0]["rows"]: cell.mean_seconds for cell in found}) for found in (ours, theirs))
    if power is None or rival_power is None:
        needed = f"{ROWS_NEEDED} numbers of rows are needed. {missing(lines, 'scaling', EBAY, SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    figures = (
        f"On {ours[0].set} the seconds of TM-SFO grow as n^{power:.2f} ({span([cell.major or 0 for cell in ours])} rows), "
        f"those of CRAFTMaps as n^{rival_power:.2f} ({span([cell.major or 0 for cell in theirs])} rows); "
        f"up to n^{LINEAR} counts as almost linear."
    )
    return claim(statement, [power <= LINEAR, rival_power > LINEAR], figures, "Figure 4")


def error_with_rows(lines: list[Line]) -> Claim:
    statement = f"Past {MANY_ROWS:,} rows the error of CRAFTMaps hardly falls, while that of TM-SFO goes on falling, and is lower."
    ours, theirs = ([cell for cell in found if cell.lines[0]["rows"] >= MANY_ROWS] for found in _scaling(lines))
    if min(len(ours), len(theirs)) < 2:
        needed = f"Two numbers of rows from {MANY_ROWS:,} on are needed. {missing(lines, 'scaling', EBAY, SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    gain, rival_gain = (fall(found[0].mean_error, found[-1].mean_error) for found in (ours, theirs))
    figures = "; ".join(
        f"{TITLES[found[0].method]}: {with_spread(found[0])} at {found[0].major:,} rows, {with_spread(found[-1])} at {found[-1].major:,}, "
        f"a fall by {percent(fall(found[0].mean_error, found[-1].mean_error))}"
        for found in (ours, theirs)
    )
    parts = [gain >= SATURATED, rival_gain < SATURATED, ours[-1].mean_error < theirs[-1].mean_error]
    return claim(statement, parts, f"On {ours[0].set}, {figures}; less than {percent(SATURATED)} counts as none.", "Figure 4")


def _rank_paths(lines: list[Line], sets: tuple[str, ...]) -> list[list[Cell]]:
    paths = [path(lines, name, method, "rank", by="param_rank") for name in sets for method in TENSOR_MACHINES]
    return [found for found in paths if len(found) > 1]


def error_with_rank(lines: list[Line]) -> Claim:
    statement = "The error falls as the rank grows (on Census and Slice)."
    parts, figures, tested = [], [], []
    for found in _rank_paths(lines, (*CENSUS, *SLICE)):
        first, last, best = found[0], found[-1], min(found, key=lambda cell: cell.mean_error)
        parts.append(fall(first.mean_error, last.mean_error) >= SATURATED)
        tested.append(best.set)
        figures.append(
            f"{TITLES[best.method]} on {best.set}: {with_spread(first)} at rank {first.major}, {with_spread(last)} at rank {last.major}, "
            f"lowest {number(best.mean_error)} at rank {best.major}"
        )
    figure = sentences(figures) or missing(lines, "rank", (*CENSUS, *SLICE), TENSOR_MACHINES)
    return claim(statement, parts, figure, "Figure 2", untested_sets((CENSUS, SLICE), tested))


def enough_rank(lines: list[Line]) -> Claim:
    statement = f"On Census no rank beyond {ENOUGH_RANK} lowers the error further."
    parts, figures = [], []
    for found in _rank_paths(lines, CENSUS):
        enough = next((cell for cell in found if cell.major == ENOUGH_RANK), None)
        more = [cell for cell in found if cell.major is not None and cell.major > ENOUGH_RANK]
        if enough and more:
            best = min(more, key=lambda cell: cell.mean_error)
            gain = fall(enough.mean_error, best.mean_error)
            parts.append(gain < SATURATED)
            figures.append(
                f"{TITLES[best.method]} on {best.set}: {with_spread(enough)} at rank {ENOUGH_RANK}, "
                f"{with_spread(best)} at rank {best.major}: lower by {percent(gain)}, where {percent(SATURATED)} would count"
            )
    needed = f"Rank {ENOUGH_RANK} and a larger one are needed. {missing(lines, 'rank', CENSUS, TENSOR_MACHINES)}"
    return claim(statement, parts, sentences(figures) or needed, "Figure 2")


def bound_with_rows(lines: list[Line]) -> Claim:
    """A difference that falls faster does not contradict the theorem, which bounds it from above."""
    statement = "Theorem 1: the bound falls as 1 / sqrt(n), and the difference of test and training risk at least as fast."
    parts, figures = [], []
    found = list(cells(lines, "bound", by="rows").values())
    for name in dict.fromkeys(cell.set for cell in found):
        of_set = [cell for cell in found if cell.set == name]
        bounds = {cell.lines[0]["rows"]: _mean(cell, "bound") for cell in of_set}
        gaps = {cell.lines[0]["rows"]: _mean(cell, "test_risk") - _mean(cell, "train_risk") for cell in of_set}
        power, power_of_gap = slope(bounds), slope(gaps)
        if power is not None and power_of_gap is not None:
            parts += [abs(power - ROOT) <= TOLERANCE, power_of_gap <= ROOT + TOLERANCE]
            left_out = sum(not gap > 0 for gap in gaps.values())
            figures.append(
                f"{name}, {span(list(bounds))} rows: the bound goes as n^{power:.2f}, the difference as n^{power_of_gap:.2f}"
                + (f" (without {left_out} of {len(gaps)} numbers of rows, at which it is not positive)" if left_out else "")
            )
    needed = f"{ROWS_NEEDED} numbers of rows with a positive difference are needed. {missing(lines, 'bound', (), ('tm-batch',))}"
    return claim(statement, parts, sentences(figures) or needed, "Figure of the bound")


def _mean(cell: Cell, field: str) -> float:
    """Over the trials; not a number where one of them lacks it."""
    return fmean(float("nan") if line.get(field) is None else line[field] for line in cell.lines)
