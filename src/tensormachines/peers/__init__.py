"""The methods that Tensor Machines are compared with, each a complete scikit-learn estimator or transformer.

docs/peers.md states for each what its paper does, what is done here, and every difference.
"""

from .apple import AppleClassifier, AppleRegressor
from .vowpal_wabbit import VowpalWabbitClassifier, VowpalWabbitRegressor

__all__ = ["AppleClassifier", "AppleRegressor", "VowpalWabbitClassifier", "VowpalWabbitRegressor"]
