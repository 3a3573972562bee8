"""Saved models come back as they were; no file, whatever is in it, does anything but load or fail with one
error.
"""

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
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from documented import ESTIMATORS
from fitted_models import NAN, QUICK, fitted, frame, numbers, strange_rows, targets
from tensormachines import (
    ModelFileError,
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    load,
    persistence,
)
from tensormachines.peers import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    GreedyTensorMachineRegressor,
)
from tensormachines.persistence import container

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _fits_need_not_converge():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        yield


@pytest.fixture(scope="module")
def model():
    """A small one, with all kinds of columns."""
    rng = np.random.default_rng(0)
    return fitted(
        rng, "binary", frame(rng)[["gaps", "flag", "mostly", "sparse text"]], max_iter=2, rank=1, degree=2
    )


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.tm"
    model.save(path)
    return path.read_bytes()


def assert_same(one, other):
    """Equal to the bit, and of the same types."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(), other.get_state())
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tolist() == other.tolist() or (
            one.dtype.kind == "f" and np.array_equal(one, other, equal_nan=True)
        )
    else:
        assert one == other or one != one


def public(model):
    return {
        name: value
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and name != "best_estimator_"
    }


def saved(model, path):
    """The model after its way through a file, which changes nothing."""
    model.save(path)
    again = load(path)
    assert type(again) is type(model)
    assert_same(again.get_params(), model.get_params())
    assert_same(public(again), public(model))
    assert_same(
        [again.intercept_, again.coef_, again.factors_], [model.intercept_, model.coef_, model.factors_]
    )
    assert_same(again.basis_features_, model.basis_features_)
    assert again.__sklearn_is_fitted__()
    return again


@pytest.mark.parametrize("task", ["single", "several", "binary", "multiclass"])
@pytest.mark.parametrize("basis", [None, "unit", "standard", "sphere", "spline"])
def test_round_trip(rng, tmp_path, basis, task):
    X = numbers(np.random.default_rng(1))
    model = fitted(rng, task, X, basis=basis)
    again = saved(model, tmp_path / "model")
    for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
        assert_same(again.predict(rows), model.predict(rows))
    if task in ("binary", "multiclass"):
        assert_same(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("task", ["several", "multiclass"])
def test_round_trip_of_raw_tables(rng, tmp_path, task):
    table = frame(rng)
    model = fitted(rng, task, table)
    again = saved(model, tmp_path / "model")
    for rows in (table, strange_rows(table)):
        assert_same(again._outputs(rows), model._outputs(rows))
    assert again._columns == model._columns
    nullable = table[["nullable", "plain"]]
    model = fitted(rng, task, nullable)
    assert_same(saved(model, tmp_path / "model").predict(nullable), model.predict(nullable))


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
def test_float32_stays(rng, tmp_path, solver):
    X = numbers(np.random.default_rng(1)).astype(np.float32)
    for basis in ("standard", "spline"):
        model = fitted(rng, "single", X, basis=basis, solver=solver, n_members=2, max_iter=3)
        again = saved(model, tmp_path / "model")
        assert again.coef_.dtype == again.predict(X).dtype == np.float32
        assert_same(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "ü\ud800"],
        [3, -1, 7],
        [5.0, 2.0, -1.0],
        [True, False, True],
        np.array(["x", "y", "z"], dtype=object),
        [b"a", b"b", b"c"],
    ],
)
def test_labels_keep_their_type(rng, tmp_path, labels):
    X = numbers(rng)
    y = np.asarray(labels)[np.arange(len(X)) % 3]
    model = TensorMachineClassifier(basis="standard", **QUICK)
    again = saved(model.fit(X, y) if y.dtype.kind != "S" else model.fit(X, y.astype(str)), tmp_path / "model")
    assert_same(again.predict(X), model.predict(X))


def test_settings_keep_their_type(rng, tmp_path):
    X, state = numbers(rng), np.random.RandomState(3)
    settings = {
        "alpha": np.float64(0.1),
        "degree": np.int64(2),
        "tol": 0,
        "checkpoint": tmp_path / "c",
        "checkpoint_every": 10_000,
    }
    model = TensorMachineClassifier(
        **QUICK | settings | {"random_state": state, "class_weight": {1: 0.5, 0: 2}}
    )
    again = saved(model.fit(X, X[:, 0] > 0), tmp_path / "model")
    assert again.checkpoint == tmp_path / "c"
    assert again.random_state.randint(1 << 30) == state.randint(1 << 30)
    model.set_params(class_weight="balanced", random_state=None, init_scale=0.5)
    saved(model, tmp_path / "model")


def test_searches(rng, tmp_path):
    X = frame(rng)[["plain", "mostly"]]
    few = {
        "degrees": [2],
        "ranks": (2,),
        "alphas": np.array([1e-3, 1e-2]),
        "relevances": (0,),
        "max_iters": (2,),
        "random_state": 0,
    }
    for search, task in ((TensorMachineRegressorCV, "single"), (TensorMachineClassifierCV, "multiclass")):
        model = search(**few, cv=2).fit(X, targets(rng, numbers(np.random.default_rng(1)))[task])
        again = saved(model, tmp_path / "model")
        assert_same(again.predict(X), model.predict(X))
        assert_same(again.best_estimator_.get_params(), model.best_estimator_.get_params())
        assert_same(public(again.best_estimator_), public(model.best_estimator_))
        assert_same(again.best_estimator_.predict(X), model.predict(X))
    with pytest.raises(
        TypeError, match=r"TensorMachineClassifierCV cannot be saved with this cv: KFold.*use pickle"
    ):
        model.set_params(cv=KFold(2)).save(tmp_path / "model")
    again.best_estimator_.fit(X, X["mostly"])
    with pytest.raises(ValueError, match="best_estimator_ has been fitted again"):
        again.save(tmp_path / "model")


def test_features_and_peers(rng, tmp_path):
    X = numbers(rng)
    features = (
        TensorMachineFeatures(**QUICK)
        .set_output(transform="pandas")
        .fit(X, targets(rng, X)["multiclass"].astype(int))
    )
    again = saved(features, tmp_path / "model")
    pd.testing.assert_frame_equal(again.transform(X), features.transform(X))
    quick = {"degree": 3, "rank": 2, "max_iter": 5, "random_state": 0}
    for machine, task in (
        (FactorizationMachineRegressor, "several"),
        (FactorizationMachineClassifier, "multiclass"),
    ):
        model = machine(**quick).fit(X, targets(rng, X)[task])
        assert_same(saved(model, tmp_path / "model").predict(X), model.predict(X))


def test_a_loaded_model_goes_on(rng, tmp_path):
    X = numbers(rng)
    y = targets(rng, X)["single"]
    model = TensorMachineRegressor(**QUICK, warm_start=True, basis="standard").fit(X, y)
    again = saved(model, tmp_path / "model")
    assert_same(again.fit(X, y).predict(X), model.fit(X, y).predict(X))
    again = saved(model, tmp_path / "model")
    assert_same(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))
    assert_same(saved(model, tmp_path / "model").predict(X), model.predict(X))  # in the middle of a stream


def test_pickle(model, rng, tmp_path):
    table = frame(rng)[["gaps", "flag", "mostly", "sparse text"]]
    assert_same(pickle.loads(pickle.dumps(model)).predict_proba(table), model.predict_proba(table))
    again = pickle.loads(pickle.dumps(saved(model, tmp_path / "model")))
    assert_same(again.predict_proba(table), model.predict_proba(table))


def through_skops(model):
    """The model after its way through skops, and the types that it asks to trust."""
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    return skops.loads(data, trusted=types), {name.removeprefix("tensormachines.") for name in types}


def test_skops_of_every_basis(rng):
    X = numbers(rng)
    own = {
        "estimators.classification.TensorMachineClassifier",
        "_model.machine.Machine",
        "_model.layout.Layout",
    }
    for basis in (None, "unit", "standard", "sphere", "spline"):
        model = fitted(rng, "multiclass", X, basis=basis)
        again, types = through_skops(model)
        assert types == own | (
            {"_model.spline_basis.SplineBasis", "_model.spline_basis.SplineColumn"}
            if basis == "spline"
            else {"_model.affine_basis.Basis"}
        )
        assert_same([again.predict_proba(X), public(again)], [model.predict_proba(X), public(model)])
    table = frame(rng)
    model = fitted(rng, "several", table)
    again, types = through_skops(model)
    of_columns = {
        "_data.encoding.Columns",
        "_data.encoding.Column",
        "_model.spline_basis.SplineBasis",
        "_model.spline_basis.SplineColumn",
    }
    assert (
        types
        == {
            "estimators.regression.TensorMachineRegressor",
            "_model.machine.Machine",
            "_model.layout.Layout",
        }
        | of_columns
    )
    assert_same(again.predict(strange_rows(table)), model.predict(strange_rows(table)))
    pipeline = make_pipeline(StandardScaler(), TensorMachineRegressor(**QUICK)).fit(X, X[:, 0])
    assert_same(through_skops(pipeline)[0].predict(X), pipeline.predict(X))


def test_skops_goes_on_where_partial_fit_was(rng):
    X = numbers(rng)
    model = TensorMachineRegressor(**QUICK).partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0])
    again, _ = through_skops(model)
    assert_same(again.partial_fit(X, X[:, 1]).predict(X), model.partial_fit(X, X[:, 1]).predict(X))


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if not cls.__name__.startswith("VowpalWabbit")])
def test_skops_of_every_estimator(rng, cls):
    X = numbers(rng)
    quick = {"degree": 2, "rank": 1, "tol": 1e-2, "random_state": 0}
    few = {
        "degrees": (1, 2),
        "ranks": (1,),
        "alphas": (1e-2,),
        "relevances": (0,),
        "max_iters": (2,),
        "cv": 2,
    }
    model = cls(**{name: value for name, value in (quick | few).items() if name in cls().get_params()})
    model.fit(X, (X[:, 0] > 0).astype(float if is_regressor(model) else int))
    again, types = through_skops(model)
    assert len(types) < 8
    method = "predict" if hasattr(model, "predict") else "transform"
    # Not to the bit: where both factors of a product are the same array, BLAS multiplies them in another way.
    np.testing.assert_allclose(getattr(again, method)(X), getattr(model, method)(X), rtol=1e-9)


def test_files_are_smaller_than_pickles(rng, tmp_path):
    X = numbers(rng)
    for basis in ("standard", "spline"):
        model = fitted(rng, "multiclass", X, basis=basis)
        model.save(tmp_path / "model")
        assert (tmp_path / "model").stat().st_size < len(pickle.dumps(model))


# ---- writing


def test_what_cannot_be_saved(rng, tmp_path, model):
    X = numbers(rng)
    greedy = GreedyTensorMachineRegressor(degree=2, rank=1, max_iter=2).fit(X, X[:, 0])

    class Mine(TensorMachineRegressor):
        pass

    for other in (greedy, Mine(**QUICK).fit(X, X[:, 0]), "model"):
        with pytest.raises(
            TypeError, match=rf"save knows TensorMachineRegressor, .*got {type(other).__name__}"
        ):
            persistence.save(other, tmp_path / "model")
    with pytest.raises(NotFittedError):
        TensorMachineRegressor().save(tmp_path / "model")
    with pytest.raises(IsADirectoryError, match="name of a file"):
        model.save(tmp_path)
    with pytest.raises(ValueError, match="a device or a pipe"):
        model.save(os.devnull)
    with pytest.raises(FileNotFoundError, match=r"no folder '.*no folder' to save"):
        model.save(tmp_path / "no folder" / "model")
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")[(X[:, 0] > 0).astype(int)]
    with pytest.raises(
        TypeError, match=r"TensorMachineClassifier cannot be saved with this classes_: .*datetime64.*pickle"
    ):
        TensorMachineClassifier(**QUICK).fit(X, dates).save(tmp_path / "model")
    broken = pickle.loads(pickle.dumps(model)).set_params(rank=-1)
    with pytest.raises(ValueError, match=r"no state that could be loaded again.*rank"):
        broken.save(tmp_path / "model")
    broken = pickle.loads(pickle.dumps(model))
    broken._machine.params[0] = NAN
    with pytest.raises(ValueError, match="not finite"):
        broken.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_leaves_all_as_it_was(model, tmp_path, monkeypatch, step):
    path = tmp_path / "model"
    path.write_bytes(b"older")

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space left"):
        model.save(path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_save_replaces_and_follows_links(model, tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"older")
    link.symlink_to(path)
    model.save(str(link))
    assert link.is_symlink()
    assert load(path).get_params() == model.get_params()
    (tmp_path / "fresh").touch()
    assert path.stat().st_mode == (tmp_path / "fresh").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 3


# ---- hostile files


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
    for path, match in ((".", "no regular file"), ("absent", "No such file"), ("a\0b", "null")):
        with pytest.raises(ModelFileError, match=match):
            load(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        with pytest.raises(ModelFileError, match="no regular file"):
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
    refused(path, sealed(bomb, compressed=1, size=1 << 20), "not of the size")
    refused(path, sealed(bomb[:-9], compressed=1, size=1 << 20), "not of the size")
    refused(path, sealed(b"no zlib", compressed=1, size=3), "damaged")
    refused(path, sealed(bomb, compressed=2), "header makes no sense")
    refused(path, sealed(b"", stored_size=1 << 60), "bytes after its header")
    refused(path, sealed(b"x"), "text is longer")
    refused(path, sealed(struct.pack("<Q", 1 << 63)), "text is longer")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[]",
            "null",
            "1",
            '"text"',
            "{}",
            '{"arrays": 3, "facts": {}}',
            '{"arrays": [], "facts": {}, "more": 1}',
            "\x00",
            "NaN",
        ),
        *(
            '{"arrays": [], "arrays": [], "facts": {}}',
            "[" * 100_000,
            '{"a":' * 100_000,
            '{"arrays": [], "facts": NaN}',
            "9" * 5000,
        ),
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
        *(
            3,
            [],
            ["<f8"],
            ["<f8", [1], 1],
            ["<f8", 1],
            [8, [1]],
            ["<f8", [-1]],
            ["<f8", [1.0]],
            ["<f8", [True]],
            ["<f8", ["1"]],
        ),
        *(
            ["<f8", [2]],
            ["<f8", [1 << 40]],
            ["<f8", [1 << 63]],
            ["<f8", [10**30]],
            ["<f8", [0, 1 << 47, 1 << 47]],
            ["<f8", [1] * 40],
        ),
        *(
            ["|O", [1]],
            ["|O8", [1]],
            ["O", [1]],
            ["<U0", [1 << 40]],
            ["|V8", [1]],
            ["<M8[s]", [1]],
            [">f8", [1]],
            ["<c8", [1]],
            ["<f16", [1]],
        ),
        *(
            ["<f8,<f8", [1]],
            ["<U999999999", [1]],
            ["<f8\n", [1]],
            ["|b1", [8]],
            ["<U2", [1]],
            ["<i4", [1]],
            ["../../x", [1]],
        ),
    ],
)
def test_arrays_that_cannot_be(tmp_path, declared):
    text = json.dumps({"arrays": [declared], "facts": {}}).encode()
    refused(
        tmp_path / "model", with_text(text, b"\xff" * 8), "damaged: (an array|a truth|a string|it is longer)"
    )


@pytest.fixture(scope="module")
def facts_and_arrays(data):
    return container.unpack(data)


def places(facts, path=()):
    """All places in nested lists and objects."""
    items = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for key, value in list(items):
        yield (*path, key)
        yield from places(value, (*path, key))


STRANGE = [
    None,
    True,
    -1,
    10**9,
    10**400,
    0.5,
    "",
    "text",
    [],
    [[]],
    {},
    {"array": 0},
    {"array": 99},
    {"float": "nan"},
    {"tuple": [1]},
]


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
    refused(
        tmp_path / "model", container.pack(facts, [*arrays, np.zeros(2)]), "arrays that belong to nothing"
    )
    refused(tmp_path / "model", container.pack(facts, arrays[:-1]), "there is no array")
    model = facts["model"]
    twice = {**facts, "model": {**model, "basis": {**model["basis"], "missing": model["basis"]["category"]}}}
    refused(tmp_path / "model", container.pack(twice, arrays), "taken twice")


# ---- older versions


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.tm")))
def test_golden_files(name):
    """Files of all versions load, and predict what they did."""
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    model = load(GOLDEN / f"{name}.tm")
    assert type(model).__name__ == expected["estimator"]
    rows = (
        expected["rows"]
        if model._columns is None
        else pd.DataFrame(expected["rows"], columns=expected["columns"], dtype=object)
    )
    outputs = model.predict(rows) if "classes" not in expected else model.predict_proba(rows)
    np.testing.assert_allclose(outputs, expected["outputs"], rtol=1e-10, atol=1e-12)
    if "classes" in expected:
        assert model.classes_.tolist() == expected["classes"]


def test_there_are_golden_files_of_this_version():
    assert {path.name for path in GOLDEN.glob(f"*_{container.VERSION}.tm")} == {
        f"classifier_spline_{container.VERSION}.tm",
        f"regressor_standard_{container.VERSION}.tm",
    }
