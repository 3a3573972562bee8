"""Threads, clocks and memory: how every script measures."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from statistics import median
from typing import Any

Call = Callable[[], Any]


def one_thread() -> None:
    """Limit every pool of threads to one. Call this before NumPy is imported."""
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def timed(call: Call, clock: Callable[[], float] = time.process_time) -> tuple[Any, float]:
    """Return what the call returns, and its seconds of CPU time."""
    began = clock()
    result = call()
    return result, clock() - began


def others_busy(call: Call) -> tuple[Any, float]:
    """Return what the call returns, and the CPU seconds that other processes took meanwhile; 0 where the
    system does not tell."""
    began, own = _machine_seconds(), time.process_time()
    result = call()
    return result, max(0.0, _machine_seconds() - began - (time.process_time() - own))


def _machine_seconds() -> float:
    """Return the seconds that all processors were busy, or were taken by another machine."""
    path = Path("/proc/stat")
    if not path.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(int, path.read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def interleaved(calls: Mapping[str, Call], rounds: int, threaded: Collection[str] = ()) -> dict[str, float]:
    """Return the median CPU seconds of each call, measured in turn, after one round that does not count.

    Calls named in ``threaded`` compute in threads of their own: theirs is the CPU time of the process. For
    the others that would include what the threads of the rivals still do, so only the calling thread counts.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            clock = time.process_time if name in threaded else time.thread_time
            seconds[name].append(timed(call, clock)[1])
    return {name: median(times[1:]) for name, times in seconds.items()}


def memory(field: str) -> float:
    """Return a field of this process's status in MB; 0 where the system has no such file."""
    status = Path("/proc/self/status")
    found = re.search(rf"{field}:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def rise_of_memory(call: Call) -> float:
    """Return how far the resident memory rises above its level before the call, in MB."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before
