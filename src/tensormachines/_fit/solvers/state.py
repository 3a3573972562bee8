"""Allowed entries of a kept state. They are checked before use, because compiled code trusts its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .protocol import State


class StateError(ValueError):
    """An entry that is invalid in a state of this fit: its name, and what is wrong with it."""

    def __init__(self, name: str, wrong: str):
        super().__init__(f"{name} {wrong}")
        self.name = name
        self.wrong = wrong


@dataclass(frozen=True)
class Array:
    """An array of this shape (None for any length) with finite numbers from ``low`` to ``high``."""

    shape: tuple[int | None, ...]
    dtype: Any = np.float64
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True

    def wrong(self, value: Any) -> str | None:
        if not isinstance(value, np.ndarray):
            return "is not an array"
        fits = len(value.shape) == len(self.shape) and all(
            wanted in (None, length) for length, wanted in zip(value.shape, self.shape, strict=True)
        )
        if not fits or value.dtype != self.dtype:
            wanted = " x ".join("n" if length is None else str(length) for length in self.shape)
            found = " x ".join(map(str, value.shape))
            return f"is {found} of {value.dtype}, not {wanted} of {np.dtype(self.dtype)}"
        if self.finite and not np.isfinite(value).all():
            return "has numbers that are not finite"
        if value.size and not self.low <= value.min() <= value.max() <= self.high and self.finite:
            return f"has numbers outside of {self.low} to {self.high}"
        return None


def length(value: Any) -> int:
    """Return the length of an array on which other shapes depend; 0 if it is not an array."""
    return len(value) if isinstance(value, np.ndarray) and value.ndim else 0


def like(array: np.ndarray) -> Array:
    return Array(array.shape, array.dtype)


@dataclass(frozen=True)
class Number:
    """A bool, an int or a float from ``low`` to ``high``; NaN only if ``nan`` is allowed."""

    kind: type
    low: float = -math.inf
    high: float = math.inf
    nan: bool = False

    def wrong(self, value: Any) -> str | None:
        value = value.item() if isinstance(value, np.generic) else value
        kinds = (int, float) if self.kind is float else (self.kind,)
        if type(value) not in kinds:
            return f"is {value!r:.40}, not a number of type {self.kind.__name__}"
        if not self.low <= value <= self.high and not (self.nan and math.isnan(value)):
            return f"is {value}, not from {self.low} to {self.high}"
        return None


@dataclass(frozen=True)
class Numbers:
    """A list of a given number of numbers."""

    number: Number
    most: int
    fewest: int = 0

    def wrong(self, value: Any) -> str | None:
        if not isinstance(value, list) or not self.fewest <= len(value) <= self.most:
            return f"is not a list of {self.fewest} to {self.most} numbers"
        return next((wrong for each in value if (wrong := self.number.wrong(each))), None)


@dataclass(frozen=True)
class Text:
    """A text that ``parse`` accepts."""

    parse: Callable[[str], Any]

    def wrong(self, value: Any) -> str | None:
        try:
            self.parse(value)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            return f"cannot be read: {error}"
        return None


Entry: TypeAlias = Array | Number | Numbers | Text
COUNT = Number(int, low=0)
VALUE = Number(float)
FLAG = Number(bool)


def same(value: bool | int) -> Number:
    """Return an entry that allows only this value."""
    return Number(type(value), value, value)


def check(state: State, entries: Mapping[str, Entry]) -> None:
    """Refuse a state whose entries differ from these in name, type, shape or range."""
    for name in sorted({*state, *entries}):
        if name not in entries:
            raise StateError(name, "is unknown")
        if name not in state:
            raise StateError(name, "is missing")
        if wrong := entries[name].wrong(state[name]):
            raise StateError(name, wrong)
