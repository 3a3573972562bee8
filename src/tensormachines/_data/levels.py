"""The two things that a column of a table can be: numbers, or levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True)
class Levels:
    """A column of names: row i holds ``names[codes[i]]``, or nothing where ``codes[i]`` is -1.

    A name may stand there twice.
    """

    codes: np.ndarray
    names: list[str]
    ordered: bool = False

    def as_numbers(self) -> np.ndarray | None:
        """The numbers that the names spell; None if some name is no number."""
        if not all(map(is_number, self.names)):
            return None
        return np.array([*map(float, self.names), np.nan])[self.codes]  # -1 is the last


RawColumn: TypeAlias = np.ndarray | Levels


def is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return "_" not in name  # which Python allows between digits: 2024_01 is a name
