"""Fits that are interrupted and go on as if they had not been."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks
from tensormachines._fit.checkpoint import Checkpoint
from tensormachines.estimators.identity import _as_text

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")

SETTINGS = [
    {"basis": "auto"},
    {"early_stopping": True},
    {"n_restarts": 2},
    {"n_members": 2, "relevance": 1},
    {"solver": "lbfgs"},
    {"solver": "sfo"},
    {"max_norm": 1.0},
    {"solver": "lbfgs", "early_stopping": True},
    {"solver": "sfo", "early_stopping": True},
    {"solver": "lbfgs", "n_restarts": 2},
    {"solver": "sfo", "n_restarts": 2},
    {"solver": "kfac", "max_iter": 13},
    {"solver": "kfac", "early_stopping": True},
    {"solver": "kfac", "n_restarts": 2},
]


class DeathError(Exception):
    pass


@pytest.fixture
def data(rng):
    X = rng.standard_normal((3000, 5))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(3000)


def make(path=None, **settings):
    quick = {
        "degree": 3,
        "rank": 2,
        "alpha": 1e-4,
        "basis": "standard",
        "random_state": 0,
        "max_iter": 11,
        "tol": 0,
        "checkpoint_every": 2,
    }
    return TensorMachineRegressor(**{**quick, **settings}, checkpoint=path)


def interrupt(monkeypatch, after):
    """Let the process "die" right after so many checkpoints were written."""
    count = []
    write = Checkpoint.write

    def dying(self):
        write(self)
        count.append(1)
        if len(count) == after:
            raise DeathError

    monkeypatch.setattr(Checkpoint, "write", dying)


@pytest.mark.parametrize("random_state", [0, None])
def test_levels_of_quantiles_have_a_file_each(data, tmp_path, monkeypatch, random_state):
    settings = {"loss": "quantile", "random_state": random_state}
    levels = {"quantile": [0.1, 0.5], **settings}
    with monkeypatch.context() as patch:
        interrupt(patch, after=8)  # in the fit of the second level
        with pytest.raises(DeathError):
            make(tmp_path / "state.npz", **levels).fit(*data)
    resumed = make(tmp_path / "state.npz", **levels).fit(*data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state-0.1.npz", "state-0.5.npz"]
    for place, level in enumerate(levels["quantile"]):
        alone = make(tmp_path / f"state-{level}.npz", quantile=level, **settings).fit(*data)
        np.testing.assert_array_equal(alone.linear_, resumed.linear_[place])
    if random_state == 0:
        undisturbed = make(**levels).fit(*data)
        np.testing.assert_array_equal(resumed.predict(data[0]), undisturbed.predict(data[0]))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("after", [1, 4])
def test_the_result_is_the_same_to_the_bit(data, tmp_path, monkeypatch, settings, after):
    path = tmp_path / "state.npz"
    with monkeypatch.context() as patch:
        interrupt(patch, after)
        with pytest.raises(DeathError):
            make(path, **settings).fit(*data)
    undisturbed = make(tmp_path / "another.npz", **settings).fit(*data)
    resumed, repeated = make(path, **settings).fit(*data), make(path, **settings).fit(*data)
    if settings.get("n_restarts", 1) == settings.get("n_members", 1) == 1:
        np.testing.assert_array_equal(make(**settings).fit(*data).linear_, undisturbed.linear_)
    for model in (resumed, repeated):
        np.testing.assert_array_equal(model.predict(data[0]), undisturbed.predict(data[0]))
        assert (model.n_iter_, model.objective_) == (undisturbed.n_iter_, undisturbed.objective_)
        np.testing.assert_array_equal(model.loss_curve_, undisturbed.loss_curve_)
        if "early_stopping" in settings:
            np.testing.assert_array_equal(model.validation_loss_curve_, undisturbed.validation_loss_curve_)


def test_other_rows_to_validate_on_are_another_fit(data, tmp_path):
    X, y = data
    path, given = tmp_path / "state.npz", {"X_val": X[:100], "y_val": y[:100]}
    model = make(path).fit(X[100:], y[100:], **given)
    assert make(path).fit(X[100:], y[100:], **given).objective_ == model.objective_
    with pytest.raises(ValueError, match="the checkpoint of another fit: data was"):
        make(path).fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100] + 1)


def leaning(y, z, weight):
    factor = np.where(z < y, weight, 1 - weight)
    return factor * (z - y) ** 2, 2 * factor * (z - y)


def test_functions_of_the_same_name_may_be_other_losses(data, tmp_path):
    path = tmp_path / "state.npz"
    first = make(path, loss=partial(leaning, weight=0.1)).fit(*data)
    again = make(path, loss=partial(leaning, weight=0.1)).fit(*data)
    np.testing.assert_array_equal(first.predict(data[0]), again.predict(data[0]))
    with pytest.raises(ValueError, match="the checkpoint of another fit: loss was partial, checksum"):
        make(path, loss=partial(leaning, weight=0.9)).fit(*data)


def test_all_entries_of_long_settings_count():
    signs = np.zeros(2000, dtype=int)
    other = signs.copy()
    other[1000] = 1
    assert _as_text(signs) == _as_text(signs.astype(float).tolist()) != _as_text(other)


def test_any_random_state_can_be_resumed(data, tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    with monkeypatch.context() as patch:
        interrupt(patch, 2)
        with pytest.raises(DeathError):
            make(path, random_state=None, solver="sfo").fit(*data)
    finished = make(path, random_state=None, solver="sfo").fit(*data)
    np.testing.assert_array_equal(
        finished.linear_, make(path, random_state=None, solver="sfo").fit(*data).linear_
    )


# Forks for each fit: the package is imported once. BLAS has one thread, as others would be lost in a fork.
PROGRAM = """
import os, signal, sys, time, warnings
from pathlib import Path
from tensormachines import TensorMachineRegressor, blocks
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
source = blocks.npy(folder / "X.npy", folder / "y.npy", rows=700)
settings = dict(degree=3, rank=3, basis="standard", random_state=0, max_iter=40, tol=0, checkpoint_every=1)

def fit_and_be_killed(solver, wait):
    path = folder / f"{solver}.npz"
    before = path.stat().st_mtime_ns if path.exists() else 0
    process = os.fork()
    if process == 0:
        TensorMachineRegressor(solver=solver, checkpoint=path, **settings).fit(source)
        os._exit(0)
    while not (path.exists() and path.stat().st_mtime_ns > before):
        if os.waitpid(process, os.WNOHANG) != (0, 0):
            return  # the fit has ended
        time.sleep(0.005)
    time.sleep(wait)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)

for solver in sys.argv[2:]:
    for wait in (0.0, 0.1):
        fit_and_be_killed(solver, wait)
"""
KILLED = ["adam", "lbfgs", "sfo"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return a folder with rows, and with the checkpoints of processes that were killed twice."""
    folder, rng = tmp_path_factory.mktemp("killed"), np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(3000))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", PROGRAM, folder, *KILLED], env=environment, check=True)
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.parametrize("solver", KILLED)
def test_killed_processes_resume_from_disk(killed, solver):
    path = killed / f"{solver}.npz"
    assert path.exists()
    source = blocks.npy(killed / "X.npy", killed / "y.npy", rows=700)
    settings = {"rank": 3, "alpha": "auto", "solver": solver, "max_iter": 40, "checkpoint_every": 1}
    resumed, undisturbed = make(path, **settings).fit(source), make(**settings).fit(source)
    assert resumed.objective_ == undisturbed.objective_
    np.testing.assert_array_equal(resumed.linear_, undisturbed.linear_)


def test_other_fits_are_refused(data, tmp_path):
    path = tmp_path / "state.npz"
    X, y = data
    make(path).fit(X, y)
    with pytest.raises(ValueError, match=r"alpha was 0.0001, is 0.1"):
        make(path, alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="data was"):
        make(path).fit(X + 1e-9, y)
    with pytest.raises(ValueError, match="data was"):
        make(path).fit(X, y, sample_weight=np.arange(1, 3001))
    with pytest.raises(ValueError, match="estimator was TensorMachineRegressor, is TensorMachineClassifier"):
        TensorMachineClassifier(checkpoint=path).fit(X, y > 0)
    with pytest.raises(ValueError, match="data was"):
        make(path).fit(blocks.iterable([(X[:1000], y[:1000]), (X[1000:], -y[1000:])]))
    make(path, n_jobs=2, alpha=np.float64(1e-4)).fit(X, y)


def test_the_same_settings_in_other_words_are_the_same(data, tmp_path):
    path = tmp_path / "state.npz"
    X, y = data[0], data[1] > 0
    settings = {"random_state": 0, "max_iter": 3, "checkpoint": path}
    TensorMachineClassifier(alpha=1, class_weight={False: 1, True: 2}, **settings).fit(X, y)
    TensorMachineClassifier(alpha=1.0, class_weight={True: 2.0, False: 1}, **settings).fit(X, y)
    with pytest.raises(ValueError, match="class_weight was"):
        TensorMachineClassifier(alpha=1.0, class_weight={True: 3, False: 1}, **settings).fit(X, y)


def test_sets_are_the_same_in_any_order():
    """Their order depends on the hash seed of the process."""
    texts = [str(_as_text([set(names)])) for names in ("abcdefgh", "hgfedcba")]
    assert texts[0] == texts[1] == str([list("abcdefgh")])
    assert _as_text([0.5, 1]) == _as_text((0.5, 1.0))


def test_a_warm_start_from_another_model_is_another_fit(data, tmp_path):
    model = make(tmp_path / "state.npz", warm_start=True).fit(*data)
    with pytest.raises(ValueError, match="start was None"):
        model.fit(*data)


def test_restarts_are_kept_from_the_first_on(data, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, 1)
        with pytest.raises(DeathError):
            make(tmp_path / "state.npz", n_restarts=3).fit(*data)
    assert (tmp_path / "state.npz").exists()
    assert sorted(Checkpoint(tmp_path / "state.npz", None).states) == ["0", "0 extra", "random"]


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"PK\x03\x04 cut off"])
def test_files_that_are_no_checkpoints_are_refused(data, tmp_path, content):
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        make(path).fit(*data)
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match="does not exist"):
        make(tmp_path / "nowhere" / "state.npz").fit(*data)


def test_a_failed_write_does_not_cost_the_fit(data, tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    path.write_bytes(b"")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    path.unlink()
    with pytest.warns(RuntimeWarning, match=r"state.npz' could not be written: .*No space.*The fit goes on"):
        model = make(path).fit(*data)
    assert model.n_iter_ == 11
    assert not list(tmp_path.iterdir())


def test_written_every_two_minutes_without_a_number(data, tmp_path, monkeypatch):
    times = iter(np.arange(0, 1e6, 50.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    written = []
    write = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", lambda self: written.append(1) or write(self))
    make(tmp_path / "state.npz", checkpoint_every=None).fit(*data)
    assert 2 < len(written) < 8
