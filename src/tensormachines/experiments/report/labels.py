"""How methods, sets, numbers and durations are written, and in which order methods and sets appear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from ...datasets import SETS
from ..methods import METHODS
from ..printed import PRINTED

TENSOR_MACHINES = ("tm-batch", "tm-sfo")  # the paper's
NOT_IN_PAPER = {
    "tm-kfac": "a Tensor Machine fitted by preconditioned L-BFGS from a better start",
    "tm-free": "a form of TM-kfac in which cross-validation also chooses the degree, from 2 to 5, and "
    "whether columns that matter less are penalised more",
}
MACHINES = (*TENSOR_MACHINES, *NOT_IN_PAPER)
RIVALS = ("craftmaps", "basis-learner", "apple")
RELATIVES = {known.name: known.paper_name for known in SETS.values() if known.name != known.paper_name}
# The rows of Indoor in another coding: medians, counts and worst cases over sets must not count them twice.
SAME_ROWS = ("indoor_heard",)
# A relative follows the set that it resembles.
SET_ORDER = tuple(
    name
    for paper in PRINTED
    for name in (paper, *(own for own, other in RELATIVES.items() if other == paper))
)
MAJOR_NAMES = {"n_components": "features", "width": "width", "expansion": "expansion"}


def method_name(method: str) -> str:
    return METHODS[method].title if method in METHODS else method


def status_word(status: str) -> str:
    return "timed out" if status == "timeout" else status


def headings(methods: Iterable[str]) -> list[str]:
    """Return the column headings of a table; `dagger` explains those with a dagger."""
    return [
        f"{method_name(method)} \N{DAGGER}" if method in NOT_IN_PAPER else method_name(method)
        for method in methods
    ]


def dagger(methods: Iterable[str]) -> list[str]:
    """Return the notes on columns with a dagger."""
    return [
        f"\N{DAGGER} {method_name(method)}, not in the paper: {NOT_IN_PAPER[method]}."
        for method in methods
        if method in NOT_IN_PAPER
    ]


def set_name(name: str) -> str:
    """Return the paper's name of a set, or the own name of a relative."""
    return SETS[name].title if name in SETS and name not in RELATIVES else name


def stands_for(name: str) -> str:
    return set_name(RELATIVES[name]) if name in RELATIVES else ""


def kin(*papers: str) -> list[str]:
    """Return the paper's sets, each followed by its relatives."""
    return [name for paper in papers for name in SET_ORDER if RELATIVES.get(name, name) == paper]


def in_order(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """Sort names: known ones in their order, then any others alphabetically."""
    names, order = set(found), list(known)
    return [name for name in order if name in names] + sorted(names - set(order))


def major_name(method: str, name: str | None) -> str:
    """Name a major parameter as the paper does, which counts the passes of a stochastic solver in epochs."""
    if name == "max_iter":
        return "epochs" if method == "tm-sfo" else "iterations"
    return MAJOR_NAMES.get(str(name), str(name or ""))


def number(value: float | None, digits: int = 3) -> str:
    """Write significant digits as the paper does: 0.00802, 3.20, 1,054."""
    if value is None or not isfinite(value):
        return "-"
    if value == 0:
        return "0"
    # The magnitude of the rounded value: 0.0996 to one digit is 0.1.
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])
    if magnitude < -6 or magnitude >= 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def seconds(value: float) -> str:
    return f"{number(value, 2)} s"


def span(values: Sequence[float]) -> str:
    """Write a range: 0.100 to 0.300; whole numbers without digits: 2 to 5."""
    ends = [whole(end) if float(end).is_integer() else number(end) for end in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def share(value: float) -> str:
    """Write a part of a whole: 5.0 %."""
    return f"{number(100 * value, 2)} %"


def percent(value: float) -> str:
    """Write a change with its sign: +12.5 %."""
    text = f"{100 * value:+.1f} %"
    return "0.0 %" if text in ("-0.0 %", "+0.0 %") else text.replace("-", "\N{MINUS SIGN}")


def times(value: float | None) -> str:
    """Write a factor: "35x"."""
    return "-" if value is None else f"{number(value, 2)}\N{MULTIPLICATION SIGN}"


def duration(value: float) -> str:
    """Write a duration: 45 s, 12 min, 1 h 23 min."""
    if value < 90:
        return f"{value:.0f} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listing(words: Sequence[str]) -> str:
    """Join words: a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
