import pytest

from commands import write
from tensormachines.datasets.flats import flats


@pytest.fixture
def table(tmp_path):
    """A file of small flats."""
    write(tmp_path / "flats.csv", flats(300, 0))
    return tmp_path / "flats.csv"
