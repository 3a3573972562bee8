import doctest

import pytest

import tensormachines
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor


@pytest.mark.parametrize("estimator", [TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures])
def test_examples_of_the_docstrings_run(estimator):
    runner = doctest.DocTestRunner()
    tests = doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__)
    assert sum(len(test.examples) for test in tests) > 3
    for test in tests:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("estimator", [TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures])
def test_every_parameter_is_documented(estimator):
    for name in estimator().get_params():
        assert f"\n{name} : " in estimator.__doc__


def test_public_names():
    assert set(tensormachines.__all__) == {"TensorMachineClassifier", "TensorMachineFeatures", "TensorMachineRegressor", "blocks"}
