"""A disk without room: an error that names the file, the old file as it was, and nothing half written."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from commands import QUICK, error_of, fitted_flats, run
from injected_faults import full_disk
from tensormachines import TensorMachineRegressor, blocks, load


def test_saving_keeps_the_old_file(model, data, folder):
    path = folder / "model.tm"
    model.save(path)
    before = path.read_bytes()
    with full_disk(), pytest.raises(OSError, match="File too large") as error:
        model.save(path)
    assert error.value.filename == str(path)
    assert path.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["model.tm"]
    np.testing.assert_array_equal(load(path).predict(data[0]), model.predict(data[0]))


def test_a_fit_goes_on_without_its_checkpoint(data, folder):
    settings = {"degree": 2, "rank": 2, "basis": "standard", "max_iter": 6, "random_state": 0}
    plain = TensorMachineRegressor(**settings).fit(*data)
    path = folder / "state.npz"
    kept = TensorMachineRegressor(**settings, checkpoint=path, checkpoint_every=2)
    with full_disk(), pytest.warns(RuntimeWarning, match=r"state\.npz' could not be written: .* goes on"):
        kept.fit(*data)
    np.testing.assert_array_equal(kept.predict(data[0]), plain.predict(data[0]))
    assert list(folder.iterdir()) == []


def test_rows_that_have_no_room_in_the_scratch_file(data, scratch):
    X, y = data
    source = blocks.iterable([(X[:100], y[:100]), (X[100:], y[100:])])
    with full_disk(), pytest.raises(OSError, match="Point TMPDIR to a folder with room for all rows"):
        TensorMachineRegressor(degree=2, max_iter=2).fit(source)


@pytest.fixture(scope="module")
def flats(tmp_path_factory):
    return fitted_flats(tmp_path_factory.mktemp("flats"))


COMMANDS = {
    "new.csv": ("predict", "rent.tm", "new.csv"),
    "new.csv.gz": ("predict", "rent.tm", "new.csv"),
    "new.parquet": ("predict", "rent.tm", "new.csv"),
    "new.arrow": ("predict", "rent.tm", "new.csv"),
    "report.html": ("report", "rent.tm", "flats.csv"),
    "model.c": ("export", "rent.tm", "--format", "c"),
    "model.onnx": ("export", "rent.tm", "--format", "onnx"),
    "other.tm": ("fit", "flats.csv", "--target", "rent", "--ignore", "id", *QUICK),
}


@pytest.mark.parametrize("output", list(COMMANDS))
def test_a_command_says_which_file_and_leaves_the_old_one(flats, folder, capsys, monkeypatch, output):
    if output.endswith(("parquet", "arrow")):
        pytest.importorskip("pyarrow")
    if output.endswith("onnx"):
        pytest.importorskip("skl2onnx")
    monkeypatch.chdir(flats)
    path = folder / output
    assert run(*COMMANDS[output], "-o", path) == 0
    before = path.read_bytes()
    with full_disk():
        message = error_of(capsys, *COMMANDS[output], "-o", path)
    assert str(path) in message
    assert "File too large" in message
    assert path.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == [output]


# In a namespace of its own, any user may mount a small file system, which is gone with the process.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=1m tmpfs "$1" || exit 77
"$2" -m tensormachines $3 -o "$1/$4" >/dev/null || exit 78
cp "$1/$4" "$5"
head -c 2000000 /dev/zero >"$1/filler" 2>/dev/null
truncate --size=-$(($(stat -c %s "$5") / 8192 * 4096)) "$1/filler"
"$2" -m tensormachines $3 -o "$1/$4" >/dev/null
code=$?
cmp "$1/$4" "$5" && [ "$(ls -A "$1" | wc -l)" = 2 ] || exit 79
exit $code
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, of Linux")
@pytest.mark.parametrize("output", ["new.csv", "new.parquet", "report.html", "other.tm"])
def test_a_file_system_that_is_full(flats, folder, tmp_path, output):
    """At the first block of small files, and halfway through large ones."""
    if output.endswith("parquet"):
        pytest.importorskip("pyarrow")
    place = [folder, sys.executable, " ".join(COMMANDS[output]), output, tmp_path / "before"]
    ended = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", *place],
        cwd=flats,
        text=True,
        capture_output=True,
        timeout=120,
    )
    if "unshare failed" in ended.stderr or ended.returncode == 77:
        pytest.skip("a process may not mount anything here")
    assert ended.returncode == 1, ended.stderr
    assert "No space left on device" in ended.stderr
    assert str(folder / output) in ended.stderr
    assert "Traceback" not in ended.stderr
