"""The generated table of mixed columns, and the report of what was run on it."""

import pyarrow.parquet

from mixed_rows import LEVELS, NUMBERS, TARGET, TRAINING, generated, names, write_rows
from mixed_rows_on_disk import report


def test_the_first_rows_are_the_same_whatever_their_number(tmp_path):
    folder = write_rows(tmp_path, 300)
    few = pyarrow.parquet.read_table(folder / "0000.parquet")
    assert few.column_names == [*names(), TARGET]
    assert len(names()) == NUMBERS + len(LEVELS)
    assert few.equals(generated(TRAINING, 0, 500).slice(0, 300))
    gaps = [few[name].null_count > 0 for name in few.column_names]
    assert any(gaps[:NUMBERS])
    assert any(gaps[NUMBERS:-1])
    assert not gaps[-1]


def test_the_report_has_slopes_and_ratios():
    def line(method, rows, step, seconds, **others):
        usual = {"status": "ok", "cpu_seconds": seconds, "peak_mb": 500, "disk_mb": 10, "rmse": None}
        return {"method": method, "rows": rows, "step": step, "seconds": seconds, **usual, **others}

    text = report(
        [
            line("ours", 1000, "fit", 999.0),  # run again
            line("ours", 1000, "fit", 10.0),
            line("ours", 4000, "fit", 40.0),
            line("ours", 4000, "test", 1.0, rmse=0.6125),
            line("lightgbm", 4000, "fit", 40.0, status="exit code 1: out of memory"),
            line("cluster", 4000, "fit", 50.0),
        ]
    )
    assert "ours fit: 1.00 (asked" in text
    assert "4,000 rows, cluster / one process: 1.25" in text
    assert "| 4,000 | ours | fit | 40 | 40 | 100 | 500 | 10 | 0.6125 |" in text
    assert "out of memory" in text
    assert "999" not in text


def test_nothing_recorded_is_an_empty_table():
    assert report([]).startswith("| rows | method |")
