"""The same seed gives the same bits, whatever runs the fit, and whatever runs beside it."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.model_selection import cross_val_predict

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._model import native

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")

QUICK = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((3000, 4))  # enough rows for threads
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def bits(model, X):
    return model.predict(X).tobytes().hex()


PROGRAM = """
import hashlib, sys
import numpy as np
from tensormachines import TensorMachineClassifier
rng = np.random.default_rng(0)
rows = [{"size": float(size), "town": f"town {k}", "odd": bool(k % 2)}
        for size, k in zip(rng.standard_normal(400), rng.integers(0, 30, 400))]
y = [f"class {(row['size'] > 0) + row['odd']}" for row in rows]
model = TensorMachineClassifier(degree=2, rank=2, max_iter=5, random_state=0, n_jobs=int(sys.argv[1]))
print(hashlib.sha256(model.fit(rows, y).predict_proba(rows).tobytes()).hexdigest())
"""


def test_processes_with_other_hashes_and_threads():
    """Hashes order the sets of Python, here those of levels and classes."""
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, n_jobs],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, n_jobs in (("1", "1"), ("2", "3"))
    ]
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_back_ends_of_joblib(data, backend):
    X, y = data[0][:300], data[1][:300]
    model = TensorMachineRegressor(**QUICK)
    alone = cross_val_predict(model, X, y, cv=2)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(cross_val_predict(model, X, y, cv=2), alone)
        np.testing.assert_array_equal(cross_val_predict(model.set_params(n_jobs=2), X, y, cv=2), alone)


@pytest.mark.skipif(native.extension is None, reason="NumPy rounds products of other shapes in other ways")
@pytest.mark.parametrize("basis", ["spline", "standard", "sphere", "unit", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_prediction_does_not_depend_on_the_other_rows(rng, basis, dtype):
    """Few rows take another way through the kernel, whose sums must be rounded alike."""
    for n_columns in (3, 40):
        X = rng.standard_normal((300, n_columns)).astype(dtype)
        y = X[:, 0] * X[:, 1]
        for model, target in (
            (TensorMachineRegressor(basis=basis, solver="lbfgs", alpha=1e-3, **{**QUICK, "degree": 4}), y),
            (
                TensorMachineClassifier(basis=basis, solver="lbfgs", alpha=1e-3, **QUICK),
                np.digitize(y, [-1, 1]),
            ),
        ):
            model.fit(X, target)
            found = getattr(model, "decision_function", model.predict)
            whole = found(X)
            np.testing.assert_array_equal(np.concatenate([found(X[i : i + 1]) for i in range(300)]), whole)
            np.testing.assert_array_equal(
                np.concatenate([found(X[i : i + 12]) for i in range(0, 300, 12)]), whole
            )


def _fit_and_send(connection, X, y):
    connection.send(bits(TensorMachineRegressor(**QUICK, n_jobs=2).fit(X, y), X))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")
def test_a_fork_after_fits_with_threads(data):
    here = bits(TensorMachineRegressor(**QUICK, n_jobs=2).fit(*data), data[0])
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_fit_and_send, args=(sender, *data))
    process.start()
    try:
        assert receiver.poll(60), "the child waits for threads that it does not have"
        assert receiver.recv() == here
    finally:
        process.kill()
        process.join()


def test_frames_and_arrays_with_the_same_numbers(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    plain = bits(TensorMachineRegressor(**QUICK).fit(X, y), X)
    for form in (np.asfortranarray, pandas.DataFrame, lambda X: X[::-1][::-1], np.ndarray.tolist):
        assert bits(TensorMachineRegressor(**QUICK).fit(form(X), y), form(X)) == plain


def test_eight_threads_predict_while_others_fit(data):
    X, y = data
    model = TensorMachineClassifier(**QUICK, n_jobs=2).fit(X, y > 0)
    truth = model.predict_proba(X)
    other = bits(TensorMachineRegressor(**QUICK, n_jobs=2).fit(X, y), X)

    def predict(number):
        rows = slice(number, number + 1) if number % 2 else slice(None)  # one row has a path of its own
        np.testing.assert_allclose(model.predict_proba(X[rows]), truth[rows], rtol=1e-6)
        return model.predict_proba(X[rows]).tobytes()

    def fit(_):
        return bits(TensorMachineRegressor(**QUICK, n_jobs=2).fit(X, y), X)

    with ThreadPoolExecutor(8) as readers, ThreadPoolExecutor(2) as writers:
        fits = [writers.submit(fit, number) for number in range(6)]
        predictions = [readers.submit(predict, number) for number in range(200)]
        assert {future.result() for future in fits} == {other}
        assert {future.result() for future in predictions[::2]} == {truth.tobytes()}
        assert all(future.result() for future in predictions[1::2])
