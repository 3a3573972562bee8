"""Progress of a search: one line that is updated where somebody is looking, or lines that stay."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TextIO

ERASE = "\r\x1b[K"


class SearchProgress:
    """Shows lines of a search called ``name``, with the ``seconds`` that it has taken.

    With verbose="auto" they replace each other on a terminal and in a notebook, and only those that are
    ``kept`` remain; elsewhere there are none. Otherwise they are printed if ``verbose`` is 1 or more.
    """

    def __init__(self, verbose: int | str, name: str, seconds: Callable[[], float]):
        self.verbose, self.name, self.seconds = verbose, name, seconds
        self.stream = _where_one_line_is_updated() if verbose == "auto" else None

    def __call__(self, line: str, kept: bool = False) -> None:
        text = f"[{self.name}] {line}, {self.seconds():.1f} s so far"
        if self.stream is not None:
            text = text if kept else text[: shutil.get_terminal_size().columns - 1]
            print(ERASE + text, end="\n" if kept else "", file=self.stream, flush=True)
        elif self.verbose != "auto" and self.verbose:
            print(text, flush=True)

    def end(self) -> None:
        """Remove the line."""
        if self.stream is not None:
            print(ERASE, end="", file=self.stream, flush=True)


def _where_one_line_is_updated() -> TextIO | None:
    """Return standard error if it is a terminal, standard output if a notebook shows it; otherwise None."""
    if type(sys.stdout).__module__.partition(".")[0] == "ipykernel":
        return sys.stdout
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
