"""The page of the report: the first screen, and the sections in their order."""

from __future__ import annotations

from collections import Counter

from ..printed import PRINTED
from ..records import Line
from .captions import figure_1, figure_2, figure_3, figure_4, figure_5, figure_6
from .claims import VERDICTS, Claim
from .comparison_claims import SOONER
from .curves import over_sets
from .deviations import DEVIATIONS, deviations_of_run
from .document import NO_FITS, Block, Bullets, Card, Page, Section, Verdicts
from .labels import (
    MACHINES,
    NOT_IN_PAPER,
    RIVALS,
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
from .noise import CLEAR
from .results import Results, results_of
from .tables import table_1, table_2, table_3, table_4, table_5, table_6

TITLE = "Tensor Machines: the paper's experiments, run again"
AIMS = "The following are no claims of the paper, but aims of this package, judged in the same way."
READING = (
    "Regression error is |prediction - y| / |y| with Euclidean norms over all test rows, classification "
    "error the misclassified share. Relative error is (error - error of KRR) / error of KRR, relative time "
    "is seconds / seconds of KRR. Numbers are means over trials, followed by ± and the standard deviation "
    "(n - 1); a bar or band in a figure is the range over trials. Quartiles over sets are interpolated "
    "linearly.",
    "The paper: J. Yang and A. Gittens, Tensor machines for learning target-specific polynomial features, "
    "2015.",
    "A claim has parts. It is confirmed if all of them hold and nothing is untested, refuted if none holds, "
    f"and too close to call if no part is decided: errors have to differ by {CLEAR:g} standard errors, times "
    f"by a factor of {SOONER:g}. Otherwise it is mixed. The standard errors come from trials and test rows; "
    "that the best point of a curve is chosen by test error is not part of them.",
    'All figures come from the lines of the run, except for those in "Deviations from the paper" that were '
    "measured before it.",
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
        claims, aims = _claims_and_aims(results)
        told = [
            f"{title}, {len(found)} judged here: {_verdicts(found)}"
            for title, found in (("The paper's claims", claims), ("Aims of this package", aims))
            if found
        ]
        sentences.append(f"{'. '.join(told)}.")
    capped = [set_name(data_set.name) for data_set in results.faithful if data_set.capped]
    if capped:
        sentences.append(
            f"On {listing(capped)} fewer rows were used than in the paper, so the results are not comparable."
        )
    return tuple(sentences)


def _claims_and_aims(results: Results) -> tuple[list[Claim], list[Claim]]:
    claims = [claim for claim in results.claims if not claim.aim]
    return claims, [claim for claim in results.claims if claim.aim]


def _verdicts(claims: list[Claim]) -> str:
    verdicts = Counter(claim.verdict for claim in claims)
    return listing([f"{verdicts[verdict]} {verdict}" for verdict in in_order(verdicts, VERDICTS)])


def _against_print(results: Results) -> list[str]:
    """Compare errors and relative times of Tensor Machines on the paper's own sets with the printed ones."""
    names = [data_set.name for data_set in results.faithful]
    ours, theirs = (_reached(results, names, methods) for methods in (TENSOR_MACHINES, RIVALS))
    factors = [
        factor
        for method in TENSOR_MACHINES
        for name in names
        if (factor := results.time_factor(name, method)) is not None
    ]
    sentences = []
    if ours:
        sets = listing([set_name(name) for name in names])
        rivals = f" (rivals: {theirs})" if theirs else ""
        sentences.append(
            f"On the paper's own sets used here ({sets}) the error is at or below the printed one for "
            f"{ours}{rivals}."
        )
    centred = [set_name(data_set.name) for data_set in results.faithful if data_set.task == "regression"]
    if ours and centred:
        sentences.append(
            f"On {listing(centred)} the target is centred here and was not in the paper: lower errors there "
            "say little about the methods."
        )
    if factors:
        sentences.append(
            "The time of TM-Batch and TM-SFO relative to that of kernel ridge regression (KRR) is "
            f"{_than_printed(factors)} than the printed ratio."
        )
    return sentences


def _reached(results: Results, names: list[str], methods: tuple[str, ...]) -> str:
    """Say on how many sets each method reaches its printed error."""
    found = []
    for method in methods:
        fits = [(name, point) for name in names if (point := results.best(name, method))]
        if fits:
            below = sum(PRINTED[name][method].reached_by(point.error.mean) for name, point in fits)
            found.append(f"{method_name(method)} on {below} of {len(fits)}")
    return listing(found)


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
    names = results.contested
    sentences = []
    if names:
        won, own = (
            [results.won(name, machines) for name in names].count(True)
            for machines in (MACHINES, TENSOR_MACHINES)
        )
        sentences.append(
            f"A Tensor Machine has a clearly lower error than every rival except KRR on {won} of "
            f"{count(len(names), 'set')}, including relatives of the paper's; TM-Batch or TM-SFO has it on "
            f"{own}."
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
        best = results.best_of(name, TENSOR_MACHINES)
        if best is None:
            continue
        printed = [_lowest_printed(name, methods) for methods in (TENSOR_MACHINES, RIVALS)]
        detail = f"The paper prints {listing(printed)}."
        factor = results.time_factor(name, best.method)
        if factor is not None:
            detail += f" Time relative to KRR {_than_printed([factor])} than printed."
        for method in NOT_IN_PAPER:
            if point := results.best(name, method):
                detail += f" {method_name(method)}, which is not in the paper: {number(point.error.mean)}."
        title = f"{set_name(name)}: error of {method_name(best.method)}"
        cards.append(Card(title, number(best.error.mean), detail))
    return tuple(cards)


def _lowest_printed(name: str, methods: tuple[str, ...]) -> str:
    best = min(methods, key=lambda method: PRINTED[name][method].error)
    return f"{number(PRINTED[name][best].error)} ({method_name(best)})"


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    facts = results.run
    statuses = [f"{fits:,} {status_word(status)}" for status, fits in facts.statuses.items()]
    period = ""
    if facts.first and facts.last:
        same_day = facts.first.date() == facts.last.date()
        period = f"{facts.first:%Y-%m-%d %H:%M} to {facts.last:{'%H:%M' if same_day else '%Y-%m-%d %H:%M'}}"
    found = (
        ("Profile", " + ".join(facts.profiles)),
        ("Fits and candidates", listing(statuses) or "none yet"),
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
    claims, aims = _claims_and_aims(results)
    told = (AIMS, Verdicts(tuple(aims))) if aims else ()
    return (Verdicts(tuple(claims)), *told, results.budget)
