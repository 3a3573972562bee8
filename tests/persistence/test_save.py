"""What `save` refuses, and that it writes all or nothing."""

import os
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from fitted_models import NAN, QUICK, numbers
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load, persistence
from tensormachines.peers import GreedyTensorMachineRegressor


def test_what_cannot_be_saved(rng, tmp_path, model):
    X = numbers(rng)
    greedy = GreedyTensorMachineRegressor(degree=2, rank=1, max_iter=2).fit(X, X[:, 0])

    class Mine(TensorMachineRegressor):
        pass

    for other in (greedy, Mine(**QUICK).fit(X, X[:, 0]), "model"):
        with pytest.raises(
            TypeError, match=rf"must be one of TensorMachineRegressor, .*got {type(other).__name__}"
        ):
            persistence.save(other, tmp_path / "model")
    with pytest.raises(NotFittedError):
        TensorMachineRegressor().save(tmp_path / "model")
    with pytest.raises(IsADirectoryError, match="must name a file, got the folder"):
        model.save(tmp_path)
    with pytest.raises(ValueError, match="a device or a pipe"):
        model.save(os.devnull)
    with pytest.raises(FileNotFoundError, match=r"folder '.*no folder' does not exist"):
        model.save(tmp_path / "no folder" / "model")
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")[(X[:, 0] > 0).astype(int)]
    with pytest.raises(
        TypeError, match=r"TensorMachineClassifier cannot be saved with this classes_: .*datetime64.*pickle"
    ):
        TensorMachineClassifier(**QUICK).fit(X, dates).save(tmp_path / "model")
    broken = pickle.loads(pickle.dumps(model)).set_params(rank=-1)
    with pytest.raises(ValueError, match=r"could not be loaded again.*rank"):
        broken.save(tmp_path / "model")
    broken = pickle.loads(pickle.dumps(model))
    broken._machine.params[0] = NAN
    with pytest.raises(ValueError, match="not finite"):
        broken.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_leaves_all_as_it_was(model, tmp_path, monkeypatch, step):
    path = tmp_path / "model"
    path.write_bytes(b"older")

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space left"):
        model.save(path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_save_replaces_and_follows_links(model, tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"older")
    link.symlink_to(path)
    model.save(str(link))
    assert link.is_symlink()
    assert load(path).get_params() == model.get_params()
    (tmp_path / "fresh").touch()
    assert path.stat().st_mode == (tmp_path / "fresh").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 3
