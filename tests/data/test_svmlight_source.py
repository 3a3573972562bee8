"""Rows in LIBSVM text: what was written comes back, and what is wrong is named."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import SGDClassifier

from row_blocks import fails, identical, row, sizes, whole
from tensormachines import blocks
from tensormachines._data.files import svmlight as svmlight_files


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


def test_blocks_have_indices_that_scikit_learn_takes(text):
    file = text("a.svm", "1 1:1 3:2\n0 2:1\n")
    chunk = next(iter(blocks.svmlight(file)))
    assert chunk.X.indices.dtype == chunk.X.indptr.dtype == np.int32
    SGDClassifier().partial_fit(chunk.X, chunk.y, classes=[0, 1])
    wide = next(iter(blocks.svmlight(file, n_features=2**31)))
    assert wide.X.indices.dtype == np.int64


@pytest.mark.parametrize("query", ["", "qid:3 "])  # which the compiled reader leaves to that in Python
def test_a_comment_may_follow_a_number_at_once(text, query):
    file = text("a.svm", f"1 {query}1:0.5#a\n2 {query}1:0.1#b\n")
    X, y, _ = whole(blocks.svmlight(file))
    identical(X, np.array([[0.5], [0.1]]))
    identical(y, np.array([1.0, 2.0]))


def test_a_fault_beside_queries_is_found_in_its_row(text):
    bad = text("bad.svm", "1 qid:1 1:1\n" * 3 + "1 qid:1 2:1 1:1\n")
    fails(lambda: blocks.svmlight(bad), "bad.svm", row(4), "the index 1 after 2")


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
        ("1 1:1_0", "'1:1_0', where an entry index:value"),
        ("1 1:1 1_0:1", "'1_0:1', where an entry index:value"),
        ("1_0 1:1", "y is '1_0', where a number is needed"),
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


@pytest.mark.parametrize(
    "line",
    [
        *(":1e3", "1 :", "03 :0 x", ": :", "1 2:3 : 4", ":0 1:2", "1  :5"),
        *("44:1 4", "1 2:3:4 5", "1 2 3:4:5", 140 * "4" + ":1 4"),
    ],
)
def test_entries_without_an_index_are_refused(tmp_path, line):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:2\n{line}\n")
    fails(lambda: blocks.svmlight(path), "rows.svm", "row 2")


def random_word(rng):
    """A number as programs write them, from short to beyond the digits of float64."""
    number = rng.standard_normal() * 10.0 ** rng.integers(-30, 30)
    form = rng.choice(["{!r}", "{:.3g}", "{:+.17e}", "{:.25f}", "{:.0f}", "{:E}", "{:.1f}"])
    return form.format(float(number))


def test_compiled_and_python_readers_agree(rng):
    lines = []
    for _ in range(300):
        indices = np.flatnonzero(rng.random(40) < 0.2)
        entries = [f"{index}:{random_word(rng)}" for index in indices]
        space = rng.choice([" ", "\t", "  "])
        lines.append(
            f"{random_word(rng)}{space}{space.join(entries)}{rng.choice(['', ' ', chr(13)])}\n".encode()
        )
    expected = svmlight_files._read_in_python(lines)
    assert expected is not None
    for found in (
        svmlight_files._read_compiled(lines),
        svmlight_files._read_compiled([*lines[:-1], lines[-1][:-1]]),
    ):
        assert found is not None
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "line",
    [
        *(b"1 nan:1", b"1 2:inf", b"1 qid:3 2:1", b"1 2:1_0", b"1 2 :1", b"1 2: 1", b"1 :1", b"1 2:"),
        *(b"x 1:1", b"1 2:1x", b"1 2:1e", b"1 2:.", b"1 -1:1", b"1 1234567890123456789:1", b"1 2:1:3"),
        *(b"1 2:1 3", b"1\r0 2:1"),
    ],
)
def test_what_is_not_plain_is_left_to_python(line):
    assert svmlight_files._read_compiled([b"1 1:1\n", line + b"\n"]) is None
