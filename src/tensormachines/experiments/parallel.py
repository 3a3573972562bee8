"""Sets run at the same time, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Collection, Sequence
from multiprocessing.connection import wait
from typing import Any, cast

from .recorder import FitFailedError
from .run import Run
from .worker import end_with_parent


def run_all(
    run: Run, sets: Sequence[str], methods: Sequence[str], experiments: Collection[str], jobs: int
) -> None:
    """Run everything requested, ``jobs`` sets at a time, whose processes append to one file of lines.

    Sets that take longest are run first, so that the last processes end at about the same time.
    """
    work = {wanted: run.guess(wanted, methods, experiments) for wanted in sets}
    waiting = sorted((wanted for wanted in sets if work[wanted] > 0), key=lambda wanted: work[wanted])
    # Without fork a run and its data cannot be passed to another process.
    if min(jobs, len(waiting)) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        run.all(sets, methods, experiments)
        return
    context = cast(Any, multiprocessing.get_context("fork"))
    running: list[Any] = []
    failed = False
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process = context.Process(target=_run_set, args=(run, waiting.pop(), methods, experiments))
                process.start()
                running.append(process)
            wait([process.sentinel for process in running])
            for process in [process for process in running if not process.is_alive()]:
                running.remove(process)
                failed = failed or process.exitcode != 0
    finally:
        for process in running:
            process.terminate()
    if failed:
        raise ChildProcessError("a part of the run ended early, see above. The same command continues it.")


def _run_set(run: Run, wanted: str, methods: Sequence[str], experiments: Collection[str]) -> None:
    end_with_parent()
    try:
        run.all([wanted], methods, experiments, among_others=True)
    except KeyboardInterrupt:  # the parent is interrupted too, and says what to do
        sys.exit(130)
    except (OSError, ValueError, FitFailedError) as error:
        print(f"tensormachines: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
