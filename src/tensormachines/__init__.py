"""Tensor Machines: small, fast, explicit polynomial models for scikit-learn."""

from . import blocks
from .estimators import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor

__version__ = "0.1.0"

__all__ = ["TensorMachineClassifier", "TensorMachineFeatures", "TensorMachineRegressor", "blocks"]
