"""Numbers as people read them."""

from __future__ import annotations

import math

LARGEST, SMALLEST = 1e15, 1e-4  # beyond these, powers of ten are easier to read than zeros


def shown(number: float) -> str:
    """Return a number with commas between thousands and at least four significant digits.

    >>> [shown(number) for number in (12384.3, 1500, 3.14159, 0.012345, -2, 1.5e-7, float("nan"))]
    ['12,384', '1,500', '3.142', '0.01235', '-2', '1.5e-07', 'nan']
    """
    size = abs(number)
    if not math.isfinite(number) or size >= LARGEST or 0 < size < SMALLEST:
        return f"{number:.4g}"
    if size >= 1000 or number == 0:
        return f"{number:,.0f}"
    decimals = 3 - math.floor(math.log10(size))
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".")
