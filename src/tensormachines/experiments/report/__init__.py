"""The report of `tensormachines reproduce`: a pure function of the lines, which fits and loads nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..._data.atomic_file import complete_or_not
from ..records import Line, latest
from . import comparison_claims as comparison
from . import growth_claims as growth
from .claims import Claim
from .document import Picture, to_html, to_markdown
from .sections import build
from .summary import summary


def judge(lines: list[Line]) -> list[Claim]:
    """Judge the claims of the paper's text, then the aims of this package, which follow from its tables."""
    lines = latest(lines)
    aims = (
        *(comparison.printed_error(lines, name) for name in comparison.TARGETS),
        comparison.printed_time(lines),
    )
    return [
        comparison.parsimony(lines),
        comparison.worst_case(lines),
        comparison.solvers(lines),
        comparison.rival_times(lines),
        comparison.time_and_error(lines),
        growth.starts(lines),
        growth.seconds_with_rows(lines),
        growth.error_with_rows(lines),
        comparison.factorization_machines(lines),
        growth.error_with_rank(lines),
        growth.enough_rank(lines),
        growth.bound_with_rows(lines),
        *(replace(aim, aim=True) for aim in aims),
    ]


def write_report(lines: list[Line], folder: Path) -> list[Path]:
    """Write report.html, report.md with its figures, and the summary for practitioners, in both forms.

    Parameters
    ----------
    lines : list of dict
        One flat record per fit, as in lines.jsonl; the last one with a key counts. Any part of a run will
        do, even an empty one.
    folder : Path
        Created if it does not exist.

    Returns
    -------
    list of Path
        The files written. Each appears complete or not at all; figures of an earlier report are not deleted.
    """
    counted = latest(lines)
    page = build(counted, judge(counted))
    pages = {"report": page, "summary": summary(counted)}
    texts = {f"{name}.html": to_html(each).encode() for name, each in pages.items()}
    texts |= {f"{name}.md": to_markdown(each).encode() for name, each in pages.items()}
    blocks = [block for section in page.sections for block in section.blocks]
    pictures = {block.file: block.svg for block in blocks if isinstance(block, Picture)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (pictures | texts).items():
        with complete_or_not(folder / name) as unfinished:
            unfinished.write_bytes(content)
    return [folder / name for name in pictures | texts]
