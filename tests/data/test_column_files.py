"""Files with named columns, read as frames: what pandas reads is the truth."""

import gzip
import io
import os
import shlex
import struct
import sys
import threading

import numpy as np
import pytest

from tensormachines._data.column_counts import count_columns
from tensormachines._data.files.column_kinds import ColumnKinds, read_column
from tensormachines._data.files.csv import CsvFile
from tensormachines._data.files.open import open_columns
from tensormachines._data.files.paths import is_svmlight
from tensormachines._data.frame import Frame, Levels
from tensormachines.cli.column_notes import describe
from tensormachines.cli.training_rows import read_whole_file

pd = pytest.importorskip("pandas")

TABLE = """number,text,mixed,flag,whole,nothing
1.5,red,1,True,3,
NA,"a, b",x,False,4,NA
-2e3,"say ""hi""
twice",2,,5,?
?,red,NaN,true,6,null
 7 , blue ,3,FALSE,7,
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(TABLE, encoding="utf-8")
    return str(file)


def texts(levels):
    return [None if code < 0 else levels.names[code] for code in levels.codes]


def whole(path, forced=None, labels=()):
    file = open_columns(path)
    return read_table(file, file.names, forced or {}, labels)


def read_table(file, names, forced=None, labels=(), rows=None):
    """A frame of all rows, and what the command line shows of its columns."""
    kinds = ColumnKinds(names, forced or {}, labels)
    frame = read_whole_file(file, kinds, rows)
    return frame, describe(kinds, count_columns(frame))


def read_blocks(file, kinds, rows=None):
    for block in file.blocks(list(kinds), rows):
        yield Frame(list(kinds), [read_column(block, name, kind) for name, kind in kinds.items()])


@pytest.mark.parametrize("rows", [1, 2, 4000])
def test_kinds_and_cells_are_seen(path, rows):
    file = CsvFile(path)
    frame, descriptions = read_table(file, file.names, rows=rows)
    np.testing.assert_array_equal(frame.column("number"), [1.5, np.nan, -2000, np.nan, 7])
    assert texts(frame.column("text")) == ["red", "a, b", 'say "hi"\ntwice', "red", "blue"]
    assert texts(frame.column("mixed")) == [
        "1",
        "x",
        "2",
        None,
        "3",
    ]  # the text of blocks that were numbers at first, too
    np.testing.assert_array_equal(frame.column("flag"), [1, 0, np.nan, 1, 0])
    np.testing.assert_array_equal(frame.column("nothing"), [np.nan] * 5)
    assert [each.kind for each in descriptions] == [
        "number",
        "category",
        "category",
        "boolean",
        "number",
        "number",
    ]
    assert [each.missing for each in descriptions] == pytest.approx([0.4, 0, 0.2, 0.2, 0, 1])


def test_a_table_of_pandas_is_read_as_pandas_reads_it(tmp_path, rng):
    n = 300
    frame = pd.DataFrame(
        {
            "float": rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n),
            "whole": rng.integers(-5, 5, n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
            "text": rng.choice(['a "quoted" one', "with, comma", "øre", "line\nend", "NULL", "plain"], n),
            "flag": rng.random(n) < 0.5,
            "flag gaps": rng.choice([True, False, None], n),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = pd.read_csv(tmp_path / "t.csv")
    found, _ = whole(str(tmp_path / "t.csv"))
    assert list(found.names) == list(expected.columns)
    for name in ("float", "whole", "gaps", "flag", "flag gaps"):
        np.testing.assert_array_equal(found.column(name), frame[name].astype(float))
    assert texts(found.column("text")) == [None if pd.isna(text) else text for text in expected["text"]]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("t.csv", lambda text: text),
        ("t.csv", lambda text: "\ufeff" + text),
        ("t.csv", lambda text: text.replace("\n", "\r\n")),
        ("t.csv", lambda text: text.rstrip("\n")),
        ("t.csv", lambda text: text.replace("\n", "\n\n")),
        ("t.csv", lambda text: text.replace(",", ";")),
        ("t.csv", lambda text: text.replace(",", "|")),
        ("t.tsv", lambda text: text.replace(",", "\t")),
        ("t.tsv", lambda text: text),
        ("t.csv.gz", lambda text: text),
        ("t.csv", lambda text: "".join(f'"{line}"\n' for line in text.replace(",", '","').splitlines())),
    ],
)
def test_the_same_table_in_many_spellings(tmp_path, name, change):
    text = change("a,b,c\n1,x,2\n3,y,4\n")
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    frame, _ = whole(str(tmp_path / name))
    assert frame.names == ("a", "b", "c")
    assert texts(frame.column("b")) == ["x", "y"]
    np.testing.assert_array_equal(frame.column("c"), [2, 4])


def test_a_wish_is_stronger_than_what_is_seen(path):
    frame, _ = whole(path, {"whole": "category"})
    assert texts(frame.column("whole")) == ["3", "4", "5", "6", "7"]
    with pytest.raises(ValueError, match=r"data row 1 .*, column 'text': 'red', where a number is needed"):
        whole(path, {"text": "number"})


@pytest.mark.parametrize("rows", [1, 2, 4000])
@pytest.mark.parametrize("cells", [["true", "5"], ["5", "true"], ["", "0", "true"], ["true", "", "1"]])
def test_booleans_beside_numbers_are_neither(tmp_path, rows, cells):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    assert pd.read_csv(tmp_path / "t.csv")["a"].dtype.kind not in "bif"
    frame, descriptions = read_table(CsvFile(str(tmp_path / "t.csv")), ["a"], rows=rows)
    assert texts(frame.column("a")) == [cell or None for cell in cells]
    assert descriptions[0].kind == "category"


def test_labels_are_no_booleans(path):
    frame, _ = whole(path, labels=["flag"])
    assert texts(frame.column("flag")) == ["True", "False", None, "true", "FALSE"]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_blocks_are_read_as_they_are_asked_for(path, rows):
    file = CsvFile(path)
    frames = list(read_blocks(file, {"whole": "category", "flag": "number"}, rows))
    assert [name for frame in frames for name in texts(frame.column("whole"))] == [
        "3",
        "4",
        "5",
        "6",
        "7",
    ]
    np.testing.assert_array_equal(
        np.concatenate([frame.column("flag") for frame in frames]), [1, 0, np.nan, 1, 0]
    )
    cells = [block.cells["number"] for block in file.blocks(["number"], rows)]
    assert [text for each in cells for text in each.as_they_are()] == [
        "1.5",
        "NA",
        "-2e3",
        "?",
        " 7 ",
    ]


def test_text_where_numbers_were_names_row_and_column(path):
    with pytest.raises(ValueError, match=r"data row 2 .*, column 'mixed': 'x', where a number is needed"):
        list(read_blocks(CsvFile(path), {"mixed": "number"}, rows=1))


@pytest.mark.parametrize(
    ("cell", "kind"), [("inf", "category"), ("1e999", "category"), ("2024_01", "category"), ("1e3", "number")]
)
def test_what_is_no_finite_number_is_none(tmp_path, cell, kind):
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n{cell},3\n")
    assert whole(str(tmp_path / "t.csv"))[1][0].kind == kind


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty: the first line must name the columns"),
        (b"\n\n", "is empty"),
        (b"1,2,3\n4,5,6\n", "holds numbers only"),
        (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
        (b"a,b\n1,2\n3\n", "data row 2 .*: 1 fields, but the header has 2"),
        (b"a,b\n1,2,3\n4\n", "data row 1 .*: 3 fields, but the header has 2"),
        (b'a,b\n1,"open\n3,4\n', "perhaps a quote is not closed"),
        (b"a,b\n1,\xff\xfe\x00\n", r"line 2 of the file .* is not text in UTF-8"),
        (bytes(range(256)), "is not text in UTF-8"),
        (b"PAR1 and so on", "looks like parquet"),
        (gzip.compress(b"a,b\n1,2\n" * 1000, mtime=0)[:-20], "cannot be read; it may be truncated"),
        (b"\x1f\x8b garbage garbage", "cannot be read; it may be truncated"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path, data, message):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        whole(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("data", [",a,\n0,1,x\n", "0,1,2\n5,1,x\n", "\n \r\na,b\n\n1,x\n   \n2,y\n"])
def test_headers_and_blank_lines_are_those_of_pandas(tmp_path, data):
    (tmp_path / "t.csv").write_text(data, newline="")
    table, expected = open_columns(str(tmp_path / "t.csv")), pd.read_csv(tmp_path / "t.csv")
    assert table.names == list(expected.columns)
    assert len(read_table(table, table.names)[0]) == len(expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("change", [bytes, gzip.compress])
def test_a_named_pipe_is_read_once(tmp_path, change):
    os.mkfifo(tmp_path / "pipe.csv")
    data = change(b"a,b\n" + b"1,x\n" * 9000)
    writing = threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=[data])
    writing.start()
    table = open_columns(str(tmp_path / "pipe.csv"))
    assert not table.rereadable
    assert sum(len(frame) for frame in read_blocks(table, {"a": "number"})) == 9000
    writing.join()


def test_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;x\n NA;y\n-2;1,5\n")
    path = str(tmp_path / "t.csv")
    _, descriptions = whole(path)
    assert "--decimal ," in descriptions[0].note
    assert descriptions[1].note == ""
    np.testing.assert_array_equal(
        read_table(open_columns(path, decimal=","), ["a"])[0].column("a"), [1.5, np.nan, -2]
    )
    (tmp_path / "t.csv").write_text("a;b\n1.23,5;x\n")
    with pytest.raises(ValueError, match=r"data row 1 .*, column 'a': '1.23,5', where a number is needed"):
        list(read_blocks(open_columns(path, decimal=","), {"a": "number"}))
    (tmp_path / "t.csv").write_text("a;b\n1,5;x\n1.#IND;y\n")
    found, _ = read_table(open_columns(path, decimal=","), ["a"])
    np.testing.assert_array_equal(found.column("a"), [1.5, np.nan])


def test_notes_on_columns_that_should_perhaps_not_be_there(tmp_path):
    rows = "".join(f"{k},name{k},{1 + k % 28:02d}.01.2024,{k % 3},{k}\n" for k in range(40))
    (tmp_path / "t.csv").write_text(",key,day,size,Bob's\n" + rows)
    notes = {each.name: each.note for each in whole(str(tmp_path / "t.csv"))[1]}
    assert "--ignore 'Unnamed: 0'" in notes["Unnamed: 0"]
    assert shlex.split(notes["Bob's"])[-1] == "Bob's"  # as a shell reads it
    assert "nearly all different" in notes["key"]
    assert "looks like dates" in notes["day"]
    assert notes["size"] == ""


@pytest.mark.parametrize("wrong", ["2023-02-30", "31.12.2024", "unknown"])
def test_the_note_on_dates_names_a_cell_that_is_none(tmp_path, wrong):
    days = [f"2024-01-{1 + k % 28:02d}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["day", *days, wrong, *days]))
    _, (day,) = whole(str(tmp_path / "t.csv"))
    assert day.note == f"looks like dates, except for {wrong!r}: correct or clear such cells"
    (tmp_path / "t.csv").write_text("\n".join(["day", *days[:2], wrong]))
    _, (day,) = whole(str(tmp_path / "t.csv"))
    assert ("write all of them as" in day.note) == (wrong != "unknown")


def test_notes_on_codes_and_on_rare_levels(tmp_path):
    names = [f"{k}th" for k in range(10)] + [""] * 290
    rows = "".join(f"{10000 + k % 7},{k % 5},{name},{k % 2}\n" for k, name in enumerate(names))
    (tmp_path / "t.csv").write_text("zip,rooms,name,type\n" + rows)
    notes = {each.name: each.note for each in whole(str(tmp_path / "t.csv"))[1]}
    assert notes["zip"] == "looks like codes: if larger is not more, --category zip"
    assert notes["name"].startswith("has no level with enough rows to learn from: --ignore name")
    assert notes["rooms"] == notes["type"] == ""


def test_notes_on_levels_that_look_like_numbers(tmp_path):
    columns = {
        "either": ["1,234", "12,500", "7"] * 10,
        "thousands": ["1,234,567", "-12,500.5", "7"] * 10,
        "decimals": ["1,5", "12,25", "7"] * 10,
        "mistake": [*(str(k) for k in range(29)), "a lot"],
        "size": ["4 and\nmore", "1", "2", "3", "3"] * 6,
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    found = {each.name: each for each in whole(str(tmp_path / "t.csv"))[1]}
    notes = {name: each.note for name, each in found.items()}
    assert notes["either"].endswith(
        "commas between thousands: write them without; if they are decimal commas, --decimal ,"
    )
    assert (found["thousands"].kind, found["thousands"].holds) == ("number", "-12,500 to 1,234,567")
    assert notes["decimals"].endswith("decimal commas: --decimal ,")
    assert notes["mistake"].startswith("looks like numbers, except for 'a lot'")
    assert (notes["size"], found["size"].holds) == ("", "4 levels: 4 and more, 1, 2, ...")
    assert whole(str(tmp_path / "t.csv"), {"mistake": "category"})[1][3].note == ""


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_arrow_and_csv_are_the_same_table(tmp_path, rng, suffix):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n = 50
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
            "n": rng.integers(0, 9, n),
            "flag": rng.choice([True, False, None], n),
            "text": rng.choice(["a", "b", None], n),
            "level": pd.Categorical(rng.choice(["low", "high"], n)),
        }
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if suffix == ".parquet":
        parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    else:
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (found, _), (expected, _) = whole(str(tmp_path / f"t{suffix}")), whole(str(tmp_path / "t.csv"))
    assert found.names == expected.names
    for name in found.names:
        one, other = found.column(name), expected.column(name)
        if isinstance(other, Levels):
            assert texts(one) == texts(other)
        else:
            np.testing.assert_array_equal(one, other)
    assert [each.kind for each in whole(str(tmp_path / f"t{suffix}"))[1]] == [
        "number",
        "number",
        "boolean",
        "category",
        "category",
    ]
    labels = whole(str(tmp_path / f"t{suffix}"), labels=["flag"])[0].column("flag")
    np.testing.assert_array_equal(labels, frame["flag"].astype(float))  # the file says that it is no text
    as_levels = next(read_blocks(open_columns(str(tmp_path / f"t{suffix}")), {"n": "category"})).column("n")
    assert texts(as_levels) == [str(value) for value in frame["n"][: len(as_levels.codes)]]


def test_categories_and_the_index_of_pandas(tmp_path):
    """A category of numbers is one in pandas, too, and the names of rows are no column; Parquet itself
    forgets the former.
    """
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"code": pd.Categorical([30, 4, 30, None]), "x": [1.0, 2.0, 3.0, 4.0]})
    frame["grade"] = pd.Categorical(
        ["high", "low", "high", None], categories=["low", "middle", "high"], ordered=True
    )
    frame.to_feather(tmp_path / "t.feather")
    found, descriptions = whole(str(tmp_path / "t.feather"))
    assert [each.kind for each in descriptions] == ["category", "number", "category"]
    assert (found.column("grade").names, found.column("grade").ordered) == (["low", "middle", "high"], True)
    assert texts(found.column("grade")) == ["high", "low", "high", None]
    assert not found.column("code").ordered
    assert texts(found.column("code")) == ["30", "4", "30", None]
    assert (
        next(read_blocks(open_columns(str(tmp_path / "t.feather")), {"code": "number"})).column("code")[1]
        == 4
    )
    frame[frame["x"] > 1].to_parquet(tmp_path / "t.parquet")
    assert open_columns(str(tmp_path / "t.parquet")).names == ["code", "x", "grade"]


@pytest.mark.parametrize("cells", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"\xff", b"a"], [b"x", b"y"]])
def test_columns_that_are_neither_number_nor_text(tmp_path, cells):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [1, 2], "strange": cells}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        ValueError, match=r"column 'strange' is of type .*, which is neither number nor text: leave it out"
    ):
        whole(str(tmp_path / "t.parquet"))


def test_damaged_parquet_and_no_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 but no more")
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="cannot be read; it may be truncated"):
        open_columns(str(tmp_path / "t.parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"tensormachines\[parquet\]"):
        open_columns(str(tmp_path / "t.parquet"))


def test_damaged_arrow_is_noticed_before_it_is_used(tmp_path):
    """Its offsets are used as they are: where they lead out of the file, the process would end."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["a", "b", "c"]})
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table)
    data, offsets = (tmp_path / "t.arrow").read_bytes(), struct.pack("<4i", 0, 1, 2, 3)
    assert data.count(offsets) == 1
    (tmp_path / "t.arrow").write_bytes(data.replace(offsets, struct.pack("<4i", 0, 1, 2, 1 << 30)))
    with pytest.raises(ValueError, match="cannot be read; it may be truncated, damaged"):
        whole(str(tmp_path / "t.arrow"))


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,x\n2,y\n")))
    table = open_columns("-")
    assert table.names == ["a", "b"]
    assert not table.rereadable
    assert [frame.column("a").tolist() for frame in read_blocks(table, {"a": "number"})] == [[1.0, 2.0]]


def test_suffixes_of_svmlight():
    assert [is_svmlight(name) for name in ("t.svm", "t.SVM.gz", "t.libsvm", "t.csv")] == [True] * 3 + [False]


def test_rows_of_a_frame():
    frame = Frame(["a", "b"], [np.array([1.0, 2.0, 3.0]), Levels(np.array([0, -1, 1]), ["x", "y"])])
    assert frame.shape == (3, 2)
    assert len(frame) == 3
    assert texts(frame[[2, 0]].column("b")) == ["y", "x"]
    assert frame[:1].column("a").tolist() == [1.0]
    np.testing.assert_array_equal(np.asarray(frame.select(["a"])), [[1.0], [2.0], [3.0]])
    with pytest.raises(ValueError, match="column 'b' holds a category"):
        np.asarray(frame)
