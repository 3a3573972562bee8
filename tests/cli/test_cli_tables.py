"""What the commands read of tables: the same from any format, whole or a block at a time."""

import io
import json
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from commands import QUICK, QUICKLY, error_of, run, write
from tensormachines import TensorMachineClassifier, blocks, load
from tensormachines._data.files.csv import CsvFile
from tensormachines.cli.model_rows import TableRows, some_rows

pd = pytest.importorskip("pandas")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.random(100), "sold": rng.random(100) < 0.5})


@pytest.mark.parametrize("how", [(), ("--stream",)])
@pytest.mark.parametrize("missing", [False, True])
def test_booleans_of_parquet_are_booleans(here, table, capsys, how, missing):
    pytest.importorskip("pyarrow")
    if missing:
        table["sold"] = table["sold"].astype(object).where(table.index % 10 > 0, None)
    table.to_parquet("t.parquet", index=False)
    assert run("fit", "t.parquet", "--target", "sold", *QUICK, *how, "-o", "t.tm") == 0
    assert "2 classes: False 5" in capsys.readouterr().err
    model = load("t.tm")
    assert model.classes_.tolist() == [False, True]
    assert model.classes_.dtype == bool
    rows = table[table["sold"].notna()]
    rows.to_parquet("rows.parquet", index=False)
    expected = TensorMachineClassifier(**QUICKLY).fit(blocks.parquet("rows.parquet", "sold"))
    assert expected.classes_.dtype == bool
    assert run("evaluate", "t.tm", "t.parquet") == 0
    assert f"{len(rows)} rows of t.parquet" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("missing", [False, True])
def test_the_report_shows_booleans_of_files_as_such(here, table, kind, missing):
    table["two"] = 1 * (np.random.default_rng(1).random(100) < 0.5)
    table["y"] = table["x"] + table["sold"]
    if missing:
        table["sold"] = table["sold"].astype(object).where(table.index % 10 > 0, None)
    if kind == "csv":
        table.to_csv("t.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet("t.parquet", index=False)
    assert run("fit", f"t.{kind}", "--target", "y", *QUICK, "-o", "t.tm") == 0
    assert run("report", "t.tm", f"t.{kind}", "-o", "t.html") == 0
    page = Path("t.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="findings">(.*?)</script>', page, re.DOTALL)[1])
    found = {data["model"]["names"][of["column"]]: of["boolean"] for of in data["inputs"]}
    assert found == {"x": False, "sold": True, "two": False}


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_column_without_a_cell_is_numbers_however_it_is_read(here, table, how):
    write("t.csv", {"x": table["x"], "empty": [""] * 100, "y": table["x"]})
    assert run("fit", "t.csv", "--target", "y", *QUICK, *how, "-o", "t.tm") == 0
    assert load("t.tm")._columns is None


@pytest.mark.parametrize("share", ["0.9999", "0.0001"])
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_share_that_leaves_nothing_is_refused_before_the_fit(here, table, capsys, share, how):
    table.to_csv("t.csv", index=False)
    message = error_of(capsys, "fit", "t.csv", "--target", "x", "--holdout", share, *how, "-o", "t.tm")
    assert message == f"--holdout {share} of 100 rows leaves nothing to fit, or nothing to test."
    assert not os.path.exists("t.tm")


def test_the_weight_is_no_category(here, table, capsys):
    table.assign(size=1).to_csv("t.csv", index=False)
    command = ["fit", "t.csv", "--target", "sold", "--weight", "x", "--category", "x", "-o", "t.tm"]
    assert "'x' is the weight, which cannot be a category" in error_of(capsys, *command)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_scratch_disk_is_not_called_standard_output(here, table, capsys, monkeypatch):
    table.to_csv("t.csv", index=False)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: io.FileIO("/dev/full", "r+"))
    message = error_of(capsys, "fit", "t.csv", "--target", "x", "--stream", *QUICK, "-o", "t.tm")
    assert message.startswith("the rows are dealt into a scratch file in ")
    assert "No space left on device. Point TMPDIR to a folder with room" in message


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_a_sample_of_rows_keeps_no_levels_of_the_others(here):
    n_rows = 20_000
    write(
        "t.csv",
        {"name": [f"name {k}" for k in range(n_rows)], "k": range(n_rows), "y": [0, 1] * (n_rows // 2)},
    )
    assert run("fit", "t.csv", "--target", "y", "--category", "name", *QUICK, "-o", "t.tm") == 0
    small = TableRows(load("t.tm"), _InSmallBlocks("t.csv"), None)
    X, total = some_rows(small, 50)
    assert (X.shape, total) == ((50, 2), n_rows)
    names, numbers = X.column("name"), X.column("k")
    assert [names.names[code] for code in names.codes] == [f"name {k:.0f}" for k in numbers]
    assert (np.diff(numbers) > 0).all()
    assert 0.3 < numbers.mean() / n_rows < 0.7
    assert len(names.names) < 500


class _InSmallBlocks(CsvFile):
    def blocks(self, names, rows=None):
        return super().blocks(names, 20)


def test_control_characters_of_names_and_levels_are_shown_as_escapes(here, capsys):
    name, level = "size\x1b[2J", "a\x1b]0;title\x07"
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=200), "place\nnote: x": [level, "b"] * 100}
    write("t.csv", {**columns, "price": columns[name] + np.arange(200) % 2})
    assert run("fit", "t.csv", "--target", "price", *QUICK, "-o", "t.tm") == 0
    assert run("explain", "t.tm", "t.csv") == 0
    assert run("explain", "t.tm", "t.csv", "--formula") == 0
    shown = "".join(capsys.readouterr())
    write("u.csv", {"x": [1]})
    shown += error_of(capsys, "predict", "t.tm", "u.csv")
    assert r"size\x1b[2J" in shown
    assert r"place\nnote: x" in shown
    assert r"a\x1b]0;title\x07" in shown
    assert "\x1b" not in shown
    assert "\nnote: x" not in shown


def test_control_characters_of_names_have_one_spelling_in_an_error(here, capsys):
    write("t.csv", {"x": [1, 2], "tar\nget": [1, 2]})
    fit = ("fit", "t.csv", "-o", "t.tm")
    message = error_of(capsys, *fit, "--target", "targ\net")
    assert r"has no column 'targ\net'; did you mean 'tar\nget'? Its columns are x, tar\nget." in message
    assert error_of(capsys, *fit).endswith(r"The columns of t.csv are x, tar\nget.")


def test_long_names_of_columns_and_classes_are_shortened_in_tables(here, capsys):
    long = {name: f"{name} " + 100 * name for name in "abc"}
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    classes = np.where(x[:, 0] > x[:, 1], long["b"], long["c"])
    write("t.csv", {long["a"]: x[:, 0], "x": x[:, 1], "kind": classes})
    assert run("fit", "t.csv", "--target", "kind", *QUICK, "-o", "t.tm") == 0
    assert run("explain", "t.tm", "t.csv") == 0
    assert load("t.tm").feature_names_in_[0] == long["a"]
    printed = capsys.readouterr()
    shown = {name: text[:57] + "..." for name, text in long.items()}
    assert f"  {shown['a']}  number " in printed.err
    assert f"  {'x':<60}  number " in printed.err
    target = next(line for line in printed.err.splitlines() if line.startswith("target: "))
    assert all(f" {long[name][:27]}... " in target for name in "bc")
    assert f"  {shown['a']} & x  " in printed.out


@pytest.mark.parametrize("how", [(), ("--stream",)])
@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("0.134,0,red", True),
        ("7,3,red", True),
        ("place,size,red", False),
        ("0,size,red", False),
        ("2001,2002,2003,red", False),
        ("2001,2003,2002,red", True),
    ],
)
def test_a_file_without_a_header_is_told(here, capsys, how, header, told):
    rng = np.random.default_rng(0)
    rows = [[*map(str, rng.random(header.count(","))), str(rng.random() < 0.5)] for _ in range(50)]
    Path("t.csv").write_text("\n".join([header, *map(",".join, rows)]))
    assert run("fit", "t.csv", "--target", "red", *QUICK, *how, "-o", "t.tm") == 0
    note = f"note: most columns have numbers as names, such as {header.split(',')[0]}: the first line of"
    assert (note in capsys.readouterr().err) == told
