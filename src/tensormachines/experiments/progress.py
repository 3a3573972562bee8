"""The progress of a run, and an estimate of the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from .._data.terminal import Terminal
from .report.labels import count, duration


class Progress:
    """Parts of a run with the seconds each was guessed to take; past guesses correct those of the rest.

    On a terminal of its own (``alone``) one line is kept up to date; otherwise each fit prints a line.
    """

    def __init__(
        self,
        parts: dict[str, float],
        stream: TextIO | None = None,
        alone: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.parts = dict(parts)
        self.stream = sys.stderr if stream is None else stream
        self._terminal = Terminal(self.stream)
        self.one_line = alone and self.stream.isatty()
        self._clock = clock
        self._began = clock()
        self._done = self._n_fits = 0
        self._spent = self._guessed = 0.0
        self._what = ""
        self._n_parts = len(parts)

    def start(self, part: str) -> None:
        self._part, self._part_began = part, self._clock()

    def finish(self) -> None:
        self._done += 1
        guess, spent = self.parts.pop(self._part, 0.0), self._clock() - self._part_began
        if spent > 0.05:  # else the part was done before, which says nothing about the guesses
            self._spent += spent
            self._guessed += guess

    def fitting(self, what: str) -> None:
        self._what = what
        self.tick()

    def fitted(self, result: str) -> None:
        self._n_fits += 1
        if not self.one_line:
            print(f"{self._line()} {result}", file=self.stream, flush=True)

    def downloading(self, name: str) -> Callable[[int, int | None], None]:
        """Return a function that shows the bytes of a set downloaded so far."""

        def show(done: int, total: int | None) -> None:
            self.fitting(f"{name}: downloading, {done >> 20} MB" + (f" of {total >> 20}" if total else ""))

        return show

    def tick(self) -> None:
        if self.one_line:
            self._terminal.show(self._line())

    def end(self) -> None:
        if self.one_line:
            self._terminal.end()
        print(f"{count(self._n_fits, 'fit')} in {duration(self.seconds())}.", file=self.stream, flush=True)

    def seconds(self) -> float:
        return self._clock() - self._began

    def seconds_left(self) -> float:
        guessed = sum(self.parts.values())
        return guessed * (self._spent / self._guessed if self._guessed > 0 else 1.0)

    def _line(self) -> str:
        passed, left = duration(self.seconds()), duration(self.seconds_left())
        return f"[{self._done}/{self._n_parts}] {self._what} | {passed} so far, about {left} left |"
