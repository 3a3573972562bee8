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
narrow = TensorMachineRegressor(degree=1, max_iter=2, basis="standard", alpha=1.0).fit(X[:, :1], X[:, 0])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), resource.RLIM_INFINITY))
try:
    TensorMachineRegressor(degree=3, rank=200_000, basis="standard", alpha=1.0).fit(X, X[:, 0])
except MemoryError as error:
    print(error)
try:
    narrow.predict(np.broadcast_to(X[0, :1], (2 * 10**8, 1)))
except MemoryError as error:
    print(error)
print(small.predict(X).shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to this limit")
def test_models_and_rows_too_large_for_the_memory(folder):
    code, printed, errors = finish(start(PROGRAM))
    assert (code, errors) == (0, "")
    *refused, after = printed.splitlines()
    assert len(refused) == 2
    for message in refused:
        assert re.search(r"[\d.]+ [GT]i?B", message)
    assert after == "(50,)"
