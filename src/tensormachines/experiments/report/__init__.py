"""The report of `tensormachines reproduce`: a pure function of the lines. It fits nothing and reads no data
set.
"""

from __future__ import annotations

from pathlib import Path

from ..._data.atomic_file import complete_or_not
from ..records import Line, latest
from .claims import judge
from .document import Picture, to_html, to_markdown
from .sections import build


def write_report(lines: list[Line], folder: Path) -> list[Path]:
    """Write report.html, report.md and the figures that the latter shows.

    Parameters
    ----------
    lines : list of dict
        One flat record a fit, as in lines.jsonl; of several with one key the last counts. Any part of a run
        will do, even none.
    folder : Path
        Made if it is not there.

    Returns
    -------
    list of Path
        The files written. Each appears whole or not at all; figures of an earlier report that have no fits
        any more are left alone.
    """
    counted = latest(lines)
    page = build(counted, judge(counted))
    texts = {"report.html": to_html(page).encode(), "report.md": to_markdown(page).encode()}
    pictures = {
        block.file: block.svg
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Picture)
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [_replace(folder / name, content) for name, content in (pictures | texts).items()]


def _replace(path: Path, content: bytes) -> Path:
    with complete_or_not(path) as unfinished:
        unfinished.write_bytes(content)
    return path
