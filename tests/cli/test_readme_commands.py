"""The commands of the README print what it says."""

import re
from pathlib import Path

import pytest

from tensormachines.cli import main

README = Path(__file__).parents[2] / "README.md"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def commands():
    """Each with what it prints."""
    section = README.read_text(encoding="utf-8").split("## From the command line")[1].split("\n## ")[0]
    text = section.split("```console\n")[1].split("```")[0]
    pieces = [piece.split("\n", 1) for piece in re.split(r"(?:^|\n)\$ ", text)[1:]]
    return [(command, printed.strip("\n")) for command, printed in pieces]


def test_the_commands_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert [command.split()[1] for command, _ in found] == ["demo", "fit", "predict", "explain", "report"]
    for command, expected in found:
        words, _, lines = command.partition(" | head -")
        assert main(words.split()[1:]) == 0
        printed = capsys.readouterr()
        text = "\n".join((printed.err + printed.out).splitlines()[: int(lines) if lines else None])
        assert NUMBER.sub("#", text) == NUMBER.sub("#", expected)
        # The last digits depend on the processor, seconds on what else it does, and the size of a report on
        # the programs in it.
        numbers, wanted = (
            [each.replace(",", "") for each in NUMBER.findall(re.sub(r"[\d.]+ (s|kB)\b", "", part))]
            for part in (text, expected)
        )
        assert list(map(float, numbers)) == pytest.approx(list(map(float, wanted)), rel=0.02, abs=0.5)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
