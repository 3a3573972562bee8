"""The lines of a run: one flat JSON object a fit, in a file that is only ever appended to."""

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
    """All whole lines; the last one may be half a line where a run was killed while it wrote."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [
        _parsed(text, f"{path}, line {number}") for number, text in enumerate(whole.splitlines(), start=1)
    ]


def _parsed(text: str, where: str) -> Line:
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(f"{where} is not JSON: mend or delete that line.") from None
    if not isinstance(line, dict) or "key" not in line:
        raise ValueError(f"{where} is not the line of a fit, which has a key: mend or delete that line.")
    return line


def latest(lines: list[Line]) -> list[Line]:
    """Of several lines with one key the last, in the order of the file; a line without a key stands for
    itself.
    """
    found: dict[Any, Line] = {}
    for number, line in enumerate(lines):
        key = line.get("key", number)
        found.pop(key, None)
        found[key] = line
    return list(found.values())


def plain_reason(line: Line) -> str:
    """Why a fit gave no figures, to stand in a sentence about its set: without the name of that, and without
    a full stop.
    """
    return str(line.get("reason") or "").removeprefix(f"{line.get('set')}: ").removesuffix(".")


class Ledger:
    """What has been fitted, by key."""

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
        """Lines that belong together, in one write to a file opened for appending: runs side by side do not
        mix theirs.
        """
        text = "".join(json.dumps(line, default=_to_json, allow_nan=False) + "\n" for line in lines).encode()
        with self.path.open("ab", buffering=0) as file:
            if file.write(text) < len(text):
                raise OSError(f"{self.path} cannot be written to: the disk is full.")
            os.fsync(file.fileno())
        for line in lines:
            self.by_key.pop(line["key"], None)  # the latest stand last
            self.by_key[line["key"]] = line


def _to_json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def versions() -> str:
    found = [f"Python {platform.python_version()}", f"tensormachines {__version__}"]
    return ", ".join(found + [f"{package} {version(package)}" for package in PACKAGES])


def machine() -> str:
    try:
        name = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        name = None
    processor = name.group(1) if name else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"
