"""The compiled extension, loaded here and nowhere else."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

try:
    extension: Any = import_module("tensormachines._native")
except ImportError:
    extension = None


def compiled() -> bool:
    """Return whether the extension is there; warn once if it is not."""
    if extension is None:
        _warn_once()
    return extension is not None


@cache
def _warn_once() -> None:
    warnings.warn(
        "tensormachines runs without its compiled kernel, several times slower: it was installed without a "
        "C++17 compiler. Install GCC or Clang and reinstall.",
        RuntimeWarning,
        stacklevel=3,
    )
