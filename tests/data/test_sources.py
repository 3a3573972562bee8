"""What all sources of row blocks share."""

import gc

import numpy as np

from row_blocks import sizes
from tensormachines import blocks


def test_representations(text, saved, tmp_path):
    a, b = text("a.csv", "x,y,w\n1,2,3\n"), text("b.csv", "x,y,w\n1,2,3\n")
    assert (
        repr(blocks.csv([a, b], "y", "w"))
        == f"<blocks.csv {a} and 1 more: 1 columns, target 'y', weight 'w'>"
    )
    X = saved("X.npy", np.ones((3, 2)))
    assert repr(blocks.npy(X, np.ones(3))) == f"<blocks.npy {X}: 3 rows, 2 columns, y the array y>"
    assert "iterable list" in repr(blocks.iterable([]))


def test_blocks_are_of_a_sensible_size_by_default(saved):
    wide, narrow = (
        saved("wide.npy", np.zeros((1100, 5000), np.uint8)),
        saved("narrow.npy", np.zeros((100_000, 3))),
    )
    assert sizes(blocks.npy(wide)) == [1024, 76]
    assert sizes(blocks.npy(narrow)) == [100_000]


def test_files_are_closed_when_an_iteration_is_left(text):
    # An open file that is forgotten is a ResourceWarning, and warnings are errors.
    for source in (
        blocks.csv(text("a.csv", "x\n" + "1\n" * 10), rows=2),
        blocks.svmlight(text("a.svm", "1 1:1\n" * 10), rows=2),
    ):
        for _ in source:
            break
        iteration = iter(source)
        next(iteration)
        del iteration
    gc.collect()
