"""Tensor Machines: small, fast, explicit polynomial models for scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import blocks
    from ._data.column_notes import ColumnWarning
    from .estimators import (
        TensorMachineClassifier,
        TensorMachineClassifierCV,
        TensorMachineFeatures,
        TensorMachineRegressor,
        TensorMachineRegressorCV,
    )
    from .persistence import ModelFileError, load

    __version__: str

__all__ = [
    "ColumnWarning",
    "ModelFileError",
    "TensorMachineClassifier",
    "TensorMachineClassifierCV",
    "TensorMachineFeatures",
    "TensorMachineRegressor",
    "TensorMachineRegressorCV",
    "blocks",
    "load",
]

# Names are imported when they are first used: `tensormachines --help` must not wait for scikit-learn.
if not TYPE_CHECKING:  # with a module-level __getattr__, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            found = _installed_version()
        elif name == "blocks":
            found = import_module(".blocks", __name__)
        elif name in ("ModelFileError", "load"):
            found = getattr(import_module(".persistence", __name__), name)
        elif name == "ColumnWarning":
            found = import_module("._data.column_notes", __name__).ColumnWarning
        elif name in __all__:
            found = getattr(import_module(".estimators", __name__), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _installed_version() -> str:
    """Return the version that pyproject.toml gave the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tensormachines")
    except PackageNotFoundError:  # a source tree that was not installed
        return "0+unknown"
