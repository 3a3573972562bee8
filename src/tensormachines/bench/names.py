"""How the report writes numbers, durations, methods and sets."""

from __future__ import annotations

from math import isfinite

from .tables import RELATIVES, Spread

METHOD_NAMES = {
    "krr": "KRR",
    "tm-batch": "TM-Batch",
    "tm-sfo": "TM-SFO",
    "tm-kfac": "TM-kfac",
    "craftmaps": "CRAFTMaps",
    "basis-learner": "Basis Learner",
    "apple": "Apple",
    "fm": "FM",
}
SET_NAMES = {
    "indoor": "Indoor",
    "year": "Year",
    "census": "Census",
    "slice": "Slice",
    "buzz": "Buzz",
    "gisette": "Gisette",
    "adult": "Adult",
    "forest": "Forest",
    "ebay": "eBay search",
    "cod_rna": "Cod-rna",
}
STATUS_WORDS = {"timeout": "timed out", "crashed": "crashed", "failed": "failed", "skipped": "skipped", "ok": "ok"}
MAJOR_NAMES = {"n_components": "features", "width": "width", "expansion": "expansion"}


def method_name(method: str) -> str:
    return METHOD_NAMES.get(method, method)


def set_name(name: str) -> str:
    """The paper's name for the paper's sets; a relative keeps its own."""
    return SET_NAMES.get(name, name)


def stands_for(name: str) -> str:
    return set_name(RELATIVES[name]) if name in RELATIVES else ""


def major_name(method: str, name: str | None) -> str:
    """The paper counts a stochastic solver's passes in epochs, though the parameter has one name."""
    if name == "max_iter":
        return "epochs" if method == "tm-sfo" else "iterations"
    return MAJOR_NAMES.get(str(name), str(name or ""))


def number(value: float | None, digits: int = 3) -> str:
    """Significant digits as the paper prints them: 0.00802, 3.20, 1,054."""
    if value is None or not isfinite(value):
        return "-"
    if value == 0:
        return "0"
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded value: 0.0996 to one digit is 0.1
    if magnitude < -6 or magnitude >= 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def with_spread(spread: Spread) -> str:
    """Mean and standard deviation over trials; a single trial has none to show."""
    return number(spread.mean) if spread.count < 2 else f"{number(spread.mean)} ± {number(spread.deviation, 1)}"


def seconds(value: float) -> str:
    return f"{number(value, 2)} s"


def percent(value: float) -> str:
    text = f"{100 * value:+.1f} %"
    return "0.0 %" if text == "-0.0 %" else text.replace("-", "\N{MINUS SIGN}")


def times(value: float | None) -> str:
    """A factor: "35x"."""
    return "-" if value is None else f"{number(value, 2)}\N{MULTIPLICATION SIGN}"


def duration(value: float) -> str:
    """Seconds as a person says them: 45 s, 12 min, 1 h 23 min."""
    if value < 90:
        return f"{value:.0f} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listing(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
