"""The form of a verdict on a claim of the paper, and the measures that several of them need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from .summary import Cell, Line

CONFIRMED, REFUTED, MIXED, NOT_TESTABLE = "confirmed", "refuted", "mixed", "not testable here"
TITLES = {
    "krr": "KRR",
    "tm-batch": "TM-Batch",
    "tm-sfo": "TM-SFO",
    "tm-kfac": "TM-kfac",
    "craftmaps": "CRAFTMaps",
    "basis-learner": "Basis Learner",
    "apple": "Apple",
    "fm": "FM",
}
TENSOR_MACHINES = ("tm-batch", "tm-sfo")
RIVALS = ("craftmaps", "basis-learner", "apple")
# The paper's sets, each before its relative, which has a name of its own.
YEAR, CENSUS, SLICE = ("year", "year_msd_subset"), ("census", "census_house_16H"), ("slice", "slice_first_rows")
EBAY, FOREST = ("ebay", "ebay_like"), ("forest",)


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, the numbers that decide it, and the table or figure that shows them."""

    statement: str
    verdict: str
    figures: str
    shown_in: str


def claim(statement: str, parts: Sequence[bool], figures: str, shown_in: str, untested: Sequence[str] = ()) -> Claim:
    """Confirmed if all its parts hold, refuted if none does; without parts it could not be tested, and ``figures`` says what is missing.

    What of it is ``untested``, though other parts are tested, keeps it from being confirmed.
    """
    if not parts:
        return Claim(statement, NOT_TESTABLE, figures, shown_in)
    verdict = (MIXED if untested else CONFIRMED) if all(parts) else MIXED if any(parts) else REFUTED
    return Claim(statement, verdict, f"{figures} Not tested: {listing(untested)}." if untested else figures, shown_in)


def untested_sets(groups: Sequence[tuple[str, ...]], tested: Sequence[str]) -> list[str]:
    """The sets, or their relatives, of which none is among the tested ones."""
    return [" or ".join(group) for group in groups if not any(name in tested for name in group)]


def missing(lines: Iterable[Line], experiment: str, sets: Sequence[str], methods: Sequence[str]) -> str:
    """Which fits would be needed, and why they are not there, where the lines know. Without ``sets``, on any set."""
    needed = f'finished fits of {listing([TITLES[method] for method in methods])} in the experiment "{experiment}"'
    failures = [
        line
        for line in lines
        if line["status"] != "ok"
        and (line["experiment"] == "load" or (line["experiment"] == experiment and line.get("method") in methods))
        and (not sets or line["set"] in sets)
    ]
    reasons = [" ".join(filter(None, (TITLES.get(str(line.get("method"))), line["set"], line["status"]))) for line in failures]
    told = [f"{reason} ({line['reason']})" if line.get("reason") else reason for reason, line in zip(reasons, failures, strict=True)]
    return f"Missing: {needed}{' on ' + ' or '.join(sets) if sets else ''}{': ' + '; '.join(dict.fromkeys(told)) if told else ''}."


def slope(values: Mapping[int, float]) -> float | None:
    """Of log value against log number by least squares: the power of the number that the value grows with. None of fewer than three."""
    found = {n: value for n, value in values.items() if 0 < value < inf}
    if len(found) < 3:
        return None
    return float(np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0])


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The first, the median and the third."""
    first, median, third = np.percentile(values, [25, 50, 75])
    return float(first), float(median), float(third)


def fall(before: float, after: float) -> float:
    """The share of an error that is gone afterwards; negative where it has grown."""
    return (before - after) / before if before > 0 and isfinite(before) else 0.0


def soonest(cells: Iterable[Cell], error: float) -> Cell | None:
    """The fastest fit whose error is at most ``error``."""
    return min((cell for cell in cells if cell.mean_error <= error), key=lambda cell: cell.mean_seconds, default=None)


def number(value: float) -> str:
    """Three digits, as the paper prints: 0.00802, 12.5, 1,050."""
    return f"{float(f'{value:.3g}'):,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def percent(share: float) -> str:
    return f"{number(float(f'{100 * share:.2g}'))} %"


def with_spread(cell: Cell) -> str:
    return number(cell.mean_error) + (f" ± {cell.spread:.1g}" if len(cell.errors) > 1 else "")


def span(values: Sequence[float]) -> str:
    return f"{number(min(values))} to {number(max(values))}" if min(values) < max(values) else number(values[0])


def listing(words: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def sentences(found: Sequence[str]) -> str:
    return ". ".join(found) + "." if found else ""
