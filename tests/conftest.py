import os
from pathlib import Path

import numpy as np
import pytest

from tensormachines._model import native

REAL_DATA = "Set TENSORMACHINES_DATA to a folder of NAME.npz files (see docs/data.md): they are not shipped."


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def numpy_only(monkeypatch):
    """Run the test with the NumPy kernel, as if the package had no compiled extension."""
    monkeypatch.setattr(native, "extension", None)
    monkeypatch.setattr(native, "_warn_once", lambda: None)


@pytest.fixture
def shared_data():
    """Return a loader of the real data sets, which skips the test where a set is missing."""
    folder = Path(os.environ.get("TENSORMACHINES_DATA", Path(__file__).parents[2] / "shared" / "data"))

    def load(name):
        path = folder / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"needs real data: no {path}. {REAL_DATA}")
        return np.load(path)

    return load


def pytest_terminal_summary(terminalreporter):
    """Say at the end how many tests had no data: a run without them proves less."""
    skipped = terminalreporter.stats.get("skipped", [])
    missing = sum("needs real data" in str(report.longrepr) for report in skipped)
    if missing:
        terminalreporter.write_line(f"Tests skipped for lack of real data: {missing}. {REAL_DATA}")
