"""The claims of the paper about what changes with the start, the number of rows or the rank.

Each function states one claim, and the parts that it has: it is confirmed if all of these hold, refuted if
none does."""

from __future__ import annotations

from ..printed import SATURATED
from ..records import Line
from .curves import Curve, Point, best_points, counted, log_slope, lowest, own_or_relative, curves, risk_gap
from .labels import TENSOR_MACHINES, kin, method_name, number, set_name, share, span, whole
from .verdicts import Claim, claim, fall, missing, sentences, untested_sets

# standard deviation over random starts in shares of the mean error: less than what usually tells two methods
# apart
STEADY = 0.05
LINEAR = 1.15  # the largest power of the number of rows that is "almost linear": 2.2 times the seconds for twice the rows
MANY_ROWS = 100_000  # from which on CRAFTMaps gains nothing, as the paper has it
ENOUGH_RANK = 3  # on Census, as the paper has it
ROOT, TOLERANCE = (
    -0.5,
    0.15,
)  # the power of 1 / sqrt(n), and how far from it a line through a few noisy points may be
# norms of factors that differ by less are held by their ball: then the bound has nothing but n to fall with
SAME_NORM = 1.01
SCALED = ("tm-sfo", "craftmaps")  # the methods of Figure 4
ROWS_NEEDED = 3  # numbers of rows, for a slope


def starts(lines: list[Line]) -> Claim:
    statement = "The nonconvex fit is robust: from any random start it ends at about the same error."
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
    return claim(
        statement,
        [_deviation(point) <= STEADY for point in (*begun, *trials)],
        sentences(figures),
        "Figure 6",
    )


def _fit(point: Point) -> str:
    return f"{method_name(point.method)} on {set_name(point.set)}"


def _deviation(point: Point) -> float:
    """Over the trials, as a share of the mean."""
    return point.error.deviation / point.error.mean if point.error.mean > 0 else 0.0


def _scaling(lines: list[Line]) -> tuple[Curve, Curve] | None:
    """The fits of TM-SFO and of CRAFTMaps to more and more rows of the first set that has both."""
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
        needed = f"{ROWS_NEEDED} numbers of rows are needed. {missing(lines, 'scaling', ('ebay',), SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    power, rival_power = (power or 0.0 for power in powers)
    figures = (
        f"On {set_name(found[0].set)} the seconds of TM-SFO grow as n^{power:.2f} ({span(sizes[0])} rows), "
        f"those of CRAFTMaps as n^{rival_power:.2f} ({span(sizes[1])} rows); up to n^{LINEAR} counts as almost linear."
    )
    return claim(statement, [power <= LINEAR, rival_power > LINEAR], figures, "Figure 4")


def error_with_rows(lines: list[Line]) -> Claim:
    statement = f"Past {MANY_ROWS:,} rows the error of CRAFTMaps hardly falls, while that of TM-SFO goes on falling, and is lower."
    found = [
        [point for point in curve.points if (point.at or 0) >= MANY_ROWS] for curve in _scaling(lines) or ()
    ]
    if min(map(len, found), default=0) < 2:
        needed = f"Two numbers of rows from {MANY_ROWS:,} on are needed. {missing(lines, 'scaling', ('ebay',), SCALED)}"
        return claim(statement, [], needed, "Figure 4")
    ours, theirs = found
    gain, rival_gain = (fall(points[0].error.mean, points[-1].error.mean) for points in found)
    figures = "; ".join(
        f"{method_name(points[0].method)}: {points[0].error} at {whole(points[0].at)} rows, {points[-1].error} at {whole(points[-1].at)}, "
        f"a fall by {share(fallen)}"
        for points, fallen in ((ours, gain), (theirs, rival_gain))
    )
    parts = [gain >= SATURATED, rival_gain < SATURATED, ours[-1].error.mean < theirs[-1].error.mean]
    return claim(
        statement,
        parts,
        f"On {set_name(ours[0].set)}, {figures}; less than {share(SATURATED)} counts as none.",
        "Figure 4",
    )


def _rank_curves(lines: list[Line], *papers: str) -> list[tuple[Point, ...]]:
    found = curves(lines, "rank", "param_rank")
    pairs = [(name, method) for name in own_or_relative(found, *papers) for method in TENSOR_MACHINES]
    return [found[pair].points for pair in pairs if pair in found and len(found[pair].points) > 1]


def error_with_rank(lines: list[Line]) -> Claim:
    statement = "The error falls as the rank grows (on Census and Slice)."
    parts, figures, tested = [], [], []
    for points in _rank_curves(lines, "census", "slice"):
        first, last, best = points[0], points[-1], lowest(points) or points[0]
        parts.append(fall(first.error.mean, last.error.mean) >= SATURATED)
        tested.append(best.set)
        figures.append(
            f"{_fit(best)}: {first.error} at rank {first.at}, {last.error} at rank {last.at}, lowest {best.error} at rank {best.at}"
        )
    figure = sentences(figures) or missing(lines, "rank", ("census", "slice"), TENSOR_MACHINES)
    return claim(statement, parts, figure, "Figure 2", untested_sets(("census", "slice"), tested))


def enough_rank(lines: list[Line]) -> Claim:
    statement = f"On Census no rank beyond {ENOUGH_RANK} lowers the error further."
    parts, figures = [], []
    for points in _rank_curves(lines, "census"):
        enough = next((point for point in points if point.at == ENOUGH_RANK), None)
        best = lowest(point for point in points if (point.at or 0) > ENOUGH_RANK)
        if enough and best:
            gain = fall(enough.error.mean, best.error.mean)
            parts.append(gain < SATURATED)
            figures.append(
                f"{_fit(best)}: {enough.error} at rank {ENOUGH_RANK}, {best.error} at rank {best.at}: lower by {share(gain)}, "
                f"where {share(SATURATED)} would count"
            )
    needed = f"Rank {ENOUGH_RANK} and a larger one are needed. {missing(lines, 'rank', ('census',), TENSOR_MACHINES)}"
    return claim(statement, parts, sentences(figures) or needed, "Figure 2")


def bound_with_rows(lines: list[Line]) -> Claim:
    """A difference that falls faster does not contradict the theorem, which bounds it from above."""
    statement = "Theorem 1: the bound falls as 1 / sqrt(n), and the difference of test and training risk at least as fast."
    parts, figures = [], []
    for curve in curves(lines, "bound", "rows").values():
        rows = [point.at or 0 for point in curve.points]
        bounds, gaps = (
            [point.mean("bound") or 0.0 for point in curve.points],
            [risk_gap(point) for point in curve.points],
        )
        power, power_of_gap = log_slope(rows, bounds, ROWS_NEEDED), log_slope(rows, gaps, ROWS_NEEDED)
        if power is not None and power_of_gap is not None:
            norms = [norm for point in curve.points if (norm := point.mean("bound_norm"))]
            held = len(norms) == len(rows) and max(norms) < SAME_NORM * min(norms)
            parts += [power_of_gap <= ROOT + TOLERANCE] + ([] if held else [abs(power - ROOT) <= TOLERANCE])
            arithmetic = (
                f" (with B = {number(norms[0])} throughout this is arithmetic, and is not judged)"
                if held
                else ""
            )
            left_out = sum(gap <= 0 for gap in gaps)
            figures.append(
                f"{set_name(curve.set)}, {span(rows)} rows: the bound goes as n^{power:.2f}{arithmetic}, "
                f"the difference as n^{power_of_gap:.2f}"
                + (
                    f" (without {left_out} of {len(gaps)} numbers of rows, at which it is not positive)"
                    if left_out
                    else ""
                )
            )
    needed = f"{ROWS_NEEDED} numbers of rows with a positive difference are needed. {missing(lines, 'bound', (), ('tm-batch',))}"
    return claim(statement, parts, sentences(figures) or needed, "Figure 5")
