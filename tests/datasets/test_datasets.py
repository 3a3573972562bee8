import bz2
import gzip
import io
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse

from tensormachines import datasets
from tensormachines.datasets import (
    SETS,
    Data,
    UnavailableError,
    content_digest,
    ebay_generator,
    ebay_like,
    load,
    parsers,
    unit_scaling,
)
from tensormachines.datasets import download as download_module
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


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch, shared_data):
    """No test reads or writes the user's folders, or waits between tries; shared_data has looked for the data
    before.
    """
    monkeypatch.delenv("TENSORMACHINES_DATA", raising=False)
    monkeypatch.setenv("TENSORMACHINES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download_module, "PAUSE", 0.0)


@pytest.fixture
def server():
    """A web server with the files in ``server.files``; ``server.faults`` are used up one by one,
    ``server.asked`` has the paths.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            web.asked.append(self.path)
            fault = web.faults.pop(0) if web.faults else None
            body = web.files.get(self.path)
            if fault == "error" or body is None:
                self.send_error(503 if fault else 404)
                return
            self.send_response(200)
            if web.tell_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

        def log_message(self, *_):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.files, web.faults, web.asked, web.tell_length = {}, [], [], True
    web.url = f"http://127.0.0.1:{web.server_port}"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.fixture
def publish(server, monkeypatch):
    """Let a set of that many rows and columns have its original on the server."""

    def publish(name, files, rows, test_rows, columns, sha256=None):
        server.files.update({f"/{file}": body for file, body in files.items()})
        remotes = tuple(parsers.Remote(file, (f"{server.url}/{file}",), sha256) for file in files)
        monkeypatch.setitem(parsers.ORIGINALS, name, replace(parsers.ORIGINALS[name], remotes=remotes))
        monkeypatch.setitem(SETS, name, replace(SETS[name], rows=rows, test_rows=test_rows, columns=columns))

    return publish


def csv(table, header=""):
    return (header + "".join(",".join(f"{x:g}" for x in row) + "\n" for row in table)).encode()


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), body)
    return file.getvalue()


def tarred(name, body):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    return file.getvalue()


def svmlight(X, y):
    lines = []
    for row, label in zip(X, y, strict=True):
        lines.append(f"{label:+d} " + " ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row) if x) + "\n")
    return "".join(lines).encode()


def rows_of(data):
    """The training rows with their targets, as a set: their order is shuffled."""
    X = data.X_train.toarray() if sparse.issparse(data.X_train) else data.X_train
    return sorted(map(tuple, np.column_stack([X, data.y_train]).tolist()))


def write(folder, name, arrays):
    np.savez(folder / f"{name}.npz", **arrays)


@pytest.fixture
def small(rng):
    return {
        "X_train": rng.integers(1, 9, (30, 4)).astype(np.int8),
        "y_train": np.repeat([-1, 1], 15).astype(np.int8),
        "X_test": rng.integers(1, 9, (6, 4)).astype(np.int8),
        "y_test": np.repeat([-1, 1], 3).astype(np.int8),
    }


# What is known of the sets


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
    np.testing.assert_array_equal(
        data.X_test.toarray(), [[0, 0, 0], [0, 1, 105]]
    )  # the first was never heard in training


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
    with pytest.raises(UnavailableError, match=r"adult\.npz: its arrays are not those that are known"):
        load("adult", tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "adult.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(UnavailableError, match=r"adult\.npz: not a \.npz file"):
        load("adult", tmp_path)


def test_the_digest_sees_every_array_type_and_shape(small):
    digests = {content_digest(small)}
    for key in datasets.ARRAYS:
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
    arrays = {key: file[key] for key in datasets.ARRAYS}
    assert content_digest(arrays) == known.sha256
    assert arrays["X_train"].shape == (known.rows, known.columns)
    assert arrays["X_test"].shape == (known.test_rows, known.columns)


# What cannot be had


def test_private_data_are_never_to_be_had():
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


# Downloads


@pytest.fixture
def adult(rng, publish):
    """a9a and a9a.t, with 123 columns of which the last is empty in the second."""
    X, X_test = (rng.integers(0, 2, (rows, 123)) for rows in (6, 4))
    X_test[:, -1] = 0
    y, y_test = np.array([-1, 1, 1, -1, -1, 1]), np.array([1, -1, -1, 1])
    publish("adult", {"a9a": svmlight(X, y), "a9a.t": svmlight(X_test, y_test)}, 6, 4, 122)
    return X[:, :122], y, X_test[:, :122], y_test


def left_behind(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_a_download_is_parsed_kept_and_read_again(adult, server, tmp_path):
    X, y, X_test, y_test = adult
    data = load("adult")
    assert (data.origin, data.faithful) == ("download", True)
    assert rows_of(data) == sorted(map(tuple, np.column_stack([X, y]).tolist()))
    np.testing.assert_array_equal(data.X_test, X_test)
    np.testing.assert_array_equal(data.y_test, y_test)
    again = load("adult")
    assert again.origin == "cache"
    assert rows_of(again) == rows_of(data)
    assert server.asked == ["/a9a", "/a9a.t"]
    assert left_behind(tmp_path) == [
        "a9a",
        "a9a.sha256",
        "a9a.t",
        "a9a.t.sha256",
        "adult.npz",
        "adult.npz.sha256",
    ]


def test_originals_are_not_downloaded_twice_but_must_not_have_changed(adult, server, tmp_path):
    load("adult")
    (tmp_path / "cache" / "adult.npz").unlink()
    assert load("adult").origin == "download"
    assert len(server.asked) == 2
    (tmp_path / "cache" / "adult.npz").unlink()
    (tmp_path / "cache" / "originals" / "a9a").write_bytes(b"+1 1:1\n")
    with pytest.raises(UnavailableError, match=r"a9a: its sha256 is .* Delete the file to download it again"):
        load("adult")


def test_a_cache_that_has_changed_is_refused(adult, tmp_path):
    load("adult")
    path = tmp_path / "cache" / "adult.npz"
    arrays = dict(np.load(path))
    arrays["X_train"][0, 0] += 1
    np.savez(path, **arrays)
    with pytest.raises(UnavailableError, match="its arrays are not those that are known"):
        load("adult")


@pytest.mark.parametrize("faults", [["error"], ["cut"], ["error", "cut"]])
def test_what_fails_is_tried_again(adult, server, faults):
    server.faults = list(faults)
    assert load("adult").X_train.shape == (6, 122)
    assert server.asked == ["/a9a"] * len(faults) + ["/a9a", "/a9a.t"]


@pytest.mark.parametrize(
    ("fault", "reason"), [("error", "503"), ("cut", "the connection ended after|IncompleteRead")]
)
def test_after_three_tries_one_line_says_why(adult, server, tmp_path, fault, reason):
    server.faults = [fault] * 3
    with pytest.raises(
        UnavailableError, match=rf"the download failed: .*a9a: .*({reason}).*\(3 tries\)\. Put adult\.npz"
    ) as caught:
        load("adult")
    assert "\n" not in str(caught.value)
    assert server.asked == ["/a9a"] * 3
    assert left_behind(tmp_path) == []


def test_what_is_not_there_is_not_tried_again(adult, server):
    del server.files["/a9a"]
    with pytest.raises(UnavailableError, match="404"):
        load("adult")
    assert server.asked == ["/a9a"]


def test_without_a_network_no_time_is_lost(adult, monkeypatch):
    def not_found(*_, **__):
        raise URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr(download_module, "urlopen", not_found)
    monkeypatch.setattr(download_module.time, "sleep", pytest.fail)
    with pytest.raises(
        UnavailableError, match=r"the download failed: the host 127\.0\.0\.1 is not found\. Put"
    ):
        load("adult")


def test_another_address_is_tried_where_there_is_one(adult, server, monkeypatch):
    original = parsers.ORIGINALS["adult"]
    moved = tuple(replace(remote, urls=(f"{server.url}/moved", *remote.urls)) for remote in original.remotes)
    monkeypatch.setitem(parsers.ORIGINALS, "adult", replace(original, remotes=moved))
    assert load("adult").X_train.shape == (6, 122)
    assert server.asked == ["/moved", "/a9a", "/moved", "/a9a.t"]


def test_a_wrong_checksum_leaves_nothing_behind(publish, server, tmp_path):
    publish("forest", {"covtype.data.gz": gzip.compress(b"1,2\n")}, 1, 1, 1, sha256="0" * 64)
    with pytest.raises(
        UnavailableError, match=f"the sha256 of the file is .*, where {'0' * 64} was expected"
    ):
        load("forest")
    assert left_behind(tmp_path) == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>moved</html>", b"", b"PK\x03\x04cut", gzip.compress(b"1,2,3\n" * 1000, mtime=0)[:-20]],
    ids=["page", "empty", "zip", "gzip"],
)
def test_what_cannot_be_read_is_removed(publish, tmp_path, body):
    publish("year", {"year.zip": body}, 2, 1, 90)
    with pytest.raises(UnavailableError, match=r"year\.zip from .* cannot be read"):
        load("year")
    assert left_behind(tmp_path) == []


def test_a_wrong_number_of_rows_or_labels_is_refused(publish, adult, rng):
    publish("adult", {}, 7, 4, 122)
    publish("year", {"year.txt": csv(rng.standard_normal((9, 91)))}, 7, 3, 90)
    with pytest.raises(UnavailableError, match="it has 9 rows, where 10 were expected"):
        load("year")
    X = rng.integers(1, 3, (4, 8))
    publish(
        "cod_rna", {"cod-rna": svmlight(X, [1, 2, 1, 2]), "cod-rna.r": svmlight(X, [1, -1, 1, -1])}, 4, 4, 8
    )
    with pytest.raises(UnavailableError, match=r"train labels \[1.0, 2.0\], where -1 and 1 were expected"):
        load("cod_rna")


@pytest.mark.parametrize("tell_length", [True, False])
def test_progress_counts_the_bytes(adult, server, tell_length, monkeypatch):
    monkeypatch.setattr(download_module, "AT_ONCE", 100)
    server.tell_length = tell_length
    calls = []
    load("adult", progress=lambda done, total: calls.append((done, total)))
    sizes = [len(server.files["/a9a"]), len(server.files["/a9a.t"])]
    first = calls[: -(-sizes[0] // 100)]
    assert [done for done, _ in first] == [*range(100, sizes[0], 100), sizes[0]]
    assert {total for _, total in first} == {sizes[0] if tell_length else None}
    assert calls[-1][0] == sizes[1]


# The formats of the originals


def test_indoor_takes_the_longitude_of_both_files(publish, rng):
    header = (
        ",".join([*(f"WAP{j:03}" for j in range(1, 521)), "LONGITUDE", "LATITUDE"]) + ",FLOOR,B,S,R,U,P,T\n"
    )
    tables = [
        np.hstack([rng.integers(-90, 101, (rows, 520)), -7500 + rng.integers(0, 99, (rows, 9))])
        for rows in (5, 3)
    ]
    train, test = (csv(table, header) for table in tables)
    archive = zipped(UJIndoorLoc__trainingData_dot_csv=train, UJIndoorLoc__validationData_dot_csv=test)
    publish("indoor", {"uji.zip": archive}, 5, 3, 520)
    data = load("indoor")
    assert rows_of(data) == sorted(map(tuple, tables[0][:, :521].tolist()))
    np.testing.assert_array_equal(data.X_test, tables[1][:, :520])
    np.testing.assert_array_equal(data.y_test, tables[1][:, 520])


def test_year_is_cut_where_the_artists_change(publish):
    table = np.column_stack([np.arange(1990, 2002), np.arange(12 * 90).reshape(12, 90)])
    publish("year", {"year.zip": zipped(YearPredictionMSD_dot_txt=csv(table))}, 9, 3, 90)
    data = load("year")
    assert sorted(data.y_train) == list(range(1990, 1999))
    np.testing.assert_array_equal(data.y_test, [1999, 2000, 2001])
    np.testing.assert_array_equal(data.X_test, table[9:, 1:])
    np.testing.assert_array_equal(data.X_train[:, 0], (data.y_train - 1990) * 90)


def test_slice_is_split_at_random_without_the_patients(publish):
    table = np.column_stack([np.full(20, 77), np.arange(20 * 384).reshape(20, 384), np.arange(20) / 8])
    header = ",".join(["patientId", *(f"value{j}" for j in range(384)), "reference"]) + "\n"
    inner = zipped(slice_localization_data_dot_csv=csv(table, header))
    publish("slice", {"slice.zip": zipped(slice_localization_data_dot_zip=inner)}, 12, 5, 384)
    data = load("slice")
    together = np.concatenate([data.y_train, data.y_test])
    assert len(set(together)) == 17
    np.testing.assert_array_equal(np.concatenate([data.X_train, data.X_test])[:, 0], together * 8 * 384)
    assert list(data.y_test) != sorted(data.y_test)


@pytest.mark.parametrize("old", [True, False])
def test_buzz_is_the_twitter_part(publish, old):
    table = np.column_stack([np.arange(10 * 77).reshape(10, 77), np.arange(10) / 2])
    archive = tarred("./regression/Twitter/Twitter.data", csv(table))
    publish("buzz", {"buzz": archive if old else zipped(regression_dot_tar_dot_gz=archive)}, 8, 2, 77)
    data = load("buzz")
    assert sorted([*data.y_train, *data.y_test]) == [x / 2 for x in range(10)]
    np.testing.assert_array_equal(data.X_train[:, 0], data.y_train * 2 * 77)


def test_gisette_has_its_labels_in_files_of_their_own(publish, rng):
    tables = [rng.integers(0, 1000, (rows, 50)) for rows in (6, 4)]
    labels = [np.array([1, -1, 1, 1, -1, -1]), np.array([-1, 1, 1, -1])]
    data_text = [
        ("\n".join(" ".join(map(str, row)) + " " for row in table) + "\n").encode() for table in tables
    ]
    label_text = [("\n".join(map(str, label)) + "\n").encode() for label in labels]
    archive = zipped(
        GISETTE__gisette_train_dot_data=data_text[0],
        GISETTE__gisette_train_dot_labels=label_text[0],
        GISETTE__gisette_valid_dot_data=data_text[1],
        gisette_valid_dot_labels=label_text[1],
    )
    publish("gisette", {"gisette.zip": archive}, 6, 4, 50)
    data = load("gisette")
    assert rows_of(data) == sorted(map(tuple, np.column_stack([tables[0], labels[0]]).tolist()))
    np.testing.assert_array_equal(data.X_test, tables[1])
    np.testing.assert_array_equal(data.y_test, labels[1])


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, bytes])
def test_forest_is_class_2_against_the_rest(publish, compress):
    table = np.column_stack([np.arange(70 * 54).reshape(70, 54), np.tile(np.arange(1, 8), 10)])
    publish("forest", {"covtype.data.gz": compress(csv(table))}, 40, 30, 54)
    data = load("forest")
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    np.testing.assert_array_equal(y, np.where(table[(X[:, 0] / 54).astype(int), -1] == 2, 1, -1))
    assert len(np.unique(X[:, 0])) == 70


def test_cod_rna_from_its_source_is_the_papers(publish, rng):
    X, X_test = (rng.integers(1, 9, (rows, 8)) / 8 for rows in (4, 6))
    publish(
        "cod_rna",
        {"cod-rna": svmlight(X, [1, 1, -1, -1]), "cod-rna.r": svmlight(X_test, [1, 1, 1, -1, -1, -1])},
        4,
        6,
        8,
    )
    data = load("cod_rna")
    assert data.faithful
    assert not SETS["cod_rna"].faithful  # the file at hand has other test rows
    np.testing.assert_array_equal(data.X_test, X_test)
    np.testing.assert_array_equal(data.y_test, [1, 1, 1, -1, -1, -1])


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
    np.testing.assert_allclose(
        X[:, :239].mean(axis=0), X[:, 239:].mean(axis=0), atol=0.12
    )  # neither place is special
