"""Folders that cannot be written: one error that names the file, before a long fit if there is one."""

import numpy as np
import pytest

from commands import QUICK, error_of, fitted_flats
from injected_faults import read_only
from tensormachines import TensorMachineRegressor, load


def test_saving(model, data, folder):
    path = folder / "model.tm"
    model.save(path)
    with read_only(folder):
        with pytest.raises(PermissionError) as error:
            model.save(path)
        loaded = load(path)
    assert error.value.filename == str(path)
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))


def test_a_fit_goes_on_without_its_checkpoint(data, folder):
    settings = {"degree": 2, "rank": 2, "basis": "standard", "max_iter": 4, "random_state": 0}
    plain = TensorMachineRegressor(**settings).fit(*data)
    kept = TensorMachineRegressor(**settings, checkpoint=folder / "state.npz", checkpoint_every=4)
    with read_only(folder), pytest.warns(RuntimeWarning, match="could not be written: .*Permission denied"):
        kept.fit(*data)
    np.testing.assert_array_equal(kept.predict(data[0]), plain.predict(data[0]))


def test_a_command_fails_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.chdir(fitted_flats(folder))
    closed = folder / "closed"
    closed.mkdir()
    for command in (
        ("fit", "flats.csv", "--target", "rent", *QUICK, "-o", closed / "new.tm"),
        ("predict", "rent.tm", "new.csv", "-o", closed / "new.csv"),
        ("report", "rent.tm", "flats.csv", "-o", closed / "new.html"),
    ):
        with read_only(closed):
            error = error_of(capsys, *command)
        assert f"no permission to write to the folder {closed}" in error
    assert list(closed.iterdir()) == []
