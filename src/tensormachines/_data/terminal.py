"""A line on a terminal that the next one overwrites."""

from __future__ import annotations

import shutil
from typing import TextIO

ERASE = "\r\x1b[K"


class Terminal:
    """A stream on which a line can be erased."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def show(self, line: str, kept: bool = False) -> None:
        """Replace the line, cut to the width of the terminal; one that is ``kept`` is whole, and stays."""
        line = line if kept else line[: shutil.get_terminal_size().columns - 1]
        print(ERASE + line, end="\n" if kept else "", file=self.stream, flush=True)

    def end(self, line: str = "") -> None:
        """Erase the line."""
        self.show("")
