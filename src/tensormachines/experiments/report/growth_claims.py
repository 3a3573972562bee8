"""The claims of the paper about effects of the random start, the number of rows and the rank.

Each function judges one claim by its parts: it is confirmed if all of them hold, and refuted if none does.
"""

from __future__ import annotations

from ..printed import SATURATED
from ..records import Line
from .claims import Claim, claim, fall, missing, sentences, untested_sets
from .curves import Curve, Point, best_points, counted, curves, log_slope, lowest, own_or_relative, risk_gap
from .labels import TENSOR_MACHINES, kin, method_name, number, set_name, share, span, whole
from .noise import lower, noise_of_difference

# Standard deviation over random starts relative to the mean error: less than methods usually differ by.
STEADY = 0.05
LINEAR = 1.15  # largest power that is "almost linear": 2.2 times the seconds for twice the rows
MANY_ROWS = 100_000  # beyond which CRAFTMaps gains nothing, according to the paper
ENOUGH_RANK = 3  # on Census, according to the paper
ROOT, TOLERANCE = -0.5, 0.15  # the power of 1 / sqrt(n), and the tolerance for a slope of a few noisy points
# Norms that differ by less are held by their ball, and the bound can then only fall with n.
SAME_NORM = 1.01
SCALED = ("tm-sfo", "craftmaps")  # the methods of Figure 4
ROWS_NEEDED = 3  # row counts, for a slope


def starts(lines: list[Line]) -> Claim:
    statement = (
        "The nonconvex fit is robust: it ends at about the same error from random starts of the tuned size."
    )
    begun = [point for point in best_points(curves(lines, "starts")).values() if point.error.count > 1]
    if not begun:
        return claim(statement, [], missing(lines, "starts", (), ("tm-batch",)), "Figure 6")
    figures = [
        f"{point.error.count} starts of {_fit(point)}: errors {span((point.error.low, point.error.high))}, "
        f"standard deviation {share(_deviation(point))} of the mean"
        for point in begun
    ]
    trials = [
        point
        for point in counted(best_points(curves(lines)))
        if point.method in TENSOR_MACHINES and point.error.count > 1
    ]
    if trials:
        worst = max(trials, key=_deviation)
        steady = sum(_deviation(point) <= STEADY for point in trials)
        figures.append(
            f"Over the trials of Table 2 it is at most {share(STEADY)} in {steady} of {len(trials)} cases, "
            f"and {share(_deviation(worst))} in the worst ({_fit(worst)})"
        )
    figures.append("The size of the starts is tuned: the paper, too, says that it matters strongly")
    parts = [_deviation(point) <= STEADY for point in (*begun, *trials)]
    return claim(statement, parts, sentences(figures), "Figure 6")


def _fit(point: Point) -> str:
    return f"{method_name(point.method)} on {set_name(point.set)}"


def _deviation(point: Point) -> float:
    """Return the standard deviation over trials relative to the mean."""
    return point.error.deviation / point.error.mean if point.error.mean > 0 else 0.0


def _scaling(lines: list[Line]) -> tuple[Curve, Curve] | None:
    """Return the curves of TM-SFO and CRAFTMaps against rows, on the first set that has both."""
    found = curves(lines, "scaling", "rows")
    for name in kin("ebay"):
        if all((name, method) in found and found[name, method].points for method in SCALED):
            return found[name, "tm-sfo"], found[name, "craftmaps"]
    return None


def seconds_with_rows(lines: list[Line]) -> Claim:
    statement = (
        "The time of TM-SFO grows almost linearly with the number of rows, that of CRAFTMaps superlinearly."
    )
    found = _scaling(lines) or ()
    sizes = [[point.at or 0 for point in curve.points] for curve in found]
    powers = [
        log_slope(rows, [point.seconds.mean for point in curve.points], ROWS_NEEDED)
        for rows, curve in zip(sizes, found, strict=True)
    ]
    if not found or None in powers:
        needed = f"{ROWS_NEEDED} row counts are needed. {missing(lines, 'scaling', ('ebay',), SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    power, rival_power = (power or 0.0 for power in powers)
    figures = (
        f"On {set_name(found[0].set)} the seconds of TM-SFO grow as n^{power:.2f} ({span(sizes[0])} rows), "
        f"those of CRAFTMaps as n^{rival_power:.2f} ({span(sizes[1])} rows); "
        f"up to n^{LINEAR} counts as almost linear."
    )
    return claim(statement, [power <= LINEAR, rival_power > LINEAR], figures, "Figure 4")


def error_with_rows(lines: list[Line]) -> Claim:
    statement = (
        f"Beyond {MANY_ROWS:,} rows the error of CRAFTMaps hardly falls, while that of TM-SFO continues to "
        "fall, and is lower."
    )
    found = [
        [point for point in curve.points if (point.at or 0) >= MANY_ROWS] for curve in _scaling(lines) or ()
    ]
    if min(map(len, found), default=0) < 2:
        needed = f"Two row counts of at least {MANY_ROWS:,} are needed."
        needed += f" {missing(lines, 'scaling', ('ebay',), SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    ours, theirs = found
    gain, rival_gain = (fall(points[0].error.mean, points[-1].error.mean) for points in found)
    falls = "; ".join(
        f"{method_name(points[0].method)}: {points[0].error} at {whole(points[0].at)} rows, "
        f"{points[-1].error} at {whole(points[-1].at)}, a decrease of {share(fallen)}"
        for points, fallen in ((ours, gain), (theirs, rival_gain))
    )
    figures = f"On {set_name(ours[0].set)}, {falls}; less than {share(SATURATED)} counts as none."
    parts = [_falls(ours[0], ours[-1]), rival_gain < SATURATED, lower(ours[-1], theirs[-1])]
    return claim(statement, parts, figures, "Figure 4")


def _falls(before: Point, after: Point) -> bool | None:
    """Return whether an error falls by SATURATED or more; None if the fall may be chance."""
    falls = fall(before.error.mean, after.error.mean) >= SATURATED
    return None if falls and lower(after, before) is None else falls


def _rank_curves(lines: list[Line], *papers: str) -> list[tuple[Point, ...]]:
    found = curves(lines, "rank", "param_rank")
    pairs = [(name, method) for name in own_or_relative(found, *papers) for method in TENSOR_MACHINES]
    return [found[pair].points for pair in pairs if pair in found and len(found[pair].points) > 1]


def error_with_rank(lines: list[Line]) -> Claim:
    statement = "The error falls as the rank grows (on Census and Slice)."
    parts: list[bool | None] = []
    figures, tested = [], []
    for points in _rank_curves(lines, "census", "slice"):
        first, last, best = points[0], points[-1], lowest(points) or points[0]
        parts.append(_falls(first, last))
        tested.append(best.set)
        figures.append(
            f"{_fit(best)}: {first.error} at rank {first.at}, {last.error} at rank {last.at}, "
            f"lowest {best.error} at rank {best.at}"
        )
    figure = sentences(figures) or missing(lines, "rank", ("census", "slice"), TENSOR_MACHINES)
    return claim(statement, parts, figure, "Figure 2", untested_sets(("census", "slice"), tested))


def enough_rank(lines: list[Line]) -> Claim:
    statement = f"On Census no rank above {ENOUGH_RANK} lowers the error further."
    parts, figures = [], []
    for points in _rank_curves(lines, "census"):
        enough = next((point for point in points if point.at == ENOUGH_RANK), None)
        best = lowest(point for point in points if (point.at or 0) > ENOUGH_RANK)
        if enough and best:
            gain = fall(enough.error.mean, best.error.mean)
            parts.append(gain < SATURATED)
            chance = noise_of_difference(enough, best)
            if chance > 0:
                parts.append(not lower(best, enough))  # a fall below SATURATED may still be no chance
            figures.append(
                f"{_fit(best)}: {enough.error} at rank {ENOUGH_RANK}, {best.error} at rank {best.at}: "
                f"lower by {share(gain)}, a difference with a standard error of {number(chance, 1)}"
            )
    needed = missing(lines, "rank", ("census",), TENSOR_MACHINES)
    needed = f"Rank {ENOUGH_RANK} and a larger one are needed. {needed}"
    return claim(statement, parts, sentences(figures) or needed, "Figure 2")


def bound_with_rows(lines: list[Line]) -> Claim:
    """Judge Theorem 1, a bound from above: a difference that falls faster does not contradict it."""
    statement = (
        "Theorem 1: the bound falls as 1 / sqrt(n), and the difference of test and training risk at least as "
        "fast."
    )
    parts, figures = [], []
    for curve in curves(lines, "bound", "rows").values():
        rows = [point.at or 0 for point in curve.points]
        gaps = [risk_gap(point) for point in curve.points]
        power = log_slope(rows, [point.mean("bound") or 0.0 for point in curve.points], ROWS_NEEDED)
        gap_power = log_slope(rows, gaps, ROWS_NEEDED)
        if power is None or gap_power is None:
            continue
        norms = [norm for point in curve.points if (norm := point.mean("bound_norm"))]
        held = len(norms) == len(rows) and max(norms) < SAME_NORM * min(norms)
        parts += [gap_power <= ROOT + TOLERANCE] + ([] if held else [abs(power - ROOT) <= TOLERANCE])
        text = f"{set_name(curve.set)}, {span(rows)} rows: the bound goes as n^{power:.2f}"
        if held:
            text += (
                f" (with B = {number(norms[0])} throughout, this follows from its formula and is not judged)"
            )
        text += f", the difference as n^{gap_power:.2f}"
        left_out = sum(gap <= 0 for gap in gaps)
        if left_out:
            text += f" (without {left_out} of {len(gaps)} row counts, where it is not positive)"
        figures.append(text)
    needed = f"{ROWS_NEEDED} row counts with a positive difference are needed."
    needed += f" {missing(lines, 'bound', (), ('tm-batch',))}"
    return claim(statement, parts, sentences(figures) or needed, "Figure 5")
