"""Numbers and names as text."""

from __future__ import annotations

from .measures import Measure


def title_of(name: str) -> str:
    return {"R2": "R\N{SUPERSCRIPT TWO}"}.get(name, name[:1].upper() + name[1:])


def number(value: float) -> str:
    if value != value:
        return "\N{EN DASH}"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "\N{MINUS SIGN}")


def interval_in_words(measure: Measure) -> str:
    low, high = measure.interval
    return f"{number(low)} to {number(high)}"


def percent(share: float) -> str:
    digits = f"{100 * share:.2g}" if abs(share) < 0.1 else f"{100 * share:.0f}"
    return f"{digits} %".replace("-", "\N{MINUS SIGN}")


def count(items: int, one: str, many: str | None = None) -> str:
    return f"{items:,} {one if items == 1 else many or one + 's'}"
