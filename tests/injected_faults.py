"""Faults that are caused for real: a disk that is full, a folder that is read-only, a process that dies."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

resource = pytest.importorskip("resource", reason="these faults are caused as POSIX does it")

NOBODY = 65534


@contextmanager
def full_disk(room=100):
    """Let no file of this process grow beyond so many bytes: the next write fails, as on a full disk."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@contextmanager
def read_only(folder):
    """Let this process, even if it is root's, write nothing into a folder."""
    before, user = folder.stat().st_mode, os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if user == 0:
            os.setresuid(0, 0, 0)
        folder.chmod(before)


def start(program, *arguments):
    """Start Python on the text of a program."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Return the exit code, what was printed, and the errors; whatever happens, no process is left."""
    try:
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    return process.returncode, printed, errors
