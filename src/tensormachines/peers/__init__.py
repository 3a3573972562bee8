"""Methods that Tensor Machines are compared with, each a complete scikit-learn estimator or transformer.

For each method, docs/peers.md states what its paper does, what is done here, and every difference.
"""

from .apple import AppleClassifier, AppleRegressor
from .basis_learner import BasisLearnerClassifier, BasisLearnerRegressor
from .factorization import FactorizationMachineClassifier, FactorizationMachineRegressor
from .greedy import GreedyTensorMachineClassifier, GreedyTensorMachineRegressor
from .kernel_ridge import PolynomialKernelRidge, PolynomialKernelRidgeClassifier
from .random_feature_models import (
    CRAFTMapsClassifier,
    CRAFTMapsRegressor,
    KarKarnickClassifier,
    KarKarnickRegressor,
    TensorSketchClassifier,
    TensorSketchRegressor,
)
from .random_features import CRAFTMaps, KarKarnick, TensorSketch
from .vowpal_wabbit import VowpalWabbitClassifier, VowpalWabbitRegressor

__all__ = [
    "AppleClassifier",
    "AppleRegressor",
    "BasisLearnerClassifier",
    "BasisLearnerRegressor",
    "CRAFTMaps",
    "CRAFTMapsClassifier",
    "CRAFTMapsRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "GreedyTensorMachineClassifier",
    "GreedyTensorMachineRegressor",
    "KarKarnick",
    "KarKarnickClassifier",
    "KarKarnickRegressor",
    "PolynomialKernelRidge",
    "PolynomialKernelRidgeClassifier",
    "TensorSketch",
    "TensorSketchClassifier",
    "TensorSketchRegressor",
    "VowpalWabbitClassifier",
    "VowpalWabbitRegressor",
]
