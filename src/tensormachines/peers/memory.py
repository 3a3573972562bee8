"""How much memory is left, as far as Linux tells."""

from __future__ import annotations

import re
from pathlib import Path

# limit, use, and the name of what of that use is a cache that can be given up: of version 2, of version 1
CGROUPS = (
    (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory.current",
        "/sys/fs/cgroup/memory.stat",
        "inactive_file",
    ),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_inactive_file",
    ),
)


def available_memory() -> int | None:
    """Bytes that can be had without swapping: what the machine has left, or less where a container may not
    take that. None if unknown.
    """
    found = [
        bytes_left
        for bytes_left in (_machine(), *(_container(*files) for files in CGROUPS))
        if bytes_left is not None
    ]
    return min(found, default=None)


def _machine() -> int | None:
    kilobytes = _number("/proc/meminfo", r"^MemAvailable:\s+(\d+) kB")
    return None if kilobytes is None else 1024 * kilobytes


def _container(limit_file: str, use_file: str, statistics_file: str, cache: str) -> int | None:
    limit, use = _number(limit_file, r"^(\d+)"), _number(use_file, r"^(\d+)")
    if limit is None or use is None:
        return None
    return max(limit - use + (_number(statistics_file, rf"^{cache} (\d+)") or 0), 0)


def _number(file: str, pattern: str) -> int | None:
    try:
        found = re.search(pattern, Path(file).read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
