"""Numbers as text that reads back as the same numbers, in lines that are not too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

import numpy as np

WIDTH = 120


def number(x: float) -> str:
    return repr(float(x))


def lines(items: Iterable[str], indent: str) -> str:
    """Items with commas between them; a line or more. They hold no spaces."""
    text = ", ".join(items)
    return "\n".join(
        wrap(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def nested(array: np.ndarray, brackets: str, indent: str = "    ") -> str:
    """An array of any number of axes between brackets, "[]" or "{}"."""
    opening, closing = brackets[0], brackets[1]
    if array.ndim == 1:
        inner = lines(map(number, array.tolist()), indent + "    ")
    else:
        inner = ",\n".join(indent + "    " + nested(part, brackets, indent + "    ") for part in array)
    return f"{opening}\n{inner}\n{indent}{closing}"


def column_of(items: Sequence[str], indent: str = "    ") -> str:
    """One item a line, each with a comma."""
    return "".join(f"{indent}{item},\n" for item in items)
