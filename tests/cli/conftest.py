import pytest

from commands import fitted_flats, write
from tensormachines.datasets.flats import flats


@pytest.fixture
def table(tmp_path):
    """A file of small flats."""
    write(tmp_path / "flats.csv", flats(300, 0))
    return tmp_path / "flats.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of tables of flats, and models of them."""
    return fitted_flats(tmp_path_factory.mktemp("flats"))


@pytest.fixture
def here(folder, monkeypatch):
    """The same, as the working folder."""
    monkeypatch.chdir(folder)
    return folder
