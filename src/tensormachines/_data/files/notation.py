"""Numbers as people write them in tables: 1,234.50, $ 12, 7.5 %.

The notation of a column is decided once, from its first rows, and only if it is unambiguous:

- all numbers have the same currency sign, or all have a per cent sign; 7.5 % is the number 7.5;
- thousands are separated the same way throughout, in groups of three digits. A comma, or with decimal commas
  a point, might begin decimals: some number must have two of them, or decimals as well, or a currency sign;
  or some number must have none, beside ten distinct numbers that have one, because rounded decimals rarely
  have three digits each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

CURRENCIES, PER_CENT = "$€£¥₹₩₽", "%"
SEPARATORS = {",": "commas", ".": "points", "'": "apostrophes", " ": "spaces"}
ENOUGH = 10
# No-break, narrow no-break and thin spaces, and a typographic apostrophe.
AS_TYPED = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"})


@dataclass(frozen=True)
class Notation:
    """The notation of the numbers of a column: the thousands separator, and the sign that all numbers have.

    Each is "" if there is none."""

    separator: str = ""
    sign: str = ""

    def __str__(self) -> str:
        return self.sign + self.separator

    @classmethod
    def parse(cls, text: str) -> Notation:
        """Return the notation whose str is ``text``; raise ValueError if there is none."""
        sign = text[:1] if text[:1] in {*CURRENCIES, PER_CENT} else ""
        separator = text.removeprefix(sign)
        if not text or separator not in {"", *SEPARATORS}:
            raise ValueError(f"unknown notation {text!r}")
        return cls(separator, sign)

    def in_words(self) -> str:
        sign = "a per cent sign" if self.sign == PER_CENT else f"the sign {self.sign}" if self.sign else ""
        groups = f"{SEPARATORS[self.separator]} between thousands" if self.separator else ""
        return " and ".join(filter(None, (sign, groups)))

    def plain(self, text: str, decimal: str) -> str | None:
        """Return a number in the form that `float` reads; None if ``text`` is not a number in this notation.

        A currency sign may be left out, but not a per cent sign: 0.075 might mean the same as 7.5 %."""
        parts = _parts(text, decimal)
        if parts is None or parts.separator not in ("", self.separator):
            return None
        if parts.sign != self.sign and (parts.sign or self.sign == PER_CENT):
            return None
        return parts.number


def decide(texts: Iterable[str], decimal: str) -> Notation | None:
    """Return the notation of the numbers of a column, given without missing cells; None if they have no
    common notation, or if it is uncertain."""
    found = []
    for text in texts:
        parts = _parts(text, decimal)
        if parts is None:
            return None
        found.append(parts)
    signs, separators = {parts.sign for parts in found}, {parts.separator for parts in found} - {""}
    if len(signs) != 1 or len(separators) > 1:
        return None
    notation = Notation(*separators or ("",), *signs)
    if notation.separator and any(not each.separator and each.long for each in found):
        return None  # 1,234 next to 1234
    doubtful = notation.separator in (",", ".") and (notation.sign or PER_CENT) == PER_CENT
    if doubtful and not any(each.certain for each in found):
        different = {each.number for each in found if each.separator}
        if len(different) < ENOUGH or all(each.separator for each in found):
            return None
    return None if notation == Notation() else notation


@dataclass(frozen=True)
class _Parts:
    """A number as written: ``certain`` if its separator cannot begin decimals, ``long`` if it has more than
    three digits before the decimals."""

    number: str
    separator: str
    sign: str
    certain: bool
    long: bool


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    separators = "".join(each for each in SEPARATORS if each != decimal)
    signs = re.escape(CURRENCIES)
    return re.compile(
        rf"(?P<minus>[+-]?) ?(?P<before>[{signs}]?) ?(?P<late>[+-]?)"
        rf"(?:(?P<grouped>[1-9]\d{{0,2}}(?P<separator>[{separators}])\d{{3}}(?:(?P=separator)\d{{3}})*)"
        rf"|(?P<whole>\d+))(?P<decimals>{re.escape(decimal)}\d*)? ?(?P<after>[{signs}{PER_CENT}]?)"
    )


def _parts(text: str, decimal: str) -> _Parts | None:
    found = _pattern(decimal).fullmatch(text.translate(AS_TYPED).strip())
    if found is None or (found["minus"] and found["late"]) or (found["before"] and found["after"]):
        return None
    separator, grouped = found["separator"] or "", found["grouped"] or ""
    whole = grouped.replace(separator, "") if grouped else found["whole"]
    decimals = (found["decimals"] or "").replace(decimal, ".")
    return _Parts(
        found["minus"] + found["late"] + whole + decimals,
        separator,
        found["before"] or found["after"],
        grouped.count(separator) > 1 or bool(grouped and decimals) if separator else False,
        len(whole) > 3,
    )
