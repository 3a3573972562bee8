"""Progress of a command: one line on a terminal, overwritten and removed at the end; nothing elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from .._data.terminal import Terminal

SECONDS_BETWEEN = 0.1


class OneLine:
    """A stream that shows the last line written to it on standard error."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0.0
        self._terminal = Terminal(sys.stderr)

    def write(self, text: str) -> int:
        *complete, self._text = (self._text + text).split("\n")
        if complete and time.monotonic() - self._shown > SECONDS_BETWEEN:
            self._shown = time.monotonic()
            self._terminal.show(re.sub(r"^\[\w+\] ", "", complete[-1]))
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def end(self) -> None:
        self._terminal.end()


@contextmanager
def progress_of_a_fit() -> Iterator[int]:
    """Show the output of a fit as progress, not as a result; yield the ``verbose`` for the fit."""
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield 0
        return
    line = OneLine()
    try:
        with redirect_stdout(line):
            yield 2
    finally:
        line.end()


@contextmanager
def counting_rows(shown: bool) -> Iterator[Counter]:
    """Yield a counter that shows the number of rows done."""
    counter = Counter(OneLine() if shown and sys.stderr.isatty() else None)
    try:
        yield counter
    finally:
        counter.end()


class Counter:
    def __init__(self, line: OneLine | None):
        self._line = line
        self._rows = 0

    def add(self, rows: int) -> None:
        self._rows += rows
        if self._line is not None:
            self._line.write(f"{self._rows:,} rows\n")

    def end(self) -> None:
        if self._line is not None:
            self._line.end()
