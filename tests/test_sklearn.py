"""scikit-learn's own checks, in full, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines.peers import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    GreedyTensorMachineClassifier,
    GreedyTensorMachineRegressor,
)

ESTIMATORS = [
    TensorMachineRegressor(),
    TensorMachineClassifier(),
    TensorMachineFeatures(),
    TensorMachineRegressor(solver="sfo", max_iter=8),
    TensorMachineClassifier(solver="sfo", max_iter=8),
    FactorizationMachineRegressor(),
    FactorizationMachineClassifier(),
    GreedyTensorMachineRegressor(),
    GreedyTensorMachineClassifier(),
    TensorMachineRegressor(init="greedy"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
