"""What the commands read of tables: the same from any format, whole or a block at a time."""

import numpy as np
import pytest

from commands import QUICK, QUICKLY, run, write
from tensormachines import TensorMachineClassifier, blocks, load

pd = pytest.importorskip("pandas")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.random(100), "sold": rng.random(100) < 0.5})


@pytest.mark.parametrize("how", [(), ("--stream",)])
@pytest.mark.parametrize("missing", [False, True])
def test_booleans_of_parquet_are_booleans(here, table, capsys, how, missing):
    pytest.importorskip("pyarrow")
    if missing:
        table["sold"] = table["sold"].astype(object).where(table.index % 10 > 0, None)
    table.to_parquet("t.parquet", index=False)
    assert run("fit", "t.parquet", "--target", "sold", *QUICK, *how, "-o", "t.tm") == 0
    assert "2 classes: False 5" in capsys.readouterr().err
    model = load("t.tm")
    assert model.classes_.tolist() == [False, True]
    assert model.classes_.dtype == bool
    rows = table[table["sold"].notna()]
    rows.to_parquet("rows.parquet", index=False)
    expected = TensorMachineClassifier(**QUICKLY).fit(blocks.parquet("rows.parquet", "sold"))
    assert expected.classes_.dtype == bool
    assert run("evaluate", "t.tm", "t.parquet") == 0
    assert f"{len(rows)} rows of t.parquet" in capsys.readouterr().out


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_column_without_a_cell_is_numbers_however_it_is_read(here, table, how):
    write("t.csv", {"x": table["x"], "empty": [""] * 100, "y": table["x"]})
    assert run("fit", "t.csv", "--target", "y", *QUICK, *how, "-o", "t.tm") == 0
    assert load("t.tm")._columns is None
