"""Processes that are told to end, or that are killed: what is kept is complete."""

import signal
import time

import numpy as np
import pytest

from commands import write
from injected_faults import finish, start
from tensormachines import TensorMachineRegressor, load
from tensormachines.datasets.flats import flats

KILLED_WHILE_IT_SAVES = """
import os, signal, sys
import tensormachines
model = tensormachines.load(sys.argv[1])
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # the bytes are written, the name is not changed
model.save(sys.argv[1])
"""


def test_a_model_killed_while_it_is_saved_is_the_old_one(model, data, folder):
    path = folder / "model.tm"
    model.save(path)
    code, _, _ = finish(start(KILLED_WHILE_IT_SAVES, path))
    assert code == -signal.SIGKILL
    np.testing.assert_array_equal(load(path).predict(data[0]), model.predict(data[0]))
    other = TensorMachineRegressor(degree=1, max_iter=1, alpha=1.0).fit(*data)
    other.save(path)  # what is left of the one before is not in the way
    np.testing.assert_array_equal(load(path).predict(data[0]), other.predict(data[0]))
    assert sorted(file.name[:10] for file in folder.iterdir()) == [".model.tm.", "model.tm"]


# As in a terminal: jobs in the background of a shell script ignore SIGINT.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tensormachines.cli import main
from tensormachines.estimators import polynomial_model

begin = polynomial_model.begin

def begin_and_tell(*arguments):
    print("fitting", file=sys.__stdout__, flush=True)  # fit itself prints to standard error
    return begin(*arguments)

polynomial_model.begin = begin_and_tell
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("number", "codes", "said", "how"),
    [
        (signal.SIGINT, [130], "Stopped.", []),
        (signal.SIGTERM, [143, -15], "", ["--stream"]),
        (signal.SIGKILL, [-9], "", ["--stream"]),
    ],
)
def test_a_command_that_is_told_to_end_leaves_nothing(folder, number, codes, said, how):
    write(folder / "flats.csv", flats(400, 0))
    command = ["fit", folder / "flats.csv", "--target", "rent", "--max-iter", "1000000", *how]
    process = start(COMMAND, *command, "-o", folder / "new.tm")
    try:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(0.2)
        process.send_signal(number)
    finally:
        code, _, errors = finish(process)
    assert code in codes
    assert errors.strip().endswith(said)
    assert "Traceback" not in errors
    assert [file.name for file in folder.iterdir()] == ["flats.csv"]


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
from tensormachines import TensorMachineRegressor

X = np.random.default_rng(0).standard_normal((3000, 5))
y = X[:, 0] * X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])
path = Path(sys.argv[1])
settings = dict(degree=3, rank=3, solver="lbfgs", basis="standard", alpha=1e-4, max_iter=500, tol=0)
settings |= dict(random_state=0, checkpoint=path, checkpoint_every=1)

def interrupt():
    while not path.exists():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt).start()
model = TensorMachineRegressor(degree=1, max_iter=2, alpha=1.0).fit(X, y)
before = model.predict(X)
model.set_params(**settings)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", np.array_equal(model.predict(X), before))
    print(repr(model.fit(X, y).objective_))
print(repr(model.set_params(checkpoint=None).fit(X, y).objective_))
"""


def test_an_interrupted_fit_keeps_its_model_and_its_checkpoint(folder):
    code, printed, _ = finish(start(INTERRUPTED, folder / "state.npz"))
    assert code == 0
    interrupted, resumed, undisturbed = printed.splitlines()
    assert interrupted == "interrupted True"
    assert resumed == undisturbed
