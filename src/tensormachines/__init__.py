"""Tensor Machines: small, fast, explicit polynomial models for scikit-learn."""

from . import blocks
from .estimators import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from .persistence import ModelFileError, load
from .tuning import TensorMachineClassifierCV, TensorMachineRegressorCV

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
