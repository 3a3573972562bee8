import subprocess
import sys

import pytest

from tensormachines import cli
from tensormachines.cli import reproduce
from tensormachines.experiments.recorder import FitFailedError


def test_help_shows_examples(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "tensormachines reproduce --profile quick" in text
    assert "basis-learner" in text


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["reproduce", "--sets", "moon"],
        ["reproduce", "--profile", "endless"],
        ["reproduce", "--jobs", "0"],
    ],
)
def test_what_cannot_be_understood_ends_with_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("tensormachines")
    assert printed.count("\n") == 1


def test_the_report_alone_fits_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "Run", None)
    (tmp_path / "lines.jsonl").touch()
    assert cli.main(["reproduce", "--report", "--output", str(tmp_path)]) == 0
    assert {"report.html", "report.md"} <= {path.name for path in tmp_path.iterdir()}
    assert str(tmp_path / "report.html") in capsys.readouterr().out


def test_errors_are_one_line_without_a_traceback(tmp_path, capsys):
    (tmp_path / "lines.jsonl").write_text("nonsense\n{}\n")
    assert cli.main(["reproduce", "--report", "--output", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tensormachines: ")
    assert "line 1 is not JSON" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report"], "there is no lines.jsonl in {folder}"),
        (["--data", "nowhere"], "--data is not a folder: nowhere"),
        (["--sets", "ebay_like", "--fail-fast"], "krr: it does not work"),
    ],
)
def test_what_goes_wrong_is_one_line(options, message, tmp_path, capsys, monkeypatch):
    def fail(self, *arguments):
        raise FitFailedError("krr: it does not work")

    monkeypatch.setattr(reproduce.Run, "all", fail)
    assert cli.main(["reproduce", "--output", str(tmp_path), *options]) == 1
    error = capsys.readouterr().err
    assert message.format(folder=tmp_path) in error
    assert error.count("\n") == 1


def test_without_matplotlib_nothing_is_fitted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "Run", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["reproduce", "--output", str(tmp_path)]) == 1
    assert 'pip install "tensormachines[demo]"' in capsys.readouterr().err


def test_an_interrupted_run_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce.Run, "all", interrupt)
    assert cli.main(["reproduce", "--output", str(tmp_path), "--sets", "ebay_like"]) == 130
    assert "Run the same command to resume." in capsys.readouterr().err


def test_options_reach_the_run(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        reproduce.Run,
        "all",
        lambda self, *arguments: asked.append((self.profile.name, self.retry, self.data.folder, *arguments)),
    )
    options = [
        "--profile",
        "quick",
        "--sets",
        "adult",
        "--methods",
        "krr",
        "--experiments",
        "compare",
        "--retry",
        "--data",
        str(tmp_path),
    ]
    assert cli.main(["reproduce", "--output", str(tmp_path), *options]) == 0
    assert asked == [("quick", True, tmp_path, ["adult"], ["krr"], ["compare"])]


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "tensormachines", "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "reproduce" in done.stdout
