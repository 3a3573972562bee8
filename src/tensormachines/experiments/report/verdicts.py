"""The form of a verdict on a claim of the paper, and what several of them need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from ..records import Line, plain_reason
from .labels import STATUS_WORDS, kin, listing, method_name, set_name

CONFIRMED, REFUTED, MIXED, NOT_TESTABLE = "confirmed", "refuted", "mixed", "not testable here"


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, the numbers that decide it, and the table or figure that
    shows them.
    """

    statement: str
    verdict: str
    figures: str
    shown_in: str


def claim(
    statement: str, parts: Sequence[bool], figures: str, shown_in: str, untested: Sequence[str] = ()
) -> Claim:
    """Confirmed if all its parts hold, refuted if none does; without parts it could not be tested, and
    ``figures`` says what is missing.

    What of it is ``untested``, though other parts are tested, keeps it from being confirmed.
    """
    if not parts:
        return Claim(statement, NOT_TESTABLE, figures, shown_in)
    verdict = (MIXED if untested else CONFIRMED) if all(parts) else MIXED if any(parts) else REFUTED
    return Claim(
        statement, verdict, f"{figures} Not tested: {listing(untested)}." if untested else figures, shown_in
    )


def untested_sets(papers: Sequence[str], tested: Sequence[str]) -> list[str]:
    """The paper's sets that are not among the tested ones, nor any of their relatives."""
    return [_either(kin(paper)) for paper in papers if not any(name in tested for name in kin(paper))]


def _either(sets: Sequence[str]) -> str:
    return " or ".join(set_name(name) for name in sets)


def missing(lines: Iterable[Line], experiment: str, papers: Sequence[str], methods: Sequence[str]) -> str:
    """Which fits would be needed, and why they are not there, where the lines know.

    Without ``papers``, on any set.
    """
    sets = kin(*papers)
    needed = f'finished fits of {listing([method_name(method) for method in methods])} in the experiment "{experiment}"'
    troubles: dict[tuple[str, str], list[str]] = {}  # by what happened and why, the sets
    for line in lines:
        absent = line["experiment"] == "load" and line["set"] in sets
        wanted = (
            line["experiment"] == experiment
            and line.get("method") in methods
            and (not sets or line["set"] in sets)
        )
        failed = wanted and line["status"] != "skipped"  # a path that ended for its time has its fits
        if line["status"] != "ok" and (absent or failed):
            what = (
                "not at hand:"
                if absent
                else f"{method_name(line['method'])} {STATUS_WORDS.get(line['status'], line['status'])} on"
            )
            troubles.setdefault((what, "Table 1 says why" if absent else plain_reason(line)), []).append(
                set_name(line["set"])
            )
    told = [
        f"{what} {listing(list(dict.fromkeys(names)))}{f' ({why})' if why else ''}"
        for (what, why), names in troubles.items()
    ]
    return (
        f"Missing: {needed}{' on ' + _either(sets) if sets else ''}{'; ' + '; '.join(told) if told else ''}."
    )


def fall(before: float, after: float) -> float:
    """The share of an error that is gone afterwards; negative where it has grown."""
    return (before - after) / before if before > 0 and isfinite(before) else 0.0


def sentences(found: Sequence[str]) -> str:
    return ". ".join(found) + "." if found else ""
