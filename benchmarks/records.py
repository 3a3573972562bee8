"""Facts about the machine, lines of results, and Markdown tables: how every script reports."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tensormachines

PACKAGES = ("numpy", "scipy", "scikit-learn")
Line = dict[str, Any]


def machine() -> str:
    cpu_info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.*)", cpu_info.read_text()) if cpu_info.exists() else None
    name = found[1] if found else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def versions(others: Iterable[str] = ()) -> str:
    """Return the versions of Python, tensormachines, its dependencies and ``others``; "-": not installed."""
    found = [f"Python {platform.python_version()}", f"tensormachines {tensormachines.__version__}"]
    for package in (*PACKAGES, *others):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} -")
    return ", ".join(found)


def facts(others: Iterable[str] = ()) -> Line:
    """Return what every recorded line says about its circumstances."""
    return {"versions": versions(others), "machine": machine(), "when": time.strftime("%Y-%m-%d %H:%M")}


def print_facts(seeds: Sequence[int], others: Iterable[str] = ()) -> None:
    """Print the facts as a sentence below a table."""
    known = facts(others)
    used = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
    print(f"\n{known['machine']}; {known['versions']}; {used}; {known['when'][:10]}.")


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path: Path, line: Line) -> None:
    """Write one line in one call to a file opened for appending: runs side by side do not mix theirs."""
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(line, default=_plain).encode() + b"\n")
        os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def head(names: Sequence[str]) -> str:
    return row(names) + "\n" + row(["---"] * len(names))


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join([head(names), *map(row, rows)])
