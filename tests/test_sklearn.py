"""scikit-learn's own checks, in full, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor


@parametrize_with_checks([TensorMachineRegressor(), TensorMachineClassifier(), TensorMachineFeatures()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
