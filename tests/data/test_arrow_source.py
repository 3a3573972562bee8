"""Rows in Parquet files, Arrow tables and datasets come back as written; what is wrong is named."""

import re
import struct
import sys
from decimal import Decimal

import numpy as np
import pytest

from row_blocks import fails, identical, row, sizes, texts, whole
from tensormachines import blocks
from tensormachines._data.files.arrow import ArrowCells
from tensormachines._data.files.open import open_columns


@pytest.fixture
def written(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(name, columns, **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns), path, **options
        )
        return path

    return write


@pytest.mark.parametrize("rows", [None, 1, 7, 33, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_folder(rng, written, tmp_path, rows, dtype):
    X, y, weight = (
        rng.standard_normal((101, 3)).astype(dtype),
        rng.integers(0, 9, 101).astype(np.int32),
        rng.random(101),
    )
    for i, part in enumerate(np.split(np.arange(101), [40, 41, 41])):
        columns = {"b": X[part, 1], "y": y[part], "a": X[part, 0], "w": weight[part], "c": X[part, 2]}
        written(
            f"data/{i}.parquet",
            {name: columns[name] for name in (sorted(columns) if i else columns)},
            row_group_size=9,
        )
    (tmp_path / "data" / "_SUCCESS").touch()
    source = blocks.parquet(tmp_path / "data", "y", "w", rows=rows)
    assert source.feature_names == ["b", "a", "c"]
    found = whole(source)
    identical(found[0], X[:, [1, 0, 2]])
    identical(found[1], y)
    identical(found[2], weight)
    if rows == 33:
        assert sizes(source) == [33, 7, 1, 33, 27]
        assert [chunk.place for chunk in source][1] == f"{tmp_path / 'data' / '0.parquet'}, rows 34 to 40"
    chosen = blocks.parquet(tmp_path / "data", ["y", "c"], columns=["a", "w"], rows=rows)
    found = whole(chosen)
    identical(found[0], np.column_stack([X[:, 0], weight]))
    identical(found[1], np.column_stack([y, X[:, 2]]).astype(np.result_type(np.int32, dtype)))


def test_parquet_numbers_are_numbers(written):
    pyarrow = pytest.importorskip("pyarrow")
    first = {
        "a.b": pyarrow.array([1, 2], pyarrow.int8()),
        "flag": [True, False],
        "half": np.array([0.5, 1], np.float16),
        "price": pyarrow.array([Decimal("1.25"), Decimal("2.50")]),
        "code": pyarrow.array([5, 7]).dictionary_encode(),
        "y": [1, 2],
    }
    second = {**first, "a.b": [0.25, 3.0], "y": [True, False]}
    expected = np.array([[1, 1, 0.5, 1.25, 5], [2, 0, 1, 2.5, 7], [0.25, 1, 0.5, 1.25, 5], [3, 0, 1, 2.5, 7]])
    found = whole(blocks.parquet([written("1.parquet", first), written("2.parquet", second)], "y"))
    identical(found[0], expected)
    identical(found[1], np.array([1, 2, 1, 0]))


@pytest.mark.parametrize("form", ["string", "large_string", "dictionary", "string_view"])
def test_parquet_labels(written, form):
    pyarrow = pytest.importorskip("pyarrow")
    labels = ["no", "yes", "", "blåbær"]
    column = (
        pyarrow.array(labels).dictionary_encode()
        if form == "dictionary"
        else pyarrow.array(labels, getattr(pyarrow, form)())
    )
    try:
        files = [
            written(name, {"x": np.arange(4.0), "y": column}, row_group_size=2)
            for name in ("1.parquet", "2.parquet")
        ]
    except pyarrow.ArrowNotImplementedError:
        pytest.skip(f"this version of pyarrow does not write {form}")
    found = whole(blocks.parquet(files, "y", rows=3))[1]
    assert found.dtype == object
    assert found.tolist() == labels * 2


def test_parquet_columns_in_the_names_of_folders(written, tmp_path):
    written("year=1/data/kind=2023/a.parquet", {"x": [1.0, 2.0]})
    written("year=1/data/kind=2024/a.parquet", {"x": [3.0]})
    source = blocks.parquet(tmp_path / "year=1" / "data", "x")
    assert source.feature_names == ["kind"]
    identical(whole(source)[0], np.array([[2023.0], [2023.0], [2024.0]]))
    written("year=1/data/kind=new%20one/a.parquet", {"x": [3.0]})
    fails(
        lambda: blocks.parquet(tmp_path / "year=1" / "data", "kind"),
        "kind=new%20one",
        "column 'kind'",
        "string",
        "int64",
    )
    written("text/kind=new%20one/a.parquet", {"x": [3.0]})
    assert whole(blocks.parquet(tmp_path / "text", "kind"))[1].tolist() == ["new one"]
    written("missing/kind=__HIVE_DEFAULT_PARTITION__/a.parquet", {"x": [3.0]})
    fails(lambda: blocks.parquet(tmp_path / "missing", "x"), "missing", "column 'kind'", "a missing value")
    identical(whole(blocks.parquet(tmp_path / "year=1" / "data" / "kind=2024"))[0], np.array([[3.0]]))
    written("only/kind=-5/a.parquet", {"x": ["text", "text"]})
    identical(whole(blocks.parquet(tmp_path / "only", columns=["kind"]))[0], np.array([[-5.0], [-5.0]]))


def test_arrow_tables_and_datasets(rng, written, tmp_path):
    pyarrow, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    X = rng.standard_normal((50, 2))
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "part": np.arange(50) // 20})
    found = whole(blocks.arrow(table, "part", columns=["b", "a"], rows=7))
    identical(found[0], X[:, ::-1])
    identical(found[1], np.arange(50) // 20)
    datasets.write_dataset(
        table, tmp_path / "data", format="parquet", partitioning=["part"], partitioning_flavor="hive"
    )
    dataset = datasets.dataset(tmp_path / "data", partitioning="hive")
    source = blocks.arrow(dataset, "part", rows=7)
    assert sizes(source) == [7, 7, 6, 7, 7, 6, 7, 3]
    found = whole(source)
    identical(found[0], X)
    np.testing.assert_array_equal(found[1], np.arange(50) // 20)
    assert next(iter(source)).place == f"{tmp_path / 'data' / 'part=0' / 'part-0.parquet'}, rows 1 to 7"
    filtered = [chunk.X for chunk in blocks.arrow(dataset.filter(datasets.field("part") > 0), "part", rows=7)]
    identical(np.concatenate(filtered), X[20:])
    memory = [chunk.X for chunk in blocks.arrow(datasets.dataset(table), "part", rows=7)]
    identical(np.concatenate(memory), X)
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table, tmp_path / "table.feather")
    identical(
        whole(blocks.arrow(datasets.dataset(tmp_path / "table.feather", format="feather"), "part", rows=7))[
            0
        ],
        X,
    )
    fails(lambda: blocks.arrow(table.to_pandas()), "pyarrow.dataset.Dataset or a pyarrow.Table", "DataFrame")
    fails(lambda: blocks.arrow(table.schema.empty_table()), "the table", "no rows")


def test_parquet_errors_of_columns(written, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    good = written("good.parquet", {"a": [1, 2], "b": [1.0, 2.0], "y": [0, 1]})

    def also(name, columns):
        return [good, written(name, columns)]

    fails(lambda: blocks.parquet(good, "z"), "good.parquet", "no column 'z'", "a, b, y")
    fails(lambda: blocks.parquet(good, columns=["a", "q"]), "good.parquet", "no column 'q'", "a, b, y")
    fails(lambda: blocks.parquet(good, "y", "y"), "'y'", "more than once")
    fails(lambda: blocks.parquet(good, columns=["a", "a"]), "'a'", "more than once")
    fails(lambda: blocks.parquet(good, columns="a"), "columns must be a list of names, got the text 'a'")
    fails(lambda: blocks.parquet(good, ["a", "b", "y"]), "good.parquet", "no columns for X")
    less, more = {"a": [1], "y": [0]}, {"a": [1], "b": [1], "y": [0], "c": [0]}
    fails(lambda: blocks.parquet(also("less.parquet", less), "y"), "less.parquet", "no column 'b'", "a, y")
    fails(
        lambda: blocks.parquet(also("more.parquet", more), "y"), "more.parquet", "column 'c'", "good.parquet"
    )
    assert sizes(blocks.parquet(also("more.parquet", more), "y", columns=["a", "b"])) == [2, 1]
    text = {"a": ["x"], "b": [1], "y": [0]}
    fails(
        lambda: blocks.parquet(also("text.parquet", text), "y"),
        "text.parquet",
        "column 'a'",
        "string",
        "int64",
        "good.parquet",
    )
    label = {"a": [1], "b": [1], "y": ["x"]}
    fails(
        lambda: blocks.parquet(also("label.parquet", label), "y"),
        "label.parquet",
        "column 'y'",
        "string",
        "int64",
        "good.parquet",
    )
    fails(
        lambda: blocks.parquet(tmp_path / "label.parquet", ["a", "y"]),
        "label.parquet",
        "['a', 'y']",
        "numbers and text",
    )
    for name, values in {
        "list": [[1.0]],
        "bytes": [b"x"],
    }.items():
        bad = written(f"{name}.parquet", {"a": [1.0], name: values})
        fails(
            lambda bad=bad: blocks.parquet(bad),
            f"{name}.parquet",
            f"column '{name}'",
            "numbers, text or dates needed, got the type",
        )
        fails(lambda bad=bad, name=name: blocks.parquet(bad, None, name), "numbers needed, got the type")
        fails(
            lambda bad=bad, name=name: blocks.parquet(bad, name),
            f"{name}.parquet",
            f"column '{name}'",
            "numbers or text needed",
        )
    twice = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    fails(
        lambda: blocks.parquet(written("twice.parquet", twice)),
        "twice.parquet",
        "more than one column named 'a'",
    )
    fails(lambda: blocks.arrow(twice), "the table", "more than one column named 'a'")


def test_parquet_errors_of_values(written):
    columns = {name: np.ones(20) for name in ("a", "b", "y", "w")}

    def with_value(name, value):
        values = [1.0] * 20
        values[15] = value
        return [
            written("good.parquet", columns),
            written("bad.parquet", {**columns, name: values}, row_group_size=6),
        ]

    for name, value, word in [
        *(("y", value, "a missing value") for value in (None, np.nan)),
        *(("w", value, "a missing value") for value in (None, np.nan)),
        *((name, np.inf, "infinity") for name in "abyw"),
    ]:
        files = with_value(name, value)
        fails(
            lambda files=files: blocks.parquet(files, "y", "w", rows=9),
            "bad.parquet",
            row(16),
            f"column '{name}'",
            word,
        )
    for value in (None, np.nan):
        X, y, weight = whole(blocks.parquet(with_value("b", value), "y", "w", rows=9))
        np.testing.assert_array_equal(np.argwhere(np.isnan(X)), [[35, 1]])
        assert y.tolist() == weight.tolist() == [1.0] * 40
    fails(
        lambda: blocks.parquet(with_value("w", -2.0), "y", "w", rows=9),
        "bad.parquet",
        row(16),
        "column 'w'",
        "negative weight, -2",
    )
    label = written("label.parquet", {"x": [1, 2], "y": ["a", None]})
    fails(lambda: blocks.parquet(label, "y"), "label.parquet", row(2), "column 'y'", "a missing value")


def test_parquet_errors_of_files(rng, written, tmp_path):
    good = written("good.parquet", {"a": rng.standard_normal(5000), "y": np.ones(5000)})
    content = good.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[:-100])
    (tmp_path / "corrupt.parquet").write_bytes(content[:4] + b"\xff" * 300 + content[304:])
    (tmp_path / "text.parquet").write_text("a,y\n1,2\n")
    (tmp_path / "zero.parquet").touch()
    (tmp_path / "folder").mkdir()
    for name in ("cut", "corrupt", "text", "zero"):
        fails(
            lambda name=name: blocks.parquet([good, tmp_path / f"{name}.parquet"], "y"),
            f"{name}.parquet",
            "cannot be read",
        )
    fails(lambda: blocks.parquet(tmp_path / "none.parquet"), "none.parquet", error=FileNotFoundError)
    fails(lambda: blocks.parquet(str(tmp_path / "no*.parquet")), "no*.parquet", error=FileNotFoundError)
    fails(lambda: blocks.parquet(tmp_path / "folder"), "folder", "no files", error=FileNotFoundError)
    fails(
        lambda: blocks.parquet("s3://bucket/data.parquet"),
        "s3://bucket",
        "blocks.arrow",
        error=FileNotFoundError,
    )
    fails(
        lambda: blocks.parquet(written("none.parquet", {"a": np.ones(0), "y": np.ones(0)}), "y"),
        "none.parquet",
        "no rows",
    )
    assert sizes(blocks.parquet([tmp_path / "none.parquet", good], "y")) == [5000]
    source = blocks.parquet(good, "y")
    good.unlink()
    fails(lambda: source, "good.parquet", error=FileNotFoundError)


def test_a_batch_as_large_as_its_file_is_not_copied(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": np.arange(200_000), "y": np.arange(200_000) * 0.5})
    path = str(tmp_path / "one.arrow")
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    before, total = pyarrow.total_allocated_bytes(), 0
    for block in open_columns(path).blocks(["y"], rows=1000):
        assert block.n_rows == 1000
        assert pyarrow.total_allocated_bytes() - before < 100_000
        total += block.cells["y"].numbers().sum()
    assert total == 0.5 * np.arange(200_000).sum()


def test_large_whole_numbers_are_different_levels(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    numbers = [2**53, 2**53 + 1, 7]
    for cells in (numbers, [*numbers, None]):
        block = ArrowCells("column 'x'", pyarrow.array(cells))
        assert texts(block.levels()) == ["9007199254740992", "9007199254740993", "7", None][: len(cells)]


def test_parquet_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for make in (blocks.parquet, blocks.arrow):
        with pytest.raises(ImportError, match=re.escape('pip install "tensormachines[parquet]"')):
            make("data.parquet")


def test_damaged_arrow_is_noticed_before_it_is_used(tmp_path):
    """Its offsets are used as they are: where they lead out of the file, the process would end."""
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    data, offsets = path.read_bytes(), struct.pack("<4i", 0, 1, 2, 3)
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, struct.pack("<4i", 0, 1, 2, 1 << 30)))
    dataset = datasets.dataset(path, format="ipc")
    for each in (dataset, dataset.filter(datasets.field("y") != "b")):  # a filter reads the offsets itself
        with pytest.raises(ValueError, match=r"t\.arrow cannot be read; it may be truncated, damaged"):
            list(blocks.arrow(each, "y"))


def test_a_dataset_names_its_file_that_is_not_there(tmp_path):
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    table = pa.table({"x": np.arange(20.0), "y": np.arange(20) % 2})
    for suffix in ("arrow", "parquet"):
        folder = tmp_path / suffix
        datasets.write_dataset(table, folder, format=suffix, max_rows_per_file=10, max_rows_per_group=10)
        dataset = datasets.dataset(folder, format=suffix)
        (folder / f"part-1.{suffix}").unlink()
        for each in (dataset, dataset.filter(datasets.field("y") >= 0)):
            with pytest.raises(FileNotFoundError, match=rf"part-1\.{suffix}"):
                list(blocks.arrow(each, "y"))


def test_dictionaries_with_unsigned_indices(tmp_path):
    """As polars and DuckDB write them."""
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, None, 1], pyarrow.uint32()), ["a", "b"])
    (chunk,) = blocks.arrow(pyarrow.table({"town": column, "y": [1.0, 2.0, 3.0, 4.0]}), "y")
    levels = chunk.X.column("town")
    assert [None if code < 0 else levels.names[code] for code in levels.codes] == ["a", "b", None, "b"]
