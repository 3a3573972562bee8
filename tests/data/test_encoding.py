"""Raw tables: what every kind of column is encoded as, what it is called, and what is refused."""

import pickle
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import OrdinalEncoder

from encoded_columns import CATEGORIES, encode, encoded, learn_columns, object_array
from tensormachines._data import encoding
from tensormachines._data.dataframes import as_frame
from tensormachines._data.encoding import Column

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAN = np.nan


# ---- what is what


NUMBERS = [
    ([1, 2, None], "Int64", [1, 2, NAN]),
    ([1.5, None, -2.0], "Float64", [1.5, NAN, -2]),
    ([1.5, None, -2.0], "Float32", [1.5, NAN, -2]),
    ([True, None, False], "boolean", [1, NAN, 0]),
    ([3, 4, 5], "UInt8", [3, 4, 5]),
    ([3, 4.5, None], object, [3, 4.5, NAN]),
    ([Decimal("1.5"), Fraction(1, 4), np.float32(2)], object, [1.5, 0.25, 2]),
    ([True, False, None], object, [1, 0, NAN]),
    ([np.True_, 0, pd.NA], object, [1, 0, NAN]),
    ([1, None, 3], "int64[pyarrow]", [1, NAN, 3]),
    ([None, None, None], "Int64", [NAN, NAN, NAN]),
]


@pytest.mark.parametrize(("values", "dtype", "expected"), NUMBERS)
def test_numbers_of_pandas(values, dtype, expected):
    kind, levels, codes = encoded(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}))
    assert (kind, levels) == ("number", None)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("dtype", CATEGORIES)
def test_strings_of_pandas(dtype):
    kind, levels, codes = encoded(pd.DataFrame({"a": pd.Series(["b", "a", None, "b", "c"], dtype=dtype)}))
    assert (kind, levels) == ("category", ("a", "b", "c"))
    np.testing.assert_array_equal(codes, [1, 0, NAN, 1, 2])


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["c", "b", "a", "unused"])])
def test_strings_of_polars(dtype):
    kind, levels, codes = encoded(pl.DataFrame({"a": pl.Series(["b", "a", None, "b", "c"], dtype=dtype)}))
    in_order = isinstance(dtype, pl.Enum)
    assert (kind, levels) == ("category", ("c", "b", "a") if in_order else ("a", "b", "c"))
    np.testing.assert_array_equal(codes, [1, 2, NAN, 1, 0] if in_order else [1, 0, NAN, 1, 2])


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pl.Series([True, None, False]), [1, NAN, 0]),
        (pl.Series([Decimal("1.5"), None, Decimal(2)]), [1.5, NAN, 2]),
        (pl.Series([3, 4.5, "not text"], dtype=pl.Object).slice(0, 2), [3, 4.5]),
    ],
)
def test_numbers_of_polars(series, expected):
    kind, _, codes = encoded(pl.DataFrame({"a": series}))
    assert kind == "number"
    np.testing.assert_array_equal(codes, expected)


def test_plain_numbers_need_no_encoding(rng):
    X = rng.standard_normal((5, 2))
    plain = [
        X,
        X.astype(np.float32),
        X > 0,
        X.astype(int),
        sparse.csr_array(X),
        pd.DataFrame(X),
        pd.DataFrame(X > 0),
        pl.DataFrame(X),
    ]
    plain.append(pd.DataFrame(X).astype(pd.SparseDtype(float)))
    plain.append(pl.DataFrame({"a": [1, None], "b": [None, 2.5]}))
    assert all(as_frame(table) is table for table in plain)


@pytest.mark.parametrize("missing", [None, NAN, float("nan"), np.float32(NAN), pd.NA, pd.NaT])
def test_every_missing_value_is_missing(missing):
    for values, kind, expected in [
        (["b", missing, "a"], "category", [1, NAN, 0]),
        ([2, missing, 1], "number", [2, NAN, 1]),
    ]:
        for table in (object_array(values), pd.DataFrame({"a": pd.Series(values, dtype=object)})):
            found, _, codes = encoded(table)
            assert found == kind
            np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize(
    "table",
    [
        object_array([None, NAN, pd.NA]),
        pd.DataFrame({"a": pd.Series([None] * 3, dtype=object)}),
        pd.DataFrame({"a": pd.Series([None] * 3, dtype="string")}),
        pd.DataFrame({"a": pd.Series([None] * 3, dtype="category")}),
        pl.DataFrame({"a": [None] * 3}),
        pl.DataFrame({"a": pl.Series([None] * 3, dtype=pl.String)}),
    ],
)
def test_nothing_but_missing_values(table):
    kind, levels, codes = encoded(table)
    assert (kind, levels) == ("category", ())
    assert np.isnan(codes).all()
    columns = learn_columns(table)
    later = encode(columns, object_array(["never", "seen", None]))
    assert np.isnan(later).all()
    assert np.isnan(encode(columns, object_array([1, 2, 3]))).all()


def test_numbers_and_strings_in_one_column_are_categories_by_their_names():
    table = object_array([1, "1", 1.0, True, "True", 2.5, np.int8(2), "x", None])
    kind, levels, codes = encoded(table)
    assert (kind, levels) == ("category", ("1", "2", "2.5", "True", "x"))
    np.testing.assert_array_equal(codes, [0, 0, 0, 3, 3, 2, 1, 4, NAN])
    backwards = table[::-1]
    np.testing.assert_array_equal(encode(learn_columns(backwards), table)[:, 0], codes)


def test_strings_that_look_like_numbers_are_categories_in_the_order_of_the_numbers():
    frame = pd.DataFrame({"zip": ["10", "9", "100", "9"]})
    kind, levels, codes = encoded(frame)
    assert (kind, levels) == ("category", ("9", "10", "100"))
    np.testing.assert_array_equal(codes, [1, 0, 2, 0])
    assert encoded(object_array(["10", "9", "100"]))[0] == "category"
    assert encoded(object_array(["10", "nan", "9"]))[1] == ("10", "9", "nan")


def test_arrays_of_strings_hold_categories():
    table = np.array([["a", "01"], ["b", "1"], ["a", "nan"]])
    string_types = [
        "U",
        *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []),
    ]  # the last since NumPy 2
    for X in map(table.astype, string_types):
        columns = learn_columns(X)
        assert columns == learn_columns(table.astype(object))
        assert columns.kinds == ("category", "category")
        assert columns.columns[1].levels == ("01", "1", "nan")
        np.testing.assert_array_equal(encode(columns, X), [[0, 0], [1, 1], [0, 2]])
    for bytes_ in (table.astype("S"), table.astype("S").astype(object)):
        with pytest.raises(TypeError, match=r"column 0 of X is of type bytes, .*Decode them to text: numpy"):
            learn_columns(bytes_)


def test_ordered_categories_keep_their_order_and_others_get_one():
    sizes = pd.Categorical(
        ["small", "large", "medium", "small"], categories=["small", "medium", "large", "huge"], ordered=True
    )
    assert encoded(pd.DataFrame({"size": sizes}))[1] == ("small", "medium", "large")
    assert encoded(pd.DataFrame({"size": sizes.as_unordered()}))[1] == ("large", "medium", "small")
    bins = pd.cut(pd.Series([1.0, 15.0, 9.0, None]), [0, 5, 10, 100])
    kind, levels, codes = encoded(pd.DataFrame({"bin": bins}))
    assert (kind, levels) == ("category", ("(0, 5]", "(5, 10]", "(10, 100]"))
    np.testing.assert_array_equal(codes, [0, 2, 1, NAN])
    numbers = pd.Categorical([30, 4, 200, 4])
    assert encoded(pd.DataFrame({"number": numbers}))[1] == ("4", "30", "200")


def test_float32_only_where_all_numbers_are():
    words = ["a", "b"]
    half = np.array([0.1, 0.2], dtype=np.float32)
    for frame, dtype in [
        (pd.DataFrame({"w": words, "x": half}), np.float32),
        (pd.DataFrame({"w": words, "x": half, "y": [True, False]}), np.float32),
        (pd.DataFrame({"w": words, "x": half, "y": [1, 2]}), np.float64),
        (pd.DataFrame({"w": words}), np.float64),
        (pl.DataFrame({"w": words, "x": half}), np.float32),
    ]:
        columns = learn_columns(frame)
        assert encode(columns, frame).dtype == dtype
        assert encode(columns, frame, np.float64).dtype == np.float64


# ---- rare and unknown levels


def test_rare_levels_are_pooled_and_unknown_ones_go_with_them():
    values = ["common"] * 296 + ["rare"] * 2 + ["once", "also once"]
    columns = learn_columns(object_array(values))
    assert columns.columns[0] == Column(("common", "rare"), pooled=True)
    assert columns.columns[0].n_codes == 3
    codes = encode(columns, object_array(["common", "rare", "once", "also once", "never seen", None]))[:, 0]
    np.testing.assert_array_equal(codes, [0, 1, 2, 2, 2, NAN])


def test_many_levels_need_more_rows_unless_most_are_rare():
    """Levels of four rows: of few levels, of many, and where they are most of the rows."""
    four = [f"four {k}" for k in range(50) for _ in range(4)]
    few, many = ["common"] * 1800, [f"six {k}" for k in range(60) for _ in range(6)]
    assert len(learn_columns(object_array(four + few)).columns[0].levels) == 51
    column = learn_columns(object_array(four + many)).columns[0]
    assert column.pooled
    assert all(level.startswith("six") for level in column.levels)
    column = learn_columns(object_array([*four, "once"])).columns[0]
    assert column.pooled
    assert len(column.levels) == 50


def test_without_rare_levels_an_unknown_one_is_missing():
    columns = learn_columns(pd.DataFrame({"a": ["x", "y"] * 50}))
    assert columns.columns[0] == Column(("x", "y"), pooled=False)
    np.testing.assert_array_equal(encode(columns, pd.DataFrame({"a": ["y", "z"]}))[:, 0], [1, NAN])


def test_codes_are_those_of_scikit_learns_encoder(rng):
    shares = np.array([0.5, 0.3, 0.15, 0.046, 0.002, 0.001, 0.001])
    values = rng.choice(np.array([*"gbadcfe"], dtype=object), p=shares, size=(1000, 3))
    values[rng.random((1000, 3)) < 0.1] = NAN
    codes = encode(learn_columns(values), values)
    assert any(column.pooled for column in learn_columns(values).columns)
    truth = OrdinalEncoder(min_frequency=2, encoded_missing_value=NAN).fit_transform(values)
    np.testing.assert_array_equal(codes, truth)
    frame = pd.DataFrame(values, columns=list("xyz"))
    many = pd.concat([frame] * 3)
    for form in (
        frame.astype("category"),
        many,
        pl.from_pandas(frame),
        pl.from_pandas(many),
        pl.from_pandas(many).cast(pl.Categorical),
    ):
        np.testing.assert_array_equal(
            encode(learn_columns(frame), form), np.tile(truth, (len(form) // 1000, 1))
        )


def test_few_rows_keep_their_levels():
    assert learn_columns(object_array(list("aabc"))).columns[0] == Column(("a", "b", "c"))
    assert learn_columns(object_array(list("ab" * 49 + "cd"))).columns[0] == Column(("a", "b"), pooled=True)


@pytest.mark.parametrize("n_levels", [1000, 1001, 2000])
def test_no_more_than_so_many_levels(n_levels, monkeypatch):
    monkeypatch.setattr(encoding, "MOST_LEVELS", 1000)
    values = [f"level {i}" for i in range(n_levels) for _ in range(6 if i % 2 else 7)]
    column = learn_columns(object_array(values)).columns[0]
    assert column.n_codes == 1000
    assert column.pooled == (n_levels > 1000)
    if n_levels == 2000:  # those of 7 rows come first
        assert all(int(level.split()[1]) % 2 == 0 for level in column.levels)


def test_a_column_of_names_without_repetition_is_harmless():
    columns = learn_columns(object_array([f"name {i}" for i in range(1000)]))
    assert columns.columns[0] == Column((), pooled=True)
    np.testing.assert_array_equal(encode(columns, object_array(["anyone", None])), [[0], [NAN]])


def test_weights_are_repetitions(rng):
    values = object_array(
        rng.choice(["a", "b", "c", "d", "e"], p=[0.9, 0.05, 0.02, 0.02, 0.01], size=200).tolist()
    )
    weight = rng.integers(0, 4, 200)
    repeated = learn_columns(np.repeat(values, weight, axis=0))
    assert learn_columns(values, weight.astype(float)) == repeated
    assert learn_columns(values, np.full(200, 1e-9)) == learn_columns(
        values
    )  # weights need not be numbers of rows
    assert learn_columns(object_array(["a", "b"]), np.array([1.0, 0.0])).columns[0] == Column(("a",))


# ---- names


def test_names_of_columns_and_levels():
    frame = pd.DataFrame(
        {"workclass": ["Private"] * 300 + ["Gov"] * 300 + ["Odd", None], "age": [*range(600), 1, 2]}
    )
    columns = learn_columns(frame)
    assert columns.names == ("workclass", "age")
    assert columns.columns[0].level_names == ["Gov", "Private", "rare levels"]
    assert columns.columns[1].level_names is None
    codes = encode(columns, frame)[:, 0]
    np.testing.assert_array_equal(codes, [1] * 300 + [0] * 300 + [2, NAN])
    assert learn_columns(frame.to_numpy()).names is None
    assert learn_columns(frame.set_axis([5, 6], axis=1)).names is None


def test_pickle():
    frame = pd.DataFrame({"a": ["x", "y", None], "b": [True, False, True]})
    columns = learn_columns(frame)
    before = pickle.loads(pickle.dumps(columns))
    np.testing.assert_array_equal(encode(before, frame), encode(columns, frame))
    assert before == pickle.loads(pickle.dumps(columns)) == columns


# ---- refused


WHEN, LASTED = datetime(2026, 1, 2), timedelta(hours=3)


@pytest.mark.parametrize(
    ("column", "dtype", "hint"),
    [
        (pd.Series([WHEN, 3], dtype=object), "datetime", "all of them are dates"),
        (pd.Series([WHEN, LASTED], dtype=object), "datetime", "all of them are dates"),
        (pd.Series([WHEN.time(), WHEN], dtype=object), "datetime", "all of them are dates"),
        (pd.Series([LASTED, "long"], dtype=object), "timedelta", "or durations"),
        (pd.Series([np.timedelta64(1, "s"), 1], dtype=object), "timedelta64", "or durations"),
        (pd.Series([pd.Period("2026")]), "Period", r"dt\.to_timestamp\(\)"),
        (pd.Series([pd.Period("2026"), None], dtype=object), "Period", r"dt\.to_timestamp\(\)"),
        (pd.Series([["a"], ["b"]]), "list", "string or a real number"),
        (pd.Series([{"a": 1}]), "dict", "string or a real number"),
        (pd.Series([b"bytes"]), "bytes", r'Decode them .* df\["name"\]\.str\.decode\("utf-8"\)'),
        (pd.Series([1 + 2j]), "complex", "string or a real number"),
        (pl.Series([["a"], ["b"]]), "List", "string or a real number"),
        (pl.Series([{"a": 1}]), "Struct", "string or a real number"),
    ],
)
def test_what_is_neither_number_nor_category_is_refused_with_a_hint(column, dtype, hint):
    frame = (pd if isinstance(column, pd.Series) else pl).DataFrame({"when": column})
    with pytest.raises(
        TypeError,
        match=rf"column 'when' is of type {dtype}.*, which is neither number nor category\..*{hint}",
    ):
        learn_columns(frame)
