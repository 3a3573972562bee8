import json
import multiprocessing

import numpy as np
import pytest

from tensormachines.bench.records import Ledger, machine, read, versions


def test_a_line_is_one_line_of_json_and_comes_back(tmp_path):
    ledger = Ledger(tmp_path / "deep" / "lines.jsonl")
    ledger.append({"key": "a", "error": np.float32(0.5), "rows": np.int64(3), "reason": "two\nlines"})
    assert (tmp_path / "deep" / "lines.jsonl").read_text().count("\n") == 1
    assert read(ledger.path) == [{"key": "a", "error": 0.5, "rows": 3, "reason": "two\nlines"}]
    assert Ledger(ledger.path).by_key == ledger.by_key


def test_of_several_lines_with_one_key_the_last_counts(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    for error in (1, 2):
        ledger.append({"key": "a", "error": error})
    assert Ledger(ledger.path).by_key["a"]["error"] == 2
    assert len(read(ledger.path)) == 2


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


def test_a_broken_line_in_the_middle_is_told_with_its_number(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"key": "a"}\nnonsense\n{"key": "b"}\n')
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        read(path)


def test_what_is_not_finite_is_refused_rather_than_written_as_no_json(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.append({"key": "a", "error": float("nan")})
    assert read(ledger.path) == []


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


def test_machine_and_versions_say_what_they_should():
    assert "numpy " + np.__version__ in versions()
    assert "cores" in machine()
