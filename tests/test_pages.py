"""Pages for readers: commands print what is shown, results are the recorded ones, links lead to files."""

import re
from pathlib import Path

import pytest

from tensormachines.cli import main

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def commands():
    """Return each command with what it prints."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    text = page.split("```console\n")[1].split("```")[0]
    pieces = [piece.split("\n", 1) for piece in re.split(r"(?:^|\n)\$ ", text)[1:]]
    return [(command, printed.strip("\n")) for command, printed in pieces]


def shape_of(text):
    """The text without its numbers, nor how many digits they have."""
    return re.sub(" +", " ", NUMBER.sub("#", text))


def test_the_commands_of_the_first_session(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert [command.split()[1] for command, _ in found] == ["demo", "fit", "predict", "explain", "report"]
    for command, expected in found:
        words, _, lines = command.partition(" | head -")
        assert main(words.split()[1:]) == 0
        printed = capsys.readouterr()
        text = "\n".join((printed.err + printed.out).splitlines()[: int(lines) if lines else None])
        assert shape_of(text) == shape_of(expected)
        # The last digits depend on the processor, seconds on what else it does, and the size of a report on
        # the programs in it.
        numbers, wanted = (
            [each.replace(",", "") for each in NUMBER.findall(re.sub(r"[\d.]+ (s|kB)\b", "", part))]
            for part in (text, expected)
        )
        assert list(map(float, numbers)) == pytest.approx(list(map(float, wanted)), rel=0.02, abs=0.5)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("column", "page", "section"),
    [
        (1, "ACCURACY_TABLES.md", "Error"),
        (2, "ACCURACY_TABLES.md", "Log-loss"),
        (3, "ACCURACY.md", "Error"),
        (4, "ACCURACY.md", "Log-loss"),
    ],
)
def test_ranks_in_the_readme_are_those_of_the_benchmark(column, page, section):
    names = {
        "Tensor Machine, `...CV`": "tensormachine-cv",
        "LightGBM": "lightgbm",
        "XGBoost": "xgboost",
        "CatBoost": "catboost",
        "Tensor Machine, default settings": "tensormachine",
        "ridge or logistic regression": "linear",
    }
    shown = rows_of(ROOT / "README.md", "## How accurate is it?")[1:]
    found = rows_of(ROOT / "benchmarks" / page, f"## {section}\n")
    ranks = dict(zip(found[0], found[-1], strict=True))
    expected = {name: ranks.get(name, "not run") for name in names.values()}
    assert {names[row[0]]: row[column] for row in shown} == expected


def rows_of(path, heading):
    """Return the cells of the first Markdown table after a heading, without the line of dashes."""
    section = path.read_text(encoding="utf-8").split(heading)[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [row for row in rows if not row[0].startswith("-")]


PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/*.md", "docs/*.md", "results/*.md"]


@pytest.mark.parametrize(
    "page", sorted(path for pattern in PAGES for path in ROOT.glob(pattern)), ids=lambda page: page.name
)
def test_links_lead_to_files(page):
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)\)", prose)
    local = [target for target in targets if not target.startswith(("http://", "https://"))]
    assert [target for target in local if not (page.parent / target).exists()] == []
