"""The generated clicks, and the report of the fits to them."""

import numpy as np
from sklearn.datasets import load_svmlight_file

from clicks import COLUMNS, FIELDS, TRAINING, drawn, report, write_rows


def test_both_files_have_the_same_rows(tmp_path):
    path = write_rows(tmp_path, "rows", TRAINING, 200)
    columns, _, clicked = (each[:200] for each in drawn(TRAINING, 0))
    X, y = load_svmlight_file(str(path.with_suffix(".svm")), n_features=COLUMNS, zero_based=False)
    np.testing.assert_array_equal(y, clicked)
    for row in range(200):
        np.testing.assert_array_equal(X[row].indices, np.unique(columns[row]))
    first = path.with_suffix(".vw").read_text().splitlines()[0].split(" |")
    assert [int(field.split()[1]) for field in first[1:]] == columns[0].tolist()
    assert len(first) == FIELDS + 1
    assert int(first[0]) == 2 * clicked[0] - 1


def test_the_report_takes_the_last_line_of_a_fit():
    usual = {"method": "sgd", "rows": 1000, "passes": 1, "cpu_seconds": 2.0, "peak_mb": 100.0}
    lines = [{**usual, "log_loss": loss, "seconds": 2.0, "least_log_loss": 0.4} for loss in (0.7, 0.5)]
    text = report(lines)
    assert "| 1,000 | 1 | sgd | 0.5000 | 2 | 2 | 500 | 100 |" in text
    assert "0.7000" not in text
    assert "0.4000" in text
