"""Parallel runs, each with its own sets."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Collection, Sequence
from typing import Any, cast

from .recorder import FitFailedError
from .run import Run
from .worker import end_with_parent


def run_all(
    run: Run, sets: Sequence[str], methods: Sequence[str], experiments: Collection[str], jobs: int
) -> None:
    """Run everything requested in ``jobs`` processes, which append to one file of lines."""
    work = {wanted: run.guess(wanted, methods, experiments) for wanted in sets}
    groups = deal({wanted: seconds for wanted, seconds in work.items() if seconds > 0}, jobs)
    # Without fork a run and its data cannot be passed to another process.
    if len(groups) < 2 or "fork" not in multiprocessing.get_all_start_methods():
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
        raise ChildProcessError("a part of the run ended early, see above. The same command continues it.")


def deal(work: dict[str, float], jobs: int) -> list[list[str]]:
    """Split the sets into groups of about the same work, the largest sets first."""
    groups: list[list[str]] = [[] for _ in range(jobs)]
    for wanted in sorted(work, key=lambda name: -work[name]):
        min(groups, key=lambda group: sum(work[name] for name in group)).append(wanted)
    return [group for group in groups if group]


def _part(run: Run, sets: Sequence[str], methods: Sequence[str], experiments: Collection[str]) -> None:
    end_with_parent()
    try:
        run.all(sets, methods, experiments, among_others=True)
    except KeyboardInterrupt:  # the parent is interrupted too, and says what to do
        sys.exit(130)
    except (OSError, ValueError, FitFailedError) as error:
        print(f"tensormachines: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
