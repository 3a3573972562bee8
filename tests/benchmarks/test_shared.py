"""What the benchmark scripts share: data sets, measures, timing, records."""

import json
import math

import numpy as np
import pytest

import records
import timing
from measures import error, error_of, loss_of
from sets import Sample, load


def test_error_and_loss():
    y = np.array([0.0, 2.0])
    assert error_of(np.array([1.0, 1.0]), y, 0) == 1  # the mean of the target, off by its standard deviation
    labels = np.array([0, 1, 1])
    probabilities = np.array([0.25, 0.25, 0.5])
    assert loss_of(probabilities, labels, 2) == pytest.approx(-math.log(0.75 * 0.25 * 0.5) / 3)
    assert loss_of(np.column_stack([1 - probabilities, probabilities]), labels, 2) == pytest.approx(
        loss_of(probabilities, labels, 2)
    )
    assert loss_of(np.array([[1.0, 0.0]]), np.array([1]), 2) == pytest.approx(-math.log(1e-15))
    assert error_of(np.array([0.2, 0.6, 0.4]), labels, 2) == pytest.approx(1 / 3)
    assert error_of(np.array([-0.2, 0.6, 0.4]), labels, 2, threshold=0.0) == 0
    assert error_of(np.array([[0.1, 0.9, 0.0]]), np.array([2]), 3) == 1


def test_bundled_sets_are_split_by_the_seed():
    first, again, other = (load("iris", seed) for seed in (0, 0, 1))
    assert first.train.X.shape == (112, 4)
    assert first.train.X.dtype == np.float32
    np.testing.assert_array_equal(first.test.X, again.test.X)
    assert not np.array_equal(first.test.X, other.test.X)


def test_sets_in_files_are_shuffled_and_classes_numbered(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat([-1, 1], 10)
    np.savez(
        tmp_path / "forest.npz",
        X_train=X,
        y_train=y,
        X_test=X[:4],
        y_test=y[:4],
        paper_small_train_idx=np.array([0, 1, 18, 19]),
    )
    data = load("forest", folder=tmp_path)
    assert (data.n_classes, data.task) == (2, "classification")
    np.testing.assert_array_equal(data.train.y, data.train.X[:, 0] >= 10)  # rows stay with their targets
    assert sorted(data.train.X[:, 0]) == list(range(20))
    assert not np.array_equal(data.train.X, X)
    small = load("forest", folder=tmp_path, small=True).train
    assert sorted(small.X[:, 0]) == [0, 1, 18, 19]
    assert len(small.first(3).y) == 3


def test_a_set_that_is_missing_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"kin40k\.npz does not exist: set TENSORMACHINES_DATA"):
        load("kin40k", folder=tmp_path)


def test_error_of_an_estimator():
    class Constant:
        def predict(self, X):
            return np.ones(len(X))

    X = np.zeros((2, 1))
    assert error(Constant(), Sample(X, np.array([0.0, 2.0]))) == 1  # in standard deviations
    assert error(Constant(), Sample(X, np.array([0, 1]))) == 0.5  # share of wrong classes


def test_interleaved_leaves_out_the_first_round():
    order = []
    seconds = timing.interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b"] * 3
    assert seconds.keys() == {"a", "b"}


def test_records_are_appended_as_lines_of_json(tmp_path):
    path = tmp_path / "lines.jsonl"
    assert records.read(path) == []
    for number in (np.float32(0.5), 2):
        records.append(path, {"error": number, "where": tmp_path})
    assert [line["error"] for line in records.read(path)] == [0.5, 2]
    assert len(path.read_text().splitlines()) == 2
    assert json.loads(path.read_text().splitlines()[0])["where"] == str(tmp_path)


def test_facts_name_what_is_not_installed():
    assert records.facts(["no-such-package"])["versions"].endswith("no-such-package -")


def test_markdown():
    assert records.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
