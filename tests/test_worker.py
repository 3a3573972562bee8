import os
import signal
import time
from functools import partial

import pytest
from threadpoolctl import threadpool_info

from tensormachines.bench.worker import attempt


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


@pytest.mark.parametrize(("work", "reason"), [(_die, "killed by signal 9"), (partial(os._exit, 3), "the process ended with code 3")])
def test_a_process_that_dies_is_an_outcome(work, reason):
    outcome = attempt(work, seconds=60)
    assert (outcome.status, outcome.reason) == ("crashed", reason)


def _threads():
    return max(pool["num_threads"] for pool in threadpool_info())


def test_work_has_one_thread():
    assert attempt(_threads, seconds=60).value == 1


def test_large_results_come_back():
    assert len(attempt(partial(bytes, 1 << 22), seconds=60).value) == 1 << 22
