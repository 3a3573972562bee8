"""The figures of the report with their captions and alternative texts."""

from __future__ import annotations

from . import figures
from .curves import Curves, curves, over_sets, own_or_relative, printed_relatives, risk_gap
from .document import NO_FITS, Block, Picture, anchor
from .labels import count, listing, method_name, number, percent, set_name, times, whole
from .results import Results


def _picture(
    label: str, svg: bytes | None, caption: str, alternative: str, results: Results
) -> tuple[Block, ...]:
    if svg is None:
        return (f"{label}. {NO_FITS}",)
    return (Picture(label, f"{caption} {results.budget}", alternative, f"{anchor(label)}.svg", svg),)


def _panels(found: Curves, *papers: str) -> Curves:
    """Return the curves on each of the paper's sets, or else on its relative."""
    return {
        pair: curve
        for name in own_or_relative(found, *papers)
        for pair, curve in found.items()
        if curve.set == name
    }


def _ends(found: Curves, field: str) -> str:
    """Return the alternative text of a figure with curves: the ends of each."""
    texts = []
    for (name, method), curve in found.items():
        if curve.points and curve.points[0].at is not None:
            first, last = curve.points[0], curve.points[-1]
            start = f"{number(first.error.mean)} at {field} {first.at:,g}"
            end = f"{number(last.error.mean)} at {last.at:,g}"
            texts.append(f"{set_name(name)}, {method_name(method)}: {start} to {end}")
    return f"Test error: {'; '.join(texts)}."


def figure_1(results: Results) -> tuple[Block, ...]:
    """Return Figure 1: medians and quartiles over sets."""
    summary = over_sets(results.relative)
    with_krr = {name for name, _ in results.relative}
    sets = [set_name(data_set.name) for data_set in results.counted if data_set.name in with_krr]
    caption = f"Error and time relative to KRR: median and quartiles over sets. Ours over {listing(sets)}."
    medians = [
        f"{method_name(method)} error {percent(e.median)}, time {times(t.median)}"
        for method, (e, t) in summary.items()
    ]
    svg = figures.overview(summary, over_sets(printed_relatives()), len(sets))
    told = f"Our medians over sets, relative to KRR: {'; '.join(medians)}."
    return _picture("Figure 1", svg, caption, told, results)


def figure_2(results: Results) -> tuple[Block, ...]:
    """Return Figure 2: error against rank."""
    found = _panels(curves(results.lines, "rank", "param_rank"), "census", "slice")
    caption = (
        "Test error against the rank, mean and range over trials; KRR is dashed. The error axis does not "
        "start at 0."
    )
    return _picture("Figure 2", figures.rank(found, results.compared), caption, _ends(found, "rank"), results)


def figure_3(results: Results) -> tuple[Block, ...]:
    """Return Figures 3 and 3b: error against time, on the paper's two sets and on the others.

    The others are Figure 3 if the run has neither of the two.
    """
    large = own_or_relative(results.compared, "slice", "forest")
    small = [data_set.name for data_set in results.used if data_set.name not in large]
    legend = figures.major_legend(results.compared)
    caption = (
        "Test error against training time along each method's major parameter, whose first and last values "
        f"are shown: {legend}. KRR is dashed, with a star at its time."
    )
    blocks: tuple[Block, ...] = ()
    for shown in (large, small):
        found = {pair: curve for pair, curve in results.compared.items() if pair[0] in shown}
        svg = figures.tradeoff(found, shown, small=shown is small)
        if svg is not None:
            label, text = (
                ("Figure 3b", "As Figure 3, for the other sets.") if blocks else ("Figure 3", caption)
            )
            blocks += _picture(label, svg, text, _ends(found, "major parameter"), results)
    return blocks or (NO_FITS,)


def figure_4(results: Results) -> tuple[Block, ...]:
    """Return Figure 4: error and time against rows."""
    found = _panels(curves(results.lines, "scaling", "rows"), "ebay")
    caption = (
        "Test error (left axis, solid) and training time (right axis, dashed) against the training rows. "
        "The exponent is the least-squares slope of log seconds against log rows: 1 is linear growth."
    )
    return _picture("Figure 4", figures.scaling(found), caption, _ends(found, "rows"), results)


def figure_5(results: Results) -> tuple[Block, ...]:
    """Return Figure 5: the bound and the measured gap against rows."""
    found = curves(results.lines, "bound", "rows")
    caption = (
        "The generalisation bound in units of its constant c (left) and the measured gap between test and "
        "training risk (right) against the training rows, both axes logarithmic; the dashed guide falls as "
        "1/√n. Gaps that are not positive are left out."
    )
    texts = []
    for (name, method), curve in found.items():
        for point in curve.points[:1] + curve.points[-1:]:
            fit = f"{set_name(name)}, {method_name(method)}, {whole(point.at)} rows"
            texts.append(f"{fit}: {number(point.mean('bound'))} and {number(risk_gap(point))}")
    return _picture("Figure 5", figures.bound(found), caption, f"Bound and gap: {'; '.join(texts)}.", results)


def figure_6(results: Results) -> tuple[Block, ...]:
    """Return Figure 6: the spread over random starts."""
    found = curves(results.lines, "starts")
    texts = []
    for (name, method), curve in found.items():
        if curve.best:
            errors = curve.best.error
            texts.append(
                f"{set_name(name)}, {method_name(method)}: {number(errors.low)} to {number(errors.high)}, "
                f"standard deviation {number(errors.deviation, 2)} over {count(errors.count, 'start')}"
            )
    told = f"Test errors: {'; '.join(texts)}."
    caption = f"One setting from several random starts. {told}"
    return _picture("Figure 6", figures.starts(found), caption, told, results)
