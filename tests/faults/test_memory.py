"""A limit of memory: one error that says how much was needed, and a process that goes on."""

import re
import sys

import pytest

from injected_faults import finish, start

PROGRAM = """
import resource, sys
import numpy as np
import tensormachines
from tensormachines import TensorMachineRegressor
from tensormachines.cli import main

X = np.random.default_rng(0).standard_normal((50, 2000))
small = TensorMachineRegressor(degree=1, max_iter=2, basis="standard", alpha=1.0).fit(X, X[:, 0])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), resource.RLIM_INFINITY))
try:
    TensorMachineRegressor(degree=3, rank=200_000, basis="standard", alpha=1.0).fit(X, X[:, 0])
except MemoryError as error:
    print(error)
print(small.predict(X).shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to this limit")
def test_a_model_too_large_for_the_memory(folder):
    code, printed, errors = finish(start(PROGRAM))
    assert (code, errors) == (0, "")
    message, after = printed.splitlines()
    assert re.search(r"[\d.]+ [GT]i?B", message)
    assert after == "(50,)"
