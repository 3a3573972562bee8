"""The short way of few rows of a frame: the same numbers as the ordinary way, or none at all."""

import numpy as np
import pandas
import polars
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._data.dataframes import FEW_ROWS, read_few_rows, read_frame
from tensormachines._data.encoding import learn_columns

NAMES = ("size", "colour", "count", "grade", "new")


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
        "float32": frame.astype({"size": "float32", "count": "float32", "new": "float32"}),
        "categories": frame.astype({"colour": "category"}),
        "polars": in_polars,
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


@pytest.mark.parametrize("form", ["pandas", "objects", "polars", "polars categories"])
def test_levels_that_are_new_or_missing(frame, columns, form):
    frame = frame.head(3)
    frame["colour"] = ["red", "violet", None]
    some = forms(frame)[form]
    np.testing.assert_array_equal(
        read_few_rows(some, NAMES, columns.categories), columns.encode(read_frame(some, columns.kinds))
    )


def different(frame):
    """Return frames that need a closer look."""
    row = frame.head(1)
    in_polars = forms(row)["polars"]
    return {
        "another order": row[list(NAMES[::-1])],
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
        "dates": row.assign(size=[pandas.Timestamp(0)]),
        "dates for levels": row.assign(colour=[pandas.Timestamp(0)]),
        "polars, other names": in_polars.rename({"size": "Size"}),
        "polars, text": in_polars.with_columns(size=polars.lit("3")),
        "polars, float32": in_polars.with_columns(polars.col("size").cast(polars.Float32)),
        "polars, numbers for levels": in_polars.with_columns(colour=polars.lit(3)),
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
