"""Sources of raw columns: a model of a file read in blocks is that of the same DataFrame."""

import gzip
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tensormachines import (
    ColumnWarning,
    TensorMachineClassifier,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines._data.column_counts import MOST_COUNTED, count_columns
from tensormachines._data.encoding import Column, columns_of
from tensormachines._data.files.cells import TextCells, first_padded
from tensormachines._data.files.csv import CsvFile
from tensormachines._data.frame import Frame, Levels
from tensormachines.export import to_json, to_python

pd = pytest.importorskip("pandas")

ROWS = 12_000  # times 7 columns: more entries than are sorted and merged in memory
QUICK = {"degree": 2, "rank": 2, "max_iter": 2, "random_state": 0}
ROUNDING = 1e-5  # of predictions about 1: the default fit is in float32, and sums in another order on disk


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(ROWS) < 0.1, np.nan, rng.standard_normal(ROWS)),
            "rooms": rng.integers(1, 9, ROWS),
            "district": rng.choice(["Harbour", "Mill, old", 'the "Park"', "line\nend"], ROWS),
            "agent": [f"agent {i}" for i in rng.geometric(0.02, ROWS)],
            "lift": rng.random(ROWS) < 0.5,
            "balcony": rng.choice(np.array([True, False, None], dtype=object), ROWS),
            "floor": [*rng.integers(0, 4, ROWS - 500).astype(str), *rng.choice(["0", "2", "attic"], 500)],
        }
    )
    frame.loc[::17, "district"] = None
    effect = frame["district"].map({"Harbour": 2.0, "Mill, old": -1.0}).fillna(0.0)
    frame["rent"] = (
        frame["size"].fillna(1.5) * frame["lift"]
        + effect
        + (frame["floor"] == "attic")
        + 0.1 * rng.standard_normal(ROWS)
    )
    return frame


@pytest.fixture(scope="module")
def new(table):
    """Rows with levels that the fit has not seen, and with others missing."""
    rows = table.sample(300, random_state=1).reset_index(drop=True).drop(columns="rent")
    rows.loc[:40, "district"] = "unheard of"
    rows.loc[30:60, "agent"] = "agent never"
    rows.loc[50:90, ["size", "floor"]] = None
    return rows


def written(frame, folder, suffix):
    path = folder / f"table{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path, row_group_size=1000)
    else:
        text = frame.to_csv(index=False)
        path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    return path


def source_of(path, **options):
    return (blocks.parquet if path.suffix == ".parquet" else blocks.csv)(path, **options)


def passes(monkeypatch):
    """How often CSV files are read, counted in a list."""
    counted, read = [], CsvFile.blocks
    monkeypatch.setattr(CsvFile, "blocks", lambda *args: counted.append(1) or read(*args))
    return counted


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_regression_is_that_of_the_dataframe(table, new, tmp_path, suffix):
    X, y = table.drop(columns="rent"), table["rent"]
    expected = TensorMachineRegressor(**QUICK).fit(X, y)
    path = written(table, tmp_path, suffix)
    model = TensorMachineRegressor(**QUICK).fit(source_of(path, target="rent", rows=2500))
    assert model._columns == expected._columns
    assert model._columns.kinds == (
        "number",
        "number",
        "category",
        "category",
        "number",
        "number",
        "category",
    )
    assert model._columns.columns[3].pooled
    assert "attic" in model._columns.columns[6].levels
    assert model.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_allclose(model.predict(new), expected.predict(new), atol=ROUNDING)
    rows = source_of(written(new, tmp_path, suffix), rows=77)
    np.testing.assert_allclose(model.predict(rows), expected.predict(new), atol=ROUNDING)
    model.save(tmp_path / "model.tm")
    np.testing.assert_array_equal(load(tmp_path / "model.tm").predict(new), model.predict(new))
    assert [len(export(model)) > 1000 for export in (to_json, to_python)] == [True, True]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_classification_weights_and_early_stopping(table, new, tmp_path, suffix):
    labelled = table.assign(
        kind=np.where(table["rent"] > 1, "dear", "cheap"), weight=np.arange(ROWS) % 9
    ).drop(columns="rent")
    path = written(labelled, tmp_path, suffix)
    X = labelled.drop(columns=["kind", "weight"])
    expected = TensorMachineClassifier(**QUICK).fit(X, labelled["kind"], labelled["weight"])
    source = source_of(path, target="kind", weight="weight", rows=3000)
    model = TensorMachineClassifier(**QUICK).fit(source)
    assert model._columns == expected._columns
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), atol=ROUNDING)
    stopped = TensorMachineClassifier(**QUICK, early_stopping=True).fit(source)
    assert stopped.score(X, labelled["kind"]) > 0.7


def test_arrow_tables_and_iterables_of_frames(table, new):
    pyarrow = pytest.importorskip("pyarrow")
    X, y = table.drop(columns="rent"), table["rent"]
    expected = TensorMachineRegressor(**QUICK).fit(X, y)
    cuts = [0, 5000, 11_600, ROWS]  # numbers alone in "floor" of the first, and text in the last
    items = [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    items[0] = items[0][0].astype({"floor": int}), items[0][1]
    for source in (
        blocks.arrow(pyarrow.Table.from_pandas(table, preserve_index=False), "rent", rows=5000),
        blocks.iterable(items),
    ):
        model = TensorMachineRegressor(**QUICK).fit(source)
        assert model._columns == expected._columns
        np.testing.assert_allclose(model.predict(new), expected.predict(new), atol=ROUNDING)
    np.testing.assert_array_equal(model.predict(blocks.iterable([new[:100], new[100:]])), model.predict(new))


def test_a_file_is_read_twice_and_once_more_if_numbers_turn_out_to_be_text(table, tmp_path, monkeypatch):
    path = written(table, tmp_path, ".csv")
    counted = passes(monkeypatch)
    TensorMachineRegressor(**QUICK).fit(
        blocks.csv(path, "rent", columns=["size", "district", "lift"], rows=2000)
    )
    assert len(counted) == 2
    counted.clear()
    TensorMachineRegressor(**QUICK).fit(blocks.csv(path, "rent", rows=2000))
    assert len(counted) == 3
    counted.clear()
    TensorMachineRegressor(**QUICK).fit(blocks.csv(path, "rent", category=["floor"], rows=2000))
    assert len(counted) == 2


def test_a_fit_to_numbers_forgets_the_columns_of_the_fit_before(table, tmp_path):
    model = TensorMachineRegressor(**QUICK).fit(table[["district", "size"]], table["rent"])
    numbers = written(table[["size", "rooms", "rent"]], tmp_path, ".csv")
    model.fit(blocks.csv(numbers, "rent"))
    assert model._columns is None
    expected = TensorMachineRegressor(**QUICK).fit(blocks.csv(numbers, "rent"))
    np.testing.assert_array_equal(
        model.predict(blocks.csv(numbers, columns=["size", "rooms"])),
        expected.predict(table[["size", "rooms"]]),
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_other_bases_name_the_first_cell_that_is_no_number(table, tmp_path, suffix):
    path = written(table, tmp_path, suffix)
    first = int(np.argmax(table["size"].isna())) + 1
    for columns, cell in (
        (
            ["rooms", "district"],
            rf"data row 2 \(counting from 1\), column 'district': {table['district'][1]!r}",
        ),
        (["rooms", "size"], rf"data row {first} \(counting from 1\), column 'size': a missing value"),
    ):
        source = source_of(path, target="rent", columns=columns, rows=1000)
        with pytest.raises(ValueError, match=rf"{cell}, where a number is needed\. Use basis=\"auto\""):
            TensorMachineRegressor(**QUICK, basis="standard").fit(source)
    fitted = TensorMachineRegressor(**QUICK, basis="standard").fit(table[["rooms", "lift"]], table["rent"])
    lines = tmp_path / "lines.csv"
    lines.write_text("rooms,lift\n1,true\n2,no\n")
    with pytest.raises(ValueError, match=r"column 'lift': 'no', where a number is needed"):
        fitted.predict(blocks.csv(lines))
    lines.write_text("rooms,lift\n,true\n")
    with pytest.raises(ValueError, match=r"data row 1 .*, column 'rooms': a missing value"):
        fitted.predict(blocks.csv(lines))


def test_levels_have_many_spellings_in_files(tmp_path):
    code = pd.Series([1.0, 2.0, 3.5] * 20, dtype="category")
    flag = pd.Series([True, False, "?"] * 20, dtype=object)
    frame = pd.DataFrame({"code": code, "flag": flag})
    model = TensorMachineRegressor(**QUICK).fit(frame, np.arange(60.0) % 3)
    (tmp_path / "t.csv").write_text("code,flag\n1,true\n2.00,FALSE\n35e-1,?\n")
    np.testing.assert_array_equal(model.predict(blocks.csv(tmp_path / "t.csv")), model.predict(frame[:3]))


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_a_cell_that_makes_a_category_of_numbers_is_told(tmp_path):
    lines = [f"{k % 30},{k % 7}\n" for k in range(200)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(lines) + "4O,3\n")
    with pytest.warns(UserWarning, match=r"column 'x' holds numbers except for '4O'.*category=\['x'\]"):
        TensorMachineRegressor(**QUICK).fit(blocks.csv(tmp_path / "t.csv", "y"))


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize("place", ["", "a"])
def test_numbers_with_leading_zeros_are_told(tmp_path, place):
    """They may be codes. The first of them may come late, and all other columns may be numbers, too."""
    codes = [str(10_000 + 7 * k % 50) for k in range(3000)] + [" 00501"]
    lines = [f"{code},0.{k % 9},{place},{k % 7}\n" for k, code in enumerate(codes)]
    (tmp_path / "t.csv").write_text("zip,x,place,y\n" + "".join(lines))
    source = blocks.csv(tmp_path / "t.csv", "y", rows=500)
    with pytest.warns(ColumnWarning, match=r"column 'zip' .*such as '00501'.*category=\['zip'\]"):
        model = TensorMachineRegressor(**QUICK).fit(source)
    assert model.predict(source).shape == (3001,)
    for kind in ("number", "category"):  # pytest makes errors of warnings
        TensorMachineRegressor(**QUICK).fit(blocks.csv(tmp_path / "t.csv", "y", **{kind: ["zip"]}))
    search = TensorMachineRegressorCV(degrees=[1], alphas=[1e-3], time_budget=1, n_members=1, random_state=0)
    with pytest.warns(ColumnWarning) as warned:
        search.fit(blocks.csv(tmp_path / "t.csv", "y"))
    assert any("such as '00501'" in str(each.message) for each in warned)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["1", "0", "", "0.0", "10"], None),
        (["0.5", "007"], None),
        (["1", "?", "\t007 ", "08"], "007"),
        (["00"], "00"),
        (["-1", "1e3", "0e1"], None),
    ],
)
def test_leading_zeros_of_whole_numbers_are_found(texts, found):
    assert first_padded(texts, TextCells(texts).numbers()) == found


def test_features_of_a_source(table, tmp_path):
    source = blocks.csv(written(table, tmp_path, ".csv"), "rent", rows=4000)
    features = TensorMachineFeatures(task="regression", **QUICK).fit(source)
    X = table.drop(columns="rent")
    np.testing.assert_allclose(features.transform(source), features.transform(X), atol=ROUNDING)


# ---- counts


@pytest.mark.parametrize(("n_rows", "n_levels"), [(3000, 40), (200_000, 20_000)])
def test_counts_add_up_to_those_of_all_rows(rng, n_rows, n_levels):
    codes, numbers = rng.integers(-1, n_levels, n_rows), rng.standard_normal(n_rows)
    frame = Frame(["level", "number"], [Levels(codes, [f"name {k}" for k in range(n_levels)]), numbers])
    weight = rng.integers(0, 3, n_rows).astype(float)
    length = n_rows // 4
    pieces = [count_columns(frame[a : a + length], weight[a : a + length]) for a in range(0, n_rows, length)]
    total = sum(pieces[1:], start=pieces[0])
    whole = count_columns(frame, weight)
    assert total.weight == whole.weight
    assert total.columns[0] == whole.columns[0]
    assert total.columns[1].total == pytest.approx(whole.columns[1].total)
    assert columns_of(frame.names, total) == columns_of(frame.names, whole)


def test_no_more_levels_are_counted_than_memory_has_room_for():
    """The rare ones are forgotten, and go with the pooled ones."""
    half = MOST_COUNTED // 2 + 1000
    common = [f"common {k}" for k in range(500)]
    counts = None
    for part in range(4):
        names = [*common, *(f"{part} {k}" for k in range(half))]
        codes = np.concatenate([np.repeat(np.arange(500), 6), np.arange(500, len(names))])
        found = count_columns(Frame(["x"], [Levels(codes, names)]))
        counts = found if counts is None else counts + found
        assert len(counts.columns[0].totals) <= MOST_COUNTED
    assert counts.columns[0].forgotten
    assert columns_of(["x"], counts).columns[0] == Column(tuple(sorted(common)), pooled=True)


# ---- svmlight


def test_svmlight_is_read_as_scikit_learn_reads_it(rng, tmp_path):
    X = sparse.random(3000, 200, density=0.05, format="csr", random_state=0)
    X.data = X.data * 10.0 ** rng.integers(-200, 200, len(X.data))
    y = rng.standard_normal(3000)
    path = str(tmp_path / "t.svm")
    dump_svmlight_file(X, y, path, comment="a line", query_id=np.arange(3000), zero_based=False)
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            rows, targets = load_svmlight_file(path, n_features=200, dtype=dtype, zero_based=False)
        if dtype == np.float32 and not np.isfinite(rows.data).all():
            continue
        chunks = list(blocks.svmlight(path, n_features=200, zero_based=False, dtype=dtype, rows=700))
        found = sparse.vstack([chunk.X for chunk in chunks], format="csr")
        np.testing.assert_array_equal(found.data, rows.data)
        np.testing.assert_array_equal(found.indices, rows.indices)
        np.testing.assert_array_equal(found.indptr, rows.indptr)
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), targets)
        assert found.dtype == rows.dtype


def test_whole_numbers_beyond_floats_are_levels_of_their_own(tmp_path):
    """As floats, these and their neighbours would be the same number."""
    known, others = (2**53, 2**53 + 4), (2**53 + 1, 2**53 + 3)
    table = pd.DataFrame({"account": np.repeat(known, 100), "y": np.repeat([0.0, 10.0], 100)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    new = pd.DataFrame({"account": [*known, *others, 7]})
    new.to_csv(tmp_path / "new.csv", index=False)
    model = TensorMachineRegressor(random_state=0)
    model.fit(blocks.csv(tmp_path / "rows.csv", target="y", category=["account"]))
    predicted = model.predict(blocks.csv(tmp_path / "new.csv"))
    np.testing.assert_allclose(predicted[:2], [0, 10], atol=0.1)
    np.testing.assert_array_equal(predicted[2:], predicted[4])
