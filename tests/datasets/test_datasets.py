"""The catalogue of data sets, files in folders, scaling, and the generator."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dataset_files import rows_of, write
from tensormachines import datasets
from tensormachines.datasets import (
    SETS,
    Data,
    UnavailableError,
    content_digest,
    ebay_generator,
    ebay_like,
    load,
    storage,
    unit_scaling,
)
from tensormachines.experiments.printed import PRINTED

TABLE_1 = {  # rows, test rows, columns, task, q
    "indoor": (19937, 1111, 520, "regression", 3),  # the paper prints 11114 test rows
    "year": (463715, 51630, 90, "regression", 2),
    "census": (18186, 2273, 119, "regression", 2),
    "slice": (42291, 10626, 384, "regression", 5),
    "buzz": (466600, 116650, 77, "regression", 3),
    "gisette": (6000, 1000, 5000, "binary", 3),
    "adult": (32561, 16281, 122, "binary", 3),
    "forest": (522910, 58102, 54, "binary", 4),
    "ebay": (500000, 100000, 478, "binary", 3),
    "cod_rna": (59535, 157413, 8, "binary", 4),
}


# The catalogue


@pytest.mark.parametrize("name", TABLE_1)
def test_sets_agree_with_table_1(name):
    known = SETS[name]
    assert (known.rows, known.test_rows, known.columns, known.task, known.degree) == TABLE_1[name]
    assert known.paper_name == name


def test_every_set_belongs_to_one_of_the_paper_and_only_originals_are_faithful():
    assert set(TABLE_1) == set(PRINTED)
    for known in SETS.values():
        assert known.paper_name in PRINTED
        assert known.title
        assert known.licence
        assert known.citation
        assert (known.degree, known.task) == (SETS[known.paper_name].degree, SETS[known.paper_name].task)
        if known.name != known.paper_name:
            assert not known.faithful
            assert known.note


def test_the_page_has_every_set_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    assert datasets.describe() in page
    for known in SETS.values():
        assert (
            sum(line.startswith((f"| `{known.name}` |", f"- `{known.name}` (")) for line in page.splitlines())
            == 2
        )


# Folders


def test_a_file_of_the_folder_loses_no_row_and_no_label(tmp_path, small):
    write(tmp_path, "forest", small)
    data = load("forest", tmp_path, verify=False)
    assert (data.origin, data.faithful) == ("folder", True)
    assert data.X_train.dtype == np.float32
    assert data.X_train.flags.c_contiguous
    assert data.y_train.dtype == np.int64
    assert rows_of(data) == sorted(map(tuple, np.column_stack([small["X_train"], small["y_train"]]).tolist()))
    np.testing.assert_array_equal(data.X_test, small["X_test"])
    np.testing.assert_array_equal(data.y_test, small["y_test"])


def test_training_rows_in_class_blocks_are_mixed_in_the_same_way_each_time(tmp_path, small):
    write(tmp_path, "cod_rna", small)
    first, again = (load("cod_rna", tmp_path, verify=False) for _ in range(2))
    assert abs(first.y_train[:15].sum()) < 15
    np.testing.assert_array_equal(first.X_train, again.X_train)
    few = load("cod_rna", tmp_path, verify=False, rows=7, test_rows=2)
    np.testing.assert_array_equal(few.X_train, first.X_train[:7])
    np.testing.assert_array_equal(few.y_train, first.y_train[:7])
    kept = {tuple(row) for row in np.column_stack([first.X_test, first.y_test])}
    assert {tuple(row) for row in np.column_stack([few.X_test, few.y_test])} <= kept
    assert few.X_test.shape == (2, 4)


def test_the_folder_may_come_from_the_environment(tmp_path, small, monkeypatch):
    write(tmp_path, "adult", small)
    monkeypatch.setenv("TENSORMACHINES_DATA", str(tmp_path))
    assert load("adult", verify=False).X_train.shape == (30, 4)


def test_access_points_that_are_not_heard_are_silent(tmp_path, small):
    small["X_train"] = np.tile(np.array([[100, -104, 100], [100, 0, -90]], np.int8), (15, 1))
    small["X_test"] = np.array([[-50, 100, 100], [-50, -104, 0]], np.int8)
    small["y_test"] = np.array([1.0, 2.0])
    write(tmp_path, "indoor", small)
    data = load("indoor_heard", tmp_path, verify=False)
    assert (data.name, data.faithful) == ("indoor_heard", False)
    np.testing.assert_array_equal(np.unique(data.X_train.toarray(), axis=0), [[0, 1, 0], [0, 105, 15]])
    # The first access point was never heard in training.
    np.testing.assert_array_equal(data.X_test.toarray(), [[0, 0, 0], [0, 1, 105]])


def test_what_is_at_hand(tmp_path, small, adult):
    assert datasets.is_at_hand("ebay_like")
    assert not any(datasets.is_at_hand(name, tmp_path) for name in SETS if name != "ebay_like")
    write(tmp_path, "indoor", small)
    load("adult")
    assert {name for name in SETS if datasets.is_at_hand(name, tmp_path)} == {
        "ebay_like",
        "indoor",
        "indoor_heard",
        "adult",
    }


def test_rows_with_few_entries_become_sparse(tmp_path, small):
    small["X_train"] = np.zeros((30, 40), np.int8)
    small["X_train"][:, 3] = 7
    small["X_test"] = np.ones((6, 40), np.int8)
    write(tmp_path, "gisette", small)
    data = load("gisette", tmp_path, verify=False)
    assert isinstance(data.X_train, sparse.csr_array)
    assert isinstance(data.X_test, sparse.csr_array)  # or a method would see two kinds
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(data.X_train.toarray(), small["X_train"])


def test_regression_targets_keep_their_digits(tmp_path, small):
    small["y_train"] = np.arange(30) + 1e-9
    write(tmp_path, "slice", small)
    data = load("slice", tmp_path)
    assert data.y_train.dtype == np.float64
    np.testing.assert_array_equal(np.sort(data.y_train), small["y_train"])


def test_arrays_that_are_not_the_known_ones_are_refused(tmp_path, small):
    write(tmp_path, "adult", small)
    with pytest.raises(UnavailableError, match=r"adult\.npz: its arrays do not have the known sha256"):
        load("adult", tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "adult.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(UnavailableError, match=r"adult\.npz: not a \.npz file"):
        load("adult", tmp_path)


def test_the_digest_sees_every_array_type_and_shape(small):
    digests = {content_digest(small)}
    for key in storage.ARRAYS:
        changed = dict(small)
        changed[key] = small[key].copy()
        changed[key].flat[-1] += 1
        digests |= {content_digest(changed), content_digest({**small, key: small[key].astype(np.int16)})}
    digests.add(content_digest({**small, "X_train": small["X_train"].reshape(60, 2)}))
    assert len(digests) == 10
    assert content_digest({**small, "X_train": np.asfortranarray(small["X_train"])}) in digests


@pytest.mark.parametrize("name", [name for name, known in SETS.items() if known.sha256])
def test_the_files_at_hand_are_the_known_ones(name, shared_data):
    file, known = shared_data(name), SETS[name]
    arrays = {key: file[key] for key in storage.ARRAYS}
    assert content_digest(arrays) == known.sha256
    assert arrays["X_train"].shape == (known.rows, known.columns)
    assert arrays["X_test"].shape == (known.test_rows, known.columns)


# Sets that are not available


def test_private_data_are_not_available():
    with pytest.raises(UnavailableError, match="private"):
        load("ebay")


@pytest.mark.parametrize("name", ["census", "slice_first_rows"])
def test_without_a_file_or_an_original_one_line_says_what_to_do(name, tmp_path):
    with pytest.raises(UnavailableError) as caught:
        load(name, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{name}: not in the folder {tmp_path.name}, and")
    assert message.endswith(f"Put {name}.npz there.")
    assert "\n" not in message


def test_downloads_can_be_switched_off(server, publish):
    publish("adult", {"a9a": b"", "a9a.t": b""}, 1, 1, 122)
    with pytest.raises(
        UnavailableError, match="TENSORMACHINES_DATA is not set, and downloads are switched off"
    ):
        load("adult", download=False)
    assert server.asked == []


def test_names_and_numbers_are_checked():
    with pytest.raises(ValueError, match=r"name must be one of \['adult'"):
        load("iris")
    with pytest.raises(ValueError, match="rows must be at least 1 or None, got 0"):
        load("ebay_like", rows=0)


# The paper's scaling


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_unit_scaling_by_hand(rng, kind):
    X, X_test = (
        rng.standard_normal((rows, 5)).astype(np.float32) * 10.0 ** np.arange(5, dtype=np.float32)
        for rows in (9, 4)
    )
    X[:, 2] = 0  # no norm
    X[3] = X_test[1] = 0
    data = Data("forest", kind(X), np.ones(9), kind(X_test), np.ones(4), True, "folder")
    scaled = unit_scaling(data)
    norms = [sum(float(x) ** 2 for x in column) ** 0.5 or 1.0 for column in X.T]
    for rows, result in ((X, scaled.X_train), (X_test, scaled.X_test)):
        assert type(result) is type(kind(X))
        assert result.dtype == np.float32
        dense = result.toarray() if sparse.issparse(result) else result
        for row, values in zip(dense, rows, strict=True):
            divided = [float(x) / norm for x, norm in zip(values, norms, strict=True)]
            length = sum(x * x for x in divided) ** 0.5 or 1.0
            np.testing.assert_allclose(row, [x / length for x in divided], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(
        data.X_train.toarray() if sparse.issparse(data.X_train) else data.X_train, X
    )


# The generator


def test_the_first_pairs_are_the_same_whatever_is_asked_for():
    X, y, X_test, y_test = ebay_like(2003, 20)
    fewer = ebay_like(7, 3)
    for whole, part in zip((X, y, X_test, y_test), fewer, strict=True):
        np.testing.assert_array_equal(whole[: len(part)], part)
    assert X.shape == (2003, 478)
    assert (X.dtype, y.dtype, X.flags.c_contiguous) == (np.float32, np.int64, True)
    assert set(np.unique(y)) == {-1, 1}
    assert len(np.unique(X[:, 0])) > 1990  # blocks do not repeat each other
    assert not np.array_equal(ebay_like(7, 3, seed=1)[0], fewer[0])
    data = load("ebay_like", rows=7, test_rows=3)
    np.testing.assert_array_equal(data.X_train, fewer[0])
    assert (data.origin, data.faithful) == ("generated", False)


def test_the_worth_of_an_item_is_as_documented():
    rng = np.random.default_rng([0, ebay_generator.WORLD])
    world = ebay_generator._World.draw(rng)
    traits, wishes = world.deviations * rng.standard_normal((3, 30)), rng.standard_normal((3, 4))
    norm = sum(0.64**k for k in range(4)) ** 0.5
    for row, worth in enumerate(world.worth(traits, wishes)):
        t = traits[row]
        value = 1.2 * sum(world.pleasing[:, 0] * t)
        for k in range(4):
            together = sum(world.together[0][:, k] * t) * sum(world.together[1][:, k] * t)
            value += 0.8**k / norm * wishes[row, k] * (0.6 * sum(world.wished[:, k] * t) + 1.2 * together)
        assert worth == pytest.approx(3 * np.tanh(value / 3))


def test_pairs_are_balanced_and_their_columns_of_two_kinds():
    X, y, *_ = ebay_like(3000, 1)
    assert abs(y.mean()) < 0.06
    positive = (X > 0).all(axis=0)
    assert positive.sum() == 2 * (239 // 3)
    np.testing.assert_array_equal(positive[:239], positive[239:])
    # Neither place is special.
    np.testing.assert_allclose(X[:, :239].mean(axis=0), X[:, 239:].mean(axis=0), atol=0.12)
