import doctest
import re

import pytest

import tensormachines
from tensormachines import peers

ESTIMATORS = [
    *(getattr(tensormachines, name) for name in tensormachines.__all__ if name.startswith("Tensor")),
    *(getattr(peers, name) for name in peers.__all__),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_examples_of_the_docstrings_run(estimator):
    if estimator.__name__.startswith("VowpalWabbit"):
        pytest.importorskip("vowpalwabbit")
    runner = doctest.DocTestRunner()
    tests = doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__)
    assert sum(len(test.examples) for test in tests) >= 3
    for test in tests:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented(estimator):
    for name in estimator().get_params():
        assert re.search(rf"\n *(\w+, )*{name}(, \w+)* : ", estimator.__doc__), name


def test_public_names():
    searches = {"TensorMachineClassifierCV", "TensorMachineRegressorCV"}
    machines = {"TensorMachineClassifier", "TensorMachineFeatures", "TensorMachineRegressor"}
    assert set(tensormachines.__all__) == machines | searches | {"ModelFileError", "blocks", "load"}
