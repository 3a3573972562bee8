"""The lines that a search shows while it is under way."""

import io
import re
import sys
import types
from itertools import count

import pytest

from searches import FEW
from tensormachines import (
    TensorMachineRegressorCV,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_progress_lines(regression, capsys):
    TensorMachineRegressorCV(**FEW, verbose=1).fit(*regression)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[TensorMachineRegressorCV] rung 1/2: 1 candidate left")
    assert any("rung 2/2" in line and "about" in line for line in lines)
    assert any("best score -" in line for line in lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_one_line_is_updated_on_a_terminal_and_nowhere_else(regression, capsys, monkeypatch):
    search = TensorMachineRegressorCV(**FEW)
    assert search.verbose == "auto"
    search.fit(*regression)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search.fit(*regression)
    shown = terminal.getvalue()
    assert "\n" not in shown
    assert "best score -" in shown
    assert shown.endswith("\r\x1b[K")  # the line is gone
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search.set_params(verbose=0).fit(*regression)
    assert terminal.getvalue() == ""
    assert capsys.readouterr().out == ""


class Cell:
    """An output of a cell as IPython displays it: every update replaces all of it."""

    def __init__(self, outputs, number):
        self.outputs, self.number = outputs, number

    def update(self, data, raw):
        assert raw
        self.outputs[self.number] = data["text/plain"]


def notebook(monkeypatch):
    """Make standard output one of ipykernel, and return the outputs of a cell."""
    outputs = []

    def display(data, raw, display_id):
        assert raw
        assert display_id is True
        outputs.append(data["text/plain"])
        return Cell(outputs, len(outputs) - 1)

    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["IPython.display"].display = display
    of_kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(sys, "stdout", stream := of_kernel())
    return outputs, stream


def test_one_output_of_a_notebook_is_updated(regression, monkeypatch):
    outputs, stream = notebook(monkeypatch)
    TensorMachineRegressorCV(**FEW).fit(*regression)
    assert len(outputs) == 1
    assert re.fullmatch(r"\[TensorMachineRegressorCV\] done in [\d.]+ s", outputs[0])
    search = TensorMachineRegressorCV(random_state=0, time_budget=30)
    search._clock = count().__next__
    search.fit(*regression)
    assert len(outputs) == 2
    *kept, last = outputs[1].splitlines()
    assert kept
    assert all("time_budget leaves no time for " in line for line in kept)
    assert "done in" in last
    assert stream.getvalue() == ""


def test_it_says_what_there_was_no_time_for(regression, monkeypatch):
    """By a clock that goes on by a second whenever it is read; what matters stays on the terminal."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    search = TensorMachineRegressorCV(random_state=0, time_budget=30)
    search._clock = count().__next__
    search.fit(*regression)
    kept = [line.rpartition("\x1b[K")[2] for line in terminal.getvalue().split("\n")[:-1]]
    assert kept
    assert all("time_budget leaves no time for " in line for line in kept)
