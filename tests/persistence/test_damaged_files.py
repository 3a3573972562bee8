"""No file, whatever is in it, does anything but load or fail with one error."""

import contextlib
import json
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from functools import reduce
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from fitted_models import NAN, frame
from tensormachines import ModelFileError, load, persistence
from tensormachines.persistence import container


def refused(path, data, match="cannot be loaded as a model"):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600


def test_truncated_anywhere(data, tmp_path):
    for size in [*range(100), *range(100, len(data), 37), len(data) - 1]:
        refused(tmp_path / "model", data[:size])
    refused(tmp_path / "model", data + b"\0", "bytes after its header")


def test_any_flipped_bit(data, tmp_path, rng):
    places = [*range(70), *rng.integers(70, len(data), 150).tolist()]
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        refused(tmp_path / "model", bytes(flipped))


def test_other_things(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(tmp_path / "model", b"", "it is empty")
    refused(tmp_path / "model", pickle.dumps(model), "it is a pickle, which can run any code")
    refused(tmp_path / "model", b"\x89PNG\r\n", "something else")
    with zipfile.ZipFile("archive.zip", "w") as archive:
        archive.writestr("../../escape", "text")
    refused(tmp_path / "model", Path("archive.zip").read_bytes(), "something else")
    for path, match in ((".", "not a regular file"), ("absent", "No such file"), ("a\0b", "null")):
        with pytest.raises(ModelFileError, match=match):
            load(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            load("pipe")


def sealed(content, version=container.VERSION, compressed=0, size=None, stored_size=None):
    """A file with a right checksum around any content."""
    sizes = len(content) if stored_size is None else stored_size, len(content) if size is None else size
    header = container.HEADER.pack(container.MAGIC, version, compressed, *sizes)
    return header + sha256(header + content).digest() + content


def with_text(text, rest=b""):
    return sealed(struct.pack("<Q", len(text)) + text + rest)


def test_versions(data, tmp_path):
    content = zlib.decompress(data[container.HEADER.size + 32 :])
    (tmp_path / "model").write_bytes(sealed(content))
    load(tmp_path / "model")
    refused(
        tmp_path / "model",
        sealed(content, version=2),
        r"newer version \(format 2, .*up to 1\): upgrade tensormachines",
    )
    refused(tmp_path / "model", sealed(content, version=0), "header makes no sense")


def test_sizes_that_are_lies(tmp_path):
    path = tmp_path / "model"
    bomb = zlib.compress(bytes(1 << 23), 9)
    refused(path, sealed(bomb, compressed=1, size=1 << 23), "header makes no sense")
    refused(path, sealed(bomb, compressed=1, size=1 << 20), "not have the size")
    refused(path, sealed(bomb[:-9], compressed=1, size=1 << 20), "not have the size")
    refused(path, sealed(b"no zlib", compressed=1, size=3), "damaged")
    refused(path, sealed(bomb, compressed=2), "header makes no sense")
    refused(path, sealed(b"", stored_size=1 << 60), "bytes after its header")
    refused(path, sealed(b"x"), "text is longer")
    refused(path, sealed(struct.pack("<Q", 1 << 63)), "text is longer")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "1", '"text"', "{}", "\x00", "NaN", "9" * 5000, "[" * 100_000),
        *('{"a":' * 100_000, '{"arrays": 3, "facts": {}}', '{"arrays": [], "facts": {}, "more": 1}'),
        *('{"arrays": [], "arrays": [], "facts": {}}', '{"arrays": [], "facts": NaN}'),
        *('{"arrays": [], "facts": 1e999}', '{"arrays": [], "facts": {}}', '{"arrays": [], "facts": null}'),
        '{"arrays": [], "facts": {"estimator": "os.system"}}',
        '{"arrays": [], "facts": {"estimator": "TensorMachineRegressor", "settings": {"__class__": 1}}}',
        '{"arrays": [], "facts": {"estimator": ["TensorMachineRegressor"]}}',
    ],
)
def test_other_texts(tmp_path, text):
    refused(tmp_path / "model", with_text(text.encode()))
    refused(tmp_path / "model", with_text("ü".encode("latin-1") + text.encode()))


@pytest.mark.parametrize(
    "declared",
    [
        *(3, [], ["<f8"], ["<f8", [1], 1], ["<f8", 1], [8, [1]], ["<f8", [-1]], ["<f8", [1.0]]),
        *(["<f8", [True]], ["<f8", ["1"]], ["<f8", [2]], ["<f8", [1 << 40]], ["<f8", [1 << 63]]),
        *(["<f8", [10**30]], ["<f8", [0, 1 << 47, 1 << 47]], ["<f8", [1] * 40], ["|O", [1]], ["|O8", [1]]),
        *(["O", [1]], ["<U0", [1 << 40]], ["|V8", [1]], ["<M8[s]", [1]], [">f8", [1]], ["<c8", [1]]),
        *(["<f16", [1]], ["<f8,<f8", [1]], ["<U999999999", [1]], ["<f8\n", [1]], ["|b1", [8]], ["<U2", [1]]),
        *(["<i4", [1]], ["../../x", [1]]),
    ],
)
def test_arrays_that_cannot_be(tmp_path, declared):
    text = json.dumps({"arrays": [declared], "facts": {}}).encode()
    reason = "damaged: (an array|a boolean|a string|it is longer)"
    refused(tmp_path / "model", with_text(text, b"\xff" * 8), reason)


@pytest.fixture(scope="module")
def facts_and_arrays(data):
    return container.unpack(data)


def places(facts, path=()):
    """All places in nested lists and objects."""
    items = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for key, value in list(items):
        yield (*path, key)
        yield from places(value, (*path, key))


STRANGE = [None, True, -1, 10**9, 10**400, 0.5, "", "text", [], [[]], {}]
STRANGE += [{"array": 0}, {"array": 99}, {"float": "nan"}, {"tuple": [1]}]


def test_every_fact_replaced_by_nonsense(facts_and_arrays, rng):
    """Such a file is refused; or it loads, and then the model has outputs, or refuses the rows. Nothing else
    ever happens.
    """
    facts, arrays = facts_and_arrays
    rows = frame(rng)[["gaps", "flag", "mostly", "sparse text"]][:3]
    refusals = 0
    for *outer, last in places(facts):
        for strange in [*(STRANGE[i] for i in rng.choice(len(STRANGE), 3, replace=False)), KeyError]:
            changed = json.loads(json.dumps(facts))
            parent = reduce(lambda inside, key: inside[key], outer, changed)
            parent[last] = strange
            if strange is KeyError:
                del parent[last]
            try:
                model = persistence._model(changed, arrays)
            except persistence.DAMAGE:
                refusals += 1
                continue
            with contextlib.suppress(ValueError):
                assert model._outputs(rows).shape == (3, 1)
    assert refusals > 100


def test_every_array_replaced_by_nonsense(facts_and_arrays, tmp_path, rng):
    facts, arrays = facts_and_arrays
    rows = frame(rng)[["gaps", "flag", "mostly", "sparse text"]][:3]
    for number, array in enumerate(arrays):
        nonsense = [
            array[:-1],
            np.append(array, array[:1]),
            array[None],
            array.astype(str),
            array[:0],
            np.zeros_like(array),
            array[::-1],
        ]
        if array.dtype.kind in "iuf":
            nonsense += [
                -array,
                np.full_like(array, 100),
                array.astype(np.float32),
                np.full_like(array, np.iinfo(np.int8).max),
            ]
        if array.dtype.kind == "f":
            nonsense += [np.full_like(array, NAN), np.full_like(array, np.inf), np.full_like(array, 1e308)]
        for other in nonsense:
            changed = [*arrays[:number], other, *arrays[number + 1 :]]
            (tmp_path / "model").write_bytes(container.pack(facts, changed))
            with contextlib.suppress(ModelFileError), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*(some outputs overflow|encountered in)")
                assert load(tmp_path / "model")._outputs(rows).shape == (3, 1)


def test_a_shape_without_its_parameters(facts_and_arrays, tmp_path):
    facts, arrays = facts_and_arrays
    for name, value in (
        ("rank", 10**7),
        ("degree", 10**7),
        ("n_outputs", 10**12),
        ("n_columns", 10**12),
        ("degree", 10**4000),
    ):
        changed = {**facts, "model": {**facts["model"], name: value}}
        refused(tmp_path / "model", container.pack(changed, arrays), "damaged")
    large = np.full(4, 2**31 - 1, dtype=np.int32)
    for name in ("count", "waves", "reference"):
        place = facts["model"]["basis"][name]
        refused(
            tmp_path / "model",
            container.pack(facts, [*arrays[:place], large, *arrays[place + 1 :]]),
            "damaged",
        )


def test_arrays_too_many_and_taken_twice(facts_and_arrays, tmp_path):
    facts, arrays = facts_and_arrays
    refused(tmp_path / "model", container.pack(facts, [*arrays, np.zeros(2)]), "arrays that are not used")
    refused(tmp_path / "model", container.pack(facts, arrays[:-1]), "does not exist")
    model = facts["model"]
    twice = {**facts, "model": {**model, "basis": {**model["basis"], "missing": model["basis"]["category"]}}}
    refused(tmp_path / "model", container.pack(twice, arrays), "used twice")
