"""Rows in .npy files, memory maps and arrays: what was written comes back, and what is wrong is named."""

import pickle

import numpy as np
import pytest

from row_blocks import fails, identical, row, sizes, whole
from tensormachines import blocks


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
    fails(lambda: blocks.npy(map_of["r"][:, 1:]), "X is a non-contiguous part of a memory map", "whole rows")


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
    if np.isinf(bad):  # NaN is a missing value, which fits refuse unless their basis takes it
        fails(lambda: blocks.npy(files, rows=2), "b.npy", row(4), "column 1 of X", word)
    good = saved("good.npy", np.ones((10, 2)))
    y = [saved("y1.npy", np.ones(4)), saved("y2.npy", with_bad(6, 5))]
    fails(lambda: blocks.npy(good, y, rows=3), "y2.npy", row(6), "y: ", word)
    fails(
        lambda: blocks.npy(good, saved("y.npy", with_bad((10, 3), (8, 2))), rows=3),
        "y.npy",
        row(9),
        "column 2 of y",
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


@pytest.mark.parametrize(
    "shape",
    ["(3, 2", "(3, )2)", "(-3, 2)", "(3.5, 2)", "(1 << 40, 2)", "(4294967296, 4294967296)", "3 2", "\\"],
)
def test_damaged_headers_are_refused(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path = tmp_path / "X.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48))
    with pytest.raises(ValueError, match=r"X\.npy (cannot be read as a \.npy file|is truncated)"):
        list(blocks.npy(path))
