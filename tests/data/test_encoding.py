"""Raw tables: what every kind of column is encoded as, what it is called, and what is refused."""

import pickle
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import get_tags

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines._data import encoding
from tensormachines._data.dataframes import as_frame, read_frame
from tensormachines._data.encoding import Column
from tensormachines._data.frame import all_different
from tensormachines._data.training import merge_rows
from tensormachines._fit.solvers.protocol import Outcome, Solution
from tensormachines.peers import FactorizationMachineRegressor

NAN = np.nan


def learn_columns(X, sample_weight=None):
    """The columns of whatever an estimator takes, through the same door."""
    return encoding.learn_columns(read_frame(X), sample_weight)


def encode(columns, X, *dtype):
    return columns.encode(read_frame(X, columns.kinds), *dtype)


def encoded(column):
    """Kind, levels and codes of a table's only column."""
    columns = learn_columns(column)
    assert len(columns.columns) == 1
    return columns.kinds[0], columns.columns[0].levels, encode(columns, column)[:, 0]


def object_array(values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


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


CATEGORIES = ["str", "string", "string[python]", "string[pyarrow]", object, "category"]


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


def test_arrays_of_strings_hold_their_numbers_as_strings():
    table = np.array([["a", "1.5"], ["b", "2"], ["a", "nan"]])
    string_types = [
        "U",
        "S",
        *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []),
    ]  # the last since NumPy 2
    for X in map(table.astype, string_types):
        columns = learn_columns(X)
        assert columns.kinds == ("category", "number")
        np.testing.assert_array_equal(encode(columns, X), [[0, 1.5], [1, 2], [0, NAN]])


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


# ---- the same column in another form


@pytest.mark.parametrize("fitted_on", ["str", "category", object])
def test_the_same_values_in_every_form_have_the_same_codes(fitted_on):
    values = ["b", "a", None, "c", "a"]
    columns = learn_columns(pd.DataFrame({"a": pd.Series(values, dtype=fitted_on)}))
    reordered = pd.Categorical(values, categories=["unused", "c", "b", "a"])
    forms = [pd.DataFrame({"a": pd.Series(values, dtype=dtype)}) for dtype in CATEGORIES]
    forms += [pd.DataFrame({"a": reordered}), pl.DataFrame({"a": values}), object_array(values)]
    for form in forms:
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [1, 0, NAN, 2, 0])


def test_levels_that_are_numbers_come_back_in_any_form():
    columns = learn_columns(pd.DataFrame({"a": pd.Categorical([10, 2, 2, 30])}))
    forms = [
        pd.DataFrame({"a": [2, 30]}),
        pd.DataFrame({"a": [2.0, 30.0]}),
        pd.DataFrame({"a": pd.array([2, 30], dtype="Int64")}),
        pd.DataFrame({"a": ["2", "30"]}),
        np.array([[2], [30]], dtype=np.int8),
        np.array([[2.0], [30.0]], dtype=np.float32),
        object_array([np.int64(2), 30.0]),
        pl.DataFrame({"a": [2, 30]}),
    ]
    for form in forms:
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [0, 2])
    np.testing.assert_array_equal(encode(columns, np.array([[NAN], [10], [7]]))[:, 0], [NAN, 1, NAN])


def test_numbers_come_back_in_any_form():
    columns = learn_columns(object_array([1, 2, None]))
    for form in (
        np.array([[2.5], [1.0]]),
        object_array(["2.5", "1"]),
        pd.DataFrame({"a": pd.Categorical([2.5, 1])}),
    ):
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [2.5, 1])
    with pytest.raises(
        ValueError, match="column 0 of X held numbers in the fit, now it holds strings such as 'many'"
    ):
        encode(columns, object_array([1, "many"]))


MIXED = [True, False, "maybe", 3, 0.5, Decimal("2.50"), "007", "1e3", 2**60 + 1, np.float32(0.1), None]


@pytest.mark.parametrize(
    "as_form", [object_array, lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)})]
)
def test_an_entry_of_a_category_is_read_alike_whatever_the_others_are(as_form):
    columns = learn_columns(object_array(MIXED))
    assert columns.kinds == ("category",)
    codes = encode(columns, object_array(MIXED))[:, 0]
    assert len(np.unique(codes)) == len(MIXED)
    for entry, code in zip(MIXED, codes, strict=True):
        np.testing.assert_array_equal(encode(columns, as_form([entry])), [[code]])
        np.testing.assert_array_equal(encode(columns, as_form([entry, "unknown"]))[0], [code])
    unknown = encode(columns, as_form([4]))
    np.testing.assert_array_equal(unknown, encode(columns, as_form([4, "maybe"]))[:1])
    assert np.isnan(unknown).all()


def test_typed_columns_are_read_as_the_category_that_they_were():
    columns = learn_columns(object_array([True, False, "maybe", 3, None]))
    code = {name: k for k, name in enumerate(columns.columns[0].levels)}
    booleans = [True, False], [code["True"], code["False"]]
    for values, expected in (booleans, ([3, 4], [code["3"], NAN]), ([True, None], [code["True"], NAN])):
        dtype = "boolean" if True in values else None
        for form in (
            pd.DataFrame({"a": pd.array(values, dtype=dtype)}),
            pl.DataFrame({"a": values}),
            object_array(values),
        ):
            np.testing.assert_array_equal(encode(columns, form)[:, 0], expected)
    np.testing.assert_array_equal(encode(columns, np.array([[True], [False]]))[:, 0], booleans[1])
    np.testing.assert_array_equal(encode(columns, pd.DataFrame({"a": [True, False]}))[:, 0], booleans[1])


def test_lists_of_rows_are_read_as_they_are_written():
    rows = [[answer, number] for number in range(20) for answer in (True, False, "maybe")]
    model = TensorMachineRegressor(degree=2, rank=1, max_iter=2, random_state=0).fit(rows, np.arange(60))
    assert model._columns.kinds == ("category", "number")
    together = model.predict(rows)
    np.testing.assert_allclose([model.predict([row])[0] for row in rows], together, rtol=1e-9)
    np.testing.assert_allclose(model.predict(np.array(rows, dtype=object)), together, rtol=1e-9)
    assert len(np.unique(together[:3])) == 3


def test_an_array_of_strings_is_read_alike_whatever_the_others_are():
    columns = learn_columns(np.array([["007", "1"], ["x", "2.5"], ["1.0", "nan"]]))
    assert columns.kinds == ("category", "number")
    np.testing.assert_array_equal(encode(columns, np.array([["007", "1"]])), [[0, 1]])
    np.testing.assert_array_equal(encode(columns, np.array([["1.0", "1e1"]])), [[1, 10]])
    assert np.isnan(encode(columns, np.array([["7", "nan"]]))).all()


def test_an_entry_of_a_number_is_read_alike_whatever_the_others_are():
    columns = learn_columns(object_array([1, True, None, 2.5]))
    assert columns.kinds == ("number",)
    entries, expected = (
        [True, "2", 3, Decimal("0.5"), "nan", None, np.float32(0.1)],
        [1, 2, 3, 0.5, NAN, NAN, np.float32(0.1)],
    )
    np.testing.assert_array_equal(encode(columns, object_array(entries))[:, 0], expected)
    for entry, number in zip(entries, expected, strict=True):
        np.testing.assert_array_equal(encode(columns, object_array([entry])), [[number]])
    with pytest.raises(
        ValueError, match="column 0 of X held numbers in the fit, now it holds strings such as 'many'"
    ):
        encode(columns, object_array([True, "many"]))


def test_a_single_number_among_strings_is_an_unknown_level():
    columns = learn_columns(pd.DataFrame({"job": ["cook", "pilot"]}))
    for form in (
        pd.DataFrame({"job": [7]}),
        pl.DataFrame({"job": [7]}),
        np.array([[7.0]]),
        object_array([7]),
        object_array([7, 8, 9]),
    ):
        assert np.isnan(encode(columns, form)).all()
    pooled = learn_columns(object_array(["cook", "pilot"] * 200 + [True, 7]))
    assert pooled.columns[0] == Column(("cook", "pilot"), pooled=True)
    for form in (object_array([7, True]), pd.DataFrame({"job": [7, 8]}), np.array([[True], [False]])):
        np.testing.assert_array_equal(encode(pooled, form), [[2], [2]])


def test_numbers_for_strings_are_an_error():
    columns = learn_columns(pd.DataFrame({"job": ["cook", "pilot"]}))
    with pytest.raises(
        ValueError, match="column 'job' held strings such as 'cook' in the fit, now it holds numbers"
    ):
        encode(columns, np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="2 columns, in the fit there were 1"):
        encode(columns, pd.DataFrame({"job": ["cook"], "age": [3]}))
    np.testing.assert_array_equal(encode(columns, np.array([[NAN]])), [[NAN]])
    for X in (sparse.csr_array((3, 1)), np.empty((3, 1, 1), dtype=object)):
        with pytest.raises(ValueError, match="X must be a frame with columns as in the fit"):
            encode(columns, X)


def test_empty_tables():
    columns = learn_columns(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    nothing = {"a": [], "b": []}
    for frame in (
        pd.DataFrame(nothing),
        pd.DataFrame(nothing, dtype=object),
        pl.DataFrame(nothing),
        np.empty((0, 2), dtype=object),
    ):
        assert encode(columns, frame).shape == (0, 2)


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
        (pd.Series([np.timedelta64(1), 1], dtype=object), "timedelta64", "or durations"),
        (pd.Series([pd.Period("2026")]), "Period", r"dt\.to_timestamp\(\)"),
        (pd.Series([pd.Period("2026"), None], dtype=object), "Period", r"dt\.to_timestamp\(\)"),
        (pd.Series([["a"], ["b"]]), "list", "string or a real number"),
        (pd.Series([{"a": 1}]), "dict", "string or a real number"),
        (pd.Series([b"bytes"]), "bytes", "string or a real number"),
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


# ---- the door


COMPLETE = Solution(np.zeros(0), 0.0, 1, 1, Outcome.COMPLETE)


class DoorRegressor(TensorMachineRegressor):
    """Stops where the data are in: what comes after is not the business of these tests."""

    def _fit_rows(self, table, target, callbacks, deadline):
        return {"matrix": table.chunk.X, "_machine": None, "solver_": self.solver}, COMPLETE


class DoorClassifier(TensorMachineClassifier):
    def _fit_rows(self, table, target, callbacks, deadline):
        return {"matrix": table.chunk.X, "_machine": None, "solver_": self.solver}, COMPLETE


FRAME = pd.DataFrame(
    {
        "work": ["Gov", "Private", None, "Private"],
        "age": [20.0, np.nan, 40.0, 50.0],
        "member": [True, False, True, True],
    }
)
MATRIX = np.array([[0, 20, 1], [1, NAN, 0], [NAN, 40, 1], [1, 50, 1]])
Y = np.array([1.0, 2.0, 3.0, 4.0])


def in_any_order(X):
    return sorted(map(str, np.asarray(X).tolist()))


FORMS = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "array": FRAME.to_numpy(),
    "list": FRAME.to_numpy().tolist(),
}


@pytest.mark.parametrize("basis", ["spline", "auto"])
@pytest.mark.parametrize("form", FORMS)
def test_raw_tables_come_in(form, basis):
    frame = FORMS[form]
    for model, y in ((DoorRegressor(basis=basis), Y), (DoorClassifier(basis=basis), Y > 2)):
        model.fit(frame, y)
        assert in_any_order(model.matrix) == in_any_order(MATRIX)
        assert model.n_features_in_ == 3
        named = hasattr(frame, "columns")
        assert list(getattr(model, "feature_names_in_", [])) == (list(FRAME.columns) if named else [])
        assert model._columns.names == (tuple(FRAME.columns) if named else None)
        np.testing.assert_array_equal(model._check_rows(frame), MATRIX)


def test_numbers_come_in_as_they_are(rng):
    X = rng.standard_normal((5000, 20))
    X[0, 0] = NAN
    model = DoorRegressor(basis="spline").fit(X, X[:, 1])
    assert model.matrix is X
    assert model._check_rows(X) is X
    assert model._columns is None
    rows = sparse.random(30, 5, density=0.5, format="csr", random_state=0)
    model = DoorRegressor(basis="spline").fit(rows, np.arange(30))
    assert sparse.issparse(model.matrix)
    assert sparse.issparse(model._check_rows(rows))
    for frame in (
        pd.DataFrame({"a": [1.5, NAN], "b": [1, 2]}),
        pl.DataFrame({"a": [1.5, None], "b": [1, 2]}),
    ):
        model = DoorRegressor(basis="spline").fit(frame, [0.0, 1.0])
        np.testing.assert_array_equal(model._check_rows(frame), [[1.5, 1], [NAN, 2]])
        assert list(model.feature_names_in_) == ["a", "b"]
    nulls = pl.DataFrame({"a": [None, 2], "b": [1, 2]})
    np.testing.assert_array_equal(model._check_rows(nulls), [[NAN, 1], [2, 2]])


@pytest.mark.parametrize("basis", ["spline", "auto", "standard"])
def test_infinity_is_refused(basis):
    frame = pd.DataFrame({"a": ["x", "y"] if basis != "standard" else [1, 2], "b": [1.0, np.inf]})
    model = DoorRegressor(basis=basis)
    remedy = "finite" if basis == "standard" else r"finite, or missing \(NaN\)"
    message = rf"^column 'b' has infinity in row 1 \(counting from 0\): make such numbers {remedy}\.$"
    with pytest.raises(ValueError, match=message):
        model.fit(frame, [0.0, 1.0])
    assert vars(model) == vars(DoorRegressor(basis=basis))
    model.fit(frame.assign(b=1.0), [0.0, 1.0])
    with pytest.raises(ValueError, match=message):
        model._check_rows(frame)


def test_names_and_order_of_the_columns_are_checked():
    model = DoorRegressor(basis="auto").fit(FRAME, Y)
    for frame in (
        FRAME[["age", "work", "member"]],
        FRAME.rename(columns={"age": "years"}),
        FRAME[["work", "age"]],
    ):
        for form in (frame, pl.from_pandas(frame)):
            with pytest.raises(
                ValueError, match="feature names should match those that were passed during fit"
            ):
                model._check_rows(form)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model._check_rows(FRAME.to_numpy()), MATRIX)
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match="2 features"):
        model._check_rows(FRAME.to_numpy()[:, :2])
    unnamed = DoorRegressor(basis="auto").fit(FRAME.to_numpy(), Y)
    with pytest.raises(ValueError, match="2 features"):
        unnamed._check_rows(FRAME.to_numpy()[:, :2])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (FRAME, "column 'work' holds strings"),
        (pl.from_pandas(FRAME), "column 'work' holds strings"),
        (FRAME[["age"]], "column 'age' has missing values"),
        (pl.DataFrame({"age": [1, None, 3, 4]}), "column 'age' has missing values"),
        (FRAME.to_numpy(), "column 0 of X holds strings"),
        (
            pd.DataFrame({"none": pd.Series([None] * 4, dtype=object)}),
            "column 'none' holds nothing but missing values",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_other_bases_say_what_to_do(frame, reason):
    for basis, written in (("standard", '"standard"'), (None, "None")):
        with pytest.raises(
            ValueError, match=f'^basis={written} needs numbers: {reason}. Use basis="auto", which encodes'
        ):
            TensorMachineRegressor(basis=basis).fit(frame, Y)
    with pytest.raises(
        ValueError, match=f'^basis="auto" needs numbers: {reason}. Use OneHotEncoder and SimpleImputer'
    ):
        FactorizationMachineRegressor().fit(frame, Y)
    fitted = TensorMachineRegressor(basis="standard", random_state=0).fit(
        np.arange(4.0 * frame.shape[1]).reshape(4, -1) ** 2, Y
    )
    with pytest.raises(ValueError, match=reason):
        fitted.predict(frame)


def test_objects_are_refused_in_the_words_that_scikit_learn_expects():
    X = np.arange(8.0).reshape(4, 2).astype(object)
    X[0, 0] = {"foo": "bar"}
    for basis in ("auto", "standard"):
        with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
            TensorMachineRegressor(basis=basis).fit(X, Y)


def test_a_model_of_numbers_says_which_column_is_none():
    model = DoorRegressor(basis="auto").fit(FRAME[["age"]], Y)
    assert model._columns is None
    with pytest.raises(
        ValueError,
        match=r"basis=\"auto\" needs numbers: column 'age' holds strings\. In the fit all columns were",
    ):
        model._check_rows(pd.DataFrame({"age": ["old"]}))
    np.testing.assert_array_equal(
        model._check_rows(pd.DataFrame({"age": pd.array([3, None], dtype="Int64")})), [[3], [NAN]]
    )


def test_errors_of_y_and_weights_stay_theirs():
    for model in (DoorRegressor(basis="auto"), TensorMachineRegressor()):
        X = FRAME if model.basis == "auto" else FRAME[["member"]]
        with pytest.raises(ValueError, match="y has a missing value"):
            model.fit(X, [1, 2, 3, NAN])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, Y[:3])
        with pytest.raises(ValueError, match="requires y to be passed"):
            model.fit(X, None)
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[1, 2])
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[-1, 1, 1, 1])
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[0, 0, 0, 0])


def test_a_failed_fit_leaves_the_columns_as_they_were():
    model = DoorRegressor(basis="auto").fit(FRAME, Y)
    before = model._columns
    with pytest.raises(ValueError, match="y has a missing value"):
        model.fit(FRAME[["work"]].assign(work="x"), [NAN, 1, 2, 3])
    assert model._columns is before
    np.testing.assert_array_equal(model._check_rows(FRAME), MATRIX)
    model.fit(MATRIX, Y)
    assert model._columns is None
    assert not hasattr(model, "feature_names_in_")


def test_the_first_block_of_partial_fit_sets_the_columns(monkeypatch):
    seen, learn_block = [], TensorMachineRegressor._learn_block

    def learn(self, table, *rest):
        seen.append(table.chunk.X)
        learn_block(self, table, *rest)

    monkeypatch.setattr(TensorMachineRegressor, "_learn_block", learn)
    model = TensorMachineRegressor(basis="auto", random_state=0).partial_fit(FRAME, Y)
    model.partial_fit(
        pd.DataFrame({"work": ["Private", "new"], "age": [1, 2], "member": [False, False]}), [1.0, 2.0]
    )
    np.testing.assert_array_equal(seen[0], MATRIX)
    np.testing.assert_array_equal(seen[1], [[1, 1, 0], [NAN, 2, 0]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(FRAME[["age", "work", "member"]], Y)


def test_tags_tell_what_the_basis_takes():
    for estimator in (TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures):
        for basis in ("spline", "auto", "standard", None):
            tags = get_tags(estimator(basis=basis)).input_tags
            assert tags.allow_nan == tags.categorical == (basis in ("spline", "auto"))
            assert tags.sparse
    assert not get_tags(FactorizationMachineRegressor(basis="auto")).input_tags.allow_nan


def test_constant_and_duplicate_columns():
    frame = pd.DataFrame(
        {"constant": ["x"] * 4, "a": list("abab"), "same": list("abab"), "none": [None] * 4, "two": [2] * 4}
    )
    model = DoorRegressor(basis="auto").fit(frame, Y)
    assert model._columns.kinds == ("category", "category", "category", "category", "number")
    np.testing.assert_array_equal(model._check_rows(frame)[:2], [[0, 0, 0, NAN, 2], [0, 1, 1, NAN, 2]])


# ---- equal rows


def test_rows_with_missing_values_are_merged(rng):
    X = rng.integers(0, 2, (60, 3)).astype(float)
    X[rng.random((60, 3)) < 0.3] = NAN
    y = rng.integers(0, 2, (60, 1)).astype(float)
    rows, targets, weight = merge_rows(X, y, None)
    truth = {}
    for row in np.hstack([X, y]).tolist():
        truth[str(row)] = truth.get(str(row), 0) + 1
    merged = dict(zip(map(str, np.hstack([rows, targets]).tolist()), weight, strict=True))
    assert merged == truth
    order = rng.permutation(60)
    again = merge_rows(X[order], y[order], None)
    for one, other in zip((rows, targets, weight), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_are_made_different():
    assert all_different(["a", "b", "a", "a (2)", "a", "a (2)"]) == [
        "a",
        "b",
        "a (3)",
        "a (2)",
        "a (4)",
        "a (2) (2)",
    ]
    assert all_different([]) == []
