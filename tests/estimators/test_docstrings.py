"""The docstrings of the estimators: examples, parameters and defaults."""

import ast
import doctest

import pytest

import tensormachines
from documented import ESTIMATORS, documented


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_examples_of_the_docstrings_run(estimator):
    if estimator.__name__.startswith("VowpalWabbit"):
        pytest.importorskip("vowpalwabbit")
    if "as_frame" in estimator.__doc__:
        pytest.importorskip("pandas")
    runner = doctest.DocTestRunner()
    tests = doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__)
    assert sum(len(test.examples) for test in tests) >= 3
    for test in tests:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented_with_its_default(estimator):
    parameters = documented(estimator, "Parameters")
    assert set(parameters) == set(estimator().get_params())
    for name, default in estimator().get_params().items():
        text = parameters[name].rpartition("default=")[2]
        if default is None:
            assert text.endswith(("optional", "None")), name
        elif isinstance(default, tuple):
            written = ast.literal_eval(text)
            assert (written[0], written[-1]) == (default[0], default[-1]), name
            assert ... in written or written == default, name
        else:
            assert ast.literal_eval(text) == default, name


def test_public_names():
    searches = {"TensorMachineClassifierCV", "TensorMachineRegressorCV"}
    machines = {"TensorMachineClassifier", "TensorMachineFeatures", "TensorMachineRegressor"}
    others = {"ColumnWarning", "ModelFileError", "blocks", "load"}
    assert set(tensormachines.__all__) == machines | searches | others
