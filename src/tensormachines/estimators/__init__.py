"""The scikit-learn estimators, and the searches that choose their settings."""

from .search import TensorMachineClassifierCV, TensorMachineRegressorCV
from .tensor_machines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor

__all__ = [
    "TensorMachineClassifier",
    "TensorMachineClassifierCV",
    "TensorMachineFeatures",
    "TensorMachineRegressor",
    "TensorMachineRegressorCV",
]
