"""The Walsh-Hadamard transform against Hadamard matrices."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.linalg import hadamard

import tensormachines
from tensormachines._model import native
from tensormachines.peers.hadamard import walsh_hadamard

LENGTHS = [1 << k for k in range(12)]
SELF_TEST = """
import sys, types
import numpy as np
# without the estimators, which take seconds to import
for name, folder in (("tensormachines", sys.argv[1]), ("tensormachines.peers", sys.argv[1] + "/peers")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from tensormachines import _native
from tensormachines.peers import hadamard
for dtype in (np.float32, np.float64):
    for length in (1, 2, 8, 16, 64, 128, 256, 512, 2048, 8192):
        rows = np.random.default_rng(0).integers(-8, 9, (3, length)).astype(dtype)
        expected = rows.copy()
        hadamard.numpy_walsh_hadamard(expected)
        hadamard.walsh_hadamard(rows)
        np.testing.assert_array_equal(rows, expected)
print(_native.instructions())
"""


@pytest.fixture(params=["native", "numpy"])
def implementation(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(native, "extension", None)
    elif native.extension is None:
        pytest.skip("the extension is not built")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_equals_the_matrix(implementation, dtype, length):
    rows = np.random.default_rng(0).integers(-8, 9, (5, length)).astype(dtype)  # integers: nothing is rounded
    expected = rows @ hadamard(length).astype(dtype)
    assert walsh_hadamard(rows) is None
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 64, 1 << 13, 1 << 16])
def test_twice_is_the_length(implementation, dtype, length):
    rows = np.random.default_rng(0).standard_normal((3, length)).astype(dtype)
    twice = rows.copy()
    walsh_hadamard(twice)
    np.testing.assert_allclose(
        np.linalg.norm(twice, axis=1), np.sqrt(length) * np.linalg.norm(rows, axis=1), rtol=1e-5
    )
    walsh_hadamard(twice)
    np.testing.assert_allclose(
        twice, length * rows, atol=8 * np.finfo(dtype).eps * length * np.log2(2 * length)
    )


@pytest.mark.parametrize("length", [0, 3, 5, 12, 255])
def test_other_lengths_are_refused(implementation, length):
    with pytest.raises(ValueError, match=f"power of two, got {length}"):
        walsh_hadamard(np.ones((2, length)))


def test_no_rows(implementation):
    rows = np.empty((0, 8))
    walsh_hadamard(rows)
    assert rows.shape == (0, 8)


@pytest.mark.skipif(native.extension is None, reason="the extension is not built")
def test_the_extension_refuses_what_it_would_copy():
    for rows in (np.ones((4, 8))[:, ::2], np.asfortranarray(np.ones((4, 8))), np.ones((4, 8), dtype=int)):
        with pytest.raises(TypeError):
            native.extension.walsh_hadamard(rows)
    with pytest.raises(ValueError, match="power of two"):
        native.extension.walsh_hadamard(np.ones((4, 6)))


@pytest.mark.skipif(native.extension is None, reason="the extension is not built")
@pytest.mark.parametrize("instructions", ["baseline", "v3"])
def test_every_instruction_set(instructions):
    environment = {**os.environ, "TENSORMACHINES_INSTRUCTIONS": instructions}
    program = [sys.executable, "-c", SELF_TEST, tensormachines.__path__[0]]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() in ("baseline", instructions)  # a machine may have no more than the baseline
