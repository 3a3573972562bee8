"""scikit-learn's own checks, in full, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines.peers import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    GreedyTensorMachineClassifier,
    GreedyTensorMachineRegressor,
)

# Searches are fitted again and again: few candidates.
FEW = {
    "degrees": (1, 2),
    "ranks": (2,),
    "alphas": (1e-3, 1e-1),
    "relevances": (0,),
    "roughnesses": (3.0,),
    "trends": (False,),
    "max_iters": (5,),
    "n_members": 2,
}
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
    TensorMachineRegressor(solver="lbfgs", basis="standard"),
    TensorMachineClassifier(solver="lbfgs", basis="standard"),
    TensorMachineRegressor(n_members=2, relevance=1, max_iter=10),
    TensorMachineRegressorCV(**FEW),
    TensorMachineClassifierCV(**FEW),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
