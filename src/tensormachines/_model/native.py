"""The compiled extension, loaded here and nowhere else.

`TENSORMACHINES_EXTENSION` decides: "off" uses the NumPy kernel without a warning, "on" requires the
extension, and unset uses the extension if available. It means the same at installation (see
pyproject.toml)."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from typing import Any

VARIABLE = "TENSORMACHINES_EXTENSION"
OFF, ON = ("0", "off", "no", "false"), ("1", "on", "yes", "true")
REMEDY = (
    "Install GCC or Clang, and install tensormachines again, by pip install --force-reinstall --no-deps "
    f"--no-cache-dir. With {VARIABLE}=on, pip shows why the kernel cannot be built."
)


def load(wish: str) -> tuple[Any, str]:
    """Return the extension, or None and the reason why it is missing; the reason is "" if it is not wanted.

    ``wish`` is the value of the environment variable."""
    wish = wish.strip().lower()
    if wish not in (*OFF, *ON, ""):
        raise ImportError(f'{VARIABLE} must be "on", "off" or unset, got {wish!r}.')
    if wish in OFF:
        return None, ""
    try:
        return import_module("tensormachines._native"), ""
    except ModuleNotFoundError:
        reason = "it was not built when the package was installed"
    except ImportError as error:
        reason = f"it cannot be loaded ({error})"
    if wish in ON:
        raise ImportError(f"{VARIABLE} is {wish}, but the compiled kernel is missing: {reason}. {REMEDY}")
    return None, reason


extension, missing = load(os.environ.get(VARIABLE, ""))


def compiled() -> bool:
    """Tell whether the extension is available; warn once if it is missing unexpectedly."""
    if missing:
        _warn_once()
    return extension is not None


@cache
def _warn_once() -> None:
    warnings.warn(
        f"tensormachines runs without its compiled kernel: {missing}. Results are the same to rounding, but "
        f"default fits take about ten times as long. {REMEDY} {VARIABLE}=off silences this warning.",
        RuntimeWarning,
        stacklevel=3,
    )
