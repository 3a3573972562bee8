"""Sources of row blocks: the rows that were written come back, and what is wrong is named."""

import gc
import gzip
import pickle
import re
import struct
import sys
import threading
import time
import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from tensormachines import blocks


def whole(source):
    """All rows of a source as one X, y and weight; read twice, and through a pickle, to the same end."""
    first, second, third = list(source), list(source), list(pickle.loads(pickle.dumps(source)))
    for again in (second, third):
        assert [chunk.place for chunk in again] == [chunk.place for chunk in first]
        for one, other in zip(again, first, strict=True):
            np.testing.assert_array_equal(dense(one.X), dense(other.X))
            np.testing.assert_array_equal(one.y, other.y)
            np.testing.assert_array_equal(one.weight, other.weight)
    assert source.n_columns == first[0].X.shape[1]
    for chunk in first:
        assert sparse.issparse(chunk.X) or chunk.X.flags.c_contiguous
        assert chunk.X.dtype in (np.float32, np.float64)
        assert chunk.weight is None or chunk.weight.dtype == np.float64
    return tuple(joined([getattr(chunk, each) for chunk in first]) for each in ("X", "y", "weight"))


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def joined(parts):
    return None if parts[0] is None else np.concatenate([dense(part) for part in parts])


def sizes(source):
    return [chunk.X.shape[0] for chunk in source]


def fails(make, *parts, error=ValueError):
    """The one error, at the making of a source or while it is read, holds all parts of a message."""
    with pytest.raises(error) as caught:
        list(make())
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"
    assert type(caught.value) is error
    assert "\n" not in str(caught.value).strip()


def row(number):
    return f"data row {number} (counting from 1)"


def identical(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


# .npy


@pytest.fixture
def saved(tmp_path):
    def save(name, array):
        np.save(tmp_path / name, array)
        return tmp_path / name

    return save


@pytest.mark.parametrize("rows", [None, 1, 7, 40, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_files_cut_in_different_places(rng, saved, rows, dtype):
    X, y, weight = (
        rng.standard_normal((101, 3)).astype(dtype),
        rng.integers(0, 9, 101),
        rng.random(101).astype(np.float32),
    )
    X_files = [saved(f"X{i}.npy", part) for i, part in enumerate(np.split(X, [40, 41]))]
    y_files = [saved(f"y{i}.npy", part) for i, part in enumerate(np.split(y, [3, 90]))]
    source = blocks.npy(X_files, y_files, saved("weight.npy", weight), rows=rows)
    assert source.n_columns == 3
    found = whole(source)
    identical(found[0], X)
    identical(found[1], y)
    identical(found[2], weight.astype(np.float64))
    assert max(sizes(source)) <= (rows or 101)
    assert next(iter(source)).place == f"{X_files[0]}, rows 1 to {min(rows or 40, 40)}"


@pytest.mark.parametrize("dtype", [">f4", "<i2", np.bool_, np.uint8, np.float16])
def test_npy_of_other_types_becomes_float64(rng, saved, dtype):
    X = rng.integers(0, 2, (20, 2)).astype(dtype)
    found = whole(blocks.npy(saved("X.npy", X), rows=3))[0]
    np.testing.assert_array_equal(found, X)
    assert found.dtype == (np.float32 if dtype == ">f4" else np.float64)


def test_npy_is_float32_only_if_all_files_are(saved):
    files = [saved("a.npy", np.ones((2, 2), np.float32)), saved("b.npy", np.ones((2, 2)))]
    assert [chunk.X.dtype for chunk in blocks.npy(files)] == [np.float64, np.float64]


def test_npy_glob_fortran_order_and_targets_of_two_dimensions(rng, saved, tmp_path):
    X = rng.standard_normal((23, 4))
    saved("X1.npy", np.asfortranarray(X[:11]))
    saved("X2.npy", X[11:])
    found = whole(blocks.npy(str(tmp_path / "X*.npy"), saved("y.npy", np.asfortranarray(X[:, :2])), rows=5))
    identical(found[0], X)
    identical(found[1], X[:, :2])


@pytest.mark.parametrize(
    "labels", [np.array(["no", "yes", "maybe"]), np.array([True, False, True]), np.array([b"a", b"bc", b"d"])]
)
def test_npy_labels(saved, labels):
    identical(whole(blocks.npy(saved("X.npy", np.eye(3)), saved("y.npy", labels), rows=2))[1], labels)


def test_npy_maps_and_arrays(rng, saved):
    X = rng.standard_normal((30, 4))
    map_of = {mode: np.load(saved("X.npy", X), mmap_mode=mode) for mode in ("r", "r+", "c")}
    map_of["c"][0, 0] = 7
    changed = np.where((np.arange(30) == 0)[:, None] & (np.arange(4) == 0), 7, X)
    for array, expected in [
        (map_of["r"], X),
        (map_of["r+"], X),
        (map_of["c"], changed),
        (map_of["r"][5:20], X[5:20]),
        (map_of["r"][3:][2:][1:], X[6:]),
        (np.asarray(map_of["r"])[2:], X[2:]),
        (map_of["r"] * 2, X * 2),
        (map_of["r"].T, X.T),
        (np.load(saved("F.npy", np.asfortranarray(X)), mmap_mode="r"), X),
        (X[::2, 1:], X[::2, 1:]),
    ]:
        identical(whole(blocks.npy(array, rows=7))[0], expected)
    raw = np.memmap(saved("X.npy", X), dtype=np.float64, mode="r", offset=128 + 8 * 4, shape=(29, 4))
    identical(whole(blocks.npy(raw[1:], map_of["r"][:28, 0].copy()))[0], X[2:])
    map_of["r+"][1, 1] = 5
    assert whole(blocks.npy(map_of["r+"]))[0][1, 1] == 5
    assert "X.npy" in repr(blocks.npy(map_of["r"]))
    assert len(pickle.dumps(blocks.npy(map_of["r"]))) < 1000
    fails(lambda: blocks.npy(map_of["r"][:, 1:]), "X is a part of a memory map", "whole rows")


def test_npy_errors(saved, tmp_path):
    good = saved("good.npy", np.ones((6, 2)))
    fails(lambda: blocks.npy(tmp_path / "none.npy"), "none.npy", error=FileNotFoundError)
    fails(lambda: blocks.npy(str(tmp_path / "z*.npy")), "z*.npy", error=FileNotFoundError)
    fails(lambda: blocks.npy([]), "list of files is empty")
    fails(lambda: blocks.npy(tmp_path), str(tmp_path), "folder")
    fails(lambda: blocks.npy(good, rows=0), "rows must be a whole number", "got 0")
    fails(lambda: blocks.npy(good, rows=2.5), "rows must be a whole number", "got 2.5")
    fails(
        lambda: blocks.npy(saved("one.npy", np.ones(3))),
        "one.npy",
        "X must have the shape (rows, columns)",
        "(3,)",
    )
    fails(lambda: blocks.npy(saved("flat.npy", np.ones((3, 0)))), "flat.npy", "(3, 0)")
    fails(lambda: blocks.npy(saved("none.npy", np.ones((0, 3)))), "none.npy", "no rows")
    fails(
        lambda: blocks.npy(saved("text.npy", np.array([["a", "b"]]))), "text.npy", "X must be numbers", "<U1"
    )
    fails(lambda: blocks.npy(saved("complex.npy", np.ones((2, 2), complex))), "complex.npy", "complex128")
    fails(lambda: blocks.npy(saved("when.npy", np.ones((2, 2), "M8[s]"))), "when.npy", "datetime64")
    fails(lambda: blocks.npy(saved("objects.npy", np.array([[1, None]]))), "objects.npy", "Python objects")
    fails(
        lambda: blocks.npy([good, saved("wide.npy", np.ones((2, 3)))]),
        "wide.npy",
        "(2, 3)",
        "(6, 2)",
        "good.npy",
    )
    fails(lambda: blocks.npy(good, saved("y.npy", np.ones(5))), "y.npy", "X has 6 rows, but y has 5")
    fails(
        lambda: blocks.npy(good, None, saved("w.npy", np.ones(7))), "w.npy", "X has 6 rows, but weight has 7"
    )
    fails(
        lambda: blocks.npy(good, None, saved("w.npy", np.ones((6, 1)))),
        "w.npy",
        "weight must have the shape (rows,), got (6, 1)",
    )
    fails(
        lambda: blocks.npy(good, [saved("y1.npy", np.ones(3)), saved("y2.npy", np.array(list("abc")))]),
        "y2.npy",
        "<U1",
        "float64",
        "y1.npy",
    )


def test_npy_files_that_are_no_npy_files(saved, tmp_path):
    good = saved("good.npy", np.ones((600, 2)))
    (tmp_path / "empty.npy").touch()
    (tmp_path / "text.npy").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "cut.npy").write_bytes(good.read_bytes()[:-1])
    (tmp_path / "header.npy").write_bytes(good.read_bytes()[:50])
    fails(lambda: blocks.npy(tmp_path / "empty.npy"), "empty.npy", "cannot be read as a .npy file")
    fails(lambda: blocks.npy(tmp_path / "text.npy"), "text.npy", "cannot be read as a .npy file")
    fails(lambda: blocks.npy(tmp_path / "header.npy"), "header.npy", "cannot be read as a .npy file")
    fails(lambda: blocks.npy(tmp_path / "cut.npy"), "cut.npy is truncated", "(600, 2)", "9728", "9727")
    source = blocks.npy(good)
    good.write_bytes(good.read_bytes()[:5000])
    fails(lambda: source, "good.npy is truncated")


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_npy_values_that_are_not_finite(saved, bad, word):
    def with_bad(shape, where):
        array = np.ones(shape)
        array[where] = bad
        return array

    files = [saved("a.npy", np.ones((5, 2))), saved("b.npy", with_bad((5, 2), (3, 1)))]
    fails(lambda: blocks.npy(files, rows=2), "b.npy", row(4), "column 2 of X", word)
    good = saved("good.npy", np.ones((10, 2)))
    y = [saved("y1.npy", np.ones(4)), saved("y2.npy", with_bad(6, 5))]
    fails(lambda: blocks.npy(good, y, rows=3), "y2.npy", row(6), "y: ", word)
    fails(
        lambda: blocks.npy(good, saved("y.npy", with_bad((10, 3), (8, 2))), rows=3),
        "y.npy",
        row(9),
        "column 3 of y",
        word,
    )
    fails(
        lambda: blocks.npy(good, None, saved("w.npy", with_bad(10, 7)), rows=3),
        "w.npy",
        row(8),
        "weight",
        word,
    )
    fails(
        lambda: blocks.npy(good, None, saved("w.npy", -np.arange(10.0)), rows=3),
        "w.npy",
        row(2),
        "negative weight, -1",
    )


def test_huge_finite_numbers_pass(saved):
    X = np.full((10, 2), 1e308)
    identical(whole(blocks.npy(saved("X.npy", X)))[0], X)


# Parquet and Arrow


@pytest.fixture
def written(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(name, columns, **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns), path, **options
        )
        return path

    return write


@pytest.mark.parametrize("rows", [None, 1, 7, 33, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_folder(rng, written, tmp_path, rows, dtype):
    X, y, weight = (
        rng.standard_normal((101, 3)).astype(dtype),
        rng.integers(0, 9, 101).astype(np.int32),
        rng.random(101),
    )
    for i, part in enumerate(np.split(np.arange(101), [40, 41, 41])):
        columns = {"b": X[part, 1], "y": y[part], "a": X[part, 0], "w": weight[part], "c": X[part, 2]}
        written(
            f"data/{i}.parquet",
            {name: columns[name] for name in (sorted(columns) if i else columns)},
            row_group_size=9,
        )
    (tmp_path / "data" / "_SUCCESS").touch()
    source = blocks.parquet(tmp_path / "data", "y", "w", rows=rows)
    assert source.feature_names == ["b", "a", "c"]
    found = whole(source)
    identical(found[0], X[:, [1, 0, 2]])
    identical(found[1], y)
    identical(found[2], weight)
    if rows == 33:
        assert sizes(source) == [33, 7, 1, 33, 27]
        assert [chunk.place for chunk in source][1] == f"{tmp_path / 'data' / '0.parquet'}, rows 34 to 40"
    chosen = blocks.parquet(tmp_path / "data", ["y", "c"], columns=["a", "w"], rows=rows)
    found = whole(chosen)
    identical(found[0], np.column_stack([X[:, 0], weight]))
    identical(found[1], np.column_stack([y, X[:, 2]]).astype(np.result_type(np.int32, dtype)))


def test_parquet_numbers_are_numbers(written):
    pyarrow = pytest.importorskip("pyarrow")
    first = {
        "a.b": pyarrow.array([1, 2], pyarrow.int8()),
        "flag": [True, False],
        "half": np.array([0.5, 1], np.float16),
        "price": pyarrow.array([Decimal("1.25"), Decimal("2.50")]),
        "code": pyarrow.array([5, 7]).dictionary_encode(),
        "y": [1, 2],
    }
    second = {**first, "a.b": [0.25, 3.0], "y": [True, False]}
    expected = np.array([[1, 1, 0.5, 1.25, 5], [2, 0, 1, 2.5, 7], [0.25, 1, 0.5, 1.25, 5], [3, 0, 1, 2.5, 7]])
    found = whole(blocks.parquet([written("1.parquet", first), written("2.parquet", second)], "y"))
    identical(found[0], expected)
    identical(found[1], np.array([1, 2, 1, 0]))


@pytest.mark.parametrize("form", ["string", "large_string", "dictionary", "string_view"])
def test_parquet_labels(written, form):
    pyarrow = pytest.importorskip("pyarrow")
    labels = ["no", "yes", "", "blåbær"]
    column = (
        pyarrow.array(labels).dictionary_encode()
        if form == "dictionary"
        else pyarrow.array(labels, getattr(pyarrow, form)())
    )
    try:
        files = [
            written(name, {"x": np.arange(4.0), "y": column}, row_group_size=2)
            for name in ("1.parquet", "2.parquet")
        ]
    except pyarrow.ArrowNotImplementedError:
        pytest.skip(f"this version of pyarrow does not write {form}")
    found = whole(blocks.parquet(files, "y", rows=3))[1]
    assert found.dtype.kind == "U"
    assert found.tolist() == labels * 2


def test_parquet_columns_in_the_names_of_folders(written, tmp_path):
    written("year=1/data/kind=2023/a.parquet", {"x": [1.0, 2.0]})
    written("year=1/data/kind=2024/a.parquet", {"x": [3.0]})
    source = blocks.parquet(tmp_path / "year=1" / "data", "x")
    assert source.feature_names == ["kind"]
    identical(whole(source)[0], np.array([[2023.0], [2023.0], [2024.0]]))
    written("year=1/data/kind=new%20one/a.parquet", {"x": [3.0]})
    fails(
        lambda: blocks.parquet(tmp_path / "year=1" / "data", "kind"),
        "kind=new%20one",
        "column 'kind'",
        "string",
        "int64",
    )
    written("text/kind=new%20one/a.parquet", {"x": [3.0]})
    assert whole(blocks.parquet(tmp_path / "text", "kind"))[1].tolist() == ["new one"]
    written("missing/kind=__HIVE_DEFAULT_PARTITION__/a.parquet", {"x": [3.0]})
    fails(lambda: blocks.parquet(tmp_path / "missing", "x"), "missing", "column 'kind'", "a missing value")
    identical(whole(blocks.parquet(tmp_path / "year=1" / "data" / "kind=2024"))[0], np.array([[3.0]]))
    written("only/kind=-5/a.parquet", {"x": ["text", "text"]})
    identical(whole(blocks.parquet(tmp_path / "only", columns=["kind"]))[0], np.array([[-5.0], [-5.0]]))


def test_arrow_tables_and_datasets(rng, written, tmp_path):
    pyarrow, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    X = rng.standard_normal((50, 2))
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "part": np.arange(50) // 20})
    found = whole(blocks.arrow(table, "part", columns=["b", "a"], rows=7))
    identical(found[0], X[:, ::-1])
    identical(found[1], np.arange(50) // 20)
    datasets.write_dataset(
        table, tmp_path / "data", format="parquet", partitioning=["part"], partitioning_flavor="hive"
    )
    dataset = datasets.dataset(tmp_path / "data", partitioning="hive")
    source = blocks.arrow(dataset, "part", rows=7)
    assert sizes(source) == [7, 7, 6, 7, 7, 6, 7, 3]
    found = whole(source)
    identical(found[0], X)
    np.testing.assert_array_equal(found[1], np.arange(50) // 20)
    assert next(iter(source)).place == f"{tmp_path / 'data' / 'part=0' / 'part-0.parquet'}, rows 1 to 7"
    filtered = [chunk.X for chunk in blocks.arrow(dataset.filter(datasets.field("part") > 0), "part", rows=7)]
    identical(np.concatenate(filtered), X[20:])
    memory = [chunk.X for chunk in blocks.arrow(datasets.dataset(table), "part", rows=7)]
    identical(np.concatenate(memory), X)
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table, tmp_path / "table.feather")
    identical(
        whole(blocks.arrow(datasets.dataset(tmp_path / "table.feather", format="feather"), "part", rows=7))[
            0
        ],
        X,
    )
    fails(lambda: blocks.arrow(table.to_pandas()), "pyarrow.dataset.Dataset or a pyarrow.Table", "DataFrame")
    fails(lambda: blocks.arrow(table.schema.empty_table()), "the table", "no rows")


def test_parquet_errors_of_columns(written, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    good = written("good.parquet", {"a": [1, 2], "b": [1.0, 2.0], "y": [0, 1]})

    def also(name, columns):
        return [good, written(name, columns)]

    fails(lambda: blocks.parquet(good, "z"), "good.parquet", "no column 'z'", "a, b, y")
    fails(lambda: blocks.parquet(good, columns=["a", "q"]), "good.parquet", "no column 'q'", "a, b, y")
    fails(lambda: blocks.parquet(good, "y", "y"), "'y'", "more than once")
    fails(lambda: blocks.parquet(good, columns=["a", "a"]), "'a'", "more than once")
    fails(lambda: blocks.parquet(good, columns="a"), "columns must be a list of names, got the text 'a'")
    fails(lambda: blocks.parquet(good, ["a", "b", "y"]), "good.parquet", "no columns for X")
    less, more = {"a": [1], "y": [0]}, {"a": [1], "b": [1], "y": [0], "c": [0]}
    fails(lambda: blocks.parquet(also("less.parquet", less), "y"), "less.parquet", "no column 'b'", "a, y")
    fails(
        lambda: blocks.parquet(also("more.parquet", more), "y"), "more.parquet", "column 'c'", "good.parquet"
    )
    assert sizes(blocks.parquet(also("more.parquet", more), "y", columns=["a", "b"])) == [2, 1]
    text = {"a": ["x"], "b": [1], "y": [0]}
    fails(
        lambda: blocks.parquet(also("text.parquet", text), "y"),
        "text.parquet",
        "column 'a'",
        "string",
        "int64",
        "good.parquet",
    )
    label = {"a": [1], "b": [1], "y": ["x"]}
    fails(
        lambda: blocks.parquet(also("label.parquet", label), "y"),
        "label.parquet",
        "column 'y'",
        "string",
        "int64",
        "good.parquet",
    )
    fails(
        lambda: blocks.parquet(tmp_path / "label.parquet", ["a", "y"]),
        "label.parquet",
        "['a', 'y']",
        "numbers and text",
    )
    for name, values in {
        "when": [np.datetime64("2024-01-01", "s")],
        "list": [[1.0]],
        "bytes": [b"x"],
    }.items():
        bad = written(f"{name}.parquet", {"a": [1.0], name: values})
        fails(
            lambda bad=bad: blocks.parquet(bad),
            f"{name}.parquet",
            f"column '{name}'",
            "numbers or text needed, got the type",
        )
        fails(lambda bad=bad, name=name: blocks.parquet(bad, None, name), "numbers needed, got the type")
        fails(
            lambda bad=bad, name=name: blocks.parquet(bad, name),
            f"{name}.parquet",
            f"column '{name}'",
            "numbers or text needed",
        )
    twice = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    fails(
        lambda: blocks.parquet(written("twice.parquet", twice)),
        "twice.parquet",
        "more than one column named 'a'",
    )
    fails(lambda: blocks.arrow(twice), "the table", "more than one column named 'a'")


def test_parquet_errors_of_values(written):
    columns = {name: np.ones(20) for name in ("a", "b", "y", "w")}

    def with_value(name, value):
        values = [1.0] * 20
        values[15] = value
        return [
            written("good.parquet", columns),
            written("bad.parquet", {**columns, name: values}, row_group_size=6),
        ]

    for name, value, word in [
        *(("y", value, "a missing value") for value in (None, np.nan)),
        *(("w", value, "a missing value") for value in (None, np.nan)),
        *((name, np.inf, "infinity") for name in "abyw"),
    ]:
        files = with_value(name, value)
        fails(
            lambda files=files: blocks.parquet(files, "y", "w", rows=9),
            "bad.parquet",
            row(16),
            f"column '{name}'",
            word,
        )
    for value in (None, np.nan):
        X, y, weight = whole(blocks.parquet(with_value("b", value), "y", "w", rows=9))
        np.testing.assert_array_equal(np.argwhere(np.isnan(X)), [[35, 1]])
        assert y.tolist() == weight.tolist() == [1.0] * 40
    fails(
        lambda: blocks.parquet(with_value("w", -2.0), "y", "w", rows=9),
        "bad.parquet",
        row(16),
        "column 'w'",
        "negative weight, -2",
    )
    label = written("label.parquet", {"x": [1, 2], "y": ["a", None]})
    fails(lambda: blocks.parquet(label, "y"), "label.parquet", row(2), "column 'y'", "a missing value")


def test_parquet_errors_of_files(rng, written, tmp_path):
    good = written("good.parquet", {"a": rng.standard_normal(5000), "y": np.ones(5000)})
    content = good.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[:-100])
    (tmp_path / "corrupt.parquet").write_bytes(content[:4] + b"\xff" * 300 + content[304:])
    (tmp_path / "text.parquet").write_text("a,y\n1,2\n")
    (tmp_path / "zero.parquet").touch()
    (tmp_path / "folder").mkdir()
    for name in ("cut", "corrupt", "text", "zero"):
        fails(
            lambda name=name: blocks.parquet([good, tmp_path / f"{name}.parquet"], "y"),
            f"{name}.parquet",
            "cannot be read",
        )
    fails(lambda: blocks.parquet(tmp_path / "none.parquet"), "none.parquet", error=FileNotFoundError)
    fails(lambda: blocks.parquet(str(tmp_path / "no*.parquet")), "no*.parquet", error=FileNotFoundError)
    fails(lambda: blocks.parquet(tmp_path / "folder"), "folder", "no files", error=FileNotFoundError)
    fails(
        lambda: blocks.parquet("s3://bucket/data.parquet"),
        "s3://bucket",
        "blocks.arrow",
        error=FileNotFoundError,
    )
    fails(
        lambda: blocks.parquet(written("none.parquet", {"a": np.ones(0), "y": np.ones(0)}), "y"),
        "none.parquet",
        "no rows",
    )
    assert sizes(blocks.parquet([tmp_path / "none.parquet", good], "y")) == [5000]
    source = blocks.parquet(good, "y")
    good.unlink()
    fails(lambda: source, "good.parquet", error=FileNotFoundError)


def test_parquet_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for make in (blocks.parquet, blocks.arrow):
        with pytest.raises(ImportError, match=re.escape('pip install "tensormachines[parquet]"')):
            make("data.parquet")


# CSV


@pytest.fixture
def text(tmp_path):
    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")
        return path

    return write


def lines_of(columns, delimiter=",", end="\n"):
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return "".join(delimiter.join(map(str, row)) + end for row in [tuple(columns), *rows])


@pytest.mark.parametrize("rows", [None, 1, 7, 40])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_csv_files(rng, text, tmp_path, rows, delimiter):
    X, y, weight = rng.standard_normal((60, 2)) * 1e-9, rng.integers(-5, 5, 60), rng.random(60)
    for i, part in enumerate(np.split(np.arange(60), [20, 21])):
        columns = {"a": X[part, 0], "y": y[part], "b": X[part, 1], "weight": weight[part]}
        text(f"{i}.csv", lines_of(columns, delimiter, "\r\n" if i else "\n"))
    source = blocks.csv(tmp_path / "*.csv", "y", "weight", delimiter=delimiter, rows=rows)
    assert source.feature_names == ["a", "b"]
    found = whole(source)
    identical(found[0], X)
    identical(found[1], y.astype(np.float64))
    identical(found[2], weight)
    if rows == 7:
        assert sizes(source) == [7, 7, 6, 1, 7, 7, 7, 7, 7, 4]
        assert [chunk.place for chunk in source][1] == f"{tmp_path / '0.csv'}, rows 8 to 14"
    several = blocks.csv(
        tmp_path / "*.csv",
        ["b", "y"],
        columns=["weight", "a"],
        delimiter=delimiter,
        rows=rows,
        dtype=np.float32,
    )
    found = whole(several)
    identical(found[0], np.column_stack([weight, X[:, 0]]).astype(np.float32))
    identical(found[1], np.column_stack([X[:, 1], y]))


@pytest.mark.parametrize("rows", [None, 1, 2])
def test_csv_labels_quotes_and_columns_not_asked_for(text, rows):
    content = '\ufeffa,"the, b",name,y\n1,"2.5","Smith, ""J""",yes\n-3,4e2,,"no, never"\n'
    content += ' 5 ,.5,5" tall # 3,"""maybe"""'
    source = blocks.csv(text("a.csv", content), "y", columns=["the, b", "a"], rows=rows)
    X, y, weight = whole(source)
    identical(X, np.array([[2.5, 1], [400, -3], [0.5, 5]]))
    assert y.tolist() == ["yes", "no, never", '"maybe"']
    assert weight is None
    assert whole(blocks.csv(text("b.csv", "a,b\n1,2\n3,4\n")))[1] is None


def test_csv_text_that_looks_like_numbers_stays_text(text):
    source = blocks.csv(text("a.csv", "x,y\n1,a\n2,7\n3,8\n"), "y", rows=1)
    assert whole(source)[1].tolist() == ["a", "7", "8"]


def test_csv_blank_lines_are_skipped(text):
    for content in (
        "x,y\n1,2\n3,4\n\n\n\n",
        "x,y\n1,2\n\n3,4\n",
        "x,y\n1,2\n  \n\n\n3,4\n",
        "\nx,y\n\n1,2\n3,4\n",
    ):
        for rows in (None, 1, 2, 3):
            source = blocks.csv(text("a.csv", content), "y", rows=rows)
            assert whole(source)[1].tolist() == [2, 4]
        bad = text("b.csv", content + "5,6,7\n")
        fails(lambda bad=bad: blocks.csv(bad, "y"), "b.csv", row(3), "3 fields")
    assert whole(blocks.csv(text("one.csv", "x\n1\n\n3\n")))[0].tolist() == [[1], [3]]


def test_csv_errors_of_headers(text, tmp_path):
    good = text("good.csv", "a,b,y\n1,2,3\n")
    fails(lambda: blocks.csv(tmp_path / "none.csv"), "none.csv", error=FileNotFoundError)
    fails(lambda: blocks.csv(tmp_path / "no*.csv"), "no*.csv", error=FileNotFoundError)
    fails(lambda: blocks.csv(good, "z"), "good.csv", "no column 'z'", "a, b, y")
    fails(lambda: blocks.csv(good, "y", "w"), "good.csv", "no column 'w'")
    fails(lambda: blocks.csv(good, delimiter=", "), "delimiter must be one character", "', '")
    fails(lambda: blocks.csv(good, dtype=int), "dtype must be float32 or float64", "int")
    fails(
        lambda: blocks.csv(text("twice.csv", "a,b,a\n1,2,3\n")), "twice.csv", "more than one column named 'a'"
    )
    fails(lambda: blocks.csv(text("empty.csv", "")), "empty.csv is empty", "must name the columns")
    fails(lambda: blocks.csv(text("header.csv", "a,b\n")), "header.csv", "no rows")
    fails(lambda: blocks.csv(text("data.csv", "1.5,2\n3,4\n")), "data.csv", "numbers only: 1.5, 2")
    assert blocks.csv(text("pandas.csv", "0,1\n3,4\n"), "1").feature_names == ["0"]
    assert sizes(blocks.csv([good, text("rest.csv", "a,b,y\n")])) == [1]
    other = text("other.csv", "a,c,y\n1,2,3\n")
    fails(
        lambda: blocks.csv([good, other], "y"), "other.csv", "['a', 'c', 'y']", "['a', 'b', 'y']", "good.csv"
    )
    fails(lambda: blocks.csv(text("open.csv", 'a,"b\nc\n1,2\n')), "open.csv", "header", "quote is not closed")
    assert blocks.csv(text("lines.csv", 'a,"b\nc"\n1,2\n')).feature_names == ["a", "b\nc"]
    fails(
        lambda: blocks.csv(text("latin.csv", "a,bl\u00e5\n1,2\n".encode("latin1"))),
        "latin.csv",
        "line 1 of the file",
        "UTF-8",
    )
    source = blocks.csv(good, "y")
    text("good.csv", "b,a,y\n1,2,3\n")
    fails(lambda: source, "good.csv", "header line has changed")


@pytest.mark.parametrize("rows", [None, 1, 3, 4])
@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("1,2", None, "2 fields, but the header has 4"),
        ("1,2,3,4,5", None, "5 fields, but the header has 4"),
        ("1,2,3,4,", None, "5 fields, but the header has 4"),
        ("1,2,,1", "y", "a missing value"),
        ("1,2,NaN,1", "y", "a missing value"),
        ("1,2,3,", "w", "a missing value"),
        ("1,2,3,x", "w", "'x', where a number is needed"),
        ("1,2,3,nan", "w", "a missing value"),
        ("1,2,3,-1", "w", "negative weight, -1"),
        ("1,2,3,inf", "w", "'inf', where a number is needed"),
        ('1,"2,3,1', None, "perhaps a quote is not closed"),
        ('1,"2"x,3,1', None, "not CSV"),
    ],
)
def test_csv_errors_of_rows(text, rows, line, column, message):
    parts = (row(5), message) if column is None else (row(5), f"column {column!r}", message)
    good = text("good.csv", "a,b,y,w\n" + "1,2,3,1\n" * 5)
    for after in ("", "\n", "\n1,2,3,1\n"):
        bad = text("bad.csv", "a,b,y,w\n" + "1,2,3,1\n" * 4 + line + after)
        fails(lambda bad=bad: blocks.csv([good, bad], "y", "w", rows=rows), "bad.csv", *parts)


@pytest.mark.parametrize("rows", [None, 1, 3])
@pytest.mark.parametrize("cell", ["abc", "2 3", "1_000", "-inf", "1e999"])
def test_csv_cells_that_are_no_numbers(text, rows, cell):
    """They make a category of a column, in whichever block they are, unless it is said to hold numbers."""
    file = text("a.csv", "a,b,y\n" + "1,2,3\n" * 4 + f"1,{cell},3\n1,,3\n")
    source = blocks.csv(file, "y", rows=rows)
    frames = [chunk.X for chunk in source]
    assert [level for frame in frames for level in texts(frame.column("b"))] == ["2"] * 4 + [cell, None]
    assert np.concatenate([frame.column("a") for frame in frames]).tolist() == [1.0] * 6
    fails(
        lambda: blocks.csv(file, "y", rows=rows, number=["b"]),
        "a.csv",
        row(5),
        "column 'b'",
        f"{cell!r}, where a number is needed",
    )


def texts(levels):
    return [None if code < 0 else levels.names[code] for code in levels.codes]


@pytest.mark.parametrize("rows", [None, 1, 2])
def test_csv_missing_values_booleans_and_categories(text, rows):
    file = text("a.csv", 'a,b,c,d\n1,true,"x, y\nz",\n,False,NA,7\nNaN,,w,8\n?,TRUE,w,9\n')
    source = blocks.csv(file, columns=["a", "b", "d"], rows=rows)
    nan = np.nan
    identical(whole(source)[0], np.array([[1, 1, nan], [nan, 0, 7], [nan, nan, 8], [nan, 1, 9]]))
    frames = [chunk.X for chunk in blocks.csv(file, columns=["c", "a"], category=["a"], rows=rows)]
    assert [level for frame in frames for level in texts(frame.column("c"))] == ["x, y\nz", None, "w", "w"]
    assert [level for frame in frames for level in texts(frame.column("a"))] == ["1", None, None, None]
    fails(lambda: blocks.csv(file, number=["a"], category=["a"]), "number and category both name 'a'")


def test_csv_is_unpacked_and_its_delimiter_seen(text):
    for content in (b"a;b\n1;2\n", b"a|b\n1|2\n", b"a\tb\n1\t2\n", b"a,b\n1,2\n"):
        for data in (content, gzip.compress(content)):
            identical(whole(blocks.csv(text("a.csv", data), "b"))[0], np.array([[1.0]]))
    identical(whole(blocks.csv(text("a.csv", "a;b\n1,5;2\n"), decimal=","))[0], np.array([[1.5, 2.0]]))
    cut = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20]
    fails(lambda: blocks.csv(text("cut.csv", cut)), "cut.csv cannot be read; it may be truncated")
    fails(lambda: blocks.csv(text("a.csv", "a\n1\n"), decimal="x"), "decimal must be", "'x'")


@pytest.mark.parametrize("rows", [None, 1, 2])
def test_csv_targets_are_text_if_any_cell_is(text, rows):
    source = blocks.csv(text("a.csv", "x,y\n1,2\n2,3\n3,abc\n"), "y", rows=rows)
    assert whole(source)[1].tolist() == ["2", "3", "abc"]
    flags = blocks.csv(text("b.csv", "x,y\n1,True\n2,False\n"), "y", rows=rows)
    assert whole(flags)[1].tolist() == ["True", "False"]
    for content in ("x,y\n1,b\n2,a\n3,\n", "x,y\n1,2\n2,3\n3,\n"):
        fails(
            lambda content=content: blocks.csv(text("a.csv", content), "y", rows=rows),
            "a.csv",
            row(3),
            "column 'y'",
            "a missing value",
        )
    fails(lambda: blocks.csv(text("a.csv", "x,y\n1,b\n2,a,c\n"), "y"), "a.csv", row(2), "3 fields")
    fails(lambda: blocks.csv(text("a.csv", "x,y,z\n1,b,2\n"), ["y", "z"]), "['y', 'z'] are numbers and text")
    assert whole(blocks.csv(text("a.csv", 'x,y\n1,b\n2,"a\nc"\n'), "y"))[1].tolist() == ["b", "a\nc"]


def test_csv_of_other_encodings_and_of_large_numbers(text):
    content = "x,y\n" + "1,a\n" * 3 + "2,\u00e5\n"
    latin = text("a.csv", content.encode("latin1"))
    fails(lambda: blocks.csv(latin, "y", rows=2), "a.csv", "line 5 of the file", "UTF-8")
    big = text("big.csv", "x,y\n1,1\n1e300,2\n")
    fails(
        lambda: blocks.csv(big, "y", dtype=np.float32), "big.csv", row(2), "column 'x' in float32", "infinity"
    )
    assert whole(blocks.csv(big, "y"))[0][1, 0] == 1e300


# LIBSVM


@pytest.mark.parametrize("rows", [None, 1, 7, 40])
@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_svmlight_files(rng, tmp_path, rows, zero_based, given):
    X = rng.standard_normal((60, 9)).round(6) * (rng.random((60, 9)) < 0.4)
    X[0, 0] = X[50, 8] = 1
    X[3] = X[20] = 0
    y = rng.integers(-2, 2, 60).astype(np.float64)
    for i, part in enumerate(np.split(np.arange(60), [20, 21])):
        comment = "one\ntwo" if i == 0 else None
        dump_svmlight_file(
            sparse.csr_matrix(X[part]),
            y[part],
            str(tmp_path / f"{i}.svm"),
            zero_based=zero_based,
            comment=comment,
        )
    options = {"n_features": 9, "zero_based": zero_based} if given else {}
    source = blocks.svmlight(str(tmp_path / "*.svm"), rows=rows, **options)
    assert source.n_columns == (9 if given else None)
    found = whole(source)
    identical(found[0], X)
    identical(found[1], y)
    assert all(isinstance(chunk.X, sparse.csr_array) for chunk in source)
    places = [chunk.place for chunk in source]
    assert places[0].startswith(f"{tmp_path / '0.svm'}, rows 1 to ")
    assert next(iter(blocks.svmlight(tmp_path / "0.svm", dtype=np.float32))).X.dtype == np.float32


def test_svmlight_parts_of_the_format(text):
    file = text(
        "a.svm", "# comment\n1 qid:3 2:0.5 4:1 # 9:9\n-1 # nothing\n# another\n2.5\t1:3\n+1 qid:4\n\n\n"
    )
    for rows in (None, 1, 2, 3):
        X, y, _ = whole(blocks.svmlight(file, rows=rows))
        identical(X, np.array([[0, 0.5, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]))
        identical(y, np.array([1, -1, 2.5, 1]))
    assert whole(blocks.svmlight(file, n_features=7))[0].shape == (4, 7)
    assert whole(blocks.svmlight(file, zero_based=True))[0].shape == (4, 5)


@pytest.mark.parametrize("rows", [None, 1, 3, 4])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("abc 1:1", "y is 'abc', where a number is needed"),
        ("1:1 2:1", "y is '1:1', where a number is needed"),
        ("1 1:x", "'1:x', where an entry index:value"),
        ("1 1:", "'1:', where an entry index:value"),
        ("1 a:1 2:2", "'a:1', where an entry index:value"),
        ("1 1:1 2", "'2', where an entry index:value"),
        ("1 1:1 2:1 1:1", "the index 1 after 2"),
        ("1 1:1 1:1", "the index 1 after 1"),
        ("1 1:nan", "index 1: NaN"),
        ("1 2:inf", "index 2: infinity"),
        ("nan 2:1", "y: NaN"),
        ("1 -1:1", "the index -1"),
    ],
)
def test_svmlight_errors_of_rows(text, rows, given, line, message):
    options = {"n_features": 3, "zero_based": False} if given else {}
    good = text("good.svm", "1 1:1 3:2\n" * 5)
    bad = text("bad.svm", "# comment\n" + "1 1:1 3:2\n" * 4 + line + "\n1 1:1\n")
    fails(lambda: blocks.svmlight([good, bad], rows=rows, **options), "bad.svm", row(5), message)


def test_svmlight_errors(text, tmp_path):
    good = text("good.svm", "1 1:1 3:2\n1 0:4\n")
    fails(lambda: blocks.svmlight(tmp_path / "none.svm"), "none.svm", error=FileNotFoundError)
    fails(lambda: blocks.svmlight(good, n_features=3), "good.svm", row(1), "index 3", "n_features=3")
    fails(lambda: blocks.svmlight(good, zero_based=False), "good.svm", row(2), "index 0")
    fails(lambda: blocks.svmlight(good, n_features=0), "n_features must be at least 1, got 0")
    fails(lambda: blocks.svmlight(good, zero_based="no"), "zero_based must be", "'no'")
    fails(lambda: blocks.svmlight(text("empty.svm", "")), "empty.svm", "no entries index:value")
    assert sizes(blocks.svmlight([good, text("empty.svm", "\n\n")])) == [2]
    fails(lambda: blocks.svmlight(text("labels.svm", "1\n2\n")), "labels.svm", "no columns")
    fails(
        lambda: blocks.svmlight(text("comments.svm", "# a\n# b\n"), n_features=2), "comments.svm", "no rows"
    )
    for rows in (None, 1, 2, 3):
        for content in ("1 1:1\n\n1 1:1\n", "1 1:1\n \n1 1:1\n", "1 1:1\r\n\r\n1 1:1\r\n"):
            assert sum(sizes(blocks.svmlight(text("blank.svm", content), rows=rows))) == 2
    packed = text("packed.svm", gzip.compress(b"1 1:1\n-1 2:5\n"))
    identical(whole(blocks.svmlight(packed))[0], np.array([[1.0, 0.0], [0.0, 5.0]]))
    fails(lambda: blocks.svmlight(text("big.svm", "1 99999999999999999999:1\n")), row(1), "too large")


# Python iterables


class Twice:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("kind", [list, Twice, lambda items: Twice(items).__iter__])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterables(rng, kind, dtype):
    X, y, weight = rng.standard_normal((30, 3)).astype(dtype), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    cuts = [slice(0, 11), slice(11, 11), slice(11, 12), slice(12, 30)]
    source = blocks.iterable(kind([(X[cut], y[cut], weight[cut]) for cut in cuts]))
    assert source.n_columns is None
    found = whole(source)
    identical(found[0], X)
    identical(found[1], y)
    identical(found[2], weight.astype(np.float64))
    assert [chunk.place for chunk in source] == [
        "item 1, rows 1 to 11",
        "item 3, rows 1 to 1",
        "item 4, rows 1 to 18",
    ]
    assert whole(blocks.iterable(kind([X, X])))[1:] == (None, None)
    identical(whole(blocks.iterable(kind([(X, None, weight)])))[2], weight.astype(np.float64))
    identical(whole(blocks.iterable(list(source)))[0], X)


def test_iterables_of_any_layout_and_type(rng):
    X = rng.integers(0, 2, (10, 4))
    for item in (
        np.asfortranarray(X),
        X.astype(bool),
        X.tolist(),
        X.astype(object),
        X.astype(np.float16),
        np.repeat(X, 2, axis=1)[:, ::2],
    ):
        identical(whole(blocks.iterable([item]))[0], X.astype(np.float64))
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.csr_array, sparse.lil_array):
        source = blocks.iterable([form(X), form(X.astype(np.float32))])
        identical(whole(source)[0], np.vstack([X, X]).astype(np.float64))
        assert all(isinstance(chunk.X, sparse.csr_array) for chunk in source)
    twice = sparse.csr_array((np.ones(2), [1, 1], [0, 2]), shape=(1, 2))
    identical(whole(blocks.iterable([twice]))[0], np.array([[0.0, 2.0]]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_iterables_of_frames(frame):
    columns = {"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}
    series = pd.Series if frame is pd.DataFrame else pl.Series
    source = blocks.iterable([(frame(columns), series(["x", "yy"])), (frame(columns), series(["z", "z"]))])
    X, y, _ = whole(source)
    identical(X, np.array([[1, 0.5, 1], [2, 1.5, 0]] * 2))
    assert y.tolist() == ["x", "yy", "z", "z"]
    assert source.feature_names == ["a", "b", "c"]
    small = frame({"a": np.ones(2, np.float32)})
    assert next(iter(blocks.iterable([small]))).X.dtype == np.float32
    other = frame({"a": [1], "c": [1], "b": [1]})
    fails(lambda: blocks.iterable([frame(columns), other]), "item 2", "['a', 'c', 'b']", "['a', 'b', 'c']")
    fails(lambda: blocks.iterable([frame(columns), np.ones((2, 3))]), "item 2", "None", "['a', 'b', 'c']")
    mixed = blocks.iterable([frame({"a": [1, 2], "t": values}) for values in (["x", "y"], [None, "y"])])
    assert [level for chunk in mixed for level in texts(chunk.X.column("t"))] == ["x", "y", None, "y"]
    np.testing.assert_array_equal(whole(blocks.iterable([frame({"a": [1.0, None]})]))[0], [[1.0], [np.nan]])
    fails(lambda: blocks.iterable([frame({"t": np.array([1], "M8[ms]")})]), "item 1", "column 't'", "dates")


def test_iterables_of_pandas_types():
    nullable = pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": pd.array([True, False], "boolean")})
    identical(
        whole(blocks.iterable([(nullable, pd.Series(["x", "y"], dtype="category"))]))[0],
        np.array([[1.0, 1.0], [2.0, 0.0]]),
    )
    missing = pd.DataFrame({"a": pd.array([1, None], "Int64")})
    identical(whole(blocks.iterable([missing]))[0], np.array([[1.0], [np.nan]]))
    numbers, strings = pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": ["x", "2"]})
    fails(lambda: blocks.iterable([numbers, strings]), "item 2", "column 'a' holds text, but numbers before")
    levels = [texts(chunk.X.column("a")) for chunk in blocks.iterable([strings, numbers])]
    assert levels == [["x", "2"], ["1", "2"]]
    unnamed = blocks.iterable([pd.DataFrame(np.eye(2))])
    identical(whole(unnamed)[0], np.eye(2))
    assert unnamed.feature_names is None
    fails(
        lambda: blocks.iterable([pd.DataFrame(np.eye(2), columns=["a", "a"])]),
        "item 1",
        "more than one column named 'a'",
    )
    labels = pd.Series(["x", None], dtype="category")
    fails(lambda: blocks.iterable([(np.eye(2), labels)]), "item 1", row(2), "y", "a missing value")
    fails(
        lambda: blocks.iterable([(np.eye(2), np.array([None, 1.0], object))]),
        "item 1",
        row(1),
        "y",
        "a missing value",
    )
    whole_numbers = whole(blocks.iterable([(np.eye(2), np.array([2, 1], object))]))[1]
    identical(whole_numbers, np.array([2, 1]))


def test_iterators_are_refused():
    for once in (
        iter([np.eye(2)]),
        (np.eye(2) for _ in range(2)),
        zip([np.eye(2)], [np.ones(2)], strict=True),
    ):
        fails(lambda once=once: blocks.iterable(once), "only once", "a list", "__iter__", "function")
    fails(lambda: blocks.iterable(5), "iterable or a function", "int")
    spent = iter([np.eye(2)])
    source = blocks.iterable(lambda: spent)
    assert sizes(source) == [2]
    fails(lambda: source, "no rows")


def test_errors_of_iterables():
    X, y = np.ones((3, 2)), np.ones(3)
    narrow, sparse_X = np.ones((3, 1)), sparse.csr_array(X)

    def bad(*items):
        return lambda: blocks.iterable(list(items))

    fails(bad(), "no rows")
    fails(bad(X[:0]), "no rows")
    fails(bad(y), "item 1", "X must have 2 dimensions", "(3,)")
    fails(bad("text"), "item 1", "X must have 2 dimensions", "str")
    fails(bad([[1, 2], [3]]), "item 1", "X is not an array")
    fails(bad([["a", {}]]), "item 1", "column 2 of X is of type dict")
    fails(bad(X.astype(complex)), "item 1", "complex128")
    fails(bad(sparse_X.astype(complex)), "item 1", "complex128")
    fails(bad(X, (X, y, y, y)), "item 2", "tuple of 4")
    fails(bad((X, y), (X, y[:2])), "item 2", "X has 3 rows, but y has 2")
    fails(bad((X, y, y[:2])), "item 1", "X has 3 rows, but weight has 2")
    fails(bad((X, np.ones((3, 1, 1)))), "item 1", "y must have 1 or 2 dimensions")
    fails(bad((X, y, X)), "item 1", "weight must have 1 dimension")
    fails(bad((X, y.astype(complex))), "item 1", "y must be numbers or text", "complex128")
    fails(bad((X, y, -y)), "item 1", row(1), "negative weight")
    fails(bad(X, np.where([[0], [0], [1]], np.nan, X)), "item 2", row(3), "column 1 of X", "NaN")
    fails(bad((X, y), (X, y * np.inf)), "item 2", row(1), "y: infinity")
    hole = sparse.csr_array(([1.0, np.inf], ([0, 2], [0, 1])), shape=(3, 2))
    fails(bad(sparse_X, hole), "item 2", row(3), "column 2 of X", "infinity")
    fails(bad(X, narrow), "item 2", "1 columns of X", "2 columns of X in item 1, rows 1 to 3")
    fails(bad(X, sparse_X), "item 2", "a sparse X, but a dense X in item 1")
    fails(bad((X, y), X), "item 2", "no y, but y of numbers in item 1")
    fails(bad((X, y), (X, ["a", "b", "c"])), "item 2", "y of text, but y of numbers in item 1")
    fails(bad((X, y), (X, X)), "item 2", "y of numbers in 2 columns, but y of numbers in item 1")
    fails(bad((X, y), (X, y, y)), "item 2", "weights, but no weights in item 1")
    fails(bad(X.astype(np.float32), X), "item 2", "X is float64, but float32 in item 1")
    assert [chunk.X.dtype for chunk in blocks.iterable([X, X.astype(np.float32)])] == [np.float64, np.float64]


def test_corrupt_sparse_items_are_refused():
    X = sparse.csr_array(np.eye(3))
    X.indices[0] = 7
    fails(lambda: blocks.iterable([np.eye(3)[:0], X]), "item 2", "corrupt CSR")


# What all sources share


def test_representations(text, saved, tmp_path):
    a, b = text("a.csv", "x,y,w\n1,2,3\n"), text("b.csv", "x,y,w\n1,2,3\n")
    assert (
        repr(blocks.csv([a, b], "y", "w"))
        == f"<blocks.csv {a} and 1 more: 1 columns, target 'y', weight 'w'>"
    )
    X = saved("X.npy", np.ones((3, 2)))
    assert repr(blocks.npy(X, np.ones(3))) == f"<blocks.npy {X}: 3 rows, 2 columns, y the array y>"
    assert "iterable list" in repr(blocks.iterable([]))


def test_blocks_are_of_a_sensible_size_by_default(saved):
    wide, narrow = (
        saved("wide.npy", np.zeros((1100, 5000), np.uint8)),
        saved("narrow.npy", np.zeros((100_000, 3))),
    )
    assert sizes(blocks.npy(wide)) == [1024, 76]
    assert sizes(blocks.npy(narrow)) == [100_000]


def test_files_are_closed_when_an_iteration_is_left(text):
    # An open file that is forgotten is a ResourceWarning, and warnings are errors.
    for source in (
        blocks.csv(text("a.csv", "x\n" + "1\n" * 10), rows=2),
        blocks.svmlight(text("a.svm", "1 1:1\n" * 10), rows=2),
    ):
        for _ in source:
            break
        iteration = iter(source)
        next(iteration)
        del iteration
    gc.collect()


# Reading ahead


@pytest.fixture
def no_threads_left():
    before = threading.active_count()
    yield
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.usefixtures("no_threads_left")
class TestAhead:
    def test_order_is_kept(self):
        assert list(blocks.ahead(range(100))) == list(range(100))
        assert list(blocks.ahead([])) == []
        assert list(blocks.ahead([None, None])) == [None, None]

    def test_elements_are_made_in_another_thread(self):
        assert threading.get_ident() not in list(blocks.ahead(threading.get_ident() for _ in range(3)))

    def test_errors_come_through_with_their_traceback(self):
        def fail_at_third():
            yield 1
            yield 2
            raise ValueError("third")

        found = []
        with pytest.raises(ValueError, match="third") as caught:
            found.extend(blocks.ahead(fail_at_third()))
        assert found == [1, 2]
        assert any(
            frame.name == "fail_at_third" for frame in traceback.extract_tb(caught.value.__traceback__)
        )

    def test_no_more_than_one_is_made_ahead(self):
        made = []

        def numbers():
            for number in range(10):
                made.append(number)
                yield number

        for number in blocks.ahead(numbers()):
            time.sleep(0.01)
            assert len(made) <= number + 2
        assert len(made) == 10

    def test_it_is_made_ahead_while_the_consumer_works(self):
        second = threading.Event()

        def numbers():
            yield 1
            second.set()
            yield 2

        elements = blocks.ahead(numbers())
        next(elements)
        assert second.wait(timeout=10)
        elements.close()

    def test_the_consumer_may_drop_its_element(self):
        class Element:
            alive = 0

            def __init__(self):
                Element.alive += 1

            def __del__(self):
                Element.alive -= 1

        elements = blocks.ahead(Element() for _ in range(5))
        element = next(elements)
        del element
        time.sleep(0.05)
        assert Element.alive == 1
        elements.close()

    @pytest.mark.parametrize("leave", ["break", "close", "forget", "raise", "cycle", "never"])
    def test_the_thread_ends_when_the_consumer_leaves(self, leave):
        closed = []

        def numbers():
            try:
                yield from range(1000)
            finally:
                closed.append(True)

        elements = blocks.ahead(numbers())
        if leave == "never":
            return
        assert next(elements) == 0
        if leave == "break":
            for _ in elements:
                break
            del elements
        elif leave == "close":
            elements.close()
        elif leave == "forget":
            del elements
        elif leave == "cycle":
            cycle = [elements]
            cycle.append(cycle)
            del elements, cycle
            gc.collect()
        else:
            with pytest.raises(KeyError):
                self.consume(elements)
            del elements
        gc.collect()
        assert closed == [True]

    def consume(self, elements):
        for _ in elements:
            raise KeyError("consumer")

    def test_it_may_be_collected_in_its_own_thread(self):
        collected = threading.Event()
        box = []

        def numbers():
            yield 1
            while not box:
                time.sleep(0.001)
            box.clear()
            gc.collect()
            collected.set()
            yield 2

        elements = blocks.ahead(numbers())
        next(elements)
        gc.disable()
        try:
            cycle = [elements]
            cycle.append(cycle)
            del elements
            box.append(cycle)
            del cycle
            assert collected.wait(timeout=10)
        finally:
            gc.enable()
        while any(thread.name.startswith("tensormachines-ahead") for thread in threading.enumerate()):
            time.sleep(0.001)

    def test_sources_read_ahead(self, text):
        source = blocks.csv(text("a.csv", "x\n" + "".join(f"{i}\n" for i in range(50))), rows=7)
        np.testing.assert_array_equal(
            np.concatenate([chunk.X[:, 0] for chunk in blocks.ahead(source)]), np.arange(50)
        )
        text("a.csv", "x\n" + "1\n" * 40 + "z\n")  # of which numbers are known
        fails(lambda: blocks.ahead(source), "a.csv", row(41), "column 'x'", "'z'")


def test_damaged_arrow_is_noticed_before_it_is_used(tmp_path):
    """Its offsets are used as they are: where they lead out of the file, the process would end."""
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    data, offsets = path.read_bytes(), struct.pack("<4i", 0, 1, 2, 3)
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, struct.pack("<4i", 0, 1, 2, 1 << 30)))
    with pytest.raises(ValueError, match="cannot be read; it may be truncated, damaged"):
        list(blocks.arrow(datasets.dataset(path, format="ipc"), "y"))
