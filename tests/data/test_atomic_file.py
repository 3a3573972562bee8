"""A file is complete or as it was, whatever happens."""

import errno
import os
import signal

import pytest

from tensormachines._data.atomic_file import complete_or_not


def fail(error):
    raise error


def half_written(path, what_happens):
    with complete_or_not(path) as unfinished:
        unfinished.write_text("half")
        what_happens()


def test_a_file_is_complete_or_as_it_was(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("before")
    link.symlink_to(path)
    with complete_or_not(link) as unfinished:
        unfinished.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert link.is_symlink()
    with pytest.raises(ZeroDivisionError):
        half_written(path, lambda: 1 / 0)
    with pytest.raises(FileNotFoundError) as missing:
        half_written(tmp_path / "nowhere" / "file", dict)
    assert missing.value.filename == str(tmp_path / "nowhere" / "file")
    with pytest.raises(OSError, match="No space left") as full:
        half_written(link, lambda: fail(OSError(errno.ENOSPC, "No space left")))
    assert full.value.filename == str(link)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]
    assert path.read_text() == "after"


@pytest.mark.skipif(os.name != "posix", reason="no such signal here")
def test_a_signal_to_end_leaves_nothing_behind(tmp_path):
    with pytest.raises(SystemExit) as ended:
        half_written(tmp_path / "file", lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert ended.value.code == 128 + signal.SIGTERM
    assert os.listdir(tmp_path) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_that_is_replaced_passes_on_its_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o600)
    with complete_or_not(path) as unfinished:
        unfinished.write_text("after")
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o600
