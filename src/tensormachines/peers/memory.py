"""The available memory, as reported by Linux."""

from __future__ import annotations

import re
from pathlib import Path

# limit, use, statistics, and the statistic of releasable cache, for cgroups 2 and cgroups 1
CGROUPS = (
    (
        "sys/fs/cgroup/memory.max",
        "sys/fs/cgroup/memory.current",
        "sys/fs/cgroup/memory.stat",
        "inactive_file",
    ),
    (
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "sys/fs/cgroup/memory/memory.usage_in_bytes",
        "sys/fs/cgroup/memory/memory.stat",
        "total_inactive_file",
    ),
)


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes available to this process without swapping, on the machine and in its container.

    Return None if unknown. ``root`` is the folder that contains /proc and /sys.
    """
    found = [_machine(root), *(_container(root, *group) for group in CGROUPS)]
    return min((available for available in found if available is not None), default=None)


def _machine(root: Path) -> int | None:
    kilobytes = _number(root / "proc/meminfo", r"^MemAvailable:\s+(\d+) kB")
    return None if kilobytes is None else 1024 * kilobytes


def _container(root: Path, limit_file: str, use_file: str, statistics_file: str, cache: str) -> int | None:
    limit, use = _number(root / limit_file, r"^(\d+)"), _number(root / use_file, r"^(\d+)")
    if limit is None or use is None:
        return None
    return max(limit - use + (_number(root / statistics_file, rf"^{cache} (\d+)") or 0), 0)


def _number(file: Path, pattern: str) -> int | None:
    try:
        found = re.search(pattern, file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
