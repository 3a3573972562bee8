import time

import pytest

from tensormachines.experiments import parallel as module
from tensormachines.experiments.parallel import run_all


class Recorder:
    """In the place of a Run: a file for each set."""

    def __init__(self, folder, failing=None):
        self.folder, self.failing = folder, failing

    def guess(self, wanted, methods, experiments):
        return {"absent": 0.0, "long": 3.0, "medium": 2.0}.get(wanted, 1.0)

    def all(self, sets, methods, experiments, among_others=False):
        if self.failing in sets:
            raise self.error(f"{self.failing} does not work")
        for name in sets:
            (self.folder / name).write_text(f"{methods} {experiments} {among_others}")

    error: type[BaseException] = ValueError


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_set_is_run_once(tmp_path, jobs):
    run_all(Recorder(tmp_path), ["x", "y", "z"], ["krr"], ["compare"], jobs)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: f"['krr'] ['compare'] {jobs > 1}" for name in "xyz"
    }


def test_a_set_without_work_gets_no_process(tmp_path):
    run_all(Recorder(tmp_path), ["x", "absent", "y"], ["krr"], ["compare"], 3)
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y"}


def test_where_processes_cannot_be_forked_sets_follow_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(module.multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    run_all(Recorder(tmp_path), ["x", "y"], ["krr"], ["compare"], 2)
    assert (tmp_path / "x").read_text().endswith("False")  # not among others


def test_a_part_that_fails_is_told_and_the_others_end(tmp_path, capfd):
    with pytest.raises(ChildProcessError, match="The same command continues it"):
        run_all(Recorder(tmp_path, failing="x"), ["x", "y"], [], [], 2)
    assert (tmp_path / "y").exists()
    error = capfd.readouterr().err
    assert error == "tensormachines: x does not work\n"


def test_an_interrupted_part_shows_no_traceback(tmp_path, capfd):
    recorder = Recorder(tmp_path, failing="x")
    recorder.error = KeyboardInterrupt
    with pytest.raises(ChildProcessError):
        run_all(recorder, ["x", "y"], [], [], 2)
    assert capfd.readouterr().err == ""


def test_long_sets_come_first_and_no_process_waits(tmp_path):
    class Slow(Recorder):
        def all(self, sets, methods, experiments, among_others=False):
            (name,) = sets
            if name == "long":  # as long as the other process takes for the rest
                while not ((tmp_path / "medium").exists() and (tmp_path / "short").exists()):
                    time.sleep(0.01)
            else:
                assert (name == "medium") == (not (tmp_path / "medium").exists())
            super().all(sets, methods, experiments, among_others)

    run_all(Slow(tmp_path), ["short", "medium", "long"], [], [], 2)
    assert {path.name for path in tmp_path.iterdir()} == {"short", "medium", "long"}
