"""Public names are imported on first use, and look as if they had been there from the start."""

import importlib.metadata
import pickle
import subprocess
import sys

import pytest

import tensormachines

LAZY = """
import sys
import tensormachines
assert "sklearn" not in sys.modules and "numpy" not in sys.modules
assert set(tensormachines.__all__) <= set(dir(tensormachines))
import tensormachines.inspection
assert "inspection" in dir(tensormachines)
exec("from tensormachines import *")
assert set(tensormachines.__all__) <= set(globals())
"""


def test_nothing_is_imported_before_it_is_asked_for():
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_installed_package(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    assert tensormachines.__version__[0].isdigit()
    monkeypatch.delitem(vars(tensormachines), "__version__")
    monkeypatch.setattr(importlib.metadata, "version", {"tensormachines": "9.8.7"}.__getitem__)
    assert tensormachines.__version__ == "9.8.7"
    monkeypatch.delitem(vars(tensormachines), "__version__")
    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert tensormachines.__version__ == "0+unknown"
    assert "__version__" in dir(tensormachines)


def test_names_are_those_of_their_homes():
    from tensormachines.estimators import TensorMachineRegressor

    assert tensormachines.TensorMachineRegressor is TensorMachineRegressor
    assert pickle.loads(pickle.dumps(tensormachines.TensorMachineRegressor)) is TensorMachineRegressor
    with pytest.raises(AttributeError, match="module 'tensormachines' has no attribute 'nothing'"):
        _ = tensormachines.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from tensormachines import nothing")
