"""Checkpoints whose entries are not those of the fit: each is refused by name, or the fit goes on."""

import json
import re
import zipfile

import numpy as np
import pytest

from tensormachines import TensorMachineRegressor
from tensormachines._fit.checkpoint import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS = [
    {"solver": "sfo", "degree": 1},
    {"solver": "sfo", "early_stopping": True},  # has every entry of a fit without
    {"solver": "lbfgs"},
    {"solver": "kfac", "early_stopping": True},
    {"max_norm": 1.0},
    {},
]
MOST_ITERATIONS = 4  # the checkpoint is written after two of them


class DeathError(Exception):
    pass


@pytest.fixture
def data(rng):
    X = rng.standard_normal((200, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def make(path, **settings):
    quick = {"degree": 3, "rank": 2, "alpha": 1e-4, "basis": "standard", "tol": 0, "random_state": 0}
    kept = {"max_iter": MOST_ITERATIONS, "checkpoint": path, "checkpoint_every": 2}
    return TensorMachineRegressor(**{**quick, **kept, **settings})


@pytest.fixture(params=SETTINGS, ids=str)
def interrupted(request, data, tmp_path, monkeypatch):
    """Return the arrays and facts of a genuine checkpoint, and a function that resumes it."""
    path, write = tmp_path / "state.npz", Checkpoint.write

    def write_and_die(self):
        write(self)
        raise DeathError

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", write_and_die)
        with pytest.raises(DeathError):
            make(path, **request.param).fit(*data)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(arrays.pop("facts").tobytes())

    def resume(arrays, facts):
        text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
        np.savez(path, facts=text, **arrays)
        return make(path, **request.param).fit(*data)

    return arrays, facts, resume


def forgeries(array):
    yield np.array(3.0)
    yield np.empty(0)
    yield array[None]
    yield np.concatenate([array, array])
    yield array.astype(np.float32 if array.dtype == np.float64 else np.float64)
    yield array.astype(">f8")
    yield np.full(array.shape, "text")
    if array.dtype.kind == "i":
        yield np.full_like(array, -1)
        yield np.full_like(array, 1 << 40)
    elif array.dtype.kind == "f":
        yield np.full_like(array, np.nan)
        yield np.full_like(array, np.inf)


def _is_as_good(name, array, forged):
    """Return whether nothing is wrong: curves may have any length and numbers, and counts may be any."""
    if forged.dtype != array.dtype or forged.ndim != array.ndim:
        return False
    if name.endswith(("/values", "/held_out")):
        return True
    same_shape = forged.shape == array.shape
    return same_shape and (
        forged.tobytes() == array.tobytes()
        or (name.endswith(("evaluations", ".due")) and (forged >= 0).all())
    )


def test_arrays_of_another_shape_type_or_range_are_refused_by_name(interrupted):
    arrays, facts, resume = interrupted
    for name, array in arrays.items():
        for number, forged in enumerate(forgeries(array)):
            if _is_as_good(name, array, forged):
                continue
            with pytest.raises(ValueError, match=r"state\.npz' is a damaged checkpoint: .*") as error:
                resume({**arrays, name: forged}, facts)
            assert name.split("/")[0] in str(error.value), (name, number)
        missing = {other: kept for other, kept in arrays.items() if other != name}
        with pytest.raises(ValueError, match=r"is a damaged checkpoint: .* (is missing|is unknown|not 0)"):
            resume(missing, facts)


def test_numbers_of_another_type_or_range_are_refused_by_name(interrupted):
    arrays, facts, resume = interrupted
    for state, entries in facts["states"].items():
        for name in entries:
            for wrong in (None, "text", {}, -(2**70), [None]):
                forged = json.loads(json.dumps(facts))
                forged["states"][state][name] = wrong
                if wrong == -(2**70) and isinstance(entries[name], float):
                    continue  # a number as good as any other
                with pytest.raises(ValueError, match=f"is a damaged checkpoint: {state}/{name}"):
                    resume(arrays, forged)


def test_whatever_else_is_in_the_file_is_refused(interrupted):
    arrays, facts, resume = interrupted
    for name in ("0/other", "9/params", "other"):
        with pytest.raises(ValueError, match=f"is a damaged checkpoint: {name.split('/')[0]}/"):
            resume({**arrays, name: np.ones(3)}, facts)
    for forged in ({}, {**facts, "identity": []}, {**facts, "states": []}, {**facts, "states": {"0": 3}}):
        with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
            resume(arrays, forged)
    zeros = {**arrays, "random/keys": np.zeros_like(arrays["random/keys"])}
    with pytest.raises(ValueError, match="random/keys has no bits"):
        resume(zeros, facts)


def test_arrays_in_another_order_in_memory_are_the_same(interrupted):
    arrays, facts, resume = interrupted
    plain = resume(arrays, facts).linear_
    turned = {name: np.asfortranarray(array) for name, array in arrays.items()}
    np.testing.assert_array_equal(resume(turned, facts).linear_, plain)


@pytest.mark.filterwarnings("ignore:TensorMachineRegressor. some outputs overflow:RuntimeWarning")
def test_finite_numbers_of_any_size_are_refused_or_end_in_a_model(interrupted):
    arrays, facts, resume = interrupted

    def try_it(arrays, facts):
        try:
            n_iter, message = resume(arrays, facts).n_iter_, "not finite"
        except ValueError as error:
            n_iter, message = 0, str(error)
        assert n_iter <= MOST_ITERATIONS
        assert re.search("damaged checkpoint|checkpoint of another fit|not finite", message)

    for name, array in arrays.items():
        if array.dtype.kind == "f":
            for number in (1e308, 1e-320):
                with np.errstate(over="ignore"):
                    forged = np.full_like(array, number)
                try_it({**arrays, name: forged}, facts)
    for state, entries in facts["states"].items():
        for name, value in entries.items():
            for number in (1e308, 1e-320) if type(value) in (int, float) else ():
                forged = json.loads(json.dumps(facts))
                forged["states"][state][name] = type(value)(number)
                try_it(arrays, forged)


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f8', 'shape': (3,", b"{'descr': ", b"\\", b"{'shape': (1 << 60,)}"]
)
def test_damaged_headers_of_arrays_are_refused(data, tmp_path, header):
    path = tmp_path / "state.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("facts.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match=r"state\.npz' cannot be read as a checkpoint: .* Delete it"):
        make(path).fit(*data)
