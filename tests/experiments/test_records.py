import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from tensormachines.experiments.records import Ledger, computer, latest, read, versions


def test_a_line_is_one_line_of_json_and_comes_back(tmp_path):
    ledger = Ledger(tmp_path / "deep" / "lines.jsonl")
    ledger.append({"key": "a", "error": np.float32(0.5), "rows": np.int64(3), "reason": "two\nlines"})
    assert (tmp_path / "deep" / "lines.jsonl").read_text().count("\n") == 1
    assert read(ledger.path) == [{"key": "a", "error": 0.5, "rows": 3, "reason": "two\nlines"}]
    assert Ledger(ledger.path).by_key == ledger.by_key


def test_of_one_key_the_last_line_counts_and_in_its_place():
    first, second, third = {"key": "a", "error": 1}, {"key": "b", "error": 2}, {"key": "a", "error": 3}
    assert latest([first, second, third]) == [second, third]
    assert (
        len(latest([{"status": "crashed"}, {"status": "crashed"}])) == 2
    )  # a line without a key stands for itself


def test_a_ledger_that_goes_on_is_one_that_is_read(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    for key, error in (("a", 1), ("b", 2), ("a", 3)):
        ledger.append({"key": key, "error": error})
    assert list(ledger.by_key.items()) == list(Ledger(ledger.path).by_key.items())
    assert [line["error"] for line in ledger.by_key.values()] == [2, 3]
    assert len(read(ledger.path)) == 3


def test_half_a_line_of_a_killed_run_is_dropped_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "err')
    assert read(path) == [{"key": "a"}]
    Ledger(path).append({"key": "c"})
    assert [json.loads(text)["key"] for text in path.read_text().splitlines()] == ["a", "c"]


def test_a_file_that_is_nothing_but_half_a_line(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"ke')
    assert Ledger(path).by_key == {}
    assert path.read_bytes() == b""


def test_a_broken_line_is_told_with_its_number(tmp_path):
    path = tmp_path / "lines.jsonl"
    for after in ('{"key": "b"}\n', ""):  # also the last one, if it is whole
        path.write_text('{"key": "a"}\nnonsense\n' + after)
        with pytest.raises(ValueError, match="line 2 is not JSON"):
            read(path)


@pytest.mark.parametrize("text", ["3", "[]", "{}"])
def test_what_is_no_line_of_a_fit_is_told_with_its_number(tmp_path, text):
    (tmp_path / "lines.jsonl").write_text('{"key": "a"}\n' + text + "\n")
    with pytest.raises(ValueError, match="line 2 is not a record of a fit"):
        read(tmp_path / "lines.jsonl")


def test_what_is_not_finite_is_refused_rather_than_written_as_no_json(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.append({"key": "a", "error": float("nan")})
    assert read(ledger.path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    ledger.path = Path("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        ledger.append({"key": "a"})
    assert ledger.by_key == {}


def _append_many(path, name):
    ledger = Ledger(path)
    for number in range(50):
        ledger.append({"key": f"{name}{number}", "text": "x" * 1000})


def test_two_runs_may_write_to_one_file(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.touch()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(path, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len({line["key"] for line in read(path)}) == 100


def test_computer_and_versions():
    assert "numpy " + np.__version__ in versions()
    assert "cores" in computer()
