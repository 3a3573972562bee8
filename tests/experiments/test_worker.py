import math
import multiprocessing
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info

from tensormachines.experiments.worker import Outcome, _wait, attempt


def test_what_the_work_returns_comes_back_with_its_memory():
    outcome = attempt(partial(sum, [1, 2, 3]), seconds=60)
    assert (outcome.status, outcome.value, outcome.reason) == ("ok", 6, "")
    assert outcome.peak_megabytes > 1


def test_an_error_is_an_outcome_with_its_type_and_message():
    outcome = attempt(partial(int, "seven"), seconds=60)
    assert outcome.status == "failed"
    assert outcome.reason.startswith("ValueError: invalid literal")


def test_work_that_takes_too_long_is_stopped():
    ticks = []
    outcome = attempt(partial(time.sleep, 60), seconds=1.2, tick=lambda: ticks.append(1))
    assert (outcome.status, outcome.reason) == ("timeout", "not done after 1 s")
    assert ticks


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.parametrize(
    ("work", "reason"),
    [(_die, "killed by signal 9"), (partial(os._exit, 3), "the process ended with code 3")],
)
def test_a_process_that_dies_is_an_outcome(work, reason):
    outcome = attempt(work, seconds=60)
    assert (outcome.status, outcome.reason) == ("crashed", reason)


def _threads():
    return max(pool["num_threads"] for pool in threadpool_info())


def test_work_has_one_thread():
    assert attempt(_threads, seconds=60).value == 1


def test_large_results_come_back():
    assert len(attempt(partial(bytes, 1 << 22), seconds=60).value) == 1 << 22


def test_a_process_that_dies_while_it_sends_is_an_outcome():
    class Receiver:
        def poll(self, seconds):
            return True

        def recv(self):
            raise OSError("got end of file during message")

    process = SimpleNamespace(join=lambda: None, exitcode=-9)
    assert _wait(process, Receiver(), math.inf, 60, lambda: None) == Outcome("crashed", "killed by signal 9")


def _signal_itself(number):
    os.kill(os.getpid(), number)
    return "still here"


def test_ctrl_c_is_left_to_the_parent():
    assert attempt(partial(_signal_itself, signal.SIGINT), seconds=60).value == "still here"


def _start_and_die(path):
    """A run that is killed during a fit."""

    def fit():
        path.write_text(str(os.getpid()))
        time.sleep(60)

    def die_when_it_is_under_way():
        if path.exists() and path.read_text():
            os.kill(os.getpid(), signal.SIGKILL)

    attempt(fit, 60, die_when_it_is_under_way)


def _is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_run_that_is_killed_leaves_no_fit_behind(tmp_path):
    run = multiprocessing.get_context("fork").Process(target=_start_and_die, args=(tmp_path / "pid",))
    run.start()
    run.join(30)
    assert run.exitcode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 10
    while _is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _is_running(pid)
