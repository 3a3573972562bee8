"""The package imports what it offers when it is first asked for: to users, and to type checkers, all of it is
there.
"""

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
    subprocess.run([sys.executable, "-c", LAZY], check=True)


def test_names_are_those_of_their_homes():
    from tensormachines.estimators import TensorMachineRegressor

    assert tensormachines.TensorMachineRegressor is TensorMachineRegressor
    assert pickle.loads(pickle.dumps(tensormachines.TensorMachineRegressor)) is TensorMachineRegressor
    with pytest.raises(AttributeError, match="module 'tensormachines' has no attribute 'nothing'"):
        _ = tensormachines.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from tensormachines import nothing")
