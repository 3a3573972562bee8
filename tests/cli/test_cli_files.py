"""Files as people have them: encodings, signs, lists of columns, held-out rows and rows of the fit."""

import io
import json
import sys

import numpy as np
import pytest

from commands import QUICK, error_of, run, write
from tensormachines import load
from tensormachines._data.frame import Frame, Levels
from tensormachines._data.row_sketch import SIZE, Overlap, RowSketch
from tensormachines.cli.numbers import shown

pd = pytest.importorskip("pandas")
HOW = pytest.mark.parametrize("how", [(), ("--stream",)])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    size = rng.integers(200, 90_000, 300)
    place = rng.choice(["Köln", "Málaga", "Łódź"], 300)
    return pd.DataFrame({"size": size, "rate": rng.random(300).round(3), "place": place, "price": size / 4})


def decorated(table):
    """Return the same rows as a spreadsheet shows them."""
    return {
        "size": [f"{size:,}" for size in table["size"]],
        "rate": [f"{100 * rate:.1f} %" for rate in table["rate"]],
        "place": table["place"],
        "price": [f"${price:,.2f}" for price in table["price"]],
    }


# ---- signs


@HOW
def test_signs_are_read_remembered_and_told(here, table, capsys, how):
    write("signs.csv", decorated(table))
    table.assign(rate=100 * table["rate"]).round(6).to_csv("plain.csv", index=False)
    for name in ("signs", "plain"):
        assert run("fit", f"{name}.csv", "--target", "price", *QUICK, *how, "-o", f"{name}.tm") == 0
        said = capsys.readouterr().err
        assert ("note: size holds numbers with commas between thousands" in said) == (name == "signs")
        assert ("note: rate holds numbers with a per cent sign" in said) == (name == "signs")
        assert ("note: price holds numbers with the sign $ and commas" in said) == (name == "signs")
    assert load("signs.tm")._notations == {"size": ",", "rate": "%", "price": "$,"}
    found = []
    for name in ("signs", "plain"):
        assert run("predict", f"{name}.tm", f"{name}.csv", "-o", "found.csv") == 0
        found.append(pd.read_csv("found.csv")["prediction"])
        assert run("evaluate", f"{name}.tm", f"{name}.csv", "--json") == 0
        found.append(json.loads(capsys.readouterr().out)["errors"]["price"]["RMSE"]["value"])
    np.testing.assert_allclose(found[0], found[2], rtol=1e-9)
    assert found[1] == pytest.approx(found[3], rel=1e-9)


def test_a_model_reads_the_signs_of_its_fit_and_no_others(here, table, capsys):
    write("signs.csv", decorated(table))
    table.to_csv("plain.csv", index=False)
    for name in ("signs", "plain"):
        assert run("fit", f"{name}.csv", "--target", "price", *QUICK, "-o", f"{name}.tm") == 0
    write("one.csv", {"size": ["1,234"], "rate": ["5 %"], "place": ["Köln"]})  # too little to decide by
    assert run("predict", "signs.tm", "one.csv") == 0
    message = error_of(capsys, "predict", "plain.tm", "one.csv")
    assert "column 'size': '1,234', where a number is needed" in message
    message = error_of(capsys, "predict", "signs.tm", "plain.csv")
    assert "column 'rate'" in message
    assert "in a column with a per cent sign" in message


# ---- encodings


@pytest.mark.filterwarnings("default:.*is not text in UTF-8")
def test_encodings(here, table, capsys):
    table["place"] = table["place"].replace("Łódź", "Évora")
    expected = None
    for encoding, said in (("utf-8", ""), ("utf-16", ""), ("cp1252", "t.csv is not text in UTF-8")):
        table.to_csv("t.csv", index=False, encoding=encoding)
        assert run("fit", "t.csv", "--target", "price", *QUICK, "-o", "t.tm") == 0
        error = capsys.readouterr().err
        assert ("warning" in error) == bool(said)
        assert said in error
        assert ("pass its encoding (--encoding on the command line)" in error) == bool(said)
        assert "Köln, Évora" in error or "Évora, Köln" in error or "Málaga" in error
        assert run("predict", "t.tm", "t.csv") == 0
        found = capsys.readouterr().out
        expected = expected or found
        assert found == expected
    assert run("predict", "t.tm", "t.csv", "--encoding", "cp1252") == 0
    assert capsys.readouterr().err == ""
    message = error_of(capsys, "predict", "t.tm", "t.csv", "--encoding", "utf-8")
    assert "is not text in UTF-8: pass its encoding" in message


# ---- names of columns


def test_lists_of_columns(here, table, capsys):
    table["a,b"] = 1.5
    table.to_csv("t.csv", index=False)
    fit = ("fit", "t.csv", "--target", "price", *QUICK, "-o", "t.tm")
    assert run(*fit, "--ignore", "rate,place") == 0
    assert load("t.tm").feature_names_in_.tolist() == ["size", "a,b"]
    assert run(*fit, "--ignore", "rate, place", "a,b") == 0
    assert load("t.tm").feature_names_in_.tolist() == ["size"]
    for given, missing in (
        ("rate,plaice", "'plaice'; did you mean 'place'?"),
        ("plaice,rate", "'plaice'; did you mean 'place'?"),
        ("rote,plaice", "'rote,plaice'"),
        ("rate,", "'rate,'; did you mean 'rate'?"),
    ):
        assert f"--ignore: t.csv has no column {missing}" in error_of(capsys, *fit, "--ignore", given)


# ---- held-out rows


@HOW
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_held_out_rows_are_written_as_they_are(here, table, capsys, how, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
        table["id"] = range(len(table))
        table.to_parquet("t.parquet", index=False)
    else:
        write("t.csv", {"id": range(len(table)), **decorated(table)})
    fit = ("fit", f"t.{format}", "--target", "price", "--ignore", "id", *QUICK, *how, "-o", "t.tm")
    assert run(*fit, "--holdout", "0.3", "--holdout-output", "held.csv") == 0
    held, said = pd.read_csv("held.csv", dtype=str), capsys.readouterr().out
    assert f"held.csv: {len(held)} held-out rows" in said
    assert 60 < len(held) < 120
    whole = pd.read_csv("t.csv", dtype=str) if format == "csv" else table.astype(str)
    expected = whole.set_index("id").loc[held["id"]].reset_index()[held.columns]
    pd.testing.assert_frame_equal(held, expected, check_dtype=False)
    # The errors that fit showed are those on this file, whose rows were not in the fit.
    shown_by_fit = said.splitlines()[-4:]
    assert run("evaluate", "t.tm", "held.csv") == 0
    found = capsys.readouterr().out
    assert found.splitlines()[-4:] == shown_by_fit
    assert "were in the fit" not in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--holdout-output", "h.csv"), "say with --holdout which share"),
        (
            ("--holdout", "0.5", "--holdout-output", "h.xls"),
            "--holdout-output must name a file that ends with",
        ),
        (("--holdout", "0.5", "--holdout-output", "t.csv"), "would overwrite the input file"),
        (("--holdout", "0.5", "--holdout-output", "t.tm"), "another option names the same file"),
    ],
)
def test_held_out_rows_that_cannot_be_written(here, table, capsys, options, message):
    table.to_csv("t.csv", index=False)
    assert message in error_of(capsys, "fit", "t.csv", "--target", "price", "-o", "t.tm", *options)


@HOW
def test_numbers_with_leading_zeros_are_told(here, table, capsys, how):
    table["zip"] = [f"{10_000 + 7 * k % 50}" for k in range(299)] + ["00501"]
    table.to_csv("t.csv", index=False)
    fit = ("fit", "t.csv", "--target", "price", *QUICK, *how, "-o", "t.tm")
    note = "note: zip has leading zeros, as in 00501: if these are codes, --category zip"
    assert run(*fit) == 0
    assert note in capsys.readouterr().err.splitlines()
    for option in ("--category", "--number"):
        assert run(*fit, option, "zip") == 0
        assert "leading zeros" not in capsys.readouterr().err


def test_rows_that_cannot_be_read_again_are_refused_before_the_fit(here, table, capsys, monkeypatch):
    text = table.to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    fit = ("fit", "-", "--target", "price", *QUICK, "-o", "unmade.tm")
    message = error_of(capsys, *fit, "--holdout", "0.3", "--holdout-output", "unmade.csv")
    assert message == "--holdout-output: - can be read once only; give a file."
    assert not (here / "unmade.tm").exists()


# ---- rows of the fit


@HOW
@pytest.mark.parametrize("target", ["price", "place", "sold"])
def test_rows_of_the_fit_are_recognised(here, capsys, how, target):
    rng = np.random.default_rng(1)
    n = 2000
    table = pd.DataFrame(
        {
            "x": rng.standard_normal(n),
            "code": rng.choice(["01", "2.0", "TRUE", "b", ""], n),
            "place": rng.choice(["a", "b"], n),
            "sold": rng.random(n) < 0.5,
            "price": rng.random(n),
        }
    )
    table[:1000].to_csv("old.csv", index=False)
    table[1000:].to_csv("new.csv", index=False)
    table[500:1500].sample(frac=1, random_state=0).to_csv("half.csv", index=False)
    assert run("fit", "old.csv", "--target", target, *QUICK, *how, "-o", "t.tm") == 0
    capsys.readouterr()
    for name, share in (("old", 1.0), ("new", 0.0), ("half", 0.5)):
        assert run("evaluate", "t.tm", f"{name}.csv", "--json") == 0
        assert json.loads(capsys.readouterr().out)["share_in_fit"] == pytest.approx(share, abs=0.1)
    assert run("evaluate", "t.tm", "old.csv") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "The rows of old.csv were in the fit: on new rows, errors are larger than these."
    assert run("evaluate", "t.tm", "half.csv") == 0
    assert " % of the rows of half.csv were in the fit" in capsys.readouterr().out.splitlines()[0]
    assert run("evaluate", "t.tm", "new.csv") == 0
    assert "in the fit" not in capsys.readouterr().out


@HOW
def test_a_fit_says_that_rows_of_a_test_file_were_in_the_fit(here, table, capsys, how):
    table.to_csv("t.csv", index=False)
    table.assign(size=-table["size"]).to_csv("other.csv", index=False)
    fit = ("fit", "t.csv", "--target", "price", *QUICK, *how, "-o", "t.tm", "--test")
    assert run(*fit, "t.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    note = lines.index("The rows of t.csv were in the fit: on new rows, errors are larger than these.")
    assert lines[note + 1] == f"{len(table)} rows of t.csv:"
    assert run(*fit, "other.csv") == 0
    assert "in the fit" not in capsys.readouterr().out


def test_the_report_says_that_rows_were_in_the_fit(here, table, capsys):
    table.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", "--target", "price", *QUICK, "-o", "t.tm") == 0
    assert run("report", "t.tm", "t.csv", "-o", "t.html") == 0
    sentence = "The rows of t.csv were in the fit"
    note, result = capsys.readouterr().out.splitlines()[-2:]
    assert note.startswith(sentence)
    assert result.startswith("t.html: ")
    page = (here / "t.html").read_text(encoding="utf-8")
    assert f'<p class="lead"><strong>{sentence}' in page


def test_a_sketch_is_of_all_rows_however_they_are_divided():
    rng = np.random.default_rng(0)
    X = Frame(["a", "b"], [rng.standard_normal(5000), Levels(rng.integers(-1, 3, 5000), ["u", "v", "w"])])
    y = [rng.random(5000)]
    whole = RowSketch.of(X, y)
    halves = RowSketch.of(X[:2000], [y[0][:2000]]) + RowSketch.of(X[2000:], [y[0][2000:]])
    assert len(whole.hashes) == SIZE
    np.testing.assert_array_equal(whole.hashes, halves.hashes)
    found = Overlap.of(whole.hashes, X, y)
    assert (found.compared, found.known) == (SIZE, SIZE)
    assert Overlap.of(whole.hashes, X, [y[0] + 1]).known == 0


# ---- what is printed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12384.3, "12,384"),
        (1_234_567, "1,234,567"),
        (999.96, "1,000"),
        (123.456, "123.5"),
        (-2.5, "-2.5"),
        (0.00123456, "0.001235"),
        (0, "0"),
        (1.5e-7, "1.5e-07"),
        (2e18, "2e+18"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_shown_as_people_write_them(number, text):
    assert shown(number) == text


def test_large_numbers_have_commas(here, capsys):
    rng = np.random.default_rng(0)
    x = 0.5 + rng.random(100)
    write("t.csv", {"x": 1e5 * x, "y": 1e6 * x})
    assert run("fit", "t.csv", "--target", "y", *QUICK, "--test", "t.csv", "-o", "t.tm") == 0
    printed = capsys.readouterr()
    least, most = sorted(x)[0], sorted(x)[-1]
    assert f"{1e5 * least:,.0f} to {1e5 * most:,.0f}" in printed.err
    assert f"target: y, regression, {1e6 * least:,.0f} to {1e6 * most:,.0f}" in printed.err
    assert "e+" not in printed.err + printed.out


@HOW
def test_whole_numbers_that_may_be_classes(here, capsys, how):
    rng = np.random.default_rng(0)
    write("t.csv", {"x": rng.random(100), "grade": rng.integers(1, 6, 100), "age": rng.integers(0, 90, 100)})
    note = "note: grade has 5 different whole numbers, and is predicted as a number"
    for target, options, expected in (
        ("grade", (), True),
        ("grade", ("--task", "regression"), False),
        ("grade", ("--task", "classification"), False),
        ("age", (), False),
    ):
        assert run("fit", "t.csv", "--target", target, *options, *QUICK, *how, "-o", "t.tm") == 0
        assert (note in capsys.readouterr().err) == expected


@HOW
@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_many_classes_are_told(here, capsys, how):
    columns = {"x": np.arange(300) % 7, "rent": np.arange(300) % 110, "grade": np.arange(300) % 90}
    write("t.csv", {**columns, "place": [f"p{rent}" for rent in columns["rent"]]})
    note = " has 110 classes, so the model is large and the fit slow"
    advice = "; if larger is more, leave out --task classification"
    for target, expected in (
        ("rent", f"note: rent{note}{advice}"),
        ("place", f"note: place{note}"),
        ("grade", ""),
    ):
        fit = ("fit", "t.csv", "--target", target, "--columns", "x", "--task", "classification", *QUICK)
        assert run(*fit, *how, "-o", "t.tm") == 0
        found = [line for line in capsys.readouterr().err.splitlines() if "fit slow" in line]
        assert found == [expected] * bool(expected)


def test_facts_of_a_file_do_not_outlive_its_fit(here, table):
    write("signs.csv", decorated(table))
    assert run("fit", "signs.csv", "--target", "price", *QUICK, "-o", "t.tm") == 0
    model = load("t.tm")
    assert len(model._rows_of_fit) == SIZE
    model.fit(np.random.default_rng(0).random((50, 2)), np.arange(50.0))
    model.save("again.tm")
    assert not {"_rows_of_fit", "_notations"} & set(vars(load("again.tm")))
