"""The lines of a run: one flat JSON object per fit, in an append-only file."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__

Line = dict[str, Any]
PACKAGES = ("numpy", "scipy", "scikit-learn")


def read(path: Path) -> list[Line]:
    """Return all complete lines; a run that was killed while writing may leave half a line at the end."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [_parsed(text, f"{path}, line {n}") for n, text in enumerate(whole.splitlines(), start=1)]


def _parsed(text: str, where: str) -> Line:
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(f"{where} is not JSON: repair or delete that line.") from None
    if not isinstance(line, dict) or "key" not in line:
        raise ValueError(f"{where} is not a record of a fit (it has no key): repair or delete that line.")
    return line


def latest(lines: list[Line]) -> list[Line]:
    """Return the last of the lines with one key, in file order; lines without a key are all kept."""
    found: dict[Any, Line] = {}
    for number, line in enumerate(lines):
        key = line.get("key", number)
        found.pop(key, None)
        found[key] = line
    return list(found.values())


def plain_reason(line: Line) -> str:
    """Return why a fit has no results, without the name of its set and without a full stop."""
    return str(line.get("reason") or "").removeprefix(f"{line.get('set')}: ").removesuffix(".")


class Ledger:
    """A file of lines, and the latest line of each key."""

    def __init__(self, path: Path):
        self.path = path
        self.by_key = {line["key"]: line for line in latest(read(path))}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._cut_half_a_line()

    def _cut_half_a_line(self) -> None:
        if self.path.exists() and (text := self.path.read_bytes()) and not text.endswith(b"\n"):
            with self.path.open("r+b") as file:
                file.truncate(text.rfind(b"\n") + 1)

    def append(self, *lines: Line) -> None:
        """Append lines in one write, so that parallel runs do not mix theirs."""
        text = "".join(json.dumps(line, default=_to_json, allow_nan=False) + "\n" for line in lines).encode()
        with self.path.open("ab", buffering=0) as file:
            if file.write(text) < len(text):
                raise OSError(f"{self.path} cannot be written: the disk is full.")
            os.fsync(file.fileno())
        for line in lines:
            self.by_key.pop(line["key"], None)  # the latest line comes last
            self.by_key[line["key"]] = line


def _to_json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def versions() -> str:
    found = [f"Python {platform.python_version()}", f"tensormachines {__version__}"]
    return ", ".join(found + [f"{package} {version(package)}" for package in PACKAGES])


def computer() -> str:
    try:
        name = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        name = None
    processor = name.group(1) if name else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"
