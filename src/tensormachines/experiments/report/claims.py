"""The claims of the paper, judged from the lines of a run: a pure function of them."""

from __future__ import annotations

from ..records import Line, latest
from . import comparison_claims as comparison
from . import growth_claims as growth
from .verdicts import Claim

__all__ = ["Claim", "judge"]


def judge(lines: list[Line]) -> list[Claim]:
    """The verdict on every claim: first those of the paper's text, then those about the figures that it
    prints.
    """
    lines = latest(lines)
    return [
        comparison.parsimony(lines),
        comparison.worst_case(lines),
        comparison.solvers(lines),
        comparison.time_and_error(lines),
        growth.starts(lines),
        growth.seconds_with_rows(lines),
        growth.error_with_rows(lines),
        comparison.factorization_machines(lines),
        growth.error_with_rank(lines),
        growth.enough_rank(lines),
        growth.bound_with_rows(lines),
        *(comparison.printed_error(lines, name) for name in comparison.TARGETS),
        comparison.printed_time(lines),
    ]
