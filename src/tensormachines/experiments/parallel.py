"""Runs side by side, each with sets of its own."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sequence
from typing import Any, cast

from .run import FitFailedError, Run
from .worker import end_with_parent


def run_all(
    run: Run, sets: Sequence[str], methods: Sequence[str], experiments: Sequence[str], jobs: int
) -> None:
    """All that is asked for, in as many processes; they append to one file of lines."""
    work = {wanted: run.guess(wanted, methods, experiments) for wanted in sets}
    groups = deal(
        {wanted: seconds for wanted, seconds in work.items() if seconds > 0}, jobs
    )  # there is none for a set that is not there
    if (
        len(groups) < 2 or "fork" not in multiprocessing.get_all_start_methods()
    ):  # a run and its data cannot be sent to another process
        run.all(sets, methods, experiments)
        return
    context = cast(Any, multiprocessing.get_context("fork"))
    processes = [context.Process(target=_part, args=(run, group, methods, experiments)) for group in groups]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.terminate()
    if any(process.exitcode for process in processes):
        raise ChildProcessError(
            "a part of the run ended early, see above. The same command goes on from there."
        )


def deal(work: dict[str, float], jobs: int) -> list[list[str]]:
    """Sets in groups of about the same work, the largest first."""
    groups: list[list[str]] = [[] for _ in range(jobs)]
    for wanted in sorted(work, key=lambda name: -work[name]):
        min(groups, key=lambda group: sum(work[name] for name in group)).append(wanted)
    return [group for group in groups if group]


def _part(run: Run, sets: Sequence[str], methods: Sequence[str], experiments: Sequence[str]) -> None:
    end_with_parent()
    try:
        run.all(sets, methods, experiments, among_others=True)
    except KeyboardInterrupt:  # the parent was told too, and says what to do
        sys.exit(130)
    except (OSError, ValueError, FitFailedError) as error:
        print(f"tensormachines: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
