"""Columns of a file that options name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .._data.files.paths import instead


class Named(Protocol):
    """Anything with named columns and a label for messages."""

    @property
    def label(self) -> str: ...

    @property
    def names(self) -> list[str]: ...


def require_column(file: Named, option: str, name: str) -> str:
    """Return the name of a column that an option requests, or refuse it."""
    if name not in file.names:
        others = instead(name, file.names, "--delimiter")
        raise ValueError(f"{option}: {file.label} has no column {name!r}{others}")
    return name


def require_columns(file: Named, option: str, names: Sequence[str]) -> list[str]:
    """Return the names of columns that an option requests; "a,b" stands for a and b, unless it is a name."""
    found: list[str] = []
    for name in names:
        parts = [part.strip() for part in name.split(",")]
        several = name not in file.names and all(parts) and any(part in file.names for part in parts)
        found += [require_column(file, option, part) for part in (parts if several else [name])]
    return found
