"""The form of a verdict on a claim of the paper, and what several of the verdicts need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from ..records import Line, plain_reason
from .labels import kin, listing, method_name, set_name, status_word

CONFIRMED, MIXED, REFUTED, UNDECIDED, NOT_TESTABLE = VERDICTS = (
    "confirmed",
    "mixed",
    "refuted",
    "too close to call",
    "not testable here",
)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it, the numbers that decide, and the table or figure with them.

    An ``aim`` is judged in the same way, but is one of this package.
    """

    statement: str
    verdict: str
    figures: str
    shown_in: str
    aim: bool = False


def claim(
    statement: str, parts: Sequence[bool | None], figures: str, shown_in: str, untested: Sequence[str] = ()
) -> Claim:
    """Return a claim that is confirmed if all its parts hold, and refuted if none does.

    A part is None if it rests on a difference that may be chance (see noise.py): the claim is then neither
    confirmed nor refuted. Without parts it could not be tested, and ``figures`` says what is missing. A claim
    of which something is ``untested`` is not confirmed.
    """
    if not parts:
        return Claim(statement, NOT_TESTABLE, figures, shown_in)
    verdict = MIXED
    if set(parts) == {None}:
        verdict = UNDECIDED
    elif None not in parts and not any(parts):
        verdict = REFUTED
    elif all(parts) and not untested:
        verdict = CONFIRMED
    note = f" Not tested: {listing(untested)}." if untested else ""
    unclear = sum(part is None for part in parts)
    if unclear:
        note = f" Too close to call: {unclear} of {len(parts)} comparisons.{note}"
    return Claim(statement, verdict, figures + note, shown_in)


def untested_sets(papers: Sequence[str], tested: Sequence[str]) -> list[str]:
    """Return the paper's sets of which neither they nor a relative were tested."""
    return [_either(kin(paper)) for paper in papers if not any(name in tested for name in kin(paper))]


def _either(sets: Sequence[str]) -> str:
    return " or ".join(set_name(name) for name in sets)


def missing(lines: Iterable[Line], experiment: str, papers: Sequence[str], methods: Sequence[str]) -> str:
    """Say which fits are needed, on ``papers`` or else on any set, and why they are missing if known."""
    sets = kin(*papers)
    troubles: dict[tuple[str, str], list[str]] = {}  # what happened and why -> the sets
    for line in lines:
        absent = line["experiment"] == "load" and line["set"] in sets
        failed = (
            line["experiment"] == experiment
            and line.get("method") in methods
            and (not sets or line["set"] in sets)
            and line["status"] != "skipped"  # a curve that ended for its time has its fits
        )
        if line["status"] != "ok" and (absent or failed):
            trouble = ("not available:", "see Table 1")
            if failed:
                what = f"{method_name(line['method'])} {status_word(line['status'])} on"
                trouble = (what, plain_reason(line))
            troubles.setdefault(trouble, []).append(set_name(line["set"]))
    fits = listing([method_name(method) for method in methods])
    needed = f'Missing: finished fits of {fits} in the experiment "{experiment}"'
    told = [
        f"{what} {listing(list(dict.fromkeys(names)))}{f' ({why})' if why else ''}"
        for (what, why), names in troubles.items()
    ]
    return "; ".join([f"{needed}{' on ' + _either(sets) if sets else ''}", *told]) + "."


def fall(before: float, after: float) -> float:
    """Return by which share of itself an error has decreased; negative if it has grown."""
    return (before - after) / before if before > 0 and isfinite(before) else 0.0


def sentences(found: Sequence[str]) -> str:
    return ". ".join(found) + "." if found else ""
