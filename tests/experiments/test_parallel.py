import pytest

from tensormachines.experiments import parallel as module
from tensormachines.experiments.parallel import deal, run_all


def test_work_is_dealt_evenly():
    assert deal({"a": 5.0, "b": 3.0, "c": 2.0, "d": 1.0}, 2) == [["a", "d"], ["b", "c"]]
    assert deal({"a": 5.0, "b": 3.0}, 4) == [["a"], ["b"]]
    assert deal({"a": 5.0, "b": 3.0}, 1) == [["a", "b"]]


class Recorder:
    """In the place of a Run: a file for each set."""

    def __init__(self, folder, failing=None):
        self.folder, self.failing = folder, failing

    def guess(self, wanted, methods, experiments):
        return 0.0 if wanted == "absent" else 1.0

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
