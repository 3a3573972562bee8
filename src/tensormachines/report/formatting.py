"""Numbers and names as text."""

from __future__ import annotations

from .measures import Measure


def title_of(name: str) -> str:
    return {"R2": "R\N{SUPERSCRIPT TWO}"}.get(name, name[:1].upper() + name[1:])


def number(value: float) -> str:
    if value != value:
        return "\N{EN DASH}"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "\N{MINUS SIGN}")


def signed(value: float) -> str:
    """Return a deviation with its sign, to three digits."""
    text = f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def table(kind: str, label: str, header: str, rows: str) -> str:
    """Return a table that can be scrolled by itself."""
    shown = f'<table class="{kind}"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="table" tabindex="0" role="region" aria-label="{label}">{shown}</div>'


def interval_in_words(measure: Measure) -> str:
    low, high = measure.interval
    return f"{number(low)} to {number(high)}"


def percent(share: float) -> str:
    digits = f"{100 * share:.2g}" if abs(share) < 0.1 else f"{100 * share:.0f}"
    return f"{digits} %".replace("-", "\N{MINUS SIGN}")


def probability(share: float) -> str:
    """Return a probability in per cent, with enough digits to tell it from 0 and 1."""
    if 0 < share < 1e-4:
        return "below 0.01 %"
    if 1 - 1e-4 < share < 1:
        return "above 99.99 %"
    return f"{100 * share:.{4 if share > 0.99 else 3}g} %"


def count(items: int, one: str, many: str | None = None) -> str:
    return f"{items:,} {one if items == 1 else many or one + 's'}"
