"""Work in a child process with a time limit: whatever happens there is an outcome, and the run continues."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, cast

from threadpoolctl import threadpool_limits

TICK = 0.5  # seconds between two looks at the clock
PR_SET_PDEATHSIG = 1  # Linux, see prctl(2)


@dataclass(frozen=True)
class Outcome:
    """The result of some work.

    ``status`` is "ok", "failed" (an error, given in ``reason``), "timeout" or "crashed" (the process died).
    """

    status: str
    reason: str = ""
    value: Any = None
    peak_megabytes: float | None = None


def attempt(work: Callable[[], Any], seconds: float, tick: Callable[[], None] = lambda: None) -> Outcome:
    """Call ``work`` in a child process; with fork, its data are shared, not copied."""
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = cast(Any, context).Process(target=_child, args=(work, sender), daemon=True)
    process.start()
    sender.close()  # only the child's end is left open: when the child dies, the pipe ends
    try:
        return _wait(process, receiver, time.monotonic() + seconds, seconds, tick)
    finally:
        process.kill()
        process.join()


def _wait(
    process: Any, receiver: Connection, end: float, seconds: float, tick: Callable[[], None]
) -> Outcome:
    while not receiver.poll(max(0.0, min(TICK, end - time.monotonic()))):
        if time.monotonic() >= end:
            return Outcome("timeout", f"not done after {seconds:.0f} s")
        tick()
    try:
        return cast(Outcome, receiver.recv())
    except (EOFError, OSError):  # OSError if it died while sending
        process.join()
        code = process.exitcode
        reason = f"killed by signal {-code}" if code < 0 else f"the process ended with code {code}"
        return Outcome("crashed", reason)


def _child(work: Callable[[], Any], sender: Connection) -> None:
    """Do the work and send its outcome.

    This has the only broad `except` of the harness: a method that fails is a line of the table, not its end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent ends this process
    end_with_parent()
    gc.freeze()  # a collection would touch, and so copy, the memory shared with the parent
    limited = cast(Callable[..., Any], threadpool_limits)
    try:
        with limited(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = Outcome("ok", value=work(), peak_megabytes=peak_megabytes())
    except Exception as error:
        outcome = Outcome("failed", f"{type(error).__name__}: {error}"[:300])
    sender.send(outcome)
    sender.close()


def end_with_parent() -> None:
    """End this process with its parent, so that a killed run leaves no fit that the next run repeats."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def peak_megabytes() -> float | None:
    """Return the peak memory of this process so far, data included."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
