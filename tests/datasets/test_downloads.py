"""Downloads of data sets: checks, retries, and the formats of the originals."""

import bz2
import gzip
import socket
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import Request

import numpy as np
import pytest

from dataset_files import csv, rows_of, svmlight, tarred, zipped
from tensormachines.datasets import SETS, UnavailableError, load, parsers
from tensormachines.datasets import download as download_module


def damaged_inside(packed):
    """Set bytes in the middle of the deflated data that no compressor writes."""
    middle = len(packed) // 3
    return packed[:middle] + b"\xff" * 16 + packed[middle + 16 :]


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
    with pytest.raises(
        UnavailableError, match=r"a9a: expected sha256 .* Delete the file to download it again"
    ):
        load("adult")


@pytest.mark.parametrize("half", ["", "3fa9"])
def test_a_checksum_that_was_half_written_counts_as_none(adult, tmp_path, half):
    load("adult")
    (tmp_path / "cache" / "adult.npz.sha256").write_text(half)
    assert load("adult").origin == "cache"


def test_a_cache_that_has_changed_is_refused(adult, tmp_path):
    load("adult")
    path = tmp_path / "cache" / "adult.npz"
    arrays = dict(np.load(path))
    arrays["X_train"][0, 0] += 1
    np.savez(path, **arrays)
    with pytest.raises(UnavailableError, match="its arrays do not have the known sha256"):
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

    monkeypatch.setattr(download_module, "build_opener", lambda *_: SimpleNamespace(open=not_found))
    monkeypatch.setattr(download_module.time, "sleep", pytest.fail)
    with pytest.raises(
        UnavailableError, match=r"the download failed: the host 127\.0\.0\.1 was not found\. Put"
    ):
        load("adult")


@pytest.mark.parametrize("tell_length", [True, False])
def test_a_file_that_is_too_large_is_refused(server, tmp_path, tell_length):
    server.tell_length = tell_length
    server.files["/large"] = bytes(3000)
    for most, allowed in ((3000, True), (2999, False)):
        path = tmp_path / "cache" / str(most)
        if allowed:
            download_module.fetch((f"{server.url}/large",), path, most_bytes=most)
        else:
            with pytest.raises(
                download_module.DownloadError, match=r"/large: the file is larger than 3e-06 GB"
            ):
                download_module.fetch((f"{server.url}/large",), path, most_bytes=most)
    assert server.asked == ["/large"] * 2
    assert left_behind(tmp_path) == ["3000", "3000.sha256"]


def test_a_redirect_is_followed_unless_it_leaves_https(server, tmp_path):
    server.files["/new"] = b"moved"
    server.moved["/old"] = f"{server.url}/new"
    download_module.fetch((f"{server.url}/old",), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"moved"
    handler, secure = download_module._StayEncrypted(), Request("https://data.example/a")
    for target in ("https://data.example/b", "http://data.example/b", "file:///etc/passwd"):
        answer = None, 302, "Found", {}, target
        if target.startswith("https:"):
            assert handler.redirect_request(secure, *answer).full_url == target
        else:
            with pytest.raises(download_module.DownloadError, match=rf"redirects to {target}, which is not"):
                handler.redirect_request(secure, *answer)


def test_all_addresses_are_encrypted():
    urls = [url for each in parsers.ORIGINALS.values() for remote in each.remotes for url in remote.urls]
    assert len(urls) > 10
    assert all(url.startswith("https://") for url in urls)


def test_text_that_unpacks_without_end_is_refused():
    text = BytesIO(b"1,2\n" * 1000)
    assert len(list(parsers.limited_lines(text, 4000))) == 1000
    for endless, most in ((b"1,2\n" * 1000, 3999), (b"1," * (1 << 20), 1 << 30)):
        with pytest.raises(parsers.FormatError, match="the text has more than"):
            list(parsers.limited_lines(BytesIO(endless), most))


def test_another_address_is_tried_where_there_is_one(adult, server, monkeypatch):
    original = parsers.ORIGINALS["adult"]
    moved = tuple(replace(remote, urls=(f"{server.url}/moved", *remote.urls)) for remote in original.remotes)
    monkeypatch.setitem(parsers.ORIGINALS, "adult", replace(original, remotes=moved))
    assert load("adult").X_train.shape == (6, 122)
    assert server.asked == ["/moved", "/a9a", "/moved", "/a9a.t"]


def test_a_wrong_checksum_leaves_nothing_behind(publish, server, tmp_path):
    publish("forest", {"covtype.data.gz": gzip.compress(b"1,2\n")}, 1, 1, 1, sha256="0" * 64)
    with pytest.raises(UnavailableError, match=f"expected a file with sha256 {'0' * 64}, got"):
        load("forest")
    assert left_behind(tmp_path) == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>moved</html>",
        b"",
        b"PK\x03\x04cut",
        gzip.compress(b"1,2,3\n" * 1000, mtime=0)[:-20],
        damaged_inside(zipped(YearPredictionMSD_dot_txt=csv(np.arange(3.0 * 91).reshape(3, 91)))),
    ],
    ids=["page", "empty", "zip", "gzip", "inside"],
)
def test_what_cannot_be_read_is_removed(publish, tmp_path, body):
    publish("year", {"year.zip": body}, 2, 1, 90)
    with pytest.raises(UnavailableError, match=r"year\.zip from .* cannot be read"):
        load("year")
    assert left_behind(tmp_path) == []


def test_a_wrong_number_of_rows_or_labels_is_refused(publish, adult, rng):
    publish("adult", {}, 7, 4, 122)
    publish("year", {"year.txt": csv(rng.standard_normal((9, 91)))}, 7, 3, 90)
    with pytest.raises(UnavailableError, match="expected 10 rows, got 9"):
        load("year")
    X = rng.integers(1, 3, (4, 8))
    publish(
        "cod_rna", {"cod-rna": svmlight(X, [1, 2, 1, 2]), "cod-rna.r": svmlight(X, [1, -1, 1, -1])}, 4, 4, 8
    )
    with pytest.raises(UnavailableError, match=r"expected train labels -1 and 1, got \[1.0, 2.0\]"):
        load("cod_rna")


@pytest.mark.parametrize("tell_length", [True, False])
def test_progress_counts_the_bytes(adult, server, tell_length, tmp_path):
    server.tell_length = tell_length
    sizes = [len(server.files["/a9a"]), len(server.files["/a9a.t"])]
    calls = []
    load("adult", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(size, size if tell_length else None) for size in sizes]
    server.files["/large"] = bytes(2 * download_module.AT_ONCE + 100)
    calls.clear()
    download_module.fetch(
        (f"{server.url}/large",), tmp_path / "large", progress=lambda done, total: calls.append(done)
    )
    assert calls == [download_module.AT_ONCE, 2 * download_module.AT_ONCE, 2 * download_module.AT_ONCE + 100]


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
