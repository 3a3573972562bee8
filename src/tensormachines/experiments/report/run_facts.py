"""The facts of a run: what was run, on which sets, how it was tuned, and what did not finish."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...datasets import SETS
from ..printed import PRINTED
from ..records import Line, plain_reason
from .curves import finished, is_number
from .labels import RELATIVES, SET_ORDER, in_order

LIMITED = ("param_rank", "param_degree")  # on purpose: the paper has none beyond 5
STATUSES = ("ok", "timeout", "crashed", "failed", "skipped")


@dataclass(frozen=True)
class RunFacts:
    """Profile, limits, seconds, statuses, computer and period of a run."""

    profiles: tuple[str, ...]
    limits: tuple[float, ...]
    elapsed: float
    statuses: dict[str, int]
    computers: tuple[str, ...]
    versions: tuple[str, ...]
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True)
class UsedSet:
    """A row of Table 1: a set as used, the paper's set that it is or replaces, and why it is missing."""

    name: str
    paper_name: str
    faithful: bool
    task: str
    degree: int | None
    rows: int | None
    test_rows: int | None
    columns: int | None
    reason: str

    @property
    def used(self) -> bool:
        return self.rows is not None

    @property
    def capped(self) -> bool:
        """Whether fewer rows were used than in the paper, whose results are then not comparable."""
        return self.name in PRINTED and self.rows is not None and self.rows < SETS[self.name].rows


@dataclass(frozen=True)
class Tuning:
    """The cross-validation that chose a method's minor parameters on a set."""

    candidates: int
    folds: int | None
    rows: int | None
    error: float
    at_edge: tuple[str, ...] = ()  # parameters whose smallest or largest value was chosen, and the value

    def __str__(self) -> str:
        """Write the number of candidates, and what they were compared on."""
        where = "on one half of the rows" if self.folds == 1 else f"in {self.folds or '?'} folds"
        return f"{self.candidates} {where}"


def elapsed(lines: list[Line]) -> float:
    """Return the seconds of a run; each part of it has added its own to those of the parts before."""
    return max((float(line["elapsed"]) for line in lines if is_number(line.get("elapsed"))), default=0.0)


def _instant(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def run_facts(lines: list[Line]) -> RunFacts:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(sorted({str(line[name]) for line in lines if line.get(name)}))

    moments = sorted(moment for line in lines if (moment := _instant(line.get("when"))))
    limits = {float(line["limit_seconds"]) for line in lines if is_number(line.get("limit_seconds"))}
    fits = [line for line in lines if line.get("experiment") != "load"]
    counts = Counter("ok" if finished(line) else _trouble(line) for line in fits)
    return RunFacts(
        profiles=texts("profile"),
        limits=tuple(sorted(limits)),
        elapsed=elapsed(lines),
        statuses={status: counts[status] for status in in_order(counts, STATUSES)},
        computers=texts("machine"),
        versions=texts("versions"),
        first=moments[0] if moments else None,
        last=moments[-1] if moments else None,
    )


def _trouble(line: Line) -> str:
    """Return the status of a fit without results; one that is "ok" without them has failed."""
    status = str(line.get("status"))
    return "failed" if status == "ok" else status


def unfinished(lines: list[Line]) -> dict[tuple[str, str, str, str, str], int]:
    """Count the fits without results by (experiment, set, method, status, reason)."""
    counts: Counter[tuple[str, str, str, str, str]] = Counter()
    for line in lines:
        if not finished(line) and line.get("experiment") != "load":
            experiment, name, method = (str(line.get(key) or "") for key in ("experiment", "set", "method"))
            reason = str(line.get("reason") or "no results in the line")
            counts[experiment, name, method, _trouble(line), reason] += 1
    return dict(counts)


def used_sets(lines: list[Line]) -> list[UsedSet]:
    """Return the paper's ten sets in its order, each followed by relatives in the lines, then any others."""
    names = {str(line["set"]) for line in lines if line.get("set")}
    return [
        _used_set(name, [line for line in lines if line.get("set") == name])
        for name in in_order(names | set(PRINTED), SET_ORDER)
    ]


def _used_set(name: str, lines: list[Line]) -> UsedSet:
    fits = [line for line in lines if line.get("experiment") != "load" and line.get("rows")]
    # The comparison uses the whole set, finished or not; other experiments and KRR may use fewer rows.
    compared = [line for line in fits if line.get("experiment") == "compare"]
    widest = max(
        [line for line in compared if line.get("method") != "krr"] or compared or fits,
        key=lambda line: line["rows"],
        default={},
    )
    skipped = [plain_reason(line) for line in lines if line.get("experiment") == "load"]
    known = widest or (lines[-1] if lines else {})
    return UsedSet(
        name=name,
        paper_name=RELATIVES.get(name, name),
        faithful=known.get("faithful") is True and name in PRINTED,
        task=str(known.get("task") or ""),
        degree=known.get("degree"),
        rows=widest.get("rows"),
        test_rows=widest.get("test_rows"),
        columns=known.get("columns"),
        reason="" if fits or not skipped else skipped[-1],
    )


def tunings(lines: list[Line]) -> dict[tuple[str, str], Tuning]:
    """Return the cross-validation behind the minor parameters, by set and method."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.get("experiment") == "select" and line.get("centred", True) and finished(line):
            groups.setdefault((str(line.get("set")), str(line.get("method"))), []).append(line)
    best = {pair: min(group, key=lambda line: float(line["error"])) for pair, group in groups.items()}
    return {
        pair: Tuning(
            len(groups[pair]),
            line.get("folds"),
            line.get("rows"),
            float(line["error"]),
            _edges(line, groups[pair]),
        )
        for pair, line in best.items()
    }


def _edges(chosen: Line, candidates: list[Line]) -> tuple[str, ...]:
    """Return the parameters of which the smallest or largest value was chosen, but for LIMITED ones."""
    found = []
    for name, value in chosen.items():
        numbers = sorted({float(line[name]) for line in candidates if is_number(line.get(name))})
        limited = not name.startswith("param_") or name in LIMITED or len(numbers) < 3
        if not limited and value in (numbers[0], numbers[-1]):
            found.append(f"{name.removeprefix('param_')} {value:g}")
    return tuple(found)
