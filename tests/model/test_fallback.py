"""Without the compiled kernel the NumPy one serves, and says so once."""

import subprocess
import sys

import pytest

from tensormachines._model import native

PROGRAM = """
import sys, warnings
sys.modules["tensormachines._native"] = None
import numpy as np
from scipy import sparse
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor

X = np.random.default_rng(0).standard_normal((200, 3))
y = X[:, 0] * X[:, 1]
small = dict(degree=2, rank=1, basis="standard", random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = TensorMachineRegressor(**small, alpha=1e-4, solver="lbfgs").fit(X, y)
    assert model.score(sparse.csr_array(X), y) > 0.99
    splines = TensorMachineRegressor(degree=2, random_state=0).fit(X, y)
    assert splines.score(sparse.csr_array(X), y) == splines.score(X, y) > 0.9
    assert TensorMachineRegressor(**small, solver="sfo").fit(X, y).score(X, y) > 0.9
    assert TensorMachineClassifier(degree=2, random_state=0).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9
    assert TensorMachineFeatures(degree=2, random_state=0).fit_transform(X, X[:, 0]).shape == (200, 10)
print([str(w.message)[:50] for w in caught if w.category is RuntimeWarning])
"""


@pytest.mark.parametrize(
    ("wish", "warnings"), [("", "['tensormachines runs without its compiled kernel: i']"), ("off", "[]")]
)
def test_numpy_kernel_serves_and_says_so_once(monkeypatch, wish, warnings):
    monkeypatch.setenv(native.VARIABLE, wish)
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == warnings


def test_an_extension_that_is_required_and_missing_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensormachines._native", None)
    with pytest.raises(ImportError, match=r"TENSORMACHINES_EXTENSION is on, .*missing.* Install GCC"):
        native.load("on")
    extension, reason = native.load("")
    assert (extension, reason) == (None, "it was not built when the package was installed")


def test_an_extension_that_is_not_wanted_is_not_loaded():
    assert native.load("off") == native.load("No") == (None, "")


def test_a_wish_that_nobody_knows_is_an_error():
    with pytest.raises(ImportError, match=r'must be "on", "off" or unset, got \'perhaps\''):
        native.load("perhaps")
