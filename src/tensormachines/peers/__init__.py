"""The methods that Tensor Machines are compared with, each a complete scikit-learn estimator or transformer.

docs/peers.md states for each what its paper does, what is done here, and every difference.
"""

from .factorization import FactorizationMachineClassifier, FactorizationMachineRegressor
from .greedy import GreedyTensorMachineClassifier, GreedyTensorMachineRegressor
from .kernel_ridge import PolynomialKernelRidge, PolynomialKernelRidgeClassifier

__all__ = [
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "GreedyTensorMachineClassifier",
    "GreedyTensorMachineRegressor",
    "PolynomialKernelRidge",
    "PolynomialKernelRidgeClassifier",
]
