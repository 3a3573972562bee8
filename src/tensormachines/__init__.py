"""Tensor Machines: small, fast, explicit polynomial models for scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import blocks
    from .estimators import (
        TensorMachineClassifier,
        TensorMachineClassifierCV,
        TensorMachineFeatures,
        TensorMachineRegressor,
        TensorMachineRegressorCV,
    )
    from .persistence import ModelFileError, load

__version__ = "0.1.0"

__all__ = [
    "ModelFileError",
    "TensorMachineClassifier",
    "TensorMachineClassifierCV",
    "TensorMachineFeatures",
    "TensorMachineRegressor",
    "TensorMachineRegressorCV",
    "blocks",
    "load",
]

# Imported when they are first asked for: scikit-learn takes two seconds, which the command line's --help
# should not.
_HOMES = {
    **dict.fromkeys(
        ("TensorMachineClassifier", "TensorMachineFeatures", "TensorMachineRegressor"), ".estimators"
    ),
    **dict.fromkeys(("TensorMachineClassifierCV", "TensorMachineRegressorCV"), ".estimators"),
    **dict.fromkeys(("ModelFileError", "load"), ".persistence"),
}


if not TYPE_CHECKING:  # of a module that answers to any name a type checker would believe any name

    def __getattr__(name: str) -> Any:
        if name == "blocks":
            return import_module(".blocks", __name__)
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_HOMES[name], __name__), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
