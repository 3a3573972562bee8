"""Work in child processes, and its outcomes as lines of a ledger."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..datasets import DataSet
from .methods import Method, Params
from .profiles import Profile
from .progress import Progress
from .records import Ledger, Line, computer, versions
from .worker import Outcome

Attempt = Callable[[Callable[[], Any], float, Callable[[], None]], Outcome]  # see worker.attempt


class FitFailedError(RuntimeError):
    """A fit failed in a run that stops at the first failure."""


@dataclass(frozen=True)
class Setting:
    """One fit of an experiment, before it is done.

    ``trial`` is also its seed; ``centred`` is False if the target keeps its mean.
    """

    experiment: str
    known: DataSet
    method: Method
    n_rows: int
    params: Params = field(default_factory=dict)
    major: float | None = None
    trial: int = 0
    centred: bool = True

    def facts(self, profile: Profile) -> Line:
        """Return the part of its line that is known before the fit."""
        known, method = self.known, self.method
        rows = f"rows={self.n_rows}"
        search = "search" if self.centred else "uncentred/search"
        place = {"select": search, "scaling": rows, "bound": rows}.get(
            self.experiment, f"{method.major}={self.major}"
        )
        place += f"/rank={self.params['rank']}" if self.experiment == "rank" else ""
        place += "" if self.experiment == "select" else f"/trial={self.trial}"
        return {
            **_facts_of_set(profile, self.experiment, known, f"{method.name}/{place}"),
            "rows": self.n_rows,
            "test_rows": min(known.test_rows, profile.test_rows or known.test_rows),
            "method": method.name,
            "major_name": method.major,
            "major": self.major,
            "trial": self.trial,
            "centred": self.centred,
            **prefixed(self.params),
        }


def prefixed(params: Params) -> Line:
    """Return parameters under the names that they have in a line."""
    return {f"param_{name}": value for name, value in params.items()}


def _facts_of_set(profile: Profile, experiment: str, known: DataSet, *place: str) -> Line:
    return {
        "key": "/".join((profile.name, experiment, known.name, *place)),
        "profile": profile.name,
        "experiment": experiment,
        "set": known.name,
        "faithful": known.faithful,
        "task": known.task,
        "degree": known.degree,
        "rows": known.rows,
        "columns": known.columns,
        "test_rows": known.test_rows,
    }


class Recorder:
    """Does the work of one profile and appends a line for each outcome to ``folder / "lines.jsonl"``."""

    def __init__(self, profile: Profile, folder: Path, attempt: Attempt, *, fail_fast: bool = False):
        self.profile = profile
        self.ledger = Ledger(folder / "lines.jsonl")
        others = sorted({key.partition("/")[0] for key in self.ledger.by_key} - {profile.name})
        if others:  # their fits would stand on the same curves
            raise ValueError(
                f"{self.ledger.path} has lines of the profile {others[0]}: "
                f"give another --output for {profile.name}."
            )
        self.fail_fast = fail_fast
        self.progress = Progress({})
        self._attempt = attempt
        earlier = (line.get("elapsed", 0.0) for line in self.ledger.by_key.values())
        self._elapsed_before = max(earlier, default=0.0)
        self._began = time.monotonic()

    def attempt(self, work: Callable[[], Any]) -> Outcome:
        """Call ``work`` in a child process within the time limit of the profile."""
        return self._attempt(work, self.profile.limit_seconds, self.progress.tick)

    def append(self, facts: Line, outcome: Outcome) -> Line:
        """Record an outcome and return its line."""
        line = self.line(facts, outcome)
        self.ledger.append(line)
        if self.fail_fast and line["status"] in ("failed", "crashed"):
            raise FitFailedError(f"{line['key']}: {line['reason']}")
        return line

    def skip_set(self, known: DataSet, reason: str) -> None:
        """Record why a set is not used."""
        print(f"skipped {reason}", file=self.progress.stream, flush=True)
        self.append(_facts_of_set(self.profile, "load", known), Outcome("skipped", reason))

    def line(self, facts: Line, outcome: Outcome) -> Line:
        """Return the line of an outcome; a result that is not finite is a failure."""
        status, reason, value = outcome.status, outcome.reason, outcome.value or {}
        if any(isinstance(number, float) and not math.isfinite(number) for number in value.values()):
            status, reason, value = "failed", "a result is not finite", {}
        return {
            **facts,
            **value,
            "peak_megabytes": outcome.peak_megabytes,
            "status": status,
            "reason": reason,
            "versions": versions(),
            "machine": computer(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "limit_seconds": self.profile.limit_seconds,
            "elapsed": round(self._elapsed_before + time.monotonic() - self._began, 1),
        }
