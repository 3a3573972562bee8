"""scikit-learn's own checks, in full, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([TensorMachineRegressor(), TensorMachineClassifier(), TensorMachineFeatures()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
