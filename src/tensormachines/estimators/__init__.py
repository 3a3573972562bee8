"""The scikit-learn estimators, and the searches that choose their settings."""

from .classification import TensorMachineClassifier
from .features import TensorMachineFeatures
from .regression import TensorMachineRegressor
from .tensor_machine_cv import TensorMachineClassifierCV, TensorMachineRegressorCV

__all__ = [
    "TensorMachineClassifier",
    "TensorMachineClassifierCV",
    "TensorMachineFeatures",
    "TensorMachineRegressor",
    "TensorMachineRegressorCV",
]
