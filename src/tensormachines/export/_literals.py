"""Numbers as text that reads back as the same numbers, in lines of limited length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import TextWrapper

import numpy as np

WIDTH = 120


def number(x: float) -> str:
    return repr(float(x))


def lines(items: Iterable[str], indent: str) -> str:
    """Return items without spaces, separated by commas, on one or more lines."""
    wrapper = TextWrapper(WIDTH, indent, indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(", ".join(items))


def nested(array: np.ndarray, brackets: str, indent: str = "    ") -> str:
    """Return an array of any number of axes between ``brackets``, "[]" or "{}"."""
    opening, closing = brackets[0], brackets[1]
    if array.ndim == 1:
        inner = lines(map(number, array.tolist()), indent + "    ")
    else:
        inner = ",\n".join(indent + "    " + nested(part, brackets, indent + "    ") for part in array)
    return f"{opening}\n{inner}\n{indent}{closing}"


def column_of(items: Sequence[str], indent: str = "    ") -> str:
    """Return one item per line, each with a comma."""
    return "".join(f"{indent}{item},\n" for item in items)
