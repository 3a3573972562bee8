"""Rows in CSV text: what was written comes back, and what is wrong is named."""

import gzip

import numpy as np
import pytest

from row_blocks import fails, identical, row, sizes, texts, whole
from tensormachines import blocks
from tensormachines._data.files.csv import CsvFile


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
    identical(found[1], y)
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
        lambda: blocks.csv(text("latin.csv", "a,bl\u00e5\n1,2\n".encode("latin1")), encoding="utf-8"),
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
    fails(lambda: blocks.csv(latin, "y", rows=2, encoding="utf-8"), "a.csv", "line 5 of the file", "UTF-8")
    big = text("big.csv", "x,y\n1,1\n1e300,2\n")
    fails(
        lambda: blocks.csv(big, "y", dtype=np.float32), "big.csv", row(2), "column 'x' in float32", "infinity"
    )
    assert whole(blocks.csv(big, "y"))[0][1, 0] == 1e300


@pytest.mark.parametrize("cell", ["x" * 10**5, '"' + 1000 * ("x" * 99 + "\n") + '"'])
def test_csv_blocks_are_small_even_if_cells_are_long(text, cell):
    path = text("long.csv", "a,b\n" + f"1,{cell}\n" * 400)
    found = list(CsvFile(str(path)).blocks(["a", "b"]))
    assert sum(block.n_rows for block in found) == 400
    assert max(sum(map(len, block.cells["b"].as_they_are())) for block in found) < 17 * 2**20
    assert found[1].where.first == 1 + found[0].n_rows


def test_dates_that_begin_after_a_whole_block_of_empty_cells(text):
    """One block of the source is made of several blocks of text."""
    columns = 64
    rows = [",".join(["1"] * columns) + f",{'2024-05-31' if k > 4500 else ''},{k}" for k in range(5000)]
    path = text("t.csv", ",".join([*(f"c{j}" for j in range(columns)), "day", "y"]) + "\n" + "\n".join(rows))
    chunks = list(blocks.csv(path, "y"))
    day = np.concatenate([chunk.X.column("day") for chunk in chunks])
    assert day.dtype.kind == "M"
    assert np.isnat(day).sum() == 4501


@pytest.mark.parametrize(("one", "other"), [("7.5 %", "0.075"), ("$12", "€12"), ("12", "$12")])
def test_all_files_write_numbers_in_one_way(text, tmp_path, one, other):
    text("a.csv", f"rate,y\n{one},1\n{one},2\n")
    text("b.csv", f"rate,y\n{other},3\n{other},4\n")
    frames = [chunk.X for chunk in blocks.csv(tmp_path / "*.csv", "y")]
    assert [frame.column("rate").names for frame in frames] == [[one], [other]]  # text, as in one file
