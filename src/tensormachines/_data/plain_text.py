"""Names and levels in text that people read, on a terminal or in a notebook."""

from __future__ import annotations

from unicodedata import category

LONGEST = 60  # characters of a name in a table
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}  # control characters, halves of pairs, ends of lines and paragraphs
# Marks that reorder text.
DIRECTIONS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """Return text on one line, with escapes in place of control characters, which a terminal would obey.

    >>> print(plain("rent\\nnote: \\x1b[2J, 3 €"))
    rent\\nnote: \\x1b[2J, 3 €
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode("ascii")
        if category(each) in CONTROLS or each in DIRECTIONS
        else each
        for each in text
    )


def shortened(text: str, most: int = LONGEST) -> str:
    """Return text of at most so many characters, with dots in place of the end of a longer one.

    >>> shortened("a street of a very long name", 12)
    'a street ...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."
