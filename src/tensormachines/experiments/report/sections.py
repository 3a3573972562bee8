"""The page of the report: the first screen, and the sections in their order."""

from __future__ import annotations

from collections import Counter

from ..printed import PRINTED
from ..records import Line
from .captions import figure_1, figure_2, figure_3, figure_4, figure_5, figure_6
from .claims import VERDICTS, Claim
from .curves import lowest, over_sets
from .deviations import DEVIATIONS, deviations_of_run
from .document import NO_FITS, Block, Bullets, Card, Page, Section, Verdicts
from .labels import (
    NOT_IN_PAPER,
    TENSOR_MACHINES,
    count,
    duration,
    in_order,
    listing,
    method_name,
    number,
    percent,
    set_name,
    status_word,
    times,
)
from .results import Results, results_of
from .tables import table_1, table_2, table_3, table_4, table_5, table_6

TITLE = "Tensor Machines: the paper's experiments, run again"
READING = (
    "Regression error is |prediction - y| / |y|, classification error the misclassified share. Relative "
    "error is (error - error of KRR) / error of KRR, relative time is seconds / seconds of KRR. Numbers "
    "are means over trials, followed by ± and the standard deviation (n - 1); a bar or band in a figure is "
    "the range over trials. Quartiles over sets are interpolated linearly.",
    "The paper: J. Yang and A. Gittens, Tensor machines for learning target-specific polynomial features, "
    "2015.",
    "This page is a pure function of the lines that the run wrote: nothing is fitted for it.",
)


def build(lines: list[Line], claims: list[Claim]) -> Page:
    """Return the page of the lines, among which each key must occur once (`records.latest`)."""
    results = results_of(lines, claims)
    return Page(TITLE, _lead(results), _cards(results), _facts(results), tuple(_sections(results)))


def _sections(results: Results) -> list[Section]:
    return [
        Section("What holds and what does not", _claims(results)),
        Section("Data sets", (table_1(results),)),
        Section("Error and time of every method", (*table_2(results), *figure_1(results))),
        Section("Time against kernel ridge regression", table_3(results)),
        Section("Rank", figure_2(results)),
        Section("Time against accuracy", figure_3(results)),
        Section("Growth with the number of rows", figure_4(results)),
        Section("The bound and the measured gap", figure_5(results)),
        Section("Random starts", figure_6(results)),
        Section("Size and chosen parameters", table_4(results)),
        Section("Every set relative to KRR", table_5(results)),
        Section("Fits that did not finish", table_6(results)),
        Section("Deviations from the paper", (Bullets((*DEVIATIONS, *deviations_of_run(results))),)),
        Section("How to read this", READING),
    ]


def _lead(results: Results) -> tuple[str, ...]:
    """Summarise the results in a few sentences."""
    if not any(curve.points for curve in results.compared.values()):
        return (f"No fit of the comparison has finished yet ({count(len(results.lines), 'line')} so far).",)
    sentences = [*_against_print(results), *_against_rivals(results)]
    if results.claims:
        verdicts = Counter(claim.verdict for claim in results.claims)
        named = listing([f"{verdicts[verdict]} {verdict}" for verdict in in_order(verdicts, VERDICTS)])
        sentences.append(f"The paper's claims, {len(results.claims)} judged here: {named}.")
    capped = [set_name(data_set.name) for data_set in results.faithful if data_set.capped]
    if capped:
        sentences.append(
            f"On {listing(capped)} fewer rows were used than in the paper, so the results are not comparable."
        )
    return tuple(sentences)


def _against_print(results: Results) -> list[str]:
    """Compare errors and relative times of Tensor Machines on the paper's own sets with the printed ones."""
    names = [data_set.name for data_set in results.faithful]
    reached, factors = [], []
    for method in TENSOR_MACHINES:
        fits = [(name, point) for name in names if (point := results.best(name, method))]
        if fits:
            below = sum(PRINTED[name][method].reached_by(point.error.mean) for name, point in fits)
            reached.append(f"{method_name(method)} on {below} of {len(fits)}")
        factors += [factor for name in names if (factor := results.time_factor(name, method)) is not None]
    sentences = []
    if reached:
        sets = listing([set_name(name) for name in names])
        sentences.append(
            f"On the paper's own sets used here ({sets}) the error is at or below the printed one for "
            f"{listing(reached)}."
        )
    if factors:
        sentences.append(
            "Their time relative to that of kernel ridge regression (KRR) here is "
            f"{_than_printed(factors)} than the printed ratio."
        )
    return sentences


def _than_printed(factors: list[float]) -> str:
    """Write factors as "11x to 35x smaller", or as "2x larger to 35x smaller"."""
    words = [
        f"{times(factor)} smaller" if factor >= 1 else f"{times(1 / factor)} larger"
        for factor in (min(factors), max(factors))
    ]
    if min(factors) >= 1 or max(factors) < 1:
        words[0] = words[0].split()[0] if words[0] != words[1] else ""
    return " to ".join(word for word in words if word)


def _against_rivals(results: Results) -> list[str]:
    winners = [winner for data_set in results.counted if (winner := results.winner(data_set.name))]
    sentences = []
    if winners:
        won = sum(method in (*TENSOR_MACHINES, *NOT_IN_PAPER) for method in winners)
        sets = count(len(winners), "set")
        sentences.append(
            f"A Tensor Machine has the lowest error of all methods except KRR on {won} of {sets}, "
            "including relatives of the paper's."
        )
    summary = over_sets(results.relative)
    most = max((errors.count for errors, _ in summary.values()), default=0)
    worst = []
    for method, (errors, _) in summary.items():
        fewer = f" ({count(errors.count, 'set')} only)" if errors.count < most else ""
        worst.append(f"{method_name(method)} {percent(errors.worst)}{fewer}")
    if worst:
        sentences.append(f"The largest error relative to KRR's over those sets: {listing(worst)}.")
    return sentences


def _cards(results: Results) -> tuple[Card, ...]:
    """Return a card for each of the paper's sets: the better Tensor Machine's error and the printed one."""
    cards = []
    for data_set in results.faithful:
        name = data_set.name
        best = lowest(point for method in TENSOR_MACHINES if (point := results.best(name, method)))
        if best is None:
            continue
        detail = f"The paper prints {number(PRINTED[name][best.method].error)}."
        factor = results.time_factor(name, best.method)
        if factor is not None:
            detail += f" Time relative to KRR {_than_printed([factor])} than printed."
        for method in NOT_IN_PAPER:
            if point := results.best(name, method):
                detail += f" {method_name(method)}, which is not in the paper: {number(point.error.mean)}."
        title = f"{set_name(name)}: error of {method_name(best.method)}"
        cards.append(Card(title, number(best.error.mean), detail))
    return tuple(cards)


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    facts = results.run
    statuses = [f"{fits:,} {status_word(status)}" for status, fits in facts.statuses.items()]
    period = ""
    if facts.first and facts.last:
        same_day = facts.first.date() == facts.last.date()
        period = f"{facts.first:%Y-%m-%d %H:%M} to {facts.last:{'%H:%M' if same_day else '%Y-%m-%d %H:%M'}}"
    found = (
        ("Profile", " + ".join(facts.profiles)),
        ("Fits", listing(statuses) or "none yet"),
        ("Limit of one fit", listing([duration(limit) for limit in facts.limits])),
        ("Time of the whole run", duration(facts.elapsed) if facts.elapsed else ""),
        ("When", period),
        ("Machine", "; ".join(facts.computers)),
        ("Versions", "; ".join(facts.versions)),
    )
    return tuple((name, value) for name, value in found if value)


def _claims(results: Results) -> tuple[Block, ...]:
    if not results.claims:
        return (NO_FITS,)
    return (Verdicts(tuple(results.claims)), results.budget)
