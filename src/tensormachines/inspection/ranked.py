"""Numbers by name, printed with the largest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from .._data.plain_text import plain

MOST_LINES = 20


class Ranked(Mapping[Any, float]):
    """A read-only dict that prints its largest numbers, largest first, and how many more there are.

    If keys are sets of columns, they are tuples of names, and "a" also finds ("a",)."""

    def __init__(self, entries: Mapping[Any, float], title: str):
        self.entries = dict(entries)
        self.title = title

    def __getitem__(self, key: Any) -> float:
        return self.entries[(key,) if isinstance(key, str) and key not in self.entries else key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def largest(self, k: int | None = None) -> dict[Any, float]:
        """Return the k entries (by default all) of largest absolute value, largest first."""
        return dict(sorted(self.entries.items(), key=lambda entry: -abs(entry[1]))[:k])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the column "value", largest first, indexed by the printed keys."""
        import pandas

        largest = self.largest()
        return pandas.DataFrame({"value": list(largest.values())}, [self.label(key) for key in largest])

    def label(self, key: Any) -> str:
        """Return the printed form of a key."""
        return in_words(key)

    def __repr__(self) -> str:
        shown = self.largest(MOST_LINES)
        labels = [plain(self.label(key)) for key in shown]
        width = max(map(len, labels), default=0)
        lines = [
            f"  {label:<{width}}  {value:>12.5g}" for label, value in zip(labels, shown.values(), strict=True)
        ]
        lines = lines or ["  none"]
        more = [f"  and {len(self) - len(shown)} smaller"] if len(self) > len(shown) else []
        title = f"{self.title}:".split("\n")  # by this package: only keys are the user's
        return "\n".join([*map(plain, title), *lines, *more])


def in_words(key: Any) -> str:
    """Return "constant" for no names, "a" for one, "a, b" for several; a string is returned unchanged."""
    return key if isinstance(key, str) else ", ".join(key) or "constant"


def powers(monomial: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return (a, a, b) as [(a, 2), (b, 1)]."""
    return [(name, len(list(same))) for name, same in groupby(monomial)]
