"""Progress of a search: one line that is updated in a terminal or notebook, or lines that stay."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from .._data.terminal import Terminal


class SearchProgress:
    """Show progress lines of a search called ``name``, with the ``seconds`` elapsed.

    With verbose="auto", each line replaces the previous one in a terminal or notebook, and only lines that
    are ``kept`` remain; elsewhere no lines are shown. Otherwise lines are printed if ``verbose`` is 1 or
    more.
    """

    def __init__(self, verbose: int | str, name: str, seconds: Callable[[], float]):
        self.name, self.seconds = name, seconds
        self.place = _where_one_line_is_updated() if verbose == "auto" else Printed() if verbose else None

    def __call__(self, line: str, kept: bool = False) -> None:
        if self.place is not None:
            self.place.show(f"[{self.name}] {line}, {self.seconds():.1f} s so far", kept)

    def end(self) -> None:
        """Remove the line; in a notebook, where this would leave a gap, say that the search has ended."""
        if self.place is not None:
            self.place.end(f"[{self.name}] done in {self.seconds():.1f} s")


class Place(Protocol):
    """A place that shows lines; at the ``end`` it may show one more."""

    def show(self, line: str, kept: bool) -> None: ...

    def end(self, line: str) -> None: ...


class Printed:
    """Standard output, where all lines stay."""

    def show(self, line: str, kept: bool) -> None:
        print(line, flush=True)

    def end(self, line: str) -> None:
        pass


class Notebook:
    """One cell output that is replaced: the stream of a cell keeps everything printed there, and not every
    front end can erase a line."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.output: Any = None

    def show(self, line: str, kept: bool) -> None:
        from IPython.display import display

        data = {"text/plain": "\n".join([*self.kept, line])}
        if kept:
            self.kept.append(line)
        if self.output is None:
            self.output = display(data, raw=True, display_id=True)
        else:
            self.output.update(data, raw=True)

    def end(self, line: str) -> None:
        self.show(line, kept=True)


def _where_one_line_is_updated() -> Place | None:
    """Return a notebook that shows standard output, or else standard error if it is a terminal."""
    if type(sys.stdout).__module__.partition(".")[0] == "ipykernel":
        return Notebook()
    return Terminal(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
