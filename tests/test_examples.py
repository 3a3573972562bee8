"""The examples in the docstrings of public functions run; those of estimators are tested with these."""

import doctest
import importlib
import inspect

import pytest

MODULES = ("blocks", "export", "inspection", "peers", "persistence", "plots", "report")
PUBLIC = [
    function
    for module in map(importlib.import_module, (f"tensormachines.{name}" for name in MODULES))
    for function in (getattr(module, name) for name in module.__all__)
    if inspect.isfunction(function) and ">>>" in (function.__doc__ or "")
]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__name__)
def test_examples_of_docstrings_run(function):
    pytest.importorskip("pandas")
    if "plots" in function.__module__:
        pytest.importorskip("matplotlib").use("Agg")
    (test,) = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    assert doctest.DocTestRunner().run(test).failed == 0
    if "plots" in function.__module__:
        importlib.import_module("matplotlib.pyplot").close("all")
