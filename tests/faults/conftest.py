import tempfile
from pathlib import Path

import pytest

from tensormachines import TensorMachineRegressor


@pytest.fixture
def folder():
    """A folder that other users can read, unlike those of pytest: `read_only` becomes one of them."""
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/tmp") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """A folder for temporary files, in which nothing may be left."""
    path = tmp_path / "scratch"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    assert list(path.iterdir()) == []


@pytest.fixture
def data(rng):
    X = rng.standard_normal((200, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


@pytest.fixture
def model(data):
    return TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(*data)
