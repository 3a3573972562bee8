"""Errors of commands: each is one line that says what to do, and nothing is lost."""

import io
import os
import shlex
import subprocess
import sys
import warnings

import pytest

import tensormachines
from commands import QUICK, error_of, run, write
from tensormachines import TensorMachineRegressor, load
from tensormachines.cli import COMMANDS, _parser, main
from tensormachines.cli import options as options_module

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit nowhere.csv --target rent -o a.tm", "There is no file nowhere.csv"),
        ("fit . --target rent -o a.tm", ". is a folder"),
        (
            "fit flats.csv --target rents -o a.tm",
            "has no column 'rents'; did you mean 'rent'? Its columns are id, district",
        ),
        ("fit flats.csv -o a.tm", "--target must name the column to predict"),
        ("fit flats.csv --target rent -o no/where/a.tm", "there is no folder"),
        ("fit flats.csv --target rent -o .", "must name a file, got the folder"),
        (
            "fit flats.csv --target rent --ignore ID -o a.tm",
            "--ignore: flats.csv has no column 'ID'; did you mean 'id'?",
        ),
        (
            "fit flats.csv --target rent --number district -o a.tm",
            "data row 1 (counting from 1), column 'district': 'Parkside', where a number is needed",
        ),
        (
            "fit flats.csv --target id -o a.tm",
            "400 rows, too many to be classes. If it holds numbers, --number 'id' says",
        ),
        ("fit flats.csv --target size --task classification -o a.tm", "Leave out --task classification"),
        ("fit flats.csv --target rent --target rent -o a.tm", "--target names a column twice"),
        ("fit flats.csv --target district --task regression -o a.tm", "regression needs numbers"),
        (
            "fit flats.csv --target rent --weight district -o a.tm",
            "column 'district': 'Parkside', where a number is needed",
        ),
        ("fit flats.csv --target rent --test nowhere.csv -o a.tm", "There is no file nowhere.csv"),
        ("fit flats.csv --target rent --test header.csv -o a.tm", "--test: header.csv has no column 'id'"),
        (
            "fit flats.csv --target rent --test t.libsvm -o a.tm",
            "--test t.libsvm: only one of the two files has column names",
        ),
        ("fit empty.csv --target rent -o a.tm", "is empty"),
        ("fit header.csv --target rent -o a.tm", "has a header, but no rows"),
        ("fit garbage.csv --target rent -o a.tm", "is not text in UTF-8"),
        ("fit constant.csv --target y -o a.tm", "the same value in all rows"),
        ("fit unknown.csv --target y -o a.tm", "is missing in all rows"),
        ("predict nowhere.tm new.csv", "There is no file nowhere.tm"),
        ("predict damaged.tm new.csv", "it is damaged"),
        ("predict new.csv rent.tm", "The model comes first"),
        ("predict rent.tm header.csv", "has no column 'district', which the model was fitted to"),
        ("predict rent.tm wrong.csv", "wrong.csv, data row 3 (counting from 1), column 'size': 'big', where"),
        ("predict rent.tm new.csv --probabilities", "predicts numbers, not classes"),
        ("predict rent.tm new.csv --keep ide", "--keep: new.csv has no column 'ide'; did you mean 'id'?"),
        ("predict rent.tm new.csv -o out.xlsx", "must name a file that ends with .csv"),
        ("predict rent.tm new.csv -o nowhere/out.csv", "there is no folder"),
        ("predict rent.tm new.csv -o new.csv", "output would overwrite the input file"),
        ("fit flats.csv --target rent -o ./flats.csv", "output would overwrite the input file"),
        ("predict rent.tm t.parquet", "There is no file t.parquet"),
        ("predict rent.tm t.libsvm", "fitted to columns with names"),
        ("evaluate rent.tm untold.csv", "--target: untold.csv has no column 'rent'"),
        ("evaluate district.tm moon.csv", "labels that the model does not know: 'Moon'"),
        (
            "evaluate rent.tm new.csv --target rent --target size",
            "--target: the model predicts 1, got 2: rent, size.",
        ),
        (
            "evaluate rent.tm new.csv --target size",
            "--target size: that is a column which the model predicts from.",
        ),
        ("fit flats.csv --target rent --delimiter ; -o a.tm", "if that is several, give their --delimiter."),
        ("explain rent.tm", "explain needs rows: name a table"),
        ("explain rent.tm new.csv --row 1000", "has fewer rows"),
        ("explain rent.tm new.csv --output size", "--output must be rent, got 'size'."),
        (
            "explain balcony.tm new.csv --output False",
            "--output must be True, got 'False'. The output of False is its negative.",
        ),
        ("explain district.tm new.csv --output Moon", "--output must be one of Harbour, Mill Quarter"),
        ("export rent.tm -o model.xyz", "needs a format"),
        ("export rent.tm --format onnx", "ONNX is binary: give a file with -o"),
        ("demo --table flats.txt", "ends with .csv"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(here, capsys, command, message):
    table = pd.read_csv("new.csv")
    (here / "empty.csv").touch()
    (here / "header.csv").write_text("a,rent\n")
    (here / "garbage.csv").write_bytes(bytes(range(256)) * 10)
    (here / "constant.csv").write_text("x,y\n1,2\n2,2\n")
    (here / "unknown.csv").write_text("x,y\n1,\n2,NA\n")
    (here / "damaged.tm").write_bytes((here / "rent.tm").read_bytes()[:-5] + b"wrong")
    (here / "t.libsvm").write_text("1 1:1\n")
    table.astype({"size": object}).assign(size=[1, 2, "big", *range(97)]).to_csv("wrong.csv", index=False)
    table.drop(columns="rent").to_csv("untold.csv", index=False)
    table.assign(district="Moon").to_csv("moon.csv", index=False)
    assert message in error_of(capsys, *command.split())
    assert not (here / "a.tm").exists()


def test_an_output_is_complete_or_as_it_was(here, capsys):
    (here / "kept.csv").write_text("before")
    table = pd.read_csv("new.csv")
    table.astype({"size": object}).assign(size=[*range(99), "big"]).to_csv("late.csv", index=False)
    before = sorted(os.listdir(here))
    assert "data row 100 (counting from 1), column 'size'" in error_of(
        capsys, "predict", "rent.tm", "late.csv", "-o", "kept.csv"
    )
    assert (here / "kept.csv").read_text() == "before"
    assert sorted(os.listdir(here)) == before


def test_a_column_is_kept_once(here, capsys):
    run("predict", "rent.tm", "new.csv", "--keep", "id", "size", "--keep", "id")
    kept = pd.read_csv(io.StringIO(capsys.readouterr().out))
    pd.testing.assert_frame_equal(kept[["id", "size"]], pd.read_csv("new.csv")[["id", "size"]])
    assert list(kept.columns) == ["id", "size", "prediction"]


@pytest.mark.parametrize("extra", ["pyarrow", "skl2onnx"])
def test_a_missing_extra_is_named_before_the_work(here, capsys, monkeypatch, extra):
    monkeypatch.setitem(sys.modules, extra, None)
    commands = {
        "pyarrow": ["predict", "rent.tm", "new.csv", "-o", "a.parquet"],
        "skl2onnx": ["export", "rent.tm", "-o", "a.onnx"],
    }
    named = {"pyarrow": "tensormachines[parquet]", "skl2onnx": "tensormachines[onnx]"}
    assert f'pip install "{named[extra]}"' in error_of(capsys, *commands[extra])
    assert not list(here.glob("*a.*.*"))


@pytest.mark.parametrize(
    "command",
    [
        "fit t.csv --target y",
        "fit t.csv -o m.tm --degree 0",
        "fit t.csv -o m.tm --holdout 1",
        "fit t.csv -o m.tm --alpha -1",
        "fit t.csv -o m.tm --alpha much",
        "fit t.csv -o m.tm --jumps maybe",
        "fit t.csv -o m.tm --random-state x",
        "fit t.csv -o m.tm --random-state -1",
        "fit t.csv -o m.tm --n-jobs 0",
        "tune t.csv -o m.tm --cv 1",
        "fit t.csv -o m.tm --delimiter ab",
        "fit t.csv -o m.tm --no-such-option",
        "tune t.csv -o m.tm --time-budget 0",
        "predict m.tm",
        "explain m.tm t.csv --row 0",
        "export m.tm --format java",
        "unknown",
    ],
)
def test_usage(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("tensormachines")
    assert printed.endswith(" --help.\n")
    assert printed.count("\n") == 1


def test_files_after_options_that_take_names(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--target", "y", "--ignore", "id", "t.csv", "-o", "m.tm"])
    assert "data (give files first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "limits"),
    [
        ("predict m.tm t.csv --interval 90", "between 0 and 1, such as 0.9, got '90'"),
        ("fit t.csv -o m.tm --holdout 2.5", "between 0 and 1, such as 0.025, got '2.5'"),
        ("fit t.csv -o m.tm --holdout 1", "between 0 and 1, got '1'"),
        ("fit t.csv -o m.tm --power 50", "between 1 and 2, got '50'"),
    ],
)
def test_shares_that_are_given_in_per_cent(command, limits, capsys):
    with pytest.raises(SystemExit):
        main(command.split())
    assert f"must be a number {limits}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "usage"),
    [("explain", "explain model [data] [options]"), ("fit", "fit data -o MODEL [options]")],
)
def test_the_usage_shows_what_is_required(command, usage, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"usage: tensormachines {usage}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "fit flats.csv new.csv -o m.tm",
            "new.csv (for the rows of several files, give a glob in quotes, such",
        ),
        ("evaluate rent.tm new.csv --detail", "--detail. See tensormachines evaluate --help."),
    ],
)
def test_arguments_left_over(here, command, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    name = command.split()[0]
    assert printed.startswith(f"tensormachines {name}: unrecognized arguments: {message}")
    assert printed.endswith(f" See tensormachines {name} --help.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 120 for line in text.splitlines())
    examples = [
        line.split("| ")[1] if "zcat" in line else line
        for line in text.splitlines()
        if line.startswith(("  tensormachines", "  zcat"))
    ]
    assert len(examples) >= 2
    for example in examples:  # a whole line can be pasted, what is said of it too
        _, *arguments = shlex.split(example, comments=True)
        assert _parser(arguments).parse_args(arguments).command == command


def test_defaults_in_the_help_are_those_of_the_estimator(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    settings = TensorMachineRegressor().get_params()
    for option, meaning in (
        ("degree", "of the polynomial"),
        ("rank", "terms for each degree"),
        ("alpha", "the penalty, from 0 on"),
    ):
        assert f"{meaning} (default: {settings[option]})" in text
    assert f"{{auto,spline,standard,scaled,sphere,unit}} default: {settings['basis']}" in text
    assert f"default: {settings['solver']} " in text


@pytest.mark.parametrize(("command", "repeats"), [("fit", True), ("tune", False)])
def test_the_help_promises_equal_results_only_where_time_does_not_matter(command, repeats, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert ("results can be reproduced" in text) == repeats
    assert ("depend on what the time budget suffices for" in text) != repeats


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tensormachines {tensormachines.__version__}\n"


def test_an_interrupted_command(here, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(TensorMachineRegressor, "fit", interrupt)
    assert run("fit", "flats.csv", "--target", "rent", "-o", "a.tm") == 130
    assert capsys.readouterr().err.endswith("\nStopped.\n")


def test_warnings_are_one_line(here, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("fit", "flats.csv", "--target", "rent", "--solver", "lbfgs", *QUICK, "-o", "a.tm") == 0
    (here / "a.tm").unlink()
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(lines) == 1
    assert lines[0].startswith("tensormachines: warning: TensorMachineRegressor stopped at max_iter=5")


BASE_INSTALL = """
import sys
class Missing:
    def find_spec(self, name, *others):
        if name in ("pandas", "polars", "pyarrow", "matplotlib"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
from tensormachines.cli import main
options = ["--holdout", "0.2", "--degree", "2", "--max-iter", "2", "-o", "base.tm"]
code = main(["fit", "flats.csv", "--target", "rent", "--ignore", "id", *options])
sys.exit(code or main(["predict", "base.tm", "many.csv"]))
"""


def test_a_reader_that_has_enough_and_nothing_but_the_base_install(here):
    """Like head, it closes the pipe after one line of the predictions."""
    lines = (here / "new.csv").read_text().splitlines(keepends=True)
    (here / "many.csv").write_text("".join(lines[:1] + lines[1:] * 300))
    with subprocess.Popen(
        [sys.executable, "-c", BASE_INSTALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while (line := process.stdout.readline()) != "prediction\n":
            assert line
        process.stdout.close()
        assert process.wait(120) == 0
        assert process.stderr.read().splitlines()[-1].startswith("target: rent")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_what_cannot_be_written_is_said_once(here):
    """Output left in a buffer at exit causes no second message, and no other exit code."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tensormachines", "demo", "--table", "again.csv"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert (done.returncode, done.stderr) == (
        1,
        "tensormachines: standard output: No space left on device.\n",
    )


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_predictions_are_utf8_in_any_locale(here, monkeypatch):
    write("names.csv", {"größe": range(40), "y": ["été", "雪"] * 20})
    assert run("fit", "names.csv", "--target", "y", *QUICK, "-o", "names.tm") == 0
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run("predict", "names.tm", "names.csv", "--keep", "größe") == 0
    assert pd.read_csv(io.BytesIO(written.getvalue()), encoding="utf-8").columns.tolist() == [
        "größe",
        "prediction",
    ]
    assert set(load("names.tm").classes_) == {"été", "雪"}


def test_standard_streams_may_be_closed(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert error_of(capsys, "predict", "rent.tm", "-") == "Standard input is closed: name a file."
    monkeypatch.setattr(sys, "stdout", None)
    assert (
        error_of(capsys, "predict", "rent.tm", "new.csv") == "Standard output is closed: give a file with -o."
    )
    assert run("evaluate", "rent.tm", "new.csv") == 0


def test_places_are_checked_first(tmp_path):
    options_module.require_place(str(tmp_path / "new.tm"))
    with pytest.raises(FileNotFoundError, match="create it first"):
        options_module.require_place(str(tmp_path / "no" / "new.tm"))
    with pytest.raises(ValueError, match="which is a device or a pipe and would be replaced"):
        options_module.require_place(os.devnull)
