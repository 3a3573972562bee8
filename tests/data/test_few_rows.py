"""The short way of few rows of a frame: the same numbers as the ordinary way, or none at all."""

import numpy as np
import pytest
from sklearn.utils import check_array

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._data.dataframes import read_frame
from tensormachines._data.encoding import learn_columns
from tensormachines._data.few_rows import FEW_LEVELS, Remembered, read_few_rows
from tensormachines._data.raw_columns import FEW_ROWS

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

MANY_COLOURS = [*(f"colour {number}" for number in range(FEW_LEVELS)), "blue", "green", "red", "violet"]
NAMES = ["size", "colour", "count", "grade", "new"]


def example(n=300):
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
            "colour": rng.choice(["red", "green", "blue", None], n),
            "count": rng.integers(0, 9, n),
            "grade": pandas.Categorical(rng.choice(["b", "a"], n), ["b", "a", "z"], ordered=True),
            "new": rng.random(n) < 0.5,
        }
    )


@pytest.fixture
def frame():
    return example()


@pytest.fixture
def columns(frame):
    return learn_columns(read_frame(frame))


def forms(frame):
    """Return a frame in all forms that go the short way."""
    objects = frame.astype({"colour": object, "grade": object})
    in_polars = polars.from_pandas(objects.astype({"colour": "str", "grade": "str"}))
    return {
        "pandas": frame,
        "not consolidated": pandas.concat([frame[[name]] for name in frame], axis=1),
        "objects": objects,
        "python strings": objects.astype({"colour": pandas.StringDtype("python", na_value=np.nan)}),
        "nullable python strings": objects.astype({"colour": pandas.StringDtype("python")}),
        "nullable strings": objects.astype({"colour": pandas.StringDtype("pyarrow")}),
        "float32": frame.astype({"size": "float32", "count": "float32", "new": "float32"}),
        "categories": frame.astype({"colour": "category"}),
        "many categories": frame.astype({"colour": pandas.CategoricalDtype(MANY_COLOURS)}),
        "polars": in_polars,
        "polars, short integers": in_polars.with_columns(polars.col("count").cast(polars.UInt8)),
        "polars categories": in_polars.with_columns(polars.col("colour", "grade").cast(polars.Categorical)),
        "polars enum": in_polars.with_columns(polars.col("grade").cast(polars.Enum(["b", "a", "z"]))),
    }


@pytest.mark.parametrize("form", [*forms(example())])
@pytest.mark.parametrize("first", [0, 7])
@pytest.mark.parametrize("count", [1, 20])
def test_the_numbers_of_the_ordinary_way(frame, columns, form, first, count):
    some = forms(frame)[form][first : first + count]
    matrix = read_few_rows(some, NAMES, columns.categories)
    expected = columns.encode(read_frame(some, columns.kinds))
    np.testing.assert_array_equal(matrix, expected)
    assert matrix.dtype == expected.dtype
    assert matrix.flags.c_contiguous


@pytest.mark.parametrize("form", [*forms(example())])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("rows", [slice(0, 1), slice(1, 2), slice(2, 3), slice(0, 3)])
def test_levels_that_are_new_or_missing(frame, form, pooled, rows):
    if pooled:
        frame.loc[0, "colour"] = "rare"
    columns = learn_columns(read_frame(frame))
    frame = frame.head(3)
    frame["colour"] = ["red", "violet", None]
    some = forms(frame)[form][rows]
    matrix = read_few_rows(some, NAMES, columns.categories)
    np.testing.assert_array_equal(matrix, columns.encode(read_frame(some, columns.kinds)))
    assert columns.columns[1].pooled == pooled


@pytest.mark.parametrize("missing", [None, np.nan, np.float64("nan"), pandas.NA, pandas.NaT])
def test_every_missing_object(frame, columns, missing):
    row = frame.head(1).assign(colour=pandas.Series([missing], dtype=object))
    matrix = read_few_rows(row, NAMES, columns.categories)
    np.testing.assert_array_equal(matrix, columns.encode(read_frame(row, columns.kinds)))
    assert np.isnan(matrix[0, 1])


@pytest.mark.parametrize("name", ["size", "count", "new"])
def test_missing_numbers_of_polars(frame, columns, name):
    row = forms(frame.head(1))["polars"].with_columns(polars.lit(None).cast(polars.Float64).alias(name))
    matrix = read_few_rows(row, NAMES, columns.categories)
    np.testing.assert_array_equal(matrix, columns.encode(read_frame(row, columns.kinds)))


@pytest.mark.parametrize("levels", [[3, 1, 2], [0.5, 3.0, 1.0], [True, False], ["3", "1", "2.5"]])
def test_categories_that_are_no_strings(levels):
    frame = pandas.DataFrame(
        {"level": pandas.Categorical(levels * 20, levels), "number": np.arange(20 * len(levels))}
    )
    columns = learn_columns(read_frame(frame))
    for start in range(len(levels)):
        row = frame[start : start + 1]
        matrix = read_few_rows(row, ["level", "number"], columns.categories)
        np.testing.assert_array_equal(matrix, columns.encode(read_frame(row, columns.kinds)))


def test_what_is_remembered_is_of_one_index_and_dtype(frame, columns):
    """Objects that follow each other at the same address have different names and levels."""
    for colour in ("red", "green", "blue", "red"):
        row = frame.head(1).assign(colour=pandas.Categorical([colour], [colour]))
        matrix = read_few_rows(row, NAMES, columns.categories)
        np.testing.assert_array_equal(matrix, columns.encode(read_frame(row, columns.kinds)))
        others = row.set_axis(["size", colour, "count", "grade", "new"], axis=1)
        assert read_few_rows(others, NAMES, columns.categories) is None
        assert read_few_rows(others, list(others), columns.categories) is not None
        assert read_few_rows(others, NAMES, columns.categories) is None


def test_an_index_is_not_kept():
    index = pandas.Index(["a", "b"])
    remembered = Remembered()
    remembered[index] = "known"
    assert remembered[index] == "known"
    assert remembered[pandas.Index(["a", "b"])] is None
    del index
    assert not remembered._facts


def different(frame):
    """Return frames that need a closer look."""
    row = frame.head(1)
    in_polars = forms(row)["polars"]
    return {
        "another order": row[NAMES[::-1]],
        "other names": row.rename(columns={"size": "Size"}),
        "a column more": row.assign(more=1.0),
        "a column less": row.drop(columns="new"),
        "no names": row.set_axis(range(5), axis=1),
        "no rows": frame.head(0),
        "many rows": pandas.concat([frame] * (FEW_ROWS // len(frame) + 1)),
        "numbers for levels": row.assign(colour=[3.0]),
        "levels for numbers": row.assign(size=["large"]),
        "numbers as text": row.assign(size=["3"]),
        "objects": row.assign(size=np.array([3], dtype=object)),
        "a number among levels": row.astype({"colour": object}).assign(colour=np.array([3], dtype=object)),
        "nullable": row.astype({"count": "Int64"}),
        "two types of floats": row.astype({"size": "float32"}),
        "half": row.astype({"size": "float16"}),
        "nullable floats": row.astype({"size": "Float64"}),
        "nullable booleans": row.astype({"new": "boolean"}),
        "numbers of pyarrow": row.astype({"size": "float64[pyarrow]"}),
        "sparse": row.astype({"size": "Sparse[float64]"}),
        "a NumPy scalar among levels": row.assign(colour=np.array([np.int64(3)], dtype=object)),
        "a NumPy string among levels": row.assign(colour=pandas.Series([np.str_("red")], dtype=object)),
        "a boolean among levels": row.assign(colour=np.array([True], dtype=object)),
        "booleans for levels": row.assign(colour=[True]),
        "dates": row.assign(size=[pandas.Timestamp(0)]),
        "dates for levels": row.assign(colour=[pandas.Timestamp(0)]),
        "polars, other names": in_polars.rename({"size": "Size"}),
        "polars, text": in_polars.with_columns(size=polars.lit("3")),
        "polars, float32": in_polars.with_columns(polars.col("size").cast(polars.Float32)),
        "polars, numbers for levels": in_polars.with_columns(colour=polars.lit(3)),
        "polars, one float32": in_polars.with_columns(polars.col("size", "count").cast(polars.Float32)),
        "polars, missing text": in_polars.with_columns(size=polars.lit(None).cast(polars.String)),
        "polars, missing dates": in_polars.with_columns(size=polars.lit(None).cast(polars.Date)),
        "polars, nothing": in_polars.with_columns(size=polars.lit(None)),
        "polars, missing dates for levels": in_polars.with_columns(colour=polars.lit(None).cast(polars.Date)),
        "polars, decimals": in_polars.with_columns(polars.col("count").cast(polars.Decimal(9, 2))),
        "polars, wide integers": in_polars.with_columns(polars.col("count").cast(polars.Int128)),
        "polars, booleans for levels": in_polars.with_columns(colour=polars.lit(True)),
        "polars, another order": in_polars[NAMES[::-1]],
        "an array": row.to_numpy(),
        "rows": row.to_dict("records"),
    }


@pytest.mark.parametrize("what", [*different(example())])
def test_whatever_differs_goes_the_ordinary_way(frame, columns, what):
    assert read_few_rows(different(frame)[what], NAMES, columns.categories) is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_frames_of_numbers(rng, library, dtype):
    X = (10 * rng.standard_normal((200, 3))).astype(dtype)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame = frame if library == "pandas" else polars.from_pandas(frame)
    model = TensorMachineRegressor(degree=2, rank=2, max_iter=2, random_state=0).fit(frame, X[:, 0])
    np.testing.assert_array_equal(
        model.predict(frame[:5]), model._outputs_in_memory(model._check_data(frame[:5], reset=False))[:, 0]
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[:1].rename(columns={"a": "z"}) if library == "pandas" else frame[["b", "a", "c"]])


TYPES = ["Float64", "Float32", "Int64", "Int32", "Int16", "UInt8", "Boolean"]


@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("second", TYPES)
@pytest.mark.parametrize("value", [1, None])
@pytest.mark.parametrize("count", [1, 2])
def test_types_of_numbers_together(first, second, value, count):
    """In polars the values of a row do not tell their types, nor what type they have together."""
    columns = {"a": [1] * 9, "b": [value] * 9}
    frame = polars.DataFrame(columns, {"a": polars.Int64, "b": polars.Int64})
    frame = frame.with_columns(a=polars.col("a").cast(getattr(polars, first)))
    frame = frame.with_columns(b=polars.col("b").cast(getattr(polars, second)))[:count]
    matrix = read_few_rows(frame, ["a", "b"], {})
    expected = check_array(frame, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    assert matrix is None or matrix.dtype == expected.dtype
    assert matrix is None or matrix.flags.c_contiguous
    np.testing.assert_array_equal(expected if matrix is None else matrix, expected)
    if {first, second} <= {"Float64", "Int64", "Int32"}:
        assert matrix is not None


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize("form", [*forms(example())])
def test_predictions_of_categories(frame, form):
    some = forms(frame)[form]
    y = np.arange(len(frame)) % 3
    model = TensorMachineClassifier(degree=2, rank=2, max_iter=1, random_state=0).fit(some, y)
    for start in range(5):
        row = some[start : start + 1]
        checked = model._check_data(row, reset=False)
        np.testing.assert_array_equal(model.decision_function(row), model._outputs_in_memory(checked))
        assert model.predict_proba(row).dtype == checked.dtype
    with pytest.raises(ValueError, match="feature names"):
        model.predict(some[:1][NAMES[::-1]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_values_are_as_in_the_fit_and_infinite_ones_refused(rng, library):
    X = pandas.DataFrame(rng.standard_normal((200, 2)), columns=["a", "b"])
    y = X["a"] > 0
    whole = X if library == "pandas" else polars.from_pandas(X)
    spline = TensorMachineClassifier(max_iter=1, random_state=0).fit(whole, y)
    affine = TensorMachineClassifier(max_iter=1, basis="standard", random_state=0).fit(whole, y)
    for value in (np.nan, np.inf):
        row = type(whole)({"a": [value], "b": [1.0]})
        with pytest.raises(ValueError, match=r"missing|infinity"):
            affine.predict(row)
        if value == np.inf:
            with pytest.raises(ValueError, match="infinity"):
                spline.predict(row)
        else:
            checked = spline._check_data(row, reset=False)
            np.testing.assert_array_equal(
                spline.decision_function(row), spline._outputs_in_memory(checked)[:, 0]
            )


QUICK = {"degree": 1, "alpha": 1e-3, "max_iter": 5, "random_state": 0}


def test_few_rows_of_durations_have_the_units_of_many(rng):
    """Two columns of durations are one block in pandas, and polars makes numbers of them beside floats."""
    seconds = rng.integers(1, 100, (FEW_ROWS + 200, 2)).astype("timedelta64[s]")
    rows = {"size": rng.standard_normal(len(seconds)), "wait": seconds[:, 0], "way": seconds[:, 1]}
    y = seconds[:, 0].astype(float)
    in_pandas = pandas.DataFrame(rows).astype({"wait": "timedelta64[us]", "way": "timedelta64[us]"})
    for frame in (in_pandas, polars.from_pandas(in_pandas)):
        model = TensorMachineRegressor(**QUICK).fit(frame, y)
        np.testing.assert_allclose(model.predict(frame[:5]), model.predict(frame)[:5], rtol=1e-9)


def test_dates_of_polars_are_no_numbers_beside_floats(rng):
    numbers = polars.DataFrame({"size": rng.standard_normal(50), "day": rng.standard_normal(50)})
    model = TensorMachineRegressor(**QUICK).fit(numbers, numbers["size"].to_numpy())
    dates = numbers[:3].with_columns(day=polars.Series(["2024-01-01"] * 3).str.to_date())
    with pytest.raises(ValueError, match="needs numbers: column 'day' holds dates"):
        model.predict(dates)
