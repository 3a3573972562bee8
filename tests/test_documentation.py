import ast
import doctest
import inspect
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


def documented(estimator, section):
    """What the docstring of a class lists there: by name, what comes after the colon."""
    listed = re.split(r"\n\n(?=\w+\n-+\n)", inspect.getdoc(estimator).partition(f"{section}\n{'-' * len(section)}\n")[2])[0]
    entries = re.findall(r"^((?:\w+, )*\w+) : (.*)$", listed, re.MULTILINE)
    return {name: text for names, text in entries for name in names.split(", ")}


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
    assert set(tensormachines.__all__) == machines | searches | {"ModelFileError", "blocks", "load"}
